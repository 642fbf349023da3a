"""What all flushes of a session share in a program: its state, what the disk did not take of it, and the turn held."""

from __future__ import annotations

import datetime
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.say import say
from openclaw_memory.sessions.keys import ChatType, chat_type
from openclaw_memory.sessions.state import SessionState, change_state, failed_flushes, iso, moment_of, read_states
from openclaw_memory.workspace.paths import Place

if TYPE_CHECKING:
    from openclaw_memory.sessions.flush import FlushTurn
    from openclaw_memory.workspace import Workspace

# Longer than three attempts of a slow model take; after that its process is taken for dead.
CLAIM_LASTS = datetime.timedelta(minutes=10)
_MAX_SESSIONS = 1_000


@dataclass(slots=True, eq=False)
class Cycle:
    """One session under its key. `lock` is held while it is decided who holds its turn."""

    folder: Place
    key: str
    session_id: str
    shared: dict[Any, Any]
    begins: bool  # whether the session may take the key from another one; it does so once
    chat_type: ChatType | None
    lock: threading.RLock = field(default_factory=threading.RLock)
    _seen: SessionState = field(default_factory=SessionState)  # on the disk, while the key was this session's
    _unsaved: dict[str, Any] = field(default_factory=dict)
    _turn: Callable[[], FlushTurn | None] = lambda: None
    _claim: str | None = None  # the mark of this program, by which it knows its own again
    _told: bool = False

    @property
    def state(self) -> SessionState:
        """The state on the disk, with what could not be written there."""
        with self.lock:
            try:
                self._see(read_states(self.folder, self.shared).get(self.key, SessionState()))
            except OpenClawMemoryError as error:
                self.tell(error)
            return replace(self._seen, **self._unsaved)

    def is_held(self) -> bool:
        """Whether a turn of the session is held in this program."""
        turn = self._turn()
        return turn is not None and turn.open

    def hold(self, turn: FlushTurn) -> None:
        """Let the turn be the one that is held, until it is over or nobody knows it any more."""
        self._turn = weakref.ref(turn)

    def claim(self, now: datetime.datetime, *, once: bool, at_any_rate: bool) -> datetime.datetime | None:
        """Mark on the disk that the session is flushed from `now` on; None where another program does so.

        Returns when the flush was begun: before, where the program that did so has not ended it for ten minutes, or
        `at_any_rate`. With `once` a cycle that was flushed meanwhile is none.
        """
        now = now.astimezone(datetime.UTC)
        since: datetime.datetime | None = now

        def mark(state: SessionState) -> Mapping[str, Any] | None:
            nonlocal since
            begun = moment_of(state.memory_flush_started_at)
            is_own = state.memory_flush_started_at == self._claim
            lasts = begun is not None and not is_own and abs(now - begun) < CLAIM_LASTS
            if (once and state.flushed) or (lasts and not at_any_rate):
                since = None
                return None
            since = min(begun or now, now)
            return {"memory_flush_started_at": iso(now)}

        if self._write(mark):
            self._claim = iso(now)
        return since

    def save(self, **changes: Any) -> None:
        """Write fields of the state; what the disk does not take is kept in memory, and tried again with the next."""
        with self.lock:
            self._unsaved |= changes
            self._write(lambda _: {})

    @property
    def unsaved_error(self) -> str | None:
        """What went wrong with the latest flush, where that could not be written."""
        return self._unsaved.get("flush_error")

    def tell(self, error: OpenClawMemoryError) -> None:
        """Say once that the state is kept in memory."""
        if not self._told:
            self._told = True
            say(f"the state of session {self.key!r} is kept in memory alone: {error}")

    def _write(self, changes: Callable[[SessionState], Mapping[str, Any] | None]) -> bool:
        """Write what is unsaved and what `changes` says, unless the key is another session's; whether it was."""
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
            self.tell(error)
            return False
        if written:
            self._unsaved = {}
        return written

    def _see(self, disk: SessionState) -> None:
        if disk.session_id in {None, self.session_id}:
            self._seen = disk
            self.begins = self.begins and disk.session_id is None


def failures(workspace: Workspace, shared: dict[Any, Any]) -> dict[str, str]:
    """What went wrong with the latest flush of each session, by its key, also where that could not be written."""
    cycles = [cycle for cycle in list(shared.values()) if isinstance(cycle, Cycle)]
    return failed_flushes(workspace) | {cycle.key: error for cycle in cycles if (error := cycle.unsaved_error)}


def cycle_of(folder: Place, key: str, session_id: str | None, kind: ChatType | None, shared: dict[Any, Any]) -> Cycle:
    """That of a session; `shared` holds those of the latest 1,000, of which none is dropped while its turn is held.

    `session_id` is by default the one that the disk has for the key, else the key.
    """
    disk, error = SessionState(), None
    try:
        disk = read_states(folder, shared).get(key, disk)
    except OpenClawMemoryError as caught:
        error = caught
    found = session_id or disk.session_id or key
    fresh = Cycle(folder, key, found, shared, bool(session_id), kind, _seen=SessionState(chat_type=disk.chat_type))
    cycle: Cycle = shared.setdefault((folder, key, found), fresh)
    cycle.chat_type = kind or cycle.chat_type
    if error:
        cycle.tell(error)
    others = [name for name, other in list(shared.items()) if isinstance(other, Cycle) and not other.is_held()]
    for name in others[:-_MAX_SESSIONS]:
        shared.pop(name, None)
    return cycle
