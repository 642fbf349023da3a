"""What `Memory` ejects: written to the session's transcript at once, and flushed once there is enough of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from llama_index_openclaw_memory import _flush_model
from llama_index_openclaw_memory._background import Background
from llama_index_openclaw_memory._flush_model import flush_of
from llama_index_openclaw_memory._messages import as_text, estimated
from openclaw_memory.conversation import Message, cut, estimate_tokens, get_compaction_threshold
from openclaw_memory.errors import PolicyError
from openclaw_memory.flush import Flush, read_messages_since, write_messages

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from openclaw_memory.flush import FlushTurn
    from openclaw_memory.runs import RunMemory

_log = logging.getLogger(__name__)

# Of the end of a transcript, so many bytes are read for each token that is wanted of it: entries say about 150 bytes
# apart from their words, of which the shortest have a few tokens.
_BYTES_PER_TOKEN = 64
_BATCH = 100  # messages are written at once: what a disk refuses costs each attempt no more than these
# A model that failed is not asked again before; what it was to look at comes again then, or at the end of the session.
_PAUSE_SECONDS = 60.0
_BACKLOG = 8  # so many times `flush_tokens` are caught up with, or as much as the model can be shown at once


class Ejected:
    """What was ejected of one session. Messages are written, and flushes run, in threads of their own.

    The memory stays open meanwhile. What waits for a flush is what the transcript has since the latest one. So nothing
    of it is lost with the program, and programs that share a session see what the others have looked at.
    """

    def __init__(
        self, leased: RunMemory, key: str, llm: LLM | None, flush_tokens: int | None, background: Background
    ) -> None:
        """Without `flush_tokens`, as many are taken as the memory's configuration says."""
        self._leased, self._key, self._background = leased, key, background
        self._given_llm, self._given_tokens = llm, flush_tokens
        self._unwritten: list[Message] = []
        self._is_behind = True  # whether the transcript may have what no flush has looked at
        self._has_failed = False  # the latest writing, which is logged once
        self._starts: dict[str, int] = {}  # by transcript: the byte from which on a flush may be due
        self._retry_at = 0.0  # the time before which no flush is tried after one that failed
        self._writing, self._flushing = threading.Lock(), threading.Lock()

    def take(self, messages: Sequence[Message]) -> Future[None]:
        """Take messages, whose writing cannot be stopped from here on; done when they are written, or could not be.

        A flush that is due begins then, without being waited for.
        """
        self._unwritten += messages
        return self._background.begin(self._work)

    @property
    def unwritten(self) -> list[Message]:
        """The messages that no transcript has, oldest first."""
        return list(self._unwritten)

    @property
    def is_needed(self) -> bool:
        """Whether something is at work, or waits that no transcript has."""
        return bool(self._unwritten) or self._writing.locked() or self._flushing.locked()

    @property
    def waits(self) -> bool:
        """Whether something is at work, or waits, if only for a flush."""
        return self.is_needed or self._is_behind

    def flush(self) -> None:
        """Write and flush whatever waits; what is under way is waited for."""
        with ExitStack() as opened:
            if flush := self._open(opened):
                self._write(flush)
                with self._flushing:
                    self._flush(flush)
                self._look(flush)

    def _work(self) -> None:
        with ExitStack() as opened:
            if flush := self._open(opened):
                self._write(flush)
                self._background.begin(partial(self._flush_while_due, flush, opened.pop_all()))

    def _open(self, opened: ExitStack) -> Flush | None:
        """Return the session's flush; its memory stays open until the stack is closed. None where that cannot be."""
        try:
            return flush_of(opened.enter_context(self._leased), self._key)
        except Exception as error:  # noqa: BLE001 - it is logged, and tried again with the next messages
            self._failed(f"what was ejected waits in memory, and stays in the model's view: {error}")
            return None

    def _failed(self, why: str) -> None:
        if not self._has_failed:
            _log.warning(f"session {self._key!r}: {why}")
        self._has_failed = True

    # --- the transcript ---

    def _write(self, flush: Flush) -> None:
        """Write what the transcript lacks."""
        with self._writing:
            if not self._unwritten:
                return
            refused = ""
            try:
                if flush.log.path not in self._starts:
                    self._starts[flush.log.path] = self._start(flush)
                while batch := self._unwritten[:_BATCH]:
                    refused = _refusal(flush, batch) or refused
                    del self._unwritten[: len(batch)]
            except Exception as error:  # noqa: BLE001 - it is logged, and tried again with the next messages
                count = len(self._unwritten)
                why = f"{count} ejected messages are not in the transcript, and stay in the model's view: {error}"
                self._failed(why)
                flush.save(flush_error=why)
                return
            if refused:
                self._failed(refused)
                flush.save(flush_error=refused)
            elif self._has_failed:
                flush.save(flush_error=None)
            self._has_failed, self._is_behind = bool(refused), True
        flush.notify()

    def _start(self, flush: Flush) -> int:
        """Return where that begins which may have waited: of a transcript without a flush, no more than an end."""
        state, size, most = flush.state, flush.log.size, self._flush_tokens(flush)
        if self._llm(flush) is None or state.compacted_bytes or state.memory_flush_at or state.memory_flush_started_at:
            return 0
        length = min(size, most * _BYTES_PER_TOKEN)
        while estimate_tokens(read_messages_since(flush.log, size - length)) > most:
            length //= 2
        return size - length

    # --- the flush ---

    def _llm(self, flush: Flush) -> LLM | None:
        return self._given_llm if flush.rules.flushes else None

    def _flush_tokens(self, flush: Flush) -> int:
        return self._given_tokens or flush.rules.soft_threshold_tokens

    def _waiting(self, flush: Flush) -> list[Message]:
        """Return the messages of the transcript that no flush has looked at: the latest, if there are very many."""
        if (llm := self._llm(flush)) is None:
            return []
        size, seen = flush.log.size, flush.state.compacted_bytes
        most = max(_BACKLOG * self._flush_tokens(flush), _room(llm, flush) or 0)
        start = max(self._starts.get(flush.log.path, 0), seen if seen <= size else 0, size - most * _BYTES_PER_TOKEN)
        try:
            messages = read_messages_since(flush.log, start)
        except Exception as error:  # noqa: BLE001 - they are in the transcript, whatever is wrong with that
            self._background.report(f"the transcript of session {self._key!r} cannot be read for its flush", error)
            return []
        return messages[cut(messages, most) :]

    def _look(self, flush: Flush) -> None:
        with self._writing:
            self._is_behind = bool(self._waiting(flush))

    def _flush_while_due(self, flush: Flush, opened: ExitStack) -> None:
        """Flush while there is enough for one; where another thread does that, it goes on with what came meanwhile."""
        with opened:
            while self._is_due(flush) and self._flushing.acquire(blocking=False):
                try:
                    is_done = self._flush(flush)
                finally:
                    self._flushing.release()
                if not is_done:
                    return
            self._look(flush)

    def _is_due(self, flush: Flush) -> bool:
        is_pause = time.monotonic() < self._retry_at
        return not is_pause and estimate_tokens(self._waiting(flush)) >= self._flush_tokens(flush)

    def _flush(self, flush: Flush) -> bool:
        """Have the model look at what waits. If it fails, that goes on waiting, and False is returned."""
        with self._writing:  # so that both are of one moment
            end, messages = flush.log.size, self._waiting(flush)
        llm, tokens = self._llm(flush), estimate_tokens(messages)
        if llm is None or not messages:
            return True

        def begin() -> FlushTurn | None:
            # What is ejected is compacted away, and what of it had its flush is known here.
            return flush.begin(tokens, compacting=True, flushed=False, messages=lambda: messages)

        self._retry_at = time.monotonic() + _PAUSE_SECONDS
        turn = _flush_model.flush(self._key, begin, llm, as_text(messages), room=_room(llm, flush), count=estimated)
        if turn and turn.outcome in {"saved", "nothing"}:
            flush.record_compaction(log_bytes=end)
            self._retry_at = 0.0
        return not self._retry_at


def _refusal(flush: Flush, batch: Sequence[Message]) -> str:
    """Write messages to the transcript; return why some are never to be stored, or ""."""
    try:
        write_messages(flush.log, batch)
    except PolicyError as error:
        for message in batch:
            with suppress(PolicyError):
                write_messages(flush.log, [message])
        return f"not all ejected messages are in the transcript: {error}"
    return ""


def _room(llm: LLM, flush: Flush) -> int | None:
    return get_compaction_threshold(_flush_model.window_of(llm), flush.rules)
