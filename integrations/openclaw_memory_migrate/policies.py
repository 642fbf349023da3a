"""Take out of a plan what may not be stored, and list it (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from openclaw_memory import Workspace
from openclaw_memory.errors import PolicyError
from openclaw_memory.workspace import MAX_LINE_BYTES
from openclaw_memory_migrate.types import Conversation, LeftOut, MigrationPlan, PlacedDocument, Section

_OF_THE_LOG = frozenset({"id", "parentId", "timestamp"})  # of an entry: they hold nothing that was said


def apply_policies(plan: MigrationPlan, workspace: Workspace) -> MigrationPlan:
    """Return the plan without what policies forbid, and without messages that are too long to be read again.

    What is taken out is in `left_out`, with the rule and never with the text. Of Markdown only the lines go.

    Args:
        plan: The plan.
        workspace: The files, with the user's rules.
    """
    left_out: list[LeftOut] = []
    sections = [kept for one in plan.sections if (kept := _section(one, workspace, left_out)) is not None]
    documents = [one for one in plan.documents if _is_document_stored(one, workspace, left_out)]
    conversations = [replace(one, entries=tuple(_entries(one, workspace, left_out))) for one in plan.conversations]
    return replace(
        plan,
        sections=tuple(sections),
        documents=tuple(documents),
        conversations=tuple(one for one in conversations if one.entries),
        left_out=tuple(_shown(one, workspace) for one in (*plan.left_out, *left_out)),
    )


def _shown(one: LeftOut, workspace: Workspace) -> LeftOut:
    """Mask the names that a rule forbids, in the place and the reason."""
    policies = workspace.policies
    place, reason = (
        text if policies.rule_of_name(text) is None else policies.shown_name(text) for text in (one.place, one.reason)
    )
    return LeftOut(place, reason)


def _section(section: Section, workspace: Workspace, left_out: list[LeftOut]) -> Section | None:
    policies, text = workspace.policies, "\n".join(section.lines)
    kept = policies.storable(text)
    if kept == text:
        return section
    names = ", ".join(map(repr, policies.named(policies.left_out(text))))
    lines = tuple(kept.split("\n"))
    for at, (line, was) in enumerate(zip(lines, section.lines, strict=True)):
        if line != was:
            left_out.append(LeftOut(f"line {section.first_line + at}", f"a rule says never to store it: {names}"))
    return replace(section, lines=lines) if kept.strip() else None


def _is_document_stored(one: PlacedDocument, workspace: Workspace, left_out: list[LeftOut]) -> bool:
    document, policies = one.document, workspace.policies
    try:
        policies.check(None, document.text)
        policies.check_value({"id": document.id, "of": document.metadata, "more": document.fields})
        policies.check_name(document.id)
    except PolicyError as error:
        left_out.append(LeftOut(one.place, _refusal(error)))
        return False
    return True


def _entries(conversation: Conversation, workspace: Workspace, left_out: list[LeftOut]) -> Iterator[Mapping[str, Any]]:
    """Yield what may be stored of a conversation; what followed something else follows what was before that."""
    policies = workspace.policies
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
