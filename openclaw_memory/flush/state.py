"""Keep the state of each session in `sessions.json`, OpenClaw's file next to the transcripts."""

from __future__ import annotations

import datetime
import json
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from openclaw_memory._safe import warn
from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, WorkspaceError, WriteError
from openclaw_memory.flush.session import Session, get_chat_type
from openclaw_memory.workspace.atomic import lock_folder, read_whole, replace_file
from openclaw_memory.workspace.files import open_place
from openclaw_memory.workspace.paths import Place, locate_transcripts

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

FILE_NAME = "sessions.json"
_MAX_BYTES = 64 * 1024 * 1024  # OpenClaw keeps more of a session there than is read here
_MAX_CYCLES = 1_000
_ATTEMPTS = 5  # a program that ignores our lock may write between our reading and our writing
_TIMES = frozenset({"updatedAt", "memoryFlushAt"})

_Count: TypeAlias = Annotated[int, Meta(ge=0)]
_Text: TypeAlias = Annotated[str, Meta(pattern=r"\S")]


class SessionState(Struct, frozen=True, rename="camel"):
    """The state of a session apart from its messages. Times are ISO 8601; sizes are in tokens unless named bytes.

    Attributes:
        compaction_count: The number of compactions.
        memory_flush_compaction_count: The `compaction_count` at the latest flush; None, not 0, before the first.
        flush_error: The error of the latest flush.
        compacted_bytes: The size of the transcript at the latest compaction, or flush of messages that were ejected.
        flushed_bytes: The size of the transcript at the latest flush.
        input_tokens: The tokens that the model has read in all counted calls.
        output_tokens: The tokens that it has written.
        context_tokens: The size of the conversation at its latest call, compaction or flush.
    """

    session_id: _Text | None = None
    updated_at: _Text | None = None
    chat_type: _Text | None = None
    compaction_count: _Count = 0
    memory_flush_at: _Text | None = None
    memory_flush_compaction_count: _Count | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    context_tokens: _Count | None = None
    flush_error: _Text | None = None
    compacted_bytes: _Count = 0
    flushed_bytes: _Count = 0


_FIELDS = {field.encode_name: field.type for field in msgspec.structs.fields(SessionState)}
_KEYS = {field.name: field.encode_name for field in msgspec.structs.fields(SessionState)}


def read_states(folder: Place) -> dict[str, SessionState]:
    """Return the state of each session by its key; {} if the file does not exist.

    Fields of a wrong type are ignored, and entries that are not objects left out.

    Raises:
        WorkspaceError: The file is damaged or cannot be read.
        PathNotAllowedError: It is not an ordinary file.
    """
    return {key: _parse(entry) for key, entry in _read(folder)[0].items() if isinstance(entry, dict)}


def remove_states(folder: Place, keys: Collection[str]) -> None:
    """Remove the entries of sessions, if they exist.

    Raises:
        WorkspaceError: The file is damaged or cannot be read. It is unchanged.
        PathNotAllowedError: It is not an ordinary file. It is unchanged.
        WriteError: It could not be written. It is unchanged.
    """
    _rewrite(folder, lambda entries: bool([key for key in keys if entries.pop(key, None) is not None]))


def format_time(moment: datetime.datetime) -> str:
    """Format a moment as `2026-02-18T12:00:00.000Z`."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rewrite(folder: Place, edit: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the entries of the file as `edit` leaves them, once they are on disk; False from it writes nothing.

    It may be called again if another program wrote meanwhile.
    """
    with lock_folder(Path(folder.base), folder.parts, f"{folder.path}/{FILE_NAME}"):
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
        raise WorkspaceError(f"{place.path} is damaged ({error}) and was left as it is: repair or move it") from error
    return entries, info


def _update_entry(entry: Mapping[str, Any], fields: Mapping[str, Any], entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with other values of some fields, without those that are None; its other fields stay."""
    values = {_KEYS[name]: value for name, value in fields.items()}
    values["updatedAt"] = format_time(datetime.datetime.now(datetime.UTC))
    # OpenClaw writes times in milliseconds; its own files keep them.
    times = [each.get("updatedAt") for each in entries.values() if isinstance(each, dict)]
    for name in _TIMES & values.keys() if any(isinstance(time, int | float) for time in times) else ():
        if values[name]:
            values[name] = round(datetime.datetime.fromisoformat(values[name]).timestamp() * 1000)
    return {name: value for name, value in {**entry, **values}.items() if values.get(name, 0) is not None}


def _parse(entry: object) -> SessionState:
    values: dict[str, Any] = {}
    entry = entry if isinstance(entry, dict) else {}
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
    with suppress(ValueError, OverflowError, OSError):  # no calendar has this moment
        return format_time(datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC))
    return None


class FlushCycle:
    """The flushes of one session. Hold `lock` while deciding whether a turn begins."""

    def __init__(self, folder: Place, session: Session, *, is_new: bool) -> None:
        """`is_new` lets the session take its key from another session, once."""
        self.folder, self.session = folder, session
        self.lock = threading.RLock()
        self.turns: weakref.WeakSet[Any] = weakref.WeakSet()  # of `FlushTurn`: one that its driver dropped is over
        self.unsaved: dict[str, Any] = {}  # could not be written yet
        self._added = Counter[str]()  # nor could what these counts grew by
        self._disk = SessionState()  # the latest state on disk while the key was this session's
        self._is_new, self._has_warned = is_new, False

    @property
    def state(self) -> SessionState:
        """The state on disk, with the changes that could not be written."""
        with self.lock:
            try:
                self._follow(_parse(_read(self.folder)[0].get(self.session.key)))
            except OpenClawMemoryError as error:
                self.warn_once(error)
            return msgspec.structs.replace(self._disk, **self._list_changes(self._disk))

    @property
    def is_busy(self) -> bool:
        """True if a turn of the session is under way in this program."""
        return any(turn.outcome is None for turn in self.turns.copy())

    def save(self, added: Mapping[str, int] | None = None, **changes: Any) -> bool:
        """Write fields of the state; return False if they cannot be written: they are kept, and written with the next.

        Args:
            added: By how much counts grow, which other programs count too.
            **changes: Fields of `SessionState`.
        """

        def edit(entries: dict[str, Any]) -> bool:
            entry = entries.get(self.session.key, {})
            if not isinstance(entry, dict):
                raise WorkspaceError(f"{FILE_NAME} has {entry!r} for this session, not an object: fix or remove it")
            disk = _parse(entry)
            is_own = disk.session_id in {None, self.session.id}
            if not is_own and not self._is_new:
                return False
            chat_type = self.session.kind or disk.chat_type or get_chat_type(self.session.key)
            base = {"compaction_count": disk.compaction_count} if is_own else msgspec.structs.asdict(SessionState())
            unsaved = self._list_changes(disk if is_own else SessionState())
            fields = {**base, **unsaved, "session_id": self.session.id, "chat_type": chat_type}
            entries[self.session.key] = _update_entry(entry, fields, entries)
            return True

        with self.lock:
            self.unsaved |= changes
            self._added.update(added or {})
            try:
                state = _parse(_rewrite(self.folder, edit).get(self.session.key))
            except OpenClawMemoryError as error:
                self.warn_once(error)
                return False
            self._follow(state)
            if state.session_id == self.session.id:
                self.unsaved = {}
                self._added.clear()
            return True

    def _list_changes(self, state: SessionState) -> dict[str, Any]:
        """Return the fields that are not written yet, of a session with this state on disk."""
        return {**self.unsaved, **{name: (getattr(state, name) or 0) + more for name, more in self._added.items()}}

    def warn_once(self, error: OpenClawMemoryError) -> None:
        """Warn once that the state is kept in memory."""
        if not self._has_warned:
            self._has_warned = True
            warn(f"the state of session {self.session.key!r} is kept in memory alone: {error}")

    def _follow(self, disk: SessionState) -> None:
        if disk.session_id in {None, self.session.id}:
            self._disk = disk
            self._is_new = self._is_new and disk.session_id is None


class FlushRegistry:
    """The flush cycles of one program."""

    def __init__(self) -> None:
        self.cycles: dict[tuple[Place, str, str | None], FlushCycle] = {}

    def open_cycle(self, workspace: Workspace, session: Session) -> FlushCycle:
        """Return the cycle of a session. The latest 1,000 are kept, and those with a turn under way."""
        folder = locate_transcripts(workspace.root, workspace.sessions)
        session_id = session.id
        with suppress(OpenClawMemoryError):  # which is reported where the state is read
            session_id = session_id or _parse(_read(folder)[0].get(session.key)).session_id
        resolved = Session(session.key, session_id or session.key, session.kind, session.user)
        fresh = FlushCycle(folder, resolved, is_new=session.id is not None)
        cycle = self.cycles.setdefault((folder, session.key, resolved.id), fresh)
        if session.kind or session.user:
            cycle.session = resolved
        idle = [name for name, old in self.cycles.copy().items() if not old.is_busy]
        for name in idle[:-_MAX_CYCLES]:
            self.cycles.pop(name, None)
        return cycle

    def list_failures(self, workspace: Workspace) -> dict[str, str]:
        """Return the error of the latest flush by session key; that of a damaged file by the file's name."""
        folder = locate_transcripts(workspace.root, workspace.sessions)
        try:
            errors = {key: state.flush_error for key, state in read_states(folder).items()}
        except OpenClawMemoryError as error:
            errors = {FILE_NAME: str(error)}
        for cycle in self.cycles.copy().values():
            if "flush_error" in cycle.unsaved:
                errors[cycle.session.key] = cycle.unsaved["flush_error"]
        return {key: error for key, error in errors.items() if error}
