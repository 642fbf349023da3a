"""Read a message, in OpenClaw's shape and in OpenAI's: its text, its tool calls, and how long it is (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from openclaw_memory.text.fence import strip_fenced
from openclaw_memory.workspace.transcript_records import join_texts

Message: TypeAlias = Mapping[str, Any]

# The roles of a tool's answer: OpenClaw's and OpenAI's.
RESULT_ROLES = frozenset({"toolResult", "tool"})
# OpenClaw reads all three.
_CALL_BLOCKS = frozenset({"toolCall", "toolUse", "functionCall"})
# What a message of a transcript, or of this library, says besides what is sent.
_NOT_SENT = frozenset({"id", "parentId", "type", "timestamp", "customType", "display", "details", "askedChars"})
CHARS_PER_TOKEN = 4  # OpenClaw's estimate
IMAGE_CHARS = 4_800  # OpenClaw's estimate: an image costs 1,200 tokens


def get_text(message: Message) -> str:
    """Return the text of a message: its content, or its text blocks with newlines between; "" if it has no text.

    Args:
        message: A message in OpenClaw's shape or in OpenAI's.
    """
    return join_texts(message.get("content")) or ""


def strip_recalled(text: str) -> str:
    """Return a text without the fenced blocks that were recalled into it.

    Args:
        text: The text of a message.
    """
    said = strip_fenced(text)
    return text if said == text else said.strip()


def get_call_ids(message: Message) -> tuple[str, ...]:
    """Return the ids of the tool calls in a message, in their order.

    Args:
        message: A message in OpenClaw's shape or in OpenAI's.
    """
    blocks = filter(_is_call, _blocks(message))
    calls = [*blocks, *_tool_calls(message)]
    return tuple(call["id"] for call in calls if isinstance(call.get("id"), str))


def read_calls(message: Message) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the id, the tool's name and the arguments of each tool call in a message.

    Arguments that are no object of JSON are kept as they are, under `text`.

    Args:
        message: A message in OpenClaw's shape or in OpenAI's.
    """
    found = []
    for call in (*filter(_is_call, _blocks(message)), *_tool_calls(message)):
        said = call.get("function")
        of = {**call, **said} if isinstance(said, Mapping) else call
        arguments: object = next((of[name] for name in ("arguments", "input", "args") if of.get(name) is not None), {})
        found.append((str(call.get("id") or ""), str(of.get("name") or ""), _object(arguments)))
    return found


def drop_calls(message: Message, kept: Collection[str]) -> Message:
    """Return a copy of a message without its tool calls, but those whose ids are in `kept`."""
    content, calls = message.get("content"), message.get("tool_calls")
    changed = dict(message)
    if isinstance(content, list):
        changed["content"] = [block for block in content if not _is_call(block) or block.get("id") in kept]
    if isinstance(calls, list | tuple):
        left = [call for call in calls if isinstance(call, Mapping) and call.get("id") in kept]
        changed = {**changed, "tool_calls": left} if left else {k: v for k, v in changed.items() if k != "tool_calls"}
    return changed


def is_result(message: Message) -> bool:
    """Whether a message is the answer of a tool."""
    return message.get("role") in RESULT_ROLES


def get_answered_call(message: Message) -> str | None:
    """Return the id of the call that a message answers; None if it is not a tool's answer, or does not name the call.

    Args:
        message: A message in OpenClaw's shape or in OpenAI's.
    """
    if not is_result(message):
        return None
    ids = (message.get(key) for key in ("toolCallId", "tool_call_id", "toolUseId"))
    return next((found for found in ids if isinstance(found, str)), None)


def is_from_user(message: Message) -> bool:
    """Whether the user said it: not a summary, nor what a program put into the conversation in the user's place."""
    return message.get("role") == "user" and message.get("type", "message") == "message"


def count_chars(message: Message) -> int:
    """Return the length of a message in characters: its text, its other fields as JSON, and 4,800 for an image."""
    content = message.get("content")
    size = len(content) if isinstance(content, str) else sum(_block_chars(block) for block in _blocks(message))
    return size + sum(_json_chars(call) for call in _tool_calls(message))


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Estimate how many tokens messages take: a token for four characters, rounded up for each message.

    Args:
        messages: The messages to count.
    """
    return sum(-(-count_chars(message) // CHARS_PER_TOKEN) for message in messages)


def prepare_for_model(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return copies of messages to send to a model, without `id`, `type`, `timestamp` and other fields of transcripts.

    Services refuse fields that they do not know. Role, content, names, tool calls and the ids of calls are kept.

    Args:
        messages: The messages of a conversation.
    """
    return [{key: value for key, value in message.items() if key not in _NOT_SENT} for message in messages]


def cut_middle(text: str, head: int, tail: int, what: str) -> str:
    """Cut the middle of a text and put a note there; return the text itself if little would be gained.

    `head` and `tail` are in characters; `what` is what the note calls the text.
    """
    cut = len(text) - head - tail
    note = (
        f"\n[... {cut:,} of {len(text):,} characters of {what} were cut here: "
        f"the first {head:,} and the last {tail:,} are shown ...]\n"
    )
    # Nothing is cut where the note is longer than what it saves: a text that was cut before stays as it is.
    return text if cut < 2 * len(note) else text[:head] + note + text[len(text) - tail :]


def with_text(message: Message, text: str) -> Message:
    """Return the message with another text; blocks of its content that are not text follow it."""
    if isinstance(message.get("content"), str):
        return {**message, "content": text}
    others = [block for block in _blocks(message) if not is_text_block(block)]
    return {**message, "content": [{"type": "text", "text": text}, *others]}


def is_text_block(block: object) -> bool:
    """Whether a block of a message's content is text."""
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _object(arguments: object) -> dict[str, Any]:
    import json

    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return {"text": arguments}
    return dict(arguments) if isinstance(arguments, Mapping) else {"text": str(arguments)}


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") in _CALL_BLOCKS


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
