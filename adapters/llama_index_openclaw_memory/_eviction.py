"""What `Memory` ejects: written to the session's transcript at once, and flushed once there is enough of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from llama_index_openclaw_memory import _flush_model
from llama_index_openclaw_memory._background import Background
from llama_index_openclaw_memory._messages import as_text, estimated
from openclaw_memory.conversation import Message, compaction_threshold, cut, estimated_tokens
from openclaw_memory.errors import OpenClawMemoryError, StoreError
from openclaw_memory.flush import Flush, messages_since, run_flush, transcribed

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from openclaw_memory import Memory
    from openclaw_memory.flush import FlushTurn
    from openclaw_memory.runs import Leased

_log = logging.getLogger(__name__)

# Of the end of a transcript, so many bytes are read for each token that is wanted of it: entries say about 150 bytes
# apart from their words, of which the shortest have a few tokens.
_BYTES_PER_TOKEN = 64
_BATCH = 100  # messages are written at once: what a disk refuses costs each attempt no more than these
# A model that failed is not asked again before; what it was to look at comes again then, or at the end of the session.
_PAUSE_SECONDS = 60.0
_BACKLOG = 8  # so many times `flush_tokens` are caught up with, or as much as the model can be shown at once


@dataclass(slots=True, eq=False)
class _Session:
    """A session of which something waits: messages that its transcript did not take yet, or a flush."""

    key: str
    unwritten: list[Message] = field(default_factory=list)
    has_failed: bool = False  # the latest writing, which is logged once
    starts: dict[str, int] = field(default_factory=dict)  # by transcript: the byte from which on a flush may be due
    retry_at: float = 0.0  # the time before which no flush is tried after one that failed
    writing: threading.Lock = field(default_factory=threading.Lock)
    flushing: threading.Lock = field(default_factory=threading.Lock)


class Ejected:
    """What was ejected of all sessions of one memory. Messages are written, and flushes run, in threads of their own.

    The memory stays open meanwhile. What waits for a flush is what the transcript has since the latest one. So nothing
    of it is lost with the program, and programs that share a session see what the others have looked at.
    """

    _memory: Memory

    def __init__(self, leased: Leased, llm: LLM | None, flush_tokens: int | None, background: Background) -> None:
        """Without `flush_tokens`, as many are taken as the memory's configuration says."""
        self._leased, self._background = leased, background
        self._given_llm, self._given_tokens = llm, flush_tokens
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}

    def take(self, key: str, messages: Sequence[Message]) -> Future[None]:
        """Take messages, whose writing cannot be stopped from here on; done when they are written, or could not be.

        A flush that is due begins then, without being waited for.
        """
        session = self._session(key, messages)

        def flush(opened: ExitStack) -> None:
            with opened:
                self._flush_while_due(session)

        def work() -> None:
            with ExitStack() as stack:
                if self._open(stack, session):
                    self._write(session)
                    self._background.begin(partial(flush, stack.pop_all()))

        return self._background.begin(work)

    @property
    def is_needed(self) -> bool:
        """Whether something is at work, or waits that no transcript has."""
        with self._lock:
            every = self._sessions.values()
            return any(one.unwritten or one.writing.locked() or one.flushing.locked() for one in every)

    def sessions(self) -> list[str]:
        """The sessions of which something waits, or is at work."""
        with self._lock:
            return list(self._sessions)

    def flush(self, key: str) -> None:
        """Write and flush whatever waits of a session; what is under way is waited for."""
        session = self._session(key, ())
        with ExitStack() as stack:
            if not self._open(stack, session):
                return
            self._write(session)
            with session.flushing:
                self._flush(session)
            self._forget(session)

    def _open(self, stack: ExitStack, session: _Session) -> bool:
        """Keep the memory open until the stack is closed; log where it cannot be opened, and return False."""
        try:
            self._memory = stack.enter_context(self._leased)
        except OpenClawMemoryError as error:
            if not session.has_failed:
                _log.warning(f"session {session.key!r}: what was ejected waits in memory: {error}")
            session.has_failed = True
            return False
        return True

    @property
    def _llm(self) -> LLM | None:
        return self._given_llm if self._memory.config.compaction.flush else None

    @property
    def _flush_tokens(self) -> int:
        return self._given_tokens or self._memory.config.compaction.soft_threshold_tokens

    def _session(self, key: str, messages: Sequence[Message]) -> _Session:
        with self._lock:
            session = self._sessions.setdefault(key, _Session(key))
            session.unwritten += messages
            return session

    def _forget(self, session: _Session) -> None:
        """Drop a session of which nothing waits."""
        waits = self._waiting(session, self._opened(session.key))
        with self._lock:
            is_busy = session.writing.locked() or session.flushing.locked()
            if not (session.unwritten or waits or is_busy):
                self._sessions.pop(session.key, None)

    def _opened(self, key: str) -> Flush:
        try:
            return self._memory.flush(key)
        except StoreError:  # the memory is closed, and its folder is still there
            return Flush(self._memory.workspace, key, self._memory.config.compaction)

    # --- the transcript ---

    def _write(self, session: _Session) -> None:
        """Write what the transcript of a session lacks."""
        with session.writing:
            if not session.unwritten:
                return
            flush: Flush | None = None
            try:
                flush = self._opened(session.key)
                if flush.log.path not in session.starts:
                    session.starts[flush.log.path] = self._start(flush)
                while batch := session.unwritten[:_BATCH]:
                    transcribed(flush.log, batch)
                    del session.unwritten[: len(batch)]
            except Exception as error:  # noqa: BLE001 - it is logged, and tried again with the next messages
                why = (
                    f"{len(session.unwritten)} ejected messages are not in the transcript, and wait in memory: {error}"
                )
                if not session.has_failed:
                    _log.warning(f"session {session.key!r}: {why}")
                session.has_failed = True
                if flush is not None:
                    flush.save(flush_error=why)
                return
            if session.has_failed:
                flush.save(flush_error=None)
            session.has_failed = False
        flush.wrote()

    def _start(self, flush: Flush) -> int:
        """Return where that begins which may have waited: of a transcript without a flush, no more than an end."""
        state, size = flush.state, flush.log.size
        if self._llm is None or state.compacted_bytes or state.memory_flush_at or state.memory_flush_started_at:
            return 0
        length = min(size, self._flush_tokens * _BYTES_PER_TOKEN)
        while estimated_tokens(messages_since(flush.log, size - length)) > self._flush_tokens:
            length //= 2
        return size - length

    # --- the flush ---

    def _waiting(self, session: _Session, flush: Flush) -> list[Message]:
        """Return the messages of a transcript that no flush has looked at: the latest, if there are very many."""
        if self._llm is None:
            return []
        size, seen = flush.log.size, flush.state.compacted_bytes
        most = max(_BACKLOG * self._flush_tokens, self._room(self._llm) or 0)
        start = max(session.starts.get(flush.log.path, 0), seen if seen <= size else 0, size - most * _BYTES_PER_TOKEN)
        try:
            messages = messages_since(flush.log, start)
        except Exception as error:  # noqa: BLE001 - they are in the transcript, whatever is wrong with that
            self._background.report(f"the transcript of session {flush.key!r} cannot be read for its flush", error)
            return []
        return messages[cut(messages, most) :]

    def _room(self, llm: LLM) -> int | None:
        return compaction_threshold(_flush_model.window_of(llm), self._memory.config.compaction)

    def _flush_while_due(self, session: _Session) -> None:
        """Flush while there is enough for one; where another thread does that, it goes on with what came meanwhile."""
        while self._is_due(session) and session.flushing.acquire(blocking=False):
            try:
                is_done = self._flush(session)
            finally:
                session.flushing.release()
            if not is_done:
                return
        self._forget(session)

    def _is_due(self, session: _Session) -> bool:
        if time.monotonic() < session.retry_at:
            return False
        return estimated_tokens(self._waiting(session, self._opened(session.key))) >= self._flush_tokens

    def _flush(self, session: _Session) -> bool:
        """Have the model look at what waits of a session. If it fails, that goes on waiting, and False is returned."""
        with session.writing:  # so that both are of one moment
            flush = self._opened(session.key)
            end, messages = flush.log.size, self._waiting(session, flush)
        llm, tokens = self._llm, estimated_tokens(messages)
        if llm is None or not messages:
            return True

        def begin() -> FlushTurn | None:
            # What is ejected is compacted away, and what of it had its flush is known here.
            return flush.due(tokens, compacting=True, flushed=False, messages=lambda: messages)

        def drive(turn: FlushTurn) -> None:
            _flush_model.flush(turn, llm, as_text(messages), room=self._room(llm), count=estimated)
            if turn.outcome in {"saved", "nothing"}:
                flush.compacted(log_bytes=end)
                session.retry_at = 0.0

        session.retry_at = time.monotonic() + _PAUSE_SECONDS
        run_flush(flush.key, begin, drive)
        return not session.retry_at
