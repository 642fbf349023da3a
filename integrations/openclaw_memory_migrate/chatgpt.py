"""Plan for ChatGPT's `conversations.json`: each conversation becomes a transcript with all its branches (pure)."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_memory_migrate.conversations import Node, Reading, entries_of, message, plan_of, text_block, when
from openclaw_memory_migrate.items import id_of
from openclaw_memory_migrate.types import Conversation, LeftOut, MigrationPlan

# Where each type of content that is not a list of parts has its texts.
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "code": ("text",),
    "execution_output": ("text",),
    "tether_quote": ("title", "url", "text"),
    "tether_browsing_display": ("result", "summary"),
    "sonic_webpage": ("title", "url", "text"),
    "system_error": ("name", "text"),
    "user_editable_context": ("user_profile", "user_instructions"),
    "model_editable_context": ("model_set_context",),
    "reasoning_recap": ("content",),
}
_MARK = "\ue200"  # of private use: it begins what the page shows as a link to a source
_ROLES = {"tool": "toolResult"}  # OpenClaw's names where they differ


def plan(data: Any, zone: datetime.tzinfo | None = None) -> MigrationPlan:
    """Plan for an export of ChatGPT.

    Args:
        data: A list of conversations, or one.
        zone: The zone of the days; the machine's where None.
    """
    return plan_of("chatgpt", data, lambda place, one, reading: _conversation(place, one, zone, reading))


def _conversation(place: str, conversation: Any, zone: datetime.tzinfo | None, reading: Reading) -> Conversation | None:
    tree = conversation.get("mapping") if isinstance(conversation, Mapping) else None
    if not isinstance(tree, Mapping):
        reading.left_out.append(LeftOut(place, "it has no `mapping` of messages"))
        return None
    nodes: dict[str, Node] = {}
    for node_id, node in tree.items():
        where = f"{place}.mapping[{node_id!r}]"
        if not isinstance(node, Mapping):
            reading.left_out.append(LeftOut(where, "it is no object"))
            continue
        parent = node.get("parent")
        entries = _entries(where, node.get("message"), zone, reading)
        nodes[node_id] = Node(node_id, parent if isinstance(parent, str) else None, entries)
    title = conversation.get("title")
    title = title if isinstance(title, str) else ""
    found = conversation.get("conversation_id") or conversation.get("id")
    own_id = id_of(found, "of", title, conversation.get("create_time"), [*tree])
    leaf = conversation.get("current_node")
    entries_all = entries_of(
        nodes,
        leaf if isinstance(leaf, str) else None,
        title,
        f"{own_id}-title",
        when(conversation.get("create_time"), zone),
    )
    if not any(one["type"] == "message" for one in entries_all):
        reading.left_out.append(LeftOut(place, "no message of it says anything"))
        return None
    return Conversation(place, f"chatgpt-{own_id}", entries_all)


def _entries(place: str, said: Any, zone: datetime.tzinfo | None, reading: Reading) -> list[dict[str, Any]]:
    if said is None:  # the root of the tree, and what was never sent
        return []
    if not isinstance(said, Mapping):
        reading.left_out.append(LeftOut(place, "its message is no object"))
        return []
    content = said.get("content")
    if not isinstance(content, Mapping):
        reading.left_out.append(LeftOut(place, "its message has no content"))
        return []
    author = said.get("author")
    author = author if isinstance(author, Mapping) else {}
    role = str(author.get("role") or "user")
    about = said.get("metadata")
    about = about if isinstance(about, Mapping) else {}
    extra: dict[str, Any] = {"toolName": author["name"]} if role == "tool" and author.get("name") else {}
    extra |= {"model": about["model_slug"]} if isinstance(about.get("model_slug"), str) else {}
    attached = about.get("attachments")
    files = [one.get("name") if isinstance(one, Mapping) else one for one in attached or () if one]
    content = _with_sources(content, about.get("content_references"))
    blocks = [*_blocks(place, content, reading), *(reading.text("file", file) for file in files)]
    if not blocks:
        return []
    entry = message(_ROLES.get(role, role), blocks, **extra)
    if said.get("weight") == 0 or about.get("is_visually_hidden_from_conversation") is True:
        entry["hidden"] = True  # it was never shown: kept, and not found by a search
    stamp = when(said.get("create_time"), zone)
    return [{**entry, "timestamp": stamp} if stamp else entry]


def _with_sources(content: Mapping[str, Any], references: Any) -> Mapping[str, Any]:
    """Return a message's content with the marks of its sources as they were shown: `alt` is a link, or empty."""
    shown = {
        one["matched_text"]: one["alt"] if isinstance(one.get("alt"), str) else ""
        for one in (references if isinstance(references, list) else ())
        if isinstance(one, Mapping) and _MARK in str(one.get("matched_text"))
    }
    parts = content.get("parts")
    if not shown or not isinstance(parts, list):
        return content
    # The longest first: one mark may begin another.
    marks = re.compile("|".join(map(re.escape, sorted(shown, key=len, reverse=True))))
    said = [marks.sub(lambda mark: shown[mark[0]], part) if isinstance(part, str) else part for part in parts]
    return {**content, "parts": said}


def _blocks(place: str, content: Mapping[str, Any], reading: Reading) -> Iterator[dict[str, Any]]:
    kind = content.get("content_type")
    if kind == "thoughts":
        for one in content.get("thoughts") or ():
            if isinstance(one, Mapping) and (thought := one.get("content") or one.get("summary")):
                yield {"type": "thinking", "thinking": str(thought)}
        return
    if isinstance(content.get("parts"), list):
        for at, part in enumerate(content["parts"]):
            yield from _part(f"{place}.parts[{at}]", part, reading)
        return
    names = _TEXTS.get(str(kind), ("text", "content", "result"))
    texts = [content[name] for name in names if isinstance(content.get(name), str) and content[name].strip()]
    if texts:
        yield text_block("\n".join(texts))
    elif str(kind) not in _TEXTS and any(value for name, value in content.items() if name != "content_type"):
        reading.left_out.append(LeftOut(place, f"content of the type {kind!r} is unknown"))


def _part(place: str, part: Any, reading: Reading) -> Iterator[dict[str, Any]]:
    if isinstance(part, str):
        if part.strip():
            yield text_block(part)
    elif isinstance(part, Mapping):
        kind = str(part.get("content_type", "part"))
        if isinstance(part.get("text"), str) and part["text"].strip():  # what was said by voice
            yield text_block(part["text"])
        elif kind == "image_asset_pointer":
            yield reading.text("image", part.get("asset_pointer"))
        elif "asset_pointer" in part or kind.startswith(("audio", "video", "real_time")):
            yield reading.text("sound or video", part.get("asset_pointer") or kind)
        else:
            yield text_block(json.dumps(part, ensure_ascii=False))
    elif part is not None:
        reading.left_out.append(LeftOut(place, "it is neither text nor an object"))
