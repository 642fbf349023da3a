"""Run calls that may hang, one at a time, in a thread that is waited for no longer than a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Limited:
    """Runs one thing at a time, and nothing while one that was given up goes on: of threads there is one at most.

    A call that hangs in a library cannot be stopped from outside.
    """

    def __init__(self, name: str) -> None:
        """Take the name of the threads."""
        self._name = name
        self._turn = threading.Lock()
        self._thread: threading.Thread | None = None  # the last one, unless it has ended in time

    def run(self, work: Callable[[], T], seconds: float) -> T:
        """Run `work` and return its result, or raise its error.

        Args:
            work: The function to run; others wait for it.
            seconds: How long to wait for it, the wait for others included.

        Raises:
            TimeoutError: It takes longer, or an earlier call that did has not ended yet.
        """
        from concurrent.futures import Future, wait

        until = time.monotonic() + seconds
        if not self._turn.acquire(timeout=seconds):
            raise TimeoutError(f"what it is at work on has taken more than {seconds:g} s")
        try:
            if self._thread is not None and self._thread.is_alive():
                raise TimeoutError("it is still at work on what took too long before")
            result: Future[T] = Future()

            def run() -> None:
                try:
                    result.set_result(work())
                except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                    result.set_exception(error)

            self._thread = threading.Thread(target=run, name=self._name, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # at the end of a program there are no more threads
                run()
            if not wait([result], max(0.0, until - time.monotonic())).done:
                raise TimeoutError(f"it has taken more than {seconds:g} s")
            self._thread = None
            return result.result()
        finally:
            self._turn.release()
