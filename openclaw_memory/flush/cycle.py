"""Share the flush cycles of sessions among the threads of a program, and claim them from other programs."""

from __future__ import annotations

import datetime
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from openclaw_memory._log import warn
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.flush.session import Session, get_chat_type
from openclaw_memory.flush.state import (
    FILE_NAME,
    Change,
    SessionState,
    format_time,
    parse_time,
    read_states,
    update_state,
)
from openclaw_memory.workspace.paths import Place, locate_transcripts

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

_CLAIM_LASTS = datetime.timedelta(minutes=10)  # a flush that takes longer belongs to a dead process
_MAX_CYCLES = 1_000


class FlushCycle:
    """The flushes of one session. Hold `lock` while deciding whether a turn begins."""

    def __init__(self, folder: Place, session: Session, *, is_new: bool) -> None:
        """`is_new` lets the session take its key from another session, once."""
        self.folder, self.session = folder, session
        self.lock = threading.RLock()
        self.turns: weakref.WeakSet[Any] = weakref.WeakSet()  # of `FlushTurn`: one that its driver dropped is over
        self.unsaved: dict[str, Any] = {}  # could not be written yet
        self._disk = SessionState()  # the latest state on disk while the key was this session's
        self._is_new, self._claimed_at, self._has_warned = is_new, "", False

    @property
    def state(self) -> SessionState:
        """The state on disk, with the changes that could not be written."""
        with self.lock:
            try:
                self._follow(read_states(self.folder).get(self.session.key, SessionState()))
            except OpenClawMemoryError as error:
                self.warn_once(error)
            return msgspec.structs.replace(self._disk, **self.unsaved)

    @property
    def is_busy(self) -> bool:
        """True if a turn of the session is under way in this program."""
        return any(turn.open for turn in self.turns.copy())

    def reserve(self, now: datetime.datetime, *, once: bool, force: bool) -> datetime.datetime | None:
        """Mark on disk that a flush begins, unless another program is at one.

        Args:
            now: The start of the flush.
            once: Claim nothing if this cycle was flushed meanwhile.
            force: Ignore a flush of another program.

        Returns:
            The start of the flush, or of the one that broke off before it; None if nothing was claimed.
        """
        now = now.astimezone(datetime.UTC)
        start: datetime.datetime | None = now

        def mark(state: SessionState) -> Mapping[str, Any] | None:
            nonlocal start
            marked = parse_time(state.memory_flush_started_at)
            is_alive = marked is not None and abs(now - marked) < _CLAIM_LASTS
            is_elsewhere = is_alive and state.memory_flush_started_at != self._claimed_at
            if (once and state.flushed) or (is_elsewhere and not force):
                start = None
                return None
            start = min(marked or now, now)
            return {"memory_flush_started_at": format_time(now)}

        with self.lock:
            if self._write(mark):
                self._claimed_at = format_time(now)
        return start

    def save(self, **changes: Any) -> None:
        """Write fields of the state; those that cannot be written are kept, and written with the next.

        Args:
            **changes: Fields of `SessionState`.
        """
        with self.lock:
            self.unsaved |= changes
            self._write(lambda _: {})

    def warn_once(self, error: OpenClawMemoryError) -> None:
        """Warn once that the state is kept in memory.

        Args:
            error: Why it cannot be read or written.
        """
        if not self._has_warned:
            self._has_warned = True
            warn(f"the state of session {self.session.key!r} is kept in memory alone: {error}")

    def _write(self, change: Change) -> bool:
        """Write the unsaved changes and those of `change`; return False if nothing was written."""
        is_written = False

        def merge(disk: SessionState) -> Mapping[str, Any] | None:
            nonlocal is_written
            is_own = disk.session_id in {None, self.session.id}
            base = {} if is_own else msgspec.structs.asdict(SessionState())
            changes = None
            if is_own or self._is_new:
                changes = change(msgspec.structs.replace(disk, **(base | self.unsaved)))
            is_written = changes is not None
            if changes is None:
                return None
            chat_type = self.session.chat_type or disk.chat_type or get_chat_type(self.session.key)
            return {**base, **self.unsaved, **changes, "session_id": self.session.id, "chat_type": chat_type}

        try:
            self._follow(update_state(self.folder, self.session.key, merge))
        except OpenClawMemoryError as error:
            self.warn_once(error)
            return False
        if is_written:
            self.unsaved = {}
        return is_written

    def _follow(self, disk: SessionState) -> None:
        if disk.session_id in {None, self.session.id}:
            self._disk = disk
            self._is_new = self._is_new and disk.session_id is None


class FlushRegistry:
    """The flush cycles of one program."""

    def __init__(self) -> None:
        self.cycles: dict[tuple[Place, str, str], FlushCycle] = {}

    def open_cycle(self, workspace: Workspace, session: Session) -> FlushCycle:
        """Return the cycle of a session. The latest 1,000 are kept, and those with a turn under way.

        Args:
            workspace: The files.
            session: The session.
        """
        folder = locate_transcripts(workspace.root, workspace.sessions)
        disk, error = SessionState(), None
        try:
            disk = read_states(folder).get(session.key, disk)
        except OpenClawMemoryError as unreadable:
            error = unreadable
        session_id = session.id or disk.session_id or session.key
        resolved = Session(session.key, session_id, session.chat_type)
        fresh = FlushCycle(folder, resolved, is_new=session.id is not None)
        cycle = self.cycles.setdefault((folder, session.key, session_id), fresh)
        if session.chat_type:
            cycle.session = resolved
        if error:
            cycle.warn_once(error)
        idle = [name for name, old in self.cycles.copy().items() if not old.is_busy]
        for name in idle[:-_MAX_CYCLES]:
            self.cycles.pop(name, None)
        return cycle

    def list_failures(self, workspace: Workspace) -> dict[str, str]:
        """Return the error of the latest flush by session key; that of a damaged file by the file's name.

        Args:
            workspace: The files.
        """
        folder = locate_transcripts(workspace.root, workspace.sessions)
        try:
            errors = {key: state.flush_error for key, state in read_states(folder).items()}
        except OpenClawMemoryError as error:
            errors = {FILE_NAME: str(error)}
        for cycle in self.cycles.copy().values():
            if "flush_error" in cycle.unsaved:
                errors[cycle.session.key] = cycle.unsaved["flush_error"]
        return {key: error for key, error in errors.items() if error}
