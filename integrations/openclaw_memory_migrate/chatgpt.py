"""Plan for ChatGPT's `conversations.json`: each conversation becomes a transcript with all its branches (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_memory_migrate.conversations import Node, Reading, join_messages, to_block, to_message, to_time
from openclaw_memory_migrate.items import make_id
from openclaw_memory_migrate.types import Conversation, LeftOut

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


def read(place: str, conversation: Any, reading: Reading) -> Conversation | None:
    """Read a conversation of an export of ChatGPT; see `plan_all`."""
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
        entries = _convert_message(where, node.get("message"), reading)
        nodes[node_id] = Node(node_id, parent if isinstance(parent, str) else None, entries)
    title = conversation.get("title")
    title = title if isinstance(title, str) else ""
    export_id = conversation.get("conversation_id") or conversation.get("id")
    own_id = make_id(export_id, "of", title, conversation.get("create_time"), [*tree])
    leaf, created = conversation.get("current_node"), conversation.get("create_time")
    return join_messages(place, f"chatgpt-{own_id}", nodes, leaf, title, created, reading)


def _convert_message(place: str, item: Any, reading: Reading) -> list[dict[str, Any]]:
    if item is None:  # the root of the tree, and what was never sent
        return []
    if not isinstance(item, Mapping):
        reading.left_out.append(LeftOut(place, "its message is no object"))
        return []
    content = item.get("content")
    if not isinstance(content, Mapping):
        reading.left_out.append(LeftOut(place, "its message has no content"))
        return []
    author = item.get("author")
    author = author if isinstance(author, Mapping) else {}
    role = str(author.get("role") or "user")
    about = item.get("metadata")
    about = about if isinstance(about, Mapping) else {}
    extra: dict[str, Any] = {"toolName": author["name"]} if role == "tool" and author.get("name") else {}
    extra |= {"model": about["model_slug"]} if isinstance(about.get("model_slug"), str) else {}
    attached = about.get("attachments")
    files = [file.get("name") if isinstance(file, Mapping) else file for file in attached or () if file]
    content = _with_sources(content, about.get("content_references"))
    blocks = [*_convert_content(place, content, reading), *(reading.name_file("file", file) for file in files)]
    if not blocks:
        return []
    entry = to_message(_ROLES.get(role, role), blocks, **extra)
    if item.get("weight") == 0 or about.get("is_visually_hidden_from_conversation") is True:
        entry["hidden"] = True  # it was never shown: kept, and not found by a search
    stamp = to_time(item.get("create_time"), reading.zone)
    return [{**entry, "timestamp": stamp} if stamp else entry]


def _with_sources(content: Mapping[str, Any], references: Any) -> Mapping[str, Any]:
    """Return a message's content with the marks of its sources as they were shown: `alt` is a link, or empty."""
    links = {
        reference["matched_text"]: reference["alt"] if isinstance(reference.get("alt"), str) else ""
        for reference in (references if isinstance(references, list) else ())
        if isinstance(reference, Mapping) and _MARK in str(reference.get("matched_text"))
    }
    parts = content.get("parts")
    if not links or not isinstance(parts, list):
        return content
    # The longest first: one mark may begin another.
    marks = re.compile("|".join(map(re.escape, sorted(links, key=len, reverse=True))))
    replaced = [marks.sub(lambda mark: links[mark[0]], part) if isinstance(part, str) else part for part in parts]
    return {**content, "parts": replaced}


def _convert_content(place: str, content: Mapping[str, Any], reading: Reading) -> Iterator[dict[str, Any]]:
    kind = content.get("content_type")
    if kind == "thoughts":
        for step in content.get("thoughts") or ():
            if isinstance(step, Mapping) and (thought := step.get("content") or step.get("summary")):
                yield {"type": "thinking", "thinking": str(thought)}
        return
    if isinstance(content.get("parts"), list):
        for at, part in enumerate(content["parts"]):
            yield from _convert_part(f"{place}.parts[{at}]", part, reading)
        return
    names = _TEXTS.get(str(kind), ("text", "content", "result"))
    texts = [content[name] for name in names if isinstance(content.get(name), str) and content[name].strip()]
    if texts:
        yield to_block("\n".join(texts))
    elif str(kind) not in _TEXTS and any(value for name, value in content.items() if name != "content_type"):
        reading.left_out.append(LeftOut(place, f"content of the type {kind!r} is unknown"))


def _convert_part(place: str, part: Any, reading: Reading) -> Iterator[dict[str, Any]]:
    if isinstance(part, str):
        if part.strip():
            yield to_block(part)
    elif isinstance(part, Mapping):
        kind = str(part.get("content_type", "part"))
        if isinstance(part.get("text"), str) and part["text"].strip():  # what was said by voice
            yield to_block(part["text"])
        elif kind == "image_asset_pointer":
            yield reading.name_file("image", part.get("asset_pointer"))
        elif "asset_pointer" in part or kind.startswith(("audio", "video", "real_time")):
            yield reading.name_file("sound or video", part.get("asset_pointer") or kind)
        else:
            yield to_block(json.dumps(part, ensure_ascii=False))
    elif part is not None:
        reading.left_out.append(LeftOut(place, "it is neither text nor an object"))
