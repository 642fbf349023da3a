"""Keep the state of each session in `sessions.json`, OpenClaw's file next to the transcripts, and its flush cycle."""

from __future__ import annotations

import datetime
import json
import os
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from openclaw_memory import _forks
from openclaw_memory._log import warn
from openclaw_memory.config import FilesConfig
from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, WorkspaceError, WriteError
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import lock_file, make_folders, read_whole, replace_file
from openclaw_memory.workspace.paths import Place, locate_transcripts
from openclaw_memory.workspace.safe_read import open_place

FILE_NAME = "sessions.json"
_MAX_BYTES = 64 * 1024 * 1024  # OpenClaw keeps more of a session there than we read
_ATTEMPTS = 5  # a program that does not know of our lock may write between our reading and our writing
# Longer than a flush of a slow model takes; after that its process is taken for dead.
_CLAIM_LASTS = datetime.timedelta(minutes=10)
_MAX_SESSIONS = 1_000

ChatType: TypeAlias = Literal["direct", "group", "room", "channel"]
# The parts of a key that say that several people read along, and what kind of chat each is; the first one counts. A
# thread does not count: it may be one of a direct chat, and that of a group has the group's part before it.
_SEVERAL: tuple[tuple[str, ChatType], ...] = (
    ("channel", "channel"),
    ("guild", "channel"),
    ("group", "group"),
    ("supergroup", "group"),
    ("room", "room"),
)


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known about a session apart from its messages. Times are ISO 8601, sizes tokens unless named bytes.

    `memory_flush_compaction_count` is what `compaction_count` was at the latest flush, None (not 0) if there was none
    yet. `memory_flush_started_at` is when a flush began that has not ended yet. `flush_error` is the error of the
    latest flush, `compacted_bytes` the size of the transcript at the latest compaction. `input_tokens` and
    `output_tokens` are what the model has read and said in all calls of the session that were counted.
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


def read_states(folder: Place) -> dict[str, SessionState]:
    """Return the state of each session by its key; empty if the file does not exist.

    Entries that are not objects are left out, and fields of a wrong type ignored.

    Args:
        folder: The folder of the transcripts.

    Raises:
        WorkspaceError: The file is damaged or cannot be read.
        PathNotAllowedError: It is not an ordinary file.
    """
    entries, _ = _read(folder)
    return {key: _state(entry) for key, entry in entries.items() if isinstance(entry, dict)}


def change_state(folder: Place, key: str, changes: Callable[[SessionState], Mapping[str, Any] | None]) -> SessionState:
    """Change fields of a session's state by what `changes` returns for it, and return the state once it is on disk.

    None from `changes` writes nothing. It may be called more than once: no other program changes the state in between.
    Other sessions and fields of other programs stay as they are; None removes a field, and `updated_at` is set to now.
    Readers find the old file or the new one.

    Raises:
        WorkspaceError: The file is damaged, or cannot be read. It is unchanged.
        PathNotAllowedError: It is not an ordinary file. It is unchanged.
        WriteError: It could not be written. It is unchanged.
    """
    path = _place(folder).path
    make_folders(Path(folder.base), folder.parts, path)

    def change(entries: dict[str, Any]) -> bool:
        entry = entries.get(key, {})
        if not isinstance(entry, dict):
            raise WorkspaceError(f"{path} has no object for session {key!r}, but {entry!r}: fix or remove it")
        changed = changes(_state(entry))
        if changed is None:
            return False
        others = [other.get("updatedAt") for other in entries.values() if isinstance(other, dict)]
        # As OpenClaw itself does.
        in_milliseconds = any(isinstance(time, int | float) for time in others)
        entries[key] = _changed(entry, changed, in_milliseconds=in_milliseconds)
        return True

    return _state(_rewritten(folder, change).get(key, {}))


def remove_states(folder: Place, keys: Collection[str]) -> None:
    """Remove the entries of sessions, where they are there. No file is made.

    Raises:
        WorkspaceError, PathNotAllowedError, WriteError: As `change_state`.
    """
    _rewritten(folder, lambda entries: bool([key for key in keys if entries.pop(key, None) is not None]))


def _rewritten(folder: Place, change: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the entries of the file as `change` leaves them, once they are on disk; False from it writes nothing."""
    with lock_file(Path(folder.base, *folder.parts, ".lock"), _place(folder).path):
        for attempt in range(1, _ATTEMPTS + 1):
            entries, seen = _read(folder)
            if not change(entries):
                return entries
            data = json.dumps(entries, indent=2).encode("ascii") + b"\n"
            try:
                replace_file(folder.base, (*folder.parts, FILE_NAME), data, seen)
            except WriteError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return entries
    raise AssertionError("the last attempt returns or raises")


class _Turn(Protocol):
    @property
    def open(self) -> bool: ...


@dataclass(slots=True, eq=False)
class FlushCycle:
    """The flushes of one session under its key. Hold `lock` while deciding whether a turn begins."""

    registry: FlushRegistry
    folder: Place
    key: str
    session_id: str
    begins: bool  # whether the session may take the key from another one; it does so once
    chat_type: ChatType | None
    lock: threading.RLock = field(default_factory=_forks.rlock)
    # Under way, or just done. A turn that its driver dropped is not there.
    turns: weakref.WeakSet[_Turn] = field(default_factory=weakref.WeakSet)
    _seen: SessionState = field(default_factory=SessionState)  # on the disk, while the key was this session's
    _unsaved: dict[str, Any] = field(default_factory=dict)
    _claim: str | None = None  # the time that this program has marked the start of its flush with
    _warned: bool = False

    @property
    def state(self) -> SessionState:
        """The state on disk, with what could not be written there."""
        with self.lock:
            try:
                self._see(self.registry.read(self.folder).get(self.key, SessionState()))
            except OpenClawMemoryError as error:
                self.warn_once(error)
            return replace(self._seen, **self._unsaved)

    @property
    def is_held(self) -> bool:
        """Whether a turn of the session is under way in this program."""
        return any(turn.open for turn in self.turns.copy())

    def claim(self, now: datetime.datetime, *, once: bool, force: bool) -> datetime.datetime | None:
        """Mark on disk that the session is flushed from `now` on, unless another program flushes it.

        Args:
            now: The start of the flush.
            once: Claim nothing if this cycle was flushed meanwhile.
            force: Take over from another program even if its flush began less than ten minutes ago.

        Returns:
            When the flush began, by this program or the one before; None if it was not claimed.
        """
        now = now.astimezone(datetime.UTC)
        since: datetime.datetime | None = now

        def mark(state: SessionState) -> Mapping[str, Any] | None:
            nonlocal since
            begun = moment_of(state.memory_flush_started_at)
            is_own = state.memory_flush_started_at == self._claim
            lasts = begun is not None and not is_own and abs(now - begun) < _CLAIM_LASTS
            if (once and state.flushed) or (lasts and not force):
                since = None
                return None
            since = min(begun or now, now)
            return {"memory_flush_started_at": iso(now)}

        if self._write(mark):
            self._claim = iso(now)
        return since

    def save(self, **changes: Any) -> None:
        """Write fields of the state; what cannot be written is kept in memory and tried again with the next."""
        with self.lock:
            self._unsaved |= changes
            self._write(lambda _: {})

    def warn_once(self, error: OpenClawMemoryError) -> None:
        """Warn once that the state is kept in memory."""
        if not self._warned:
            self._warned = True
            warn(f"the state of session {self.key!r} is kept in memory alone: {error}")

    def _write(self, changes: Callable[[SessionState], Mapping[str, Any] | None]) -> bool:
        """Write what is unsaved and what `changes` returns, and return True; False if the key is another session's."""
        written = False

        def changed(disk: SessionState) -> Mapping[str, Any] | None:
            nonlocal written
            is_ours = disk.session_id in {None, self.session_id}
            others = {} if is_ours else asdict(SessionState())
            more = changes(replace(disk, **(others | self._unsaved))) if is_ours or self.begins else None
            written = more is not None
            kind = self.chat_type or disk.chat_type or chat_type(self.key)
            named = {"session_id": self.session_id, "chat_type": kind}
            return {**others, **self._unsaved, **more, **named} if more is not None else None

        try:
            self._see(change_state(self.folder, self.key, changed))
        except OpenClawMemoryError as error:
            self.warn_once(error)
            return False
        if written:
            self._unsaved = {}
        return written

    def _see(self, disk: SessionState) -> None:
        if disk.session_id in {None, self.session_id}:
            self._seen = disk
            self.begins = self.begins and disk.session_id is None


def failures_in(workspace: Workspace, registry: FlushRegistry) -> dict[str, str]:
    """Return why the latest flush of a session failed, by the keys of sessions.

    Args:
        workspace: The files.
        registry: What the flushes of the program share.
    """
    return dict(registry.failures(locate_transcripts(workspace.root, workspace.sessions)))


class FlushRegistry:
    """What the flushes of one program share: the cycle of each session, and `sessions.json` as it was last read."""

    def __init__(self) -> None:
        self.cycles: dict[tuple[Place, str, str], FlushCycle] = {}
        self._read: dict[Place, tuple[tuple[int, ...], dict[str, SessionState]]] = {}

    def read(self, folder: Place) -> dict[str, SessionState]:
        """Return what `read_states` returns, and read the file again only once it has changed.

        Args:
            folder: The folder of the transcripts.
        """
        stamp = _stamp(folder)
        known = self._read.get(folder)
        if stamp is not None and known is not None and known[0] == stamp:
            return dict(known[1])
        states = read_states(folder)
        if stamp is not None:
            self._read[folder] = (stamp, states)
        return dict(states)

    def cycle(self, folder: Place, key: str, session_id: str | None, kind: ChatType | None) -> FlushCycle:
        """Return the cycle of a session; the latest 1,000 are kept, and those whose turn is held.

        Args:
            folder: The folder of the transcripts.
            key: The key of the session.
            session_id: Names the transcript, by default the one that `sessions.json` has for the key, else the key.
            kind: The kind of chat; None if unknown.
        """
        disk, error = SessionState(), None
        try:
            disk = self.read(folder).get(key, disk)
        except OpenClawMemoryError as caught:
            error = caught
        found = session_id or disk.session_id or key
        seen = SessionState(chat_type=disk.chat_type)
        fresh = FlushCycle(self, folder, key, found, bool(session_id), kind, _seen=seen)
        cycle = self.cycles.setdefault((folder, key, found), fresh)
        cycle.chat_type = kind or cycle.chat_type
        if error:
            cycle.warn_once(error)
        idle = [name for name, other in self.cycles.copy().items() if not other.is_held]
        for name in idle[:-_MAX_SESSIONS]:
            self.cycles.pop(name, None)
        return cycle

    def failures(self, folder: Place) -> dict[str, str]:
        """Return the error of each session's latest flush by its key; that of a damaged file by the file's name.

        Args:
            folder: The folder of the transcripts.
        """
        try:
            failed = {key: state.flush_error for key, state in read_states(folder).items() if state.flush_error}
        except OpenClawMemoryError as error:
            failed = {FILE_NAME: str(error)}
        unsaved = {cycle.key: cycle._unsaved.get("flush_error") for cycle in self.cycles.copy().values()}
        return failed | {key: why for key, why in unsaved.items() if why}


def iso(moment: datetime.datetime) -> str:
    """Format a moment for the file: `2026-02-18T12:00:00.000Z`."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_of(time: str | None) -> datetime.datetime | None:
    """Parse a time of a state, in UTC if it has no zone; return None if it cannot be parsed."""
    try:
        moment = datetime.datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _place(folder: Place) -> Place:
    return Place(f"{folder.path}/{FILE_NAME}", folder.base, (*folder.parts, FILE_NAME))


def _read(folder: Place) -> tuple[dict[str, Any], os.stat_result | None]:
    """Return the content of the file, and its `stat` when it was read; None if it does not exist."""
    place = _place(folder)
    try:
        with open_place(place, FilesConfig(max_bytes=_MAX_BYTES)) as descriptor:
            seen, data = os.fstat(descriptor), read_whole(descriptor)
    except NotFoundError:
        return {}, None
    try:
        entries = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _damaged(place.path, str(error)) from error
    if not isinstance(entries, dict):
        raise _damaged(place.path, "it holds no JSON object")
    return entries, seen


def _stamp(folder: Place) -> tuple[int, ...] | None:
    """Return what identifies one version of the file; None if that is unknown."""
    try:
        info = os.lstat(os.path.join(folder.base, *folder.parts, FILE_NAME))
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _damaged(path: str, what: str) -> WorkspaceError:
    return WorkspaceError(f"{path} is damaged ({what}) and was left as it is: repair it, or move it away")


def _state(entry: Mapping[str, Any]) -> SessionState:
    found: dict[str, Any] = {name: _value(name, entry.get(written)) for name, written in _WRITTEN.items()}
    return SessionState(**{name: value for name, value in found.items() if value is not None})


def _value(name: str, value: object) -> str | int | None:
    """Return the value of a field: a number of at least 0, a time, or a text; None if it is none of these."""
    if name in _TIMES and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return iso(datetime.datetime.fromtimestamp(value / 1000, datetime.UTC))
        except (ValueError, OverflowError, OSError):  # no moment that a calendar has
            return None
    if name in _NUMBERS:
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
    if name == "chat_type" and value is not None and not isinstance(value, str):
        return "unknown"  # nobody knows who reads along: it is not said that the chat is a direct one
    return value if isinstance(value, str) and value.strip() else None


def _changed(entry: Mapping[str, Any], changes: Mapping[str, Any], *, in_milliseconds: bool) -> dict[str, Any]:
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


def chat_type(session_key: str | None) -> ChatType:
    """Return the kind of chat that a session key names by a part such as `group`, `channel` or `room`.

    Args:
        session_key: `agent:<id>:...`; a key of another form, or None, is a direct chat's.
    """
    parts = _parts(session_key)
    is_agents = len(parts) >= 3 and parts[0] == "agent"
    for name, kind in _SEVERAL:
        if is_agents and name in parts[2:]:
            return kind
    return "direct"


def names_several(session_key: str | None) -> bool:
    """Whether any part of a key, of whatever form, says that several people read: what is private needs more care."""
    parts = _parts(session_key)
    return any(name in parts for name, _ in _SEVERAL)


def names_one(session_key: str | None) -> bool:
    """Whether a key itself says that the user alone reads: the main session of an agent, or a direct message."""
    parts = _parts(session_key)
    return not names_several(session_key) and bool(parts) and (parts[-1] == "main" or bool({"dm", "direct"} & {*parts}))


def _parts(session_key: str | None) -> list[str]:
    """Return the parts of a key between its colons, in lower case."""
    return [part for part in (session_key or "").strip().lower().split(":") if part]
