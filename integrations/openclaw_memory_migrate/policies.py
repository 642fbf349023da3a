"""Remove from a plan everything that may not be stored, and list it (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from openclaw_memory.errors import PolicyError
from openclaw_memory.workspace import Workspace
from openclaw_memory_migrate.types import Conversation, LeftOut, MigrationPlan, PlacedDocument, Section

_OF_THE_LOG = frozenset({"id", "parentId", "timestamp"})  # of an entry: they hold nothing that was said


def apply_policies(plan: MigrationPlan, workspace: Workspace) -> MigrationPlan:
    """Return the plan without items that policies forbid, and without messages too long to be read again.

    Removed items are in `left_out`, with the rule and never with the text. Of Markdown only the lines go.
    """
    left_out: list[LeftOut] = []
    sections = [_filter_section(section, workspace, left_out) for section in plan.sections]
    documents = [item for item in plan.documents if _is_document_stored(item, workspace, left_out)]
    chats = [replace(chat, entries=tuple(_filter_entries(chat, workspace, left_out))) for chat in plan.conversations]
    return replace(
        plan,
        sections=tuple(filter(None, sections)),
        documents=tuple(documents),
        conversations=tuple(chat for chat in chats if chat.entries),
        left_out=tuple(_mask_item(item, workspace) for item in (*plan.left_out, *left_out)),
    )


def _mask_item(item: LeftOut, workspace: Workspace) -> LeftOut:
    """Mask the names that a rule forbids, in the place and the reason."""
    policies = workspace.policies
    place, reason = (
        policies.mask_name(text) if policies.find_name_rule(text) else text for text in (item.place, item.reason)
    )
    return LeftOut(place, reason)


def _filter_section(section: Section, workspace: Workspace, left_out: list[LeftOut]) -> Section | None:
    policies, text = workspace.policies, "\n".join(section.lines)
    storable = policies.hide_unstorable(text)
    if storable == text:
        return section
    names = policies.list_matching_rules(text)
    lines = tuple(storable.split("\n"))
    for at, (line, was) in enumerate(zip(lines, section.lines, strict=True)):
        if line != was:
            left_out.append(LeftOut(f"line {section.first_line + at}", f"a rule says never to store it: {names}"))
    return replace(section, lines=lines) if storable.strip() else None


def _is_document_stored(item: PlacedDocument, workspace: Workspace, left_out: list[LeftOut]) -> bool:
    document, policies = item.document, workspace.policies
    try:
        policies.check(None, document.text)
        policies.check_value({"id": document.id, "of": document.metadata, "more": document.fields})
        policies.check_name(document.id)
    except PolicyError as error:
        left_out.append(LeftOut(item.place, _make_refusal(error)))
        return False
    return True


def _filter_entries(chat: Conversation, workspace: Workspace, left_out: list[LeftOut]) -> Iterator[Mapping[str, Any]]:
    """Yield the storable entries of a conversation; the successor of a removed entry follows its predecessor."""
    policies, log = workspace.policies, workspace.open_log(chat.session_id)
    try:
        policies.check_name(chat.session_id)
    except PolicyError as error:
        left_out.append(LeftOut(chat.place, _make_refusal(error)))
        return
    before: dict[object, object] = {}
    for entry in chat.entries:
        parent = before.get(entry["parentId"], entry["parentId"])
        try:
            policies.check_value({name: value for name, value in entry.items() if name not in _OF_THE_LOG})
            _, reason = log.fit_entry(entry)
        except PolicyError as error:
            reason = _make_refusal(error)
        if reason:
            left_out.append(LeftOut(_mask_place(chat, entry), reason))
            before[entry["id"]] = parent
        else:
            yield {**entry, "parentId": parent}


def _mask_place(conversation: Conversation, entry: Mapping[str, Any]) -> str:
    return (
        f"{conversation.place}, the title"
        if entry["type"] != "message"
        else f"{conversation.place}, message {entry['id']!r}"
    )


def _make_refusal(error: PolicyError) -> str:
    return f"a rule says never to store it: {error.rule!r}"
