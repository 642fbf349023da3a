"""Keep what a conversation loses word for word, secrets masked, in the log of its session."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openclaw_memory.conversation.messages import Message, in_short, text_of
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text.redaction import redact_talk
from openclaw_memory.workspace.session_log import SessionLog
from openclaw_memory.workspace.transcript_records import message_of
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES

# Instructions of a program are not lost with a conversation.
_UNHEARD = frozenset({"system", "developer"})
# A summary, and what a program put into the conversation, are entries of other types.
_NO_MESSAGES = frozenset({"compaction", "custom_message"})
# What a log entry holds apart from the message itself.
_OF_THE_ENTRY = frozenset({"id", "timestamp"})
_ENTRY_BYTES = 1_024  # more than an entry holds apart from its message
# What is left of a text that is too long for an entry: it fits also where each character takes twelve bytes, as those
# that are escaped in pairs do.
_HEAD_CHARS, _TAIL_CHARS = 600_000, 90_000
_NAME_CHARS = 1_000


def keep(messages: Iterable[Message], log: SessionLog) -> int:
    """Add to the log those messages that it does not have; return how many were added.

    A message with an id is known by the id of its entry, others by their content, as often as they are equal. An entry
    gets the id of its message.

    Raises:
        InvalidInputError: Some are not objects, cannot be written as JSON, or are too long. The others were added.
        PathNotAllowedError, WorkspaceError, WriteError: The log cannot be read or written; what was added before stays.
    """
    messages = list(messages)
    named = {found for message in messages if (found := _id(message))}
    ids: set[str] = set()
    there: Counter[str] = Counter()
    for entry in log.entries():
        ids.add(str(entry.get("id")))
        if entry.get("id") not in named and (message := message_of(entry)):
            there[_whole(masked(message))] += 1
    added = 0
    refusals: list[Exception] = []
    for message in messages:
        try:
            if not _to_be_kept(message) or _id(message) in ids:
                continue
            kept = masked({key: value for key, value in message.items() if key != "id"})
            if there[_whole(kept)] > 0:
                there[_whole(kept)] -= 1
                continue
            own = {"id": found} if (found := _id(message)) else {}
            ids.add(log.append_entry("message", **own, message=kept))
        except (InvalidInputError, TypeError, ValueError, RecursionError) as error:
            refusals.append(error)
        else:
            added += 1
    if refusals:
        raise InvalidInputError(f"{len(refusals)} of the messages could not be kept: {refusals[0]}")
    return added


def transcribed(log: SessionLog, messages: Sequence[Message]) -> list[Message]:
    """Add messages to the log in one write, each as often as it is given.

    If a log cannot hold a message (it is not JSON, or too long to be read again), its words are written, the first and
    the last of very many, with the reason why the rest is missing.

    Args:
        log: The log of the session.
        messages: The messages, oldest first.

    Returns:
        The messages as written, with their ids.

    Raises:
        PathNotAllowedError, WriteError: As `SessionLog.append_entry`. None of them was written.
    """
    said = [masked({key: value for key, value in message.items() if key != "id"}) for message in messages]
    whole = [_words_of(message, why) if (why := _why_not(message)) else message for message in said]
    ids = log.append_entries([{"type": "message", "message": message} for message in whole])
    return [{**message, "id": entry_id} for message, entry_id in zip(whole, ids, strict=True)]


def messages_since(log: SessionLog, start: int) -> list[Message]:
    """Return the messages in the log from a byte on, with their ids.

    Args:
        log: The log of the session.
        start: The offset in bytes; if the log is shorter, all messages are returned.

    Raises:
        PathNotAllowedError, WorkspaceError: As `SessionLog.entries`.
    """
    entries = log.entries(start if start <= log.size else 0)
    return [{**message, "id": entry.get("id")} for entry in entries if (message := message_of(entry))]


def masked(value: Any) -> Any:
    """Return a JSON value with the secrets in its texts masked."""
    if isinstance(value, str):
        return redact_talk(value)
    if isinstance(value, Mapping):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value


def _why_not(message: Message) -> str:
    """Return why a log cannot hold a message; "" if it can."""
    try:
        size = len(json.dumps(message, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError) as error:
        return f"it cannot be written as JSON: {error}"
    if size + _ENTRY_BYTES <= MAX_LINE_BYTES:
        return ""
    return f"it has {size:,} bytes, of which {MAX_LINE_BYTES:,} are read"


def _words_of(message: Message, why: str) -> dict[str, Any]:
    names = ("role", "toolCallId", "toolName")
    known = {name: message[name][:_NAME_CHARS] for name in names if isinstance(message.get(name), str)}
    said = in_short(text_of(message), _HEAD_CHARS, _TAIL_CHARS, "this message")
    texts = [said] if said.strip() else []
    return {**known, "content": [{"type": "text", "text": "\n".join([*texts, f"[not all is kept: {why}]"])}]}


def _to_be_kept(message: Message) -> bool:
    if not isinstance(message, Mapping):
        raise InvalidInputError(
            f"a message must be an object such as {{'role': 'user', 'content': …}}, not {message!r:.80}"
        )
    return message.get("role") not in _UNHEARD and message.get("type") not in _NO_MESSAGES


def _id(message: Message) -> str | None:
    found = message.get("id") if isinstance(message, Mapping) else None
    return found if isinstance(found, str) and found else None


def _whole(message: Message) -> str:
    """Return all that a message says, to recognise equal ones; a text says the same as a block of it."""
    said = {key: value for key, value in message.items() if key not in _OF_THE_ENTRY}
    if isinstance(said.get("content"), str):
        said["content"] = [{"type": "text", "text": said["content"]}]
    return json.dumps(said, sort_keys=True, default=repr)
