"""The state of each session, in `sessions.json` beside the transcripts: OpenClaw's file, read and changed safely."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from openclaw_memory.config import FilesConfig
from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, WorkspaceError, WriteError
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import locked, make_folder, read_whole, refused, replace_file
from openclaw_memory.workspace.paths import Place, transcripts_place
from openclaw_memory.workspace.safe_read import opened

FILE_NAME = "sessions.json"
_MAX_BYTES = 64 * 1024 * 1024  # OpenClaw keeps more of a session there than we read
_ATTEMPTS = 5  # a program that does not know of our lock may write between our reading and our writing


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of a session beyond its messages. Times are in ISO 8601, sizes in tokens but for bytes.

    `memory_flush_compaction_count` is what `compaction_count` was at the latest flush, None where there was none yet:
    that is not 0. `memory_flush_started_at` is when a flush began that has not ended yet. `flush_error` says what went
    wrong with the latest one, `compacted_bytes` how large the transcript was at the latest compaction.
    """

    session_id: str | None = None
    updated_at: str | None = None
    chat_type: str | None = None
    compaction_count: int = 0
    memory_flush_started_at: str | None = None
    memory_flush_at: str | None = None
    memory_flush_compaction_count: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    context_tokens: int | None = None
    flush_error: str | None = None
    compacted_bytes: int = 0

    @property
    def flushed(self) -> bool:
        """Whether there was a flush since the latest compaction."""
        return self.memory_flush_compaction_count == self.compaction_count


_NUMBERS = frozenset(spec.name for spec in fields(SessionState) if "int" in str(spec.type))
_TIMES = frozenset({"updated_at", "memory_flush_started_at", "memory_flush_at"})


def read_states(folder: Place, seen: dict[Any, Any] | None = None) -> dict[str, SessionState]:
    """The state of each session by its key, none where there is no file; entries that are no objects are left out.

    `folder` is that of the transcripts. A field of a wrong type counts as absent. What was read is kept in `seen`, and
    the file read again once it has changed.

    Raises:
        WorkspaceError: the file is damaged, or cannot be read; PathNotAllowedError where it is no ordinary file.
    """
    stamp = _stamp(folder)
    before, states = seen.get(folder, (None, {})) if seen is not None else (None, {})
    if stamp is None or stamp != before:
        entries, _ = _read(folder)
        states = {key: _state(entry) for key, entry in entries.items() if isinstance(entry, dict)}
        if seen is not None:
            seen[folder] = (stamp, states)
    return dict(states)


def update_state(folder: Place, key: str, **changes: Any) -> SessionState:
    """Change fields of a session's state, named as in `SessionState`, and return it; it is on the disk then.

    What else is in the file stays as it is: other sessions, and fields that are not ours. None removes a field.
    `updated_at` is now. Readers find the old file or the new one.

    Raises:
        TypeError: the state has no such field.
        WorkspaceError: the file is damaged, or cannot be read. It is as it was.
        PathNotAllowedError, WriteError: it could not be written. It is as it was.
    """
    replace(SessionState(), **changes)
    return change_state(folder, key, lambda _: changes)


def change_state(folder: Place, key: str, changes: Callable[[SessionState], Mapping[str, Any] | None]) -> SessionState:
    """As `update_state`, but what changes depends on the state; where `changes` says None, nothing is written.

    Nobody else changes the state in between. `changes` may be called more than once.
    """
    path = _place(folder).path
    try:
        _make_folders(folder)
    except OSError as error:
        raise refused(error, path) from error
    with locked(Path(folder.base, *folder.parts, ".lock"), path):
        for attempt in range(1, _ATTEMPTS + 1):
            entries, seen = _read(folder)
            entry = entries.get(key, {})
            if not isinstance(entry, dict):
                raise WorkspaceError(f"{path} has no object for session {key!r}, but {entry!r}: mend it or remove it")
            changed = changes(_state(entry))
            if changed is None:
                return _state(entry)
            entries[key] = _changed(entry, changed, in_milliseconds=_counts_milliseconds(entries))
            data = json.dumps(entries, indent=2).encode("ascii") + b"\n"
            try:
                replace_file(folder.base, (*folder.parts, FILE_NAME), data, seen)
            except WriteError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return _state(entries[key])
    raise AssertionError("the last attempt returns or raises")


def failed_flushes(workspace: Workspace) -> dict[str, str]:
    """What went wrong with the latest flush of each session, by its key; of a damaged file by the file's name."""
    try:
        states = read_states(transcripts_place(workspace.root, workspace.sessions))
    except OpenClawMemoryError as error:
        return {FILE_NAME: str(error)}
    return {key: state.flush_error for key, state in states.items() if state.flush_error}


def iso(moment: datetime.datetime) -> str:
    """A moment as it is written: `2026-02-18T12:00:00.000Z`."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_of(time: str | None) -> datetime.datetime | None:
    """The moment that a time of a state means, by UTC where it has no zone; None where it means none."""
    try:
        moment = datetime.datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _place(folder: Place) -> Place:
    return Place(f"{folder.path}/{FILE_NAME}", folder.base, (*folder.parts, FILE_NAME))


def _make_folders(folder: Place) -> None:
    base = Path(folder.base)
    for name in folder.parts:
        make_folder(base, name)
        base /= name


def _read(folder: Place) -> tuple[dict[str, Any], os.stat_result | None]:
    """What the file holds, and what it was when it was read, None where there is none."""
    place = _place(folder)
    try:
        with opened(place, FilesConfig(max_bytes=_MAX_BYTES)) as descriptor:
            seen, data = os.fstat(descriptor), read_whole(descriptor)
    except NotFoundError:
        return {}, None
    try:
        entries = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _damaged(place.path, str(error)) from error
    if not isinstance(entries, dict):
        raise _damaged(place.path, "it holds no object")
    return entries, seen


def _stamp(folder: Place) -> tuple[int, ...] | None:
    """What tells one state of the file from another; None where that is not known."""
    try:
        info = os.lstat(os.path.join(folder.base, *folder.parts, FILE_NAME))
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _damaged(path: str, what: str) -> WorkspaceError:
    return WorkspaceError(f"{path} is damaged ({what}) and left as it is: mend it, or move it away")


def _state(entry: Mapping[str, Any]) -> SessionState:
    found: dict[str, Any] = {name: _value(name, entry.get(written)) for name, written in _WRITTEN.items()}
    return SessionState(**{name: value for name, value in found.items() if value is not None})


def _value(name: str, value: object) -> str | int | None:
    """What a field says: a number of at least 0, a time, or words; None where it is nothing of the kind."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _TIMES and is_number:
        return _from_milliseconds(value)
    if name in _NUMBERS:
        return value if isinstance(value, int) and is_number and value >= 0 else None
    return value if isinstance(value, str) and value.strip() else None


def _from_milliseconds(value: Any) -> str | None:
    try:
        return iso(datetime.datetime.fromtimestamp(value / 1000, datetime.UTC))
    except (ValueError, OverflowError, OSError):  # no moment that a calendar has
        return None


def _counts_milliseconds(entries: Mapping[str, Any]) -> bool:
    """Whether times are written as OpenClaw itself does."""
    return any(
        isinstance(entry, dict) and isinstance(entry.get("updatedAt"), int | float) for entry in entries.values()
    )


def _changed(entry: Mapping[str, Any], changes: Mapping[str, Any], *, in_milliseconds: bool) -> dict[str, Any]:
    """The entry with other values."""
    now = datetime.datetime.now(datetime.UTC)
    values = {**changes, "updated_at": iso(now)}
    if in_milliseconds:
        for name in _TIMES & values.keys():
            if moment := moment_of(values[name]):
                values[name] = round(moment.timestamp() * 1000)
    named = {_camel(name): value for name, value in values.items()}
    return {name: value for name, value in (dict(entry) | named).items() if value is not None or name not in named}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


# How each field is called in the file.
_WRITTEN: Mapping[str, str] = {spec.name: _camel(spec.name) for spec in fields(SessionState)}
