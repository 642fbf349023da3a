"""Run calls that may hang, one at a time, in a thread that is waited for no longer than a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_own_thread(work: Callable[[], Any], name: str = "openclaw-memory") -> Any:
    """Run a function in a thread of its own, since one that hangs cannot be stopped; return its `Future`.

    Args:
        work: The function to run.
        name: The name of the thread, for which the end of the program does not wait.
    """
    from concurrent.futures import Future

    result: Future[Any] = Future()
    result.set_running_or_notify_cancel()  # it cannot be cancelled

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised or reported where the result is waited for
            result.set_exception(error)

    try:
        threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    except RuntimeError:  # the program ends, and begins no more threads
        run()
    return result


class Limited:
    """Runs one thing at a time, and nothing while one that was given up goes on: of threads there is one at most.

    A call that hangs in a library cannot be stopped from outside.
    """

    def __init__(self, name: str) -> None:
        """Take the name of the threads."""
        self._name = name
        self._turn = threading.Lock()
        self._work: Any = None  # the last one, unless it has ended in time

    def run(self, work: Callable[[], T], seconds: float) -> T:
        """Run `work` and return its result, or raise its error.

        Args:
            work: The function to run; others wait for it.
            seconds: How long to wait for it, the wait for others included.

        Raises:
            TimeoutError: It takes longer, or an earlier call that did has not ended yet.
        """
        from concurrent.futures import wait

        until = time.monotonic() + seconds
        if not self._turn.acquire(timeout=seconds):
            raise TimeoutError(f"what it is at work on has taken more than {seconds:g} s")
        try:
            if self._work is not None and not self._work.done():
                raise TimeoutError("it is still at work on what took too long before")
            self._work = result = run_in_own_thread(work, self._name)
            if not wait([result], max(0.0, until - time.monotonic())).done:
                raise TimeoutError(f"it has taken more than {seconds:g} s")
            self._work = None
            return result.result()  # type: ignore[no-any-return]
        finally:
            self._turn.release()
