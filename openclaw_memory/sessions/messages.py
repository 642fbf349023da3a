"""What a message holds, in OpenClaw's shape and in OpenAI's: its text, its tool calls, and how long it is (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from openclaw_memory.workspace.turns import content_text

Message: TypeAlias = Mapping[str, Any]

# The roles of a tool's answer: OpenClaw's and OpenAI's.
RESULT_ROLES = frozenset({"toolResult", "tool"})
# OpenClaw reads all three.
_CALL_BLOCKS = frozenset({"toolCall", "toolUse", "functionCall"})
CHARS_PER_TOKEN = 4  # OpenClaw's estimate
IMAGE_CHARS = 4_800  # OpenClaw's estimate: an image costs 1,200 tokens


def text_of(message: Message) -> str:
    """The text of a message: its content, or its text blocks with newlines between; "" where it has none."""
    return content_text(message.get("content")) or ""


def calls_of(message: Message) -> tuple[str, ...]:
    """The ids of the tool calls in a message, in their order."""
    blocks = [block for block in _blocks(message) if block.get("type") in _CALL_BLOCKS]
    calls = [*blocks, *_tool_calls(message)]
    return tuple(call["id"] for call in calls if isinstance(call.get("id"), str))


def is_result(message: Message) -> bool:
    """Whether a message is the answer of a tool."""
    return message.get("role") in RESULT_ROLES


def answers_to(message: Message) -> str | None:
    """The id of the call that a message answers; None where it is no tool's answer, or does not say to which call."""
    if not is_result(message):
        return None
    ids = (message.get(key) for key in ("toolCallId", "tool_call_id", "toolUseId"))
    return next((found for found in ids if isinstance(found, str)), None)


def is_from_user(message: Message) -> bool:
    """Whether the user said it: neither a summary nor what a program put into the conversation in the user's place."""
    return message.get("role") == "user" and message.get("type", "message") == "message"


def chars_of(message: Message) -> int:
    """How long a message is, in characters: its text, what else it holds as JSON, and 4,800 for an image."""
    content = message.get("content")
    size = len(content) if isinstance(content, str) else sum(_block_chars(block) for block in _blocks(message))
    return size + sum(_json_chars(call) for call in _tool_calls(message))


def estimated_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens these messages take: four characters are one, rounded up for each message."""
    return sum(-(-chars_of(message) // CHARS_PER_TOKEN) for message in messages)


def is_text_block(block: object) -> bool:
    """Whether a block of a message's content is text."""
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _blocks(message: Message) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    return (block for block in content if isinstance(block, Mapping)) if isinstance(content, list) else iter(())


def _tool_calls(message: Message) -> Iterator[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return (call for call in calls if isinstance(call, Mapping)) if isinstance(calls, list | tuple) else iter(())


def _block_chars(block: Mapping[str, Any]) -> int:
    if is_text_block(block):
        return len(block["text"])
    return IMAGE_CHARS if "image" in str(block.get("type")) else _json_chars(block)


def _json_chars(value: Mapping[str, Any]) -> int:
    import json

    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
