"""Make entries of a transcript out of messages: word for word, with secrets masked, and short enough to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text.redaction import mask_value, redact_talk
from openclaw_memory.workspace.transcript_records import get_text
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES

_INSTRUCTIONS = frozenset({"system", "developer"})  # roles of a program, which repeats them
_OTHER_TYPES = frozenset({"compaction", "custom_message"})  # entries of their own
_ENTRY_BYTES = 1_024  # more than an entry holds apart from its message
_MAX_CALLS = 1_000
# Kept of a text that is too long for an entry: it fits even if each character takes twelve bytes.
_HEAD_CHARS, _TAIL_CHARS = 600_000, 90_000
_NAME_CHARS = 1_000


def fit_entry(entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return an entry as a log can hold it, and the reason why it is not whole; "" if it is.

    Of a message or summary that is not JSON, or too long to be read again, the words stay, of very many the first and
    the last, and the tool calls without their arguments.

    Args:
        entry: The entry.
    """
    try:
        size = len(json.dumps(entry, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"it cannot be written as JSON: {error}"
    else:
        if size + _ENTRY_BYTES <= MAX_LINE_BYTES:
            return dict(entry), ""
        reason = f"it has {size:,} bytes, of which {MAX_LINE_BYTES:,} are read"
    if isinstance(message := entry.get("message"), Mapping):
        return {**entry, "message": _reduce_to_words(message, reason)}, reason
    return {**entry, "summary": _cut_text(str(entry.get("summary", "")), reason)}, reason


def cut_middle(text: str, head: int, tail: int, name: str) -> str:
    """Cut the middle of a text and put a note there; return the text itself if little would be gained.

    Args:
        text: The text.
        head: The characters to keep of the beginning.
        tail: The characters to keep of the end.
        name: The name of the text in the note.
    """
    cut = len(text) - head - tail
    note = (
        f"\n[... {cut:,} of {len(text):,} characters of {name} were cut here: "
        f"the first {head:,} and the last {tail:,} are shown ...]\n"
    )
    # Nothing is cut where the note is longer than the cut: a text that was cut before stays as it is.
    return text if cut < 2 * len(note) else text[:head] + note + text[len(text) - tail :]


def make_entry(message: Mapping[str, Any]) -> dict[str, Any]:
    """Make an entry of a message, with its id."""
    message_id = get_message_id(message)
    return {"type": "message", **({"id": message_id} if message_id else {}), "message": mask_message(message)}


def mask_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without its id, and with secrets masked."""
    try:
        return {key: mask_value(value, redact_talk) for key, value in message.items() if key != "id"}
    except RecursionError:
        return _reduce_to_words({**message, "content": redact_talk(get_text(message))}, "it is nested too deeply")


def _reduce_to_words(message: Mapping[str, Any], reason: str) -> dict[str, Any]:
    names = ("role", "toolCallId", "toolName")
    fields = {name: message[name][:_NAME_CHARS] for name in names if isinstance(message.get(name), str)}
    blocks = message.get("content")
    calls: list[dict[str, Any]] = [
        {"type": "toolCall", "id": str(block.get("id"))[:_NAME_CHARS], "name": str(block.get("name"))[:_NAME_CHARS]}
        | {"arguments": {}}
        for block in (blocks if isinstance(blocks, list) else [])[:_MAX_CALLS]
        if isinstance(block, Mapping) and block.get("type") == "toolCall"
    ]
    return {
        **fields,
        "content": [{"type": "text", "text": _cut_text(get_text(message), reason)}, *calls],
    }


def _cut_text(text: str, reason: str) -> str:
    short = cut_middle(text, _HEAD_CHARS, _TAIL_CHARS, "this message")
    return "\n".join([*([short] if short.strip() else []), f"[not all is kept: {reason}]"])


def is_spoken(message: Mapping[str, Any]) -> bool:
    """Return whether a message was said in the conversation, and is not one of the program."""
    if not isinstance(message, Mapping):
        raise InvalidInputError(
            f"a message must be an object such as {{'role': 'user', 'content': …}}, not {message!r:.80}"
        )
    return message.get("role") not in _INSTRUCTIONS and message.get("type") not in _OTHER_TYPES


def get_message_id(message: Mapping[str, Any]) -> str | None:
    """Return the id of a message; None if it has none."""
    value = message.get("id") if isinstance(message, Mapping) else None
    return value if isinstance(value, str) and value else None


def encode_message(message: Mapping[str, Any]) -> str:
    """Encode a message to recognise an equal one; a text equals a block of the same text."""
    fields = {key: value for key, value in message.items() if key not in {"id", "timestamp"}}
    if isinstance(fields.get("content"), str):
        fields["content"] = [{"type": "text", "text": fields["content"]}]
    return json.dumps(fields, sort_keys=True, default=repr)
