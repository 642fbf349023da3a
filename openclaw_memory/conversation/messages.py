"""Read a message, in OpenClaw's shape and in OpenAI's: its text, its tool calls, and its length (pure)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from openclaw_memory.text.fence import strip_fenced
from openclaw_memory.workspace.transcript_records import LABELS, RECALLING, is_spoken
from openclaw_memory.workspace.transcript_records import get_text as get_text  # noqa: PLC0414 - public in this package

Message: TypeAlias = Mapping[str, Any]

# OpenClaw reads all three.
_CALL_BLOCKS = frozenset({"toolCall", "toolUse", "functionCall"})
# Fields of a message in a transcript that are not sent.
_NOT_SENT = frozenset({"id", "parentId", "type", "timestamp", "customType", "display", "details"})
CHARS_PER_TOKEN = 4  # OpenClaw's estimate
IMAGE_CHARS = 4_800  # OpenClaw's estimate: an image costs 1,200 tokens


def strip_recalled(text: str) -> str:
    """Return a text without the fenced blocks that were recalled into it.

    Args:
        text: The text of a message.
    """
    left = strip_fenced(text)
    return text if left == text else left.strip()


def get_call_ids(message: Message) -> tuple[str, ...]:
    """Return the ids of the tool calls in a message, in their order."""
    return tuple(call["id"] for call in _get_calls(message) if isinstance(call.get("id"), str))


def read_calls(message: Message) -> list[tuple[str, str, Any]]:
    """Return the id, the tool's name and the arguments of each tool call in a message.

    Arguments are a dictionary, or if they are not a JSON object, what they are.

    Args:
        message: A message in OpenClaw's shape or in OpenAI's.
    """
    calls = []
    for call in _get_calls(message):
        function = call.get("function")
        fields = {**call, **function} if isinstance(function, Mapping) else call
        values = (fields.get(name) for name in ("arguments", "input", "args"))
        arguments = _parse_arguments(next((value for value in values if value is not None), {}))
        calls.append((str(call.get("id") or ""), str(fields.get("name") or ""), arguments))
    return calls


def drop_calls(message: Message, keep: Collection[str]) -> Message:
    """Return a copy of a message without its tool calls, except those in `keep`."""
    copy = dict(message)
    if isinstance(blocks := message.get("content"), list):
        copy["content"] = [block for block in blocks if not _is_call(block) or block.get("id") in keep]
    if isinstance(calls := copy.pop("tool_calls", None), list | tuple):
        calls = [call for call in calls if isinstance(call, Mapping) and call.get("id") in keep]
    return {**copy, "tool_calls": calls} if calls else copy


def is_result(message: Message) -> bool:
    """Return whether a message is the answer of a tool."""
    return message.get("role") in {"toolResult", "tool"}  # OpenClaw's and OpenAI's


def get_answered_call(message: Message) -> str | None:
    """Return the id of the call that a message answers; None if it is not a tool's answer or names no call."""
    if not is_result(message):
        return None
    ids = (message.get(key) for key in ("toolCallId", "tool_call_id", "toolUseId"))
    return next((call_id for call_id in ids if isinstance(call_id, str)), None)


def is_from_user(message: Message) -> bool:
    """Return whether a message is the user's own, and neither a summary nor text of a program in the user's place."""
    return message.get("role") == "user" and message.get("type", "message") == "message"


def count_chars(message: Message) -> int:
    """Return the length of a message in characters: its text, its other fields as JSON, and 4,800 for an image."""
    content = message.get("content")
    size = len(content) if isinstance(content, str) else sum(map(_count_block_chars, _get_blocks(message)))
    return size + sum(map(_count_json_chars, _get_tool_calls(message)))


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Estimate how many tokens messages take: a token for four characters, rounded up for each message.

    Args:
        messages: The messages to count.
    """
    return sum(-(-count_chars(message) // CHARS_PER_TOKEN) for message in messages)


def drop_recalled(messages: Sequence[Message]) -> list[Message]:
    """Return messages without those that the memory itself has put into the conversation.

    That leaves out the results of its tools, fenced blocks, summaries and system messages.
    """
    tools = {call_id: name for message in messages for call_id, name, _ in read_calls(message)}
    spoken: list[Message] = []
    for message in messages:
        name = message.get("toolName") or message.get("name") or tools.get(get_answered_call(message) or "") or ""
        if not (is_result(message) and str(name).endswith(RECALLING)) and is_spoken(message):
            text = get_text(message)
            words = strip_recalled(text)
            spoken.append(message if words == text else with_text(message, words))
    return spoken


def format_messages(messages: Iterable[Message]) -> str:
    """Return messages as text, each with its author, its calls of tools, and their results.

    Args:
        messages: The messages of a conversation.
    """
    lines: list[str] = []
    for message in messages:
        author = LABELS.get(str(message.get("role")), "Other")
        if is_result(message):
            author = f"Tool {message.get('toolName') or message.get('name') or ''}".rstrip()
        words = [get_text(message)]
        for _, name, arguments in read_calls(message):
            words.append(f"[calls {name} {json.dumps(arguments, ensure_ascii=False, default=str)}]")
        if any(words):
            lines.append(f"{author}: {' '.join(filter(None, words))}")
    return "\n".join(lines)


def prepare_for_model(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return copies of messages to send to a model, without `id`, `type`, `timestamp` and other fields of transcripts.

    Services refuse fields that they do not know. Role, content, names, tool calls and the ids of calls are kept.

    Args:
        messages: The messages of a conversation.
    """
    return [{key: value for key, value in message.items() if key not in _NOT_SENT} for message in messages]


def with_text(message: Message, text: str) -> Message:
    """Return the message with another text; blocks of its content that are not text follow it."""
    if isinstance(message.get("content"), str):
        return {**message, "content": text}
    media = [block for block in _get_blocks(message) if not is_text_block(block)]
    return {**message, "content": [{"type": "text", "text": text}, *media]}


def is_text_block(block: object) -> bool:
    """Return whether a block of a message's content is text."""
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _parse_arguments(arguments: Any) -> Any:
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            return json.loads(arguments or "{}")
    return dict(arguments) if isinstance(arguments, Mapping) else arguments


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") in _CALL_BLOCKS


def _get_calls(message: Message) -> list[Mapping[str, Any]]:
    return [*filter(_is_call, _get_blocks(message)), *_get_tool_calls(message)]


def _get_blocks(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _get_tool_calls(message: Message) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else []


def _count_block_chars(block: Mapping[str, Any]) -> int:
    if is_text_block(block):
        return len(block["text"])
    return IMAGE_CHARS if "image" in str(block.get("type")) else _count_json_chars(block)


def _count_json_chars(value: Mapping[str, Any]) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
