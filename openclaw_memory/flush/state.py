"""Read and change `sessions.json`, OpenClaw's file of the state of each session, next to the transcripts."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import NotFoundError, WorkspaceError, WriteError
from openclaw_memory.workspace.atomic import lock_file, make_folders, read_whole, replace_file
from openclaw_memory.workspace.files import open_place
from openclaw_memory.workspace.paths import Place

FILE_NAME = "sessions.json"
_MAX_BYTES = 64 * 1024 * 1024  # OpenClaw keeps more of a session there than is read here
_ATTEMPTS = 5  # a program that ignores our lock may write between our reading and our writing
_TIMES = frozenset({"updatedAt", "memoryFlushStartedAt", "memoryFlushAt"})

_Count: TypeAlias = Annotated[int, Meta(ge=0)]
_Text: TypeAlias = Annotated[str, Meta(pattern=r"\S")]
Change: TypeAlias = Callable[["SessionState"], Mapping[str, Any] | None]


class SessionState(Struct, frozen=True, rename="camel"):
    """The state of a session apart from its messages. Times are ISO 8601; sizes are in tokens unless named bytes.

    Attributes:
        compaction_count: The number of compactions.
        memory_flush_started_at: When the flush under way began.
        memory_flush_compaction_count: The `compaction_count` at the latest flush; None, not 0, before the first.
        flush_error: The error of the latest flush.
        compacted_bytes: The size of the transcript at the latest compaction.
        input_tokens: The tokens that the model has read in all counted calls.
        output_tokens: The tokens that it has written.
    """

    session_id: _Text | None = None
    updated_at: _Text | None = None
    chat_type: _Text | None = None
    compaction_count: _Count = 0
    memory_flush_started_at: _Text | None = None
    memory_flush_at: _Text | None = None
    memory_flush_compaction_count: _Count | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    context_tokens: _Count | None = None
    flush_error: _Text | None = None
    compacted_bytes: _Count = 0

    @property
    def flushed(self) -> bool:
        """True if there was a flush since the latest compaction."""
        return self.memory_flush_compaction_count == self.compaction_count


_FIELDS = {field.encode_name: field.type for field in msgspec.structs.fields(SessionState)}
_KEYS = {field.name: field.encode_name for field in msgspec.structs.fields(SessionState)}


def read_states(folder: Place) -> dict[str, SessionState]:
    """Return the state of each session by its key; {} if the file does not exist.

    Fields of a wrong type are ignored, and entries that are not objects left out.

    Args:
        folder: The folder of the transcripts.

    Raises:
        WorkspaceError: The file is damaged or cannot be read.
        PathNotAllowedError: It is not an ordinary file.
    """
    return {key: _parse(entry) for key, entry in _read(folder)[0].items() if isinstance(entry, dict)}


def update_state(folder: Place, key: str, change: Change) -> SessionState:
    """Change fields of the state of a session, and return the state once it is on disk.

    `change` returns the new fields for the state that it is given: None as a value removes a field, None in place of
    the mapping writes nothing. It may be called again if another program wrote meanwhile. Other sessions, and the
    fields of other programs, stay as they are.

    Args:
        folder: The folder of the transcripts.
        key: The key of the session.
        change: Returns the fields to change.

    Raises:
        WorkspaceError: The file is damaged or cannot be read. It is unchanged.
        PathNotAllowedError: It is not an ordinary file. It is unchanged.
        WriteError: It could not be written. It is unchanged.
    """
    path = f"{folder.path}/{FILE_NAME}"
    make_folders(Path(folder.base), folder.parts, path)

    def edit(entries: dict[str, Any]) -> bool:
        entry = entries.get(key, {})
        if not isinstance(entry, dict):
            raise WorkspaceError(f"{path} has {entry!r} for session {key!r}, not an object: fix or remove it")
        changes = change(_parse(entry))
        if changes is None:
            return False
        # OpenClaw writes times in milliseconds; its own files keep them.
        is_milliseconds = any(
            isinstance(item.get("updatedAt"), int | float) for item in entries.values() if isinstance(item, dict)
        )
        fields = {_KEYS[name]: value for name, value in changes.items()}
        fields["updatedAt"] = format_time(datetime.datetime.now(datetime.UTC))
        for name in _TIMES & fields.keys() if is_milliseconds else ():
            if moment := parse_time(fields[name]):
                fields[name] = round(moment.timestamp() * 1000)
        entries[key] = {name: value for name, value in {**entry, **fields}.items() if fields.get(name, 0) is not None}
        return True

    return _parse(_rewrite(folder, edit).get(key, {}))


def remove_states(folder: Place, keys: Collection[str]) -> None:
    """Remove the entries of sessions, if they exist.

    Args:
        folder: The folder of the transcripts.
        keys: The keys of the sessions.

    Raises:
        WorkspaceError, PathNotAllowedError, WriteError: As `update_state`.
    """
    _rewrite(folder, lambda entries: bool([key for key in keys if entries.pop(key, None) is not None]))


def format_time(moment: datetime.datetime) -> str:
    """Format a moment as `2026-02-18T12:00:00.000Z`.

    Args:
        moment: The moment, with its zone.
    """
    return moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(time: str | None) -> datetime.datetime | None:
    """Parse a time of a state, in UTC if it has no zone; None if it cannot be parsed.

    Args:
        time: The time.
    """
    try:
        moment = datetime.datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _rewrite(folder: Place, edit: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the entries of the file as `edit` leaves them, once they are on disk; False from it writes nothing."""
    with lock_file(Path(folder.base, *folder.parts, ".lock"), f"{folder.path}/{FILE_NAME}"):
        for attempt in range(_ATTEMPTS):
            entries, info = _read(folder)
            if not edit(entries):
                break
            data = json.dumps(entries, indent=2).encode("ascii") + b"\n"
            try:
                replace_file(folder.base, (*folder.parts, FILE_NAME), data, info)
                break
            except WriteError:
                if attempt == _ATTEMPTS - 1:
                    raise
        return entries


def _read(folder: Place) -> tuple[dict[str, Any], os.stat_result | None]:
    """Return the content of the file and its `stat`; ({}, None) if it does not exist."""
    place = Place(f"{folder.path}/{FILE_NAME}", folder.base, (*folder.parts, FILE_NAME))
    try:
        with open_place(place, FilesConfig(max_bytes=_MAX_BYTES)) as descriptor:
            info, data = os.fstat(descriptor), read_whole(descriptor)
    except NotFoundError:
        return {}, None
    try:
        entries = json.loads(data) if data.strip() else {}
        if not isinstance(entries, dict):
            raise ValueError("it is not a JSON object")
    except (ValueError, RecursionError) as error:
        raise WorkspaceError(
            f"{place.path} is damaged ({error}) and was left as it is: repair it, or move it away"
        ) from error
    return entries, info


def _parse(entry: Mapping[str, Any]) -> SessionState:
    values: dict[str, Any] = {}
    for name in _FIELDS.keys() & entry.keys():
        value = entry[name]
        if name in _TIMES and isinstance(value, int | float):
            value = _format_milliseconds(value)
        elif name == "chatType" and value is not None and not isinstance(value, str):
            value = "unknown"  # nobody knows who reads along, so it is not taken for a direct chat
        try:
            values[name] = msgspec.convert(value, _FIELDS[name])
        except msgspec.ValidationError:
            continue
    return msgspec.convert(values, SessionState)


def _format_milliseconds(milliseconds: float) -> str | None:
    try:
        return format_time(datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC))
    except (ValueError, OverflowError, OSError):  # no calendar has this moment
        return None
