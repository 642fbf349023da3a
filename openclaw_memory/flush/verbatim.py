"""Keep messages word for word, with secrets masked, in the transcript of their session."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from openclaw_memory.conversation.messages import Message, cut_middle, get_text
from openclaw_memory.errors import InvalidInputError, NotFoundError, PolicyError, WorkspaceError
from openclaw_memory.text.redaction import redact_talk
from openclaw_memory.workspace.session_log import SessionLog
from openclaw_memory.workspace.transcript_formats import get_message
from openclaw_memory.workspace.transcript_records import render_record
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES, explain_foreign, iterate_records

_INSTRUCTIONS = frozenset({"system", "developer"})  # roles of a program, which repeats them
_OTHER_TYPES = frozenset({"compaction", "custom_message"})  # entries of their own
_ENTRY_BYTES = 1_024  # more than an entry holds apart from its message
_MAX_CALLS = 1_000
# Kept of a text that is too long for an entry: it fits even if each character takes twelve bytes.
_HEAD_CHARS, _TAIL_CHARS = 600_000, 90_000
_NAME_CHARS = 1_000


def keep(messages: Iterable[Message], log: SessionLog) -> tuple[int, list[str]]:
    """Add to a log the messages that it lacks.

    A message with an id is recognised by it, others by their content, as often as they are equal. `fit_entry` shortens
    a message that no log can hold.

    Args:
        messages: The messages, oldest first.
        log: The log of the session.

    Returns:
        How many were added, and for each of those that are not there as a whole, the reason.

    Raises:
        InvalidInputError: Some are not objects, or are never to be stored. The others were added.
        PathNotAllowedError, WorkspaceError, WriteError: The log cannot be read or written; added messages stay.
    """
    messages = list(messages)
    own_ids = {_get_id(message) for message in messages} - {None}
    ids: set[str] = set()
    known_texts: Counter[str] = Counter()
    for entry in log.read_entries():
        ids.add(str(entry.get("id")))
        if entry.get("id") not in own_ids and (message := get_message(entry)):
            known_texts[_encode(mask(message))] += 1
    count, cuts, errors = 0, list[str](), list[Exception]()
    for message in messages:
        try:
            if not _is_spoken(message) or _get_id(message) in ids:
                continue
            entry, reason = fit_entry(_make_entry(message))
            cuts += [reason] if reason else []
            text = _encode(entry["message"])
            if known_texts[text] > 0:
                known_texts[text] -= 1
                continue
            ids.update(log.append_entries([entry]))
            count += 1
        except (InvalidInputError, PolicyError, TypeError, ValueError, RecursionError) as error:
            errors.append(error)
    if errors:
        raise InvalidInputError(f"{len(errors)} of the messages could not be kept: {errors[0]}")
    return count, cuts


def keep_named(messages: Iterable[Message], log: SessionLog) -> None:
    """Add to a log, in one write, the messages with ids that it lacks.

    Several processes may do so at the same time.

    Args:
        messages: Messages with ids, oldest first.
        log: The log of the session.

    Raises:
        PathNotAllowedError, PolicyError, WorkspaceError, WriteError: As `SessionLog.append_entries`. None was written.
    """
    by_id = {message_id: message for message in messages if (message_id := _get_id(message))}
    if by_id:
        log.append_entries([fit_entry(_make_entry(message))[0] for message in by_id.values()], once=True)


def write_messages(log: SessionLog, messages: Sequence[Message]) -> list[Message]:
    """Add messages to a log in one write, and return them as written, with new ids.

    Args:
        log: The log of the session.
        messages: The messages, oldest first.

    Raises:
        PathNotAllowedError, WriteError: As `SessionLog.append_entry`. None of them was written.
    """
    entries = [fit_entry({"type": "message", "message": _mask_message(message)})[0] for message in messages]
    ids = log.append_entries(entries)
    return [{**entry["message"], "id": entry_id} for entry, entry_id in zip(entries, ids, strict=True)]


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


def read_messages_since(log: SessionLog, start: int) -> list[Message]:
    """Return the messages in a log from a byte on, with their ids.

    Args:
        log: The log of the session.
        start: The offset in bytes; if the log is shorter, all messages are returned.

    Raises:
        PathNotAllowedError, WorkspaceError: As `SessionLog.entries`.
    """
    entries = log.read_entries(start if start <= log.size else 0)
    return [{**message, "id": entry.get("id")} for entry in entries if (message := get_message(entry))]


def keep_transcript(log: SessionLog, file: str | os.PathLike[str], start: int = 0) -> int:
    """Add to a log the words of the user and the assistant from the transcript of another program.

    They have the ids of their messages: those that the log has are not added again, wherever reading begins. Tool
    calls, their results, and messages that policies never let be stored are left out.

    Args:
        log: The log of the session.
        file: The transcript, such as Claude Code's. It is only read.
        start: The byte to begin at, as an earlier call returned it; if no line begins there, the beginning.

    Returns:
        The byte up to which the transcript was read.

    Raises:
        NotFoundError: There is no such file.
        InvalidInputError: It is not a file, has no known format, or is in the folder of the log.
        WorkspaceError, WriteError: The file cannot be read, or as `SessionLog.append_entry`.
    """
    path = os.fspath(file)
    if not os.path.isfile(path):  # opening a pipe would wait for its writer
        if os.path.lexists(path):
            raise InvalidInputError(f"{path} is not an ordinary file: name a transcript")
        raise NotFoundError(f"there is no transcript {path}")
    folder = os.path.join(log.folder.base, *log.folder.parts)
    if os.path.realpath(os.path.dirname(path)) == os.path.realpath(folder):
        raise InvalidInputError(f"{path} is in the folder of the log, where it is indexed as it is")
    try:
        file_object = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be read: {error.strerror}") from error
    with file_object as transcript:
        if reason := explain_foreign(transcript):
            raise InvalidInputError(f"{path} {reason}")
        end = start if _is_line_start(transcript, start) else 0
        messages: list[Message] = []
        for record, record_end in iterate_records(transcript, end):
            begin, end = end, record_end
            if record is None or not render_record(record, muted=False)[0]:
                continue
            message = {key: value for key, value in get_message(record).items() if value is not None}
            text = get_text(message)
            with suppress(PolicyError):
                log.files.policies.check(None, text)
                # Without an id, a message is recognised by its place: transcripts only grow at their end.
                messages.append({"id": f"byte-{begin}", **message, "content": [{"type": "text", "text": text}]})
    keep_named(messages, log)
    return end


def mask(value: Any) -> Any:
    """Return a JSON value with the secrets in its texts masked.

    Args:
        value: The value.
    """
    if isinstance(value, str):
        return redact_talk(value)
    if isinstance(value, Mapping):
        return {key: mask(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask(item) for item in value]
    return value


def _is_line_start(file: BinaryIO, start: int) -> bool:
    if start <= 0:
        return False
    file.seek(start - 1)
    return file.read(1) == b"\n"


def _make_entry(message: Message) -> dict[str, Any]:
    message_id = _get_id(message)
    return {"type": "message", **({"id": message_id} if message_id else {}), "message": _mask_message(message)}


def _mask_message(message: Message) -> dict[str, Any]:
    """Return a message without its id, and with secrets masked."""
    try:
        return {key: mask(value) for key, value in message.items() if key != "id"}
    except RecursionError:
        return _reduce_to_words({**message, "content": redact_talk(get_text(message))}, "it is nested too deeply")


def _reduce_to_words(message: Message, reason: str) -> dict[str, Any]:
    names = ("role", "toolCallId", "toolName")
    fields = {name: message[name][:_NAME_CHARS] for name in names if isinstance(message.get(name), str)}
    blocks = message.get("content")
    calls: list[dict[str, Any]] = [
        {"type": "toolCall", "id": str(block.get("id"))[:_NAME_CHARS], "name": str(block.get("name"))[:_NAME_CHARS]}
        | {"arguments": {}}
        for block in (blocks if isinstance(blocks, list) else [])[:_MAX_CALLS]
        if isinstance(block, Mapping) and block.get("type") == "toolCall"
    ]
    return {**fields, "content": [{"type": "text", "text": _cut_text(get_text(message), reason)}, *calls]}


def _cut_text(text: str, reason: str) -> str:
    short = cut_middle(text, _HEAD_CHARS, _TAIL_CHARS, "this message")
    return "\n".join([*([short] if short.strip() else []), f"[not all is kept: {reason}]"])


def _is_spoken(message: Message) -> bool:
    if not isinstance(message, Mapping):
        raise InvalidInputError(
            f"a message must be an object such as {{'role': 'user', 'content': …}}, not {message!r:.80}"
        )
    return message.get("role") not in _INSTRUCTIONS and message.get("type") not in _OTHER_TYPES


def _get_id(message: Message) -> str | None:
    value = message.get("id") if isinstance(message, Mapping) else None
    return value if isinstance(value, str) and value else None


def _encode(message: Message) -> str:
    """Encode a message to recognise an equal one; a text equals a block of the same text."""
    fields = {key: value for key, value in message.items() if key not in {"id", "timestamp"}}
    if isinstance(fields.get("content"), str):
        fields["content"] = [{"type": "text", "text": fields["content"]}]
    return json.dumps(fields, sort_keys=True, default=repr)
