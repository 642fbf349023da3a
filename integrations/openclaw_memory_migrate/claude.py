"""Plan for Claude's `conversations.json`: each conversation becomes a transcript (pure)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_memory_migrate.conversations import Node, Reading, entries_of, message, plan_of, text_block, when
from openclaw_memory_migrate.items import id_of
from openclaw_memory_migrate.types import Conversation, LeftOut, MigrationPlan

_ROLES = {"human": "user"}
_SILENT = frozenset({"token_budget", "flag"})  # blocks that hold nothing that was said


def plan(data: Any, zone: datetime.tzinfo | None = None) -> MigrationPlan:
    """Plan for an export of Claude.

    Args:
        data: A list of conversations, or one.
        zone: The zone of the days; the machine's where None.
    """
    return plan_of("claude", data, lambda place, one, reading: _conversation(place, one, zone, reading))


def _conversation(place: str, conversation: Any, zone: datetime.tzinfo | None, reading: Reading) -> Conversation | None:
    said = conversation.get("chat_messages") if isinstance(conversation, Mapping) else None
    if not isinstance(said, list):
        reading.left_out.append(LeftOut(place, "it has no list `chat_messages`"))
        return None
    title = conversation.get("name")
    title = title if isinstance(title, str) else ""
    own_id = id_of(conversation.get("uuid"), "of", title, conversation.get("created_at"))
    nodes: dict[str, Node] = {}
    before: str | None = None
    for at, one in enumerate(said):
        where = f"{place}.chat_messages[{at}]"
        if not isinstance(one, Mapping):
            reading.left_out.append(LeftOut(where, "it is no object"))
            continue
        node_id = id_of(one.get("uuid"), f"{own_id}-{at}", one.get("text"))
        if node_id in nodes:
            reading.left_out.append(LeftOut(where, "a message before it has the same uuid"))
            continue
        # Exports of single conversations have branches; the others are lists. A parent that is no message is the root.
        parent = one.get("parent_message_uuid", before)
        nodes[node_id] = Node(node_id, parent, list(_entries(where, one, zone, reading)))
        before = node_id
    leaf = conversation.get("current_leaf_message_uuid")
    created = when(conversation.get("created_at"), zone)
    entries = entries_of(nodes, leaf if isinstance(leaf, str) else None, title, f"{own_id}-title", created)
    if not any(one["type"] == "message" for one in entries):
        reading.left_out.append(LeftOut(place, "no message of it says anything"))
        return None
    return Conversation(place, f"claude-{own_id}", entries)


def _entries(
    place: str, said: Mapping[str, Any], zone: datetime.tzinfo | None, reading: Reading
) -> Iterator[dict[str, Any]]:
    """Yield the entries of a message: each answer of a tool in it is an entry of its own, as in OpenClaw's."""
    role = str(said.get("sender") or "human")
    role = _ROLES.get(role, role)
    stamp = when(said.get("created_at"), zone)
    stamped = {"timestamp": stamp} if stamp else {}
    blocks: list[dict[str, Any]] = list(_attached(said, reading))
    content = said.get("content")
    given: list[Any] = (
        content if isinstance(content, list) and content else [{"type": "text", "text": said.get("text")}]
    )
    for at, block in enumerate(given):
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            if blocks:
                yield {**message(role, blocks), **stamped}
                blocks = []
            answer = text_block(_answer(block.get("content"), reading))
            names = {"toolCallId": block.get("tool_use_id"), "toolName": block.get("name")}
            extra = {name: value for name, value in names.items() if value is not None}
            yield {**message("toolResult", [answer], **extra, isError=block.get("is_error") is True), **stamped}
        else:
            blocks += _block(f"{place}.content[{at}]", block, reading)
    if blocks:
        yield {**message(role, blocks), **stamped}


def _attached(said: Mapping[str, Any], reading: Reading) -> Iterator[dict[str, Any]]:
    for name in ("attachments", "files"):
        listed = said.get(name)
        for one in listed if isinstance(listed, list) else ():
            file = one.get("file_name") if isinstance(one, Mapping) else one
            text = one.get("extracted_content") if isinstance(one, Mapping) else None
            if isinstance(text, str) and text.strip():
                yield text_block(f"[file: {file}]\n{text}")
            else:
                yield reading.text("file", file)


def _block(place: str, block: Any, reading: Reading) -> Iterator[dict[str, Any]]:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "text" or (kind is None and isinstance(block, Mapping)):
        if isinstance(block.get("text"), str) and block["text"].strip():
            yield text_block(block["text"])
    elif kind == "thinking":
        if block.get("thinking"):
            yield {"type": "thinking", "thinking": str(block["thinking"])}
    elif kind == "tool_use":
        call = {"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
        yield {"type": "toolCall", **{name: value for name, value in call.items() if value is not None}}
    elif kind == "image":
        yield reading.text("image", block.get("file_name") or "without a name")
    elif kind not in _SILENT:
        reading.left_out.append(LeftOut(place, f"content of the type {kind!r} is unknown"))


def _answer(content: Any, reading: Reading) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for one in content if isinstance(content, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("text"), str):
            texts.append(one["text"])
        elif isinstance(one, Mapping) and one.get("type") == "image":
            texts.append(reading.text("image", one.get("file_name") or "without a name")["text"])
        else:
            texts.append(json.dumps(one, ensure_ascii=False))
    return "\n".join(texts)
