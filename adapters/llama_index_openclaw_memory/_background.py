"""Run work in threads of its own, and log failures once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import Any, TypeVar

_log = logging.getLogger("llama_index_openclaw_memory")

T = TypeVar("T")


class Background:
    """Hold the threads that the end of the program waits for, and the errors that were reported."""

    def __init__(self) -> None:
        self._under_way: set[Future[Any]] = set()
        self._reported: set[object] = set()

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in a thread of its own, or here if there can be no more threads, as at the end of the program.

        It cannot be cancelled. The result holds its return value or exception.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                future.set_exception(error)

        try:
            # No daemon: what is being written when the program ends is written to its end.
            threading.Thread(target=copy_context().run, args=(run,), name="openclaw-memory", daemon=False).start()
        except RuntimeError:
            run()
        return future

    def settle(self) -> None:
        """Wait until all work is done, including work begun by it."""
        while under_way := self._under_way.copy():
            wait(under_way)

    def report(self, what: str, error: Exception) -> None:
        """Log a failure, once for each type of error."""
        self.warn_once((what, type(error)), f"{what}: {type(error).__name__}: {error}")

    def warn_once(self, topic: object, words: str) -> None:
        """Log one warning for each topic."""
        if topic not in self._reported:
            self._reported.add(topic)
            _log.warning(words)


def is_in_event_loop() -> bool:
    """Tell whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
