"""Take out of a plan what may not be stored, and list it (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from openclaw_memory.errors import InvalidInputError, PolicyError
from openclaw_memory.text.policies import Policies
from openclaw_memory.types.migration import Conversation, LeftOut, MigrationPlan, PlacedDocument, PlacedItem, Section
from openclaw_memory.workspace.documents import check_no_secret
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES

_OF_THE_LOG = frozenset({"id", "parentId", "timestamp"})  # of an entry: they hold nothing that was said


def permitted(plan: MigrationPlan, policies: Policies) -> MigrationPlan:
    """Return the plan without what policies forbid, and without messages that are too long to be read again.

    What is taken out is in `left_out`, with the rule and never with the text. Of Markdown only the lines go.

    Args:
        plan: The plan.
        policies: The user's rules.
    """
    left_out: list[LeftOut] = []
    sections = [kept for one in plan.sections if (kept := _section(one, policies, left_out)) is not None]
    documents = [one for one in plan.documents if _is_document_stored(one, policies, left_out)]
    items = [one for one in plan.items if _is_item_stored(one, policies, left_out)]
    conversations = [replace(one, entries=tuple(_entries(one, policies, left_out))) for one in plan.conversations]
    return replace(
        plan,
        sections=tuple(sections),
        documents=tuple(documents),
        items=tuple(items),
        conversations=tuple(one for one in conversations if one.entries),
        left_out=tuple(_shown(one, policies) for one in (*plan.left_out, *left_out)),
    )


def _shown(one: LeftOut, policies: Policies) -> LeftOut:
    """Return what was left out without the names in it that a rule forbids: a place may have a namespace or an id."""
    place, reason = (
        text if policies.rule_of_name(text) is None else policies.shown_name(text) for text in (one.place, one.reason)
    )
    return LeftOut(place, reason)


def _section(section: Section, policies: Policies, left_out: list[LeftOut]) -> Section | None:
    text = "\n".join(section.lines)
    kept = policies.storable(text)
    if kept == text:
        return section
    names = ", ".join(map(repr, policies.named(policies.left_out(text))))
    lines = tuple(kept.split("\n"))
    for at, (line, was) in enumerate(zip(lines, section.lines, strict=True)):
        if line != was:
            left_out.append(LeftOut(f"line {section.first_line + at}", f"a rule says never to store it: {names}"))
    return replace(section, lines=lines) if kept.strip() else None


def _is_document_stored(one: PlacedDocument, policies: Policies, left_out: list[LeftOut]) -> bool:
    document = one.document
    try:
        policies.check(None, document.text)
        policies.check_value({"id": document.id, "of": document.metadata, "more": document.fields})
        policies.check_name(document.id)
    except PolicyError as error:
        left_out.append(LeftOut(one.place, _refusal(error)))
        return False
    return True


def _is_item_stored(one: PlacedItem, policies: Policies, left_out: list[LeftOut]) -> bool:
    """Whether an item may be stored: a value with a secret would be read masked, and lost when it is put again."""
    try:
        policies.check_value({"key": one.key, "namespace": one.namespace, "value": one.value})
        for name in (*one.namespace, one.key):
            policies.check_name(name)
        check_no_secret({one.key: one.value}, "the value")
        check_no_secret(one.namespace, "the namespace")
    except PolicyError as error:
        left_out.append(LeftOut(one.place, _refusal(error)))
        return False
    except InvalidInputError as error:
        left_out.append(LeftOut(one.place, str(error)))
        return False
    return True


def _entries(conversation: Conversation, policies: Policies, left_out: list[LeftOut]) -> Iterator[Mapping[str, Any]]:
    """Yield what may be stored of a conversation; what followed something else follows what was before that."""
    try:
        policies.check_name(conversation.session_id)
    except PolicyError as error:
        left_out.append(LeftOut(conversation.place, _refusal(error)))
        return
    before: dict[object, object] = {}
    for entry in conversation.entries:
        parent = before.get(entry["parentId"], entry["parentId"])
        try:
            policies.check_value({name: value for name, value in entry.items() if name not in _OF_THE_LOG})
            reason = "" if _size(entry) <= MAX_LINE_BYTES else f"it is longer than {MAX_LINE_BYTES:,} bytes"
        except PolicyError as error:
            reason = _refusal(error)
        if reason:
            left_out.append(LeftOut(_place(conversation, entry), reason))
            before[entry["id"]] = parent
        else:
            yield {**entry, "parentId": parent}


def _place(conversation: Conversation, entry: Mapping[str, Any]) -> str:
    return (
        f"{conversation.place}, the title"
        if entry["type"] != "message"
        else f"{conversation.place}, message {entry['id']!r}"
    )


def _size(entry: Mapping[str, Any]) -> int:
    return len(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _refusal(error: PolicyError) -> str:
    return f"a rule says never to store it: {error.rule!r}"
