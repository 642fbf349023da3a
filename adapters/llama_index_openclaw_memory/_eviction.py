"""What `Memory` ejects: written to the session's transcript at once, and flushed once there is enough of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from llama_index_openclaw_memory import _flush_model
from llama_index_openclaw_memory._messages import as_text, estimated
from openclaw_memory.conversation import Message, compaction_threshold, cut, estimated_tokens
from openclaw_memory.errors import StoreError
from openclaw_memory.flush import Flush, messages_since, run_flush, transcribed

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from openclaw_memory import Memory
    from openclaw_memory.flush import FlushTurn

_log = logging.getLogger(__name__)

T = TypeVar("T")

# Of the end of a transcript, so many bytes are read for each token that is wanted of it: entries say about 150 bytes
# apart from their words, of which the shortest have a few tokens.
_BYTES_PER_TOKEN = 64
_BATCH = 100  # messages are written at once: what a disk refuses costs each attempt no more than these
# How long the end of a session waits for a turn that another thread of the program holds: longer than most models take.
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.05


@dataclass(slots=True)
class _Session:
    """What is known of a session: what its transcript did not take yet, and what of that waits for a flush."""

    key: str
    unwritten: list[Message] = field(default_factory=list)
    path: str = ""  # of the transcript that the next two are about
    start: int = 0  # the byte where it begins that no flush has looked at
    tokens: int = 0  # about as many are there of it
    failed: bool = False  # the latest writing, which is logged once
    writing: threading.Lock = field(default_factory=threading.Lock)
    flushing: threading.Lock = field(default_factory=threading.Lock)


class Workers:
    """Threads that the end of the program waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread of its own, and here where there can be no more threads, as at the program's end."""
        # No daemon: what is being written when the program ends is written to its end.
        thread = threading.Thread(target=copy_context().run, args=(work,), name="openclaw-memory-flush", daemon=False)
        try:
            with self._lock:
                thread.start()
                self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        except RuntimeError:
            work()

    def settle(self) -> None:
        """Wait until all work is done."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()


class Ejected:
    """What was ejected of all sessions. Messages are written, and flushes run, in threads of their own.

    What waits for a flush is what the transcript has below the latest one. So nothing of it is lost with the program,
    and programs that share a session see what the others have looked at.
    """

    def __init__(self, memory: Memory, llm: LLM | None, flush_tokens: int) -> None:
        self._memory, self._llm, self._flush_tokens = memory, llm, flush_tokens
        self._flushes = llm is not None and memory.config.compaction.flush
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._workers = Workers()
        self._reported: set[str] = set()

    def take(self, key: str, messages: Sequence[Message]) -> Future[None]:
        """Take messages, whose writing cannot be stopped from here on; done when they are written, or could not be.

        A flush that is due begins then, without being waited for.
        """
        session = self._session(key, messages)
        written: Future[None] = Future()
        written.set_running_or_notify_cancel()

        def work() -> None:
            try:
                self._write(session)
            finally:
                written.set_result(None)
            self._flush_what_is_due(session)
            self._forget(session)

        self._workers.start(work)
        return written

    def begun(self, work: Callable[[], T]) -> Future[T]:
        """Work in a thread of its own, which goes on where its result is no longer awaited."""
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
                done.set_exception(error)

        self._workers.start(run)
        return done

    def keys(self) -> list[str]:
        """The sessions of which something waits, or is at work."""
        with self._lock:
            return list(self._sessions)

    def flush(self, key: str) -> None:
        """Write and flush whatever waits of a session; what is under way is waited for."""
        session = self._session(key, ())
        self._write(session)
        if self._flushes:
            with session.flushing:
                self._flush_in_time(session)
        self._forget(session)

    def settle(self) -> None:
        """Wait until all that is under way is over."""
        self._workers.settle()

    def _session(self, key: str, messages: Sequence[Message]) -> _Session:
        with self._lock:
            session = self._sessions.setdefault(key, _Session(key))
            session.unwritten += messages
            return session

    def _forget(self, session: _Session) -> None:
        """Drop a session of which nothing waits."""
        with self._lock:
            is_busy = session.writing.locked() or session.flushing.locked()
            if not (session.unwritten or session.tokens or is_busy):
                self._sessions.pop(session.key, None)

    # --- the transcript ---

    def _write(self, session: _Session) -> None:
        """Write what the transcript of a session lacks."""
        with session.writing:
            if not session.unwritten:
                return
            flush: Flush | None = None
            try:
                flush = self._flush(session)
                while batch := session.unwritten[:_BATCH]:
                    written = transcribed(flush.log, batch)
                    del session.unwritten[: len(batch)]
                    session.tokens += estimated_tokens(written) if self._flushes else 0
            except Exception as error:  # noqa: BLE001 - it is logged, and tried again with the next messages
                self._not_written(session, flush, error)
                return
            if session.failed:
                flush.save(flush_error=None)
            session.failed = False
        flush.wrote()

    def _not_written(self, session: _Session, flush: Flush | None, error: Exception) -> None:
        why = f"{len(session.unwritten)} ejected messages are not in the transcript, and wait in memory: {error}"
        if not session.failed:
            _log.warning(f"session {session.key!r}: {why}")
        session.failed = True
        if flush is not None:
            flush.save(flush_error=why)

    def _flush(self, session: _Session) -> Flush:
        """The flush of a session, whose transcript may have become another one: then, what waits there is looked up."""
        try:
            flush = self._memory.flush(session.key)
        except StoreError:  # the memory is closed, and its folder is still there
            flush = Flush(self._memory.workspace, session.key, self._memory.config.compaction)
        if self._flushes and flush.log.path != session.path:
            session.path = flush.log.path
            session.start, session.tokens = self._left_by_others(flush)
        return flush

    def _left_by_others(self, flush: Flush) -> tuple[int, int]:
        """Where that begins which a program that has ended had not flushed, and its tokens: as it may have waited."""
        start = max(_looked_at(flush), flush.log.size - self._flush_tokens * _BYTES_PER_TOKEN)
        try:
            return start, min(estimated_tokens(messages_since(flush.log, start)), self._flush_tokens)
        except Exception as error:  # noqa: BLE001 - it is in the transcript, whatever is wrong with that
            self._cannot_read(flush, error)
            return start, 0

    def _cannot_read(self, flush: Flush, error: Exception) -> None:
        """Say that a transcript cannot be read, once for a kind of error."""
        words = f"the transcript of session {flush.key!r} cannot be read for its flush: {type(error).__name__}"
        if words not in self._reported:
            self._reported.add(words)
            _log.warning(f"{words}: {error}")

    # --- the flush ---

    def _flush_what_is_due(self, session: _Session) -> None:
        """Hold flushes while there is enough for one; where one is held, that one goes on with what came meanwhile."""
        while session.tokens >= self._flush_tokens and session.flushing.acquire(blocking=False):
            try:
                is_done = self._hold(session, self._flush_tokens)
            finally:
                session.flushing.release()
            if not is_done:
                return

    def _flush_in_time(self, session: _Session) -> None:
        """Flush whatever waits, after a turn of this session that another thread of the program holds, if need be."""
        until, was_held = time.monotonic() + _PATIENCE_SECONDS, True
        while not self._hold(session, 1) and was_held:  # once more where that turn ended in between
            flush = self._flush(session)
            was_held = flush.is_held
            if was_held and time.monotonic() > until:
                why = f"not held, as another one takes over {_PATIENCE_SECONDS:g} s: what waits is in {flush.log.path}"
                _log.warning(f"the flush of session {session.key!r} was {why}")
                flush.save(flush_error=why)
                return
            if was_held:
                time.sleep(_LOOK_SECONDS)

    def _hold(self, session: _Session, enough: int) -> bool:
        """Have the model look at what waits, where that is `enough`. False where no turn could begin."""
        with session.writing:
            flush = self._flush(session)
            start, tokens, end = session.start, session.tokens, flush.log.size
            try:
                messages = messages_since(flush.log, max(start, _looked_at(flush)) if start <= end else 0)
            except Exception as error:  # noqa: BLE001 - it is in the transcript, whatever is wrong with that
                self._cannot_read(flush, error)
                return False
            # Of a transcript that was never flushed, no more than the end.
            messages = messages[cut(messages, tokens + self._flush_tokens) :]
            session.tokens = estimated_tokens(messages)
            if session.tokens < enough:
                return True
            session.start, tokens, session.tokens = end, session.tokens, 0
        was_held = False
        try:
            was_held = self._held(flush, messages, end)
        finally:
            if not was_held:
                with session.writing:
                    session.start, session.tokens = start, session.tokens + tokens
        return was_held

    def _held(self, flush: Flush, messages: list[Message], end: int) -> bool:
        """True where a turn was held, whatever came of it: the transcript has the words anyway."""
        llm = self._llm
        if llm is None:
            return False

        def begin() -> FlushTurn | None:
            # What is ejected is compacted away, and what of it had its flush is known here.
            return flush.due(estimated_tokens(messages), compacting=True, flushed=False, messages=lambda: messages)

        def drive(turn: FlushTurn) -> None:
            room = compaction_threshold(_flush_model.window_of(llm), self._memory.config.compaction)
            _flush_model.flush(turn, llm, as_text(messages), room=room, count=estimated)
            flush.compacted(log_bytes=end)

        return run_flush(flush.key, begin, drive)


def _looked_at(flush: Flush) -> int:
    """The byte of the transcript to which some program has flushed it."""
    done = flush.state.compacted_bytes
    return done if done <= flush.log.size else 0
