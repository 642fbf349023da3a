"""Plan for Claude's `conversations.json`: each conversation becomes a transcript (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_memory_migrate.conversations import Node, Reading, join_messages, to_block, to_message, to_time
from openclaw_memory_migrate.items import make_id
from openclaw_memory_migrate.types import Conversation, LeftOut

_ROLES = {"human": "user"}
_SILENT = frozenset({"token_budget", "flag"})  # blocks that hold nothing that was said


def read(place: str, conversation: Any, reading: Reading) -> Conversation | None:
    """Read a conversation of an export of Claude; see `plan_all`."""
    messages = conversation.get("chat_messages") if isinstance(conversation, Mapping) else None
    if not isinstance(messages, list):
        reading.left_out.append(LeftOut(place, "it has no list `chat_messages`"))
        return None
    title = conversation.get("name")
    title = title if isinstance(title, str) else ""
    own_id = make_id(conversation.get("uuid"), "of", title, conversation.get("created_at"))
    nodes: dict[str, Node] = {}
    before: str | None = None
    for at, item in enumerate(messages):
        where = f"{place}.chat_messages[{at}]"
        if not isinstance(item, Mapping):
            reading.left_out.append(LeftOut(where, "it is no object"))
            continue
        node_id = make_id(item.get("uuid"), f"{own_id}-{at}", item.get("text"))
        if node_id in nodes:
            reading.left_out.append(LeftOut(where, "a message before it has the same uuid"))
            continue
        # Exports of single conversations have branches; the others are lists. A parent that is no message is the root.
        parent = item.get("parent_message_uuid", before)
        nodes[node_id] = Node(node_id, parent, list(_convert_message(where, item, reading)))
        before = node_id
    leaf, created = conversation.get("current_leaf_message_uuid"), conversation.get("created_at")
    return join_messages(place, f"claude-{own_id}", nodes, leaf, title, created, reading)


def _convert_message(place: str, item: Mapping[str, Any], reading: Reading) -> Iterator[dict[str, Any]]:
    """Yield the entries of a message: each answer of a tool in it is an entry of its own, as in OpenClaw's."""
    role = str(item.get("sender") or "human")
    role = _ROLES.get(role, role)
    stamp = to_time(item.get("created_at"), reading.zone)
    stamped = {"timestamp": stamp} if stamp else {}
    blocks: list[dict[str, Any]] = list(_convert_attachments(item, reading))
    content = item.get("content")
    content_blocks: list[Any] = (
        content if isinstance(content, list) and content else [{"type": "text", "text": item.get("text")}]
    )
    for at, block in enumerate(content_blocks):
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            if blocks:
                yield {**to_message(role, blocks), **stamped}
                blocks = []
            answer = to_block(_read_answer(block.get("content"), reading))
            names = {"toolCallId": block.get("tool_use_id"), "toolName": block.get("name")}
            extra = {name: value for name, value in names.items() if value is not None}
            yield {**to_message("toolResult", [answer], **extra, isError=block.get("is_error") is True), **stamped}
        else:
            blocks += _convert_block(f"{place}.content[{at}]", block, reading)
    if blocks:
        yield {**to_message(role, blocks), **stamped}


def _convert_attachments(item: Mapping[str, Any], reading: Reading) -> Iterator[dict[str, Any]]:
    for name in ("attachments", "files"):
        listed = item.get(name)
        for attachment in listed if isinstance(listed, list) else ():
            file = attachment.get("file_name") if isinstance(attachment, Mapping) else attachment
            text = attachment.get("extracted_content") if isinstance(attachment, Mapping) else None
            if isinstance(text, str) and text.strip():
                yield to_block(f"[file: {file}]\n{text}")
            else:
                yield reading.name_file("file", file)


def _convert_block(place: str, block: Any, reading: Reading) -> Iterator[dict[str, Any]]:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "text" or (kind is None and isinstance(block, Mapping)):
        if isinstance(block.get("text"), str) and block["text"].strip():
            yield to_block(block["text"])
    elif kind == "thinking":
        if block.get("thinking"):
            yield {"type": "thinking", "thinking": str(block["thinking"])}
    elif kind == "tool_use":
        call = {"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
        yield {"type": "toolCall", **{name: value for name, value in call.items() if value is not None}}
    elif kind == "image":
        yield reading.name_file("image", block.get("file_name") or "without a name")
    elif kind not in _SILENT:
        reading.left_out.append(LeftOut(place, f"content of the type {kind!r} is unknown"))


def _read_answer(content: Any, reading: Reading) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, Mapping) and part.get("type") == "image":
            texts.append(reading.name_file("image", part.get("file_name") or "without a name")["text"])
        else:
            texts.append(json.dumps(part, ensure_ascii=False))
    return "\n".join(texts)
