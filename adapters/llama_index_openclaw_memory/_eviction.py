"""Write messages that `Memory` ejects to the transcript at once, and flush them once there are enough."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index_openclaw_memory import _flush_model
from llama_index_openclaw_memory._background import Background
from llama_index_openclaw_memory._flush_model import open_flush
from llama_index_openclaw_memory._messages import estimate_text
from openclaw_memory.conversation import cut, estimate_tokens
from openclaw_memory.errors import PolicyError
from openclaw_memory.flush import Flush, Session

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

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
    """The ejected messages of one session; they are written and flushed in threads of their own.

    The memory stays open meanwhile. What waits for a flush is what the transcript has since the latest one. So nothing
    of it is lost with the program, and programs that share a session see what the others have looked at.
    """

    def __init__(self, leased: RunMemory, llm: LLM | None, flush_tokens: int | None, background: Background) -> None:
        """Take over a session; without `flush_tokens`, the memory's configuration decides."""
        self._leased, self._background = leased, background
        self._session = leased.session.conversation if leased.session else Session()
        self._given_llm, self._given_tokens = llm, flush_tokens
        self._unwritten: list[Mapping[str, Any]] = []
        self._is_behind = True  # whether the transcript may have what no flush has looked at
        self._has_failed = False  # the latest writing, which is logged once
        self._retry_at = 0.0  # the time before which no flush is tried after one that failed
        self._writing, self._flushing = threading.Lock(), threading.Lock()

    def take(self, messages: Sequence[Mapping[str, Any]]) -> Future[None]:
        """Write messages in a thread that cannot be cancelled; the future ends when they are written or refused.

        A flush that is due begins then, without being waited for.
        """
        self._unwritten += messages
        return self._background.begin(self._process)

    @property
    def unwritten(self) -> list[Mapping[str, Any]]:
        """The messages that no transcript has, oldest first."""
        return list(self._unwritten)

    @property
    def is_needed(self) -> bool:
        """Tell whether work is under way, or messages wait that no transcript has."""
        return bool(self._unwritten) or self._writing.locked() or self._flushing.locked()

    @property
    def waits(self) -> bool:
        """Tell whether work is under way, or messages wait, if only for a flush."""
        return self.is_needed or self._is_behind

    def flush(self) -> None:
        """Write and flush all waiting messages, after work that is under way."""
        with ExitStack() as opened:
            if flush := self._open(opened):
                self._write(flush)
                with self._flushing:
                    self._flush(flush)
                self._look(flush)

    def _process(self) -> None:
        with ExitStack() as opened:
            if flush := self._open(opened):
                self._write(flush)
                self._background.begin(partial(self._flush_while_due, flush, opened.pop_all()))

    def _open(self, opened: ExitStack) -> Flush | None:
        """Return the session's flush; its memory stays open until the stack is closed. None where that cannot be."""
        try:
            return open_flush(opened.enter_context(self._leased), self._session)
        except Exception as error:  # noqa: BLE001 - it is logged, and tried again with the next messages
            self._report_failure(f"what was ejected waits in memory, and stays in the model's view: {error}")
            return None

    def _report_failure(self, why: str) -> None:
        if not self._has_failed:
            _log.warning(f"session {self._session.key!r}: {why}")
        self._has_failed = True

    # --- the transcript ---

    def _write(self, flush: Flush) -> None:
        """Write the waiting messages to the transcript."""
        with self._writing:
            if not self._unwritten:
                return
            refused = ""
            try:
                while batch := self._unwritten[:_BATCH]:
                    refused = _write_allowed(flush, batch) or refused
                    del self._unwritten[: len(batch)]
            except Exception as error:  # noqa: BLE001 - it is logged, and tried again with the next messages
                count = len(self._unwritten)
                why = f"{count} ejected messages are not in the transcript, and stay in the model's view: {error}"
                self._report_failure(why)
                flush.cycle.save(flush_error=why)
                return
            if refused:
                self._report_failure(refused)
                flush.cycle.save(flush_error=refused)
            elif self._has_failed:
                flush.cycle.save(flush_error=None)
            self._has_failed, self._is_behind = bool(refused), True
        flush.notify()

    # --- the flush ---

    def _get_llm(self, flush: Flush) -> LLM | None:
        return self._given_llm if flush.rules.flushes else None

    def _flush_tokens(self, flush: Flush) -> int:
        return self._given_tokens or flush.rules.soft_threshold_tokens

    def _read_waiting(self, flush: Flush) -> list[Mapping[str, Any]]:
        """Return the messages of the transcript that no flush has looked at: the latest, if there are very many."""
        if (llm := self._get_llm(flush)) is None:
            return []
        size, flushed = flush.log.size, flush.state.compacted_bytes
        most = max(_BACKLOG * self._flush_tokens(flush), _get_room(llm, flush) or 0)
        last = flushed if flushed <= size else 0
        start = max(last, size - most * _BYTES_PER_TOKEN)
        try:
            messages = flush.log.read_messages_since(start)
        except Exception as error:  # noqa: BLE001 - they are in the transcript, whatever is wrong with that
            self._background.report(f"the transcript of session {self._session.key!r} is not read for its flush", error)
            return []
        return messages[cut(messages, most) :]

    def _look(self, flush: Flush) -> None:
        with self._writing:
            self._is_behind = bool(self._read_waiting(flush))

    def _flush_while_due(self, flush: Flush, opened: ExitStack) -> None:
        """Flush while there is enough for a flush; another thread that does so takes new messages too."""
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
        return not is_pause and estimate_tokens(self._read_waiting(flush)) >= self._flush_tokens(flush)

    def _flush(self, flush: Flush) -> bool:
        """Show the model the waiting messages; if it fails, they go on waiting, and False is returned."""
        with self._writing:  # so that both are of one moment
            end, messages = flush.log.size, self._read_waiting(flush)
        llm, tokens = self._get_llm(flush), estimate_tokens(messages)
        if llm is None or not messages:
            return True

        self._retry_at = time.monotonic() + _PAUSE_SECONDS
        room = _get_room(llm, flush)
        # What is ejected is compacted away, and what of it had its flush is known here.
        turn = _flush_model.flush(
            flush, llm, messages, room=room, count=estimate_text, tokens=tokens, compacting=True, flushed=False
        )
        if turn and turn.outcome in {"saved", "nothing"}:
            flush.record_compaction(log_bytes=end)
            self._retry_at = 0.0
        return not self._retry_at


def _write_allowed(flush: Flush, batch: Sequence[Mapping[str, Any]]) -> str:
    """Write messages to the transcript; return why some are never to be stored, or ""."""
    try:
        flush.log.write_messages(batch)
    except PolicyError as error:
        for message in batch:
            with suppress(PolicyError):
                flush.log.write_messages([message])
        return f"not all ejected messages are in the transcript: {error}"
    return ""


def _get_room(llm: LLM, flush: Flush) -> int | None:
    return flush.rules.get_compaction_threshold(_flush_model.get_window(llm))
