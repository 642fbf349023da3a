"""Keep what a conversation loses word for word, secrets masked, in the log of its session."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openclaw_memory.conversation.messages import Message, cut_middle, get_text
from openclaw_memory.errors import InvalidInputError, PolicyError
from openclaw_memory.text.redaction import redact_talk
from openclaw_memory.workspace.session_log import SessionLog
from openclaw_memory.workspace.transcript_records import get_message
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES

# Instructions of a program are not lost with a conversation.
_UNHEARD = frozenset({"system", "developer"})
# A summary, and what a program put into the conversation, are entries of other types.
_NO_MESSAGES = frozenset({"compaction", "custom_message"})
# What a log entry holds apart from the message itself.
_OF_THE_ENTRY = frozenset({"id", "timestamp"})
_ENTRY_BYTES = 1_024  # more than an entry holds apart from its message
_CALLS = 1_000
# What is left of a text that is too long for an entry: it fits also where each character takes twelve bytes, as those
# that are escaped in pairs do.
_HEAD_CHARS, _TAIL_CHARS = 600_000, 90_000
_NAME_CHARS = 1_000


def keep(messages: Iterable[Message], log: SessionLog) -> tuple[int, list[str]]:
    """Add to the log those messages that it does not have.

    A message with an id is known by the id of its entry, others by their content, as often as they are equal. An entry
    gets the id of its message. Of a message that no log can hold, the words are kept, as `fit_entry` says.

    Returns:
        How many were added, and for each of those that are not there as a whole, why.

    Raises:
        InvalidInputError: Some are not objects. The others were added.
        PathNotAllowedError, WorkspaceError, WriteError: The log cannot be read or written; what was added before stays.
    """
    messages = list(messages)
    named = {found for message in messages if (found := _id(message))}
    ids: set[str] = set()
    there: Counter[str] = Counter()
    for entry in log.read_entries():
        ids.add(str(entry.get("id")))
        if entry.get("id") not in named and (message := get_message(entry)):
            there[_whole(masked(message))] += 1
    added = 0
    cut: list[str] = []
    refusals: list[Exception] = []
    for message in messages:
        try:
            if not _to_be_kept(message) or _id(message) in ids:
                continue
            own = {"id": found} if (found := _id(message)) else {}
            entry, why = fit_entry({"type": "message", **own, "message": _spoken(message)})
            cut += [why] if why else []
            if there[_whole(entry["message"])] > 0:
                there[_whole(entry["message"])] -= 1
                continue
            ids.update(log.append_entries([entry]))
        except (InvalidInputError, PolicyError, TypeError, ValueError, RecursionError) as error:
            refusals.append(error)
        else:
            added += 1
    if refusals:
        raise InvalidInputError(f"{len(refusals)} of the messages could not be kept: {refusals[0]}")
    return added, cut


def keep_named(messages: Iterable[Message], log: SessionLog) -> None:
    """Add to the log, in one write, those messages whose ids it does not have; equal words with another id are others.

    It is safe to call at the same time in several processes. Messages without an id are left out, and of one that no
    log can hold, the words are kept, as `fit_entry` says.

    Args:
        messages: Messages with ids, oldest first.
        log: The log of the session.

    Raises:
        PathNotAllowedError, PolicyError, WorkspaceError, WriteError: As `SessionLog.append_entries`. None was written.
    """
    named = {found: message for message in messages if (found := _id(message))}
    if not named:
        return
    entries = [fit_entry({"type": "message", "id": found, "message": _spoken(one)})[0] for found, one in named.items()]
    log.append_entries(entries, once=True)


def write_messages(log: SessionLog, messages: Sequence[Message]) -> list[Message]:
    """Add messages to the log in one write, each as often as it is given; of some the words alone, see `fit_entry`.

    Args:
        log: The log of the session.
        messages: The messages, oldest first.

    Returns:
        The messages as written, with their ids.

    Raises:
        PathNotAllowedError, WriteError: As `SessionLog.append_entry`. None of them was written.
    """
    entries = [fit_entry({"type": "message", "message": _spoken(message)})[0] for message in messages]
    ids = log.append_entries(entries)
    return [{**entry["message"], "id": entry_id} for entry, entry_id in zip(entries, ids, strict=True)]


def fit_entry(entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return an entry as a log can hold it, and why it is not there as a whole; "" if it is.

    Of a message or summary that is not JSON, or too long to be read again, the words are left, the first and the last
    of very many, with the reason why the rest is missing, and its tool calls without their arguments.

    Args:
        entry: The entry.
    """
    if not (why := _why_not(entry)):
        return dict(entry), ""
    if isinstance(message := entry.get("message"), Mapping):
        return {**entry, "message": _words_of(message, why)}, why
    return {**entry, "summary": _in_short(str(entry.get("summary", "")), why)}, why


def read_messages_since(log: SessionLog, start: int) -> list[Message]:
    """Return the messages in the log from a byte on, with their ids.

    Args:
        log: The log of the session.
        start: The offset in bytes; if the log is shorter, all messages are returned.

    Raises:
        PathNotAllowedError, WorkspaceError: As `SessionLog.entries`.
    """
    entries = log.read_entries(start if start <= log.size else 0)
    return [{**message, "id": entry.get("id")} for entry in entries if (message := get_message(entry))]


def masked(value: Any) -> Any:
    """Return a JSON value with the secrets in its texts masked."""
    if isinstance(value, str):
        return redact_talk(value)
    if isinstance(value, Mapping):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value


def _spoken(message: Message) -> dict[str, Any]:
    """Return a message without its id, and with the secrets masked, as far as it can be read."""
    try:
        return {key: masked(value) for key, value in message.items() if key != "id"}
    except RecursionError:  # blocks within blocks without an end: what is left of them has its words masked
        return _words_of({**message, "content": redact_talk(get_text(message))}, "it is nested too deeply")


def _why_not(entry: Mapping[str, Any]) -> str:
    """Return why a log cannot hold an entry; "" if it can."""
    try:
        size = len(json.dumps(entry, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError) as error:
        return f"it cannot be written as JSON: {error}"
    if size + _ENTRY_BYTES <= MAX_LINE_BYTES:
        return ""
    return f"it has {size:,} bytes, of which {MAX_LINE_BYTES:,} are read"


def _words_of(message: Message, why: str) -> dict[str, Any]:
    names = ("role", "toolCallId", "toolName")
    known = {name: message[name][:_NAME_CHARS] for name in names if isinstance(message.get(name), str)}
    blocks = message.get("content")
    calls = [
        {"type": block["type"], "id": str(block.get("id"))[:_NAME_CHARS], "name": str(block.get("name"))[:_NAME_CHARS]}
        | {"arguments": {}}
        for block in (blocks if isinstance(blocks, list) else [])[:_CALLS]
        if isinstance(block, Mapping) and block.get("type") == "toolCall"
    ]
    return {**known, "content": [{"type": "text", "text": _in_short(get_text(message), why)}, *calls]}


def _in_short(text: str, why: str) -> str:
    said = cut_middle(text, _HEAD_CHARS, _TAIL_CHARS, "this message")
    return "\n".join([*([said] if said.strip() else []), f"[not all is kept: {why}]"])


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
