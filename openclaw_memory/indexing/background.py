"""Run work in a thread of its own, on request and at an interval, and let searches go before it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A thread with nothing to do ends after this time: the next request starts another one.
IDLE_SECONDS = 2.0
# Closing waits so long for the work under way, which ends at its next transaction.
STOP_SECONDS = 10.0
# A sync waits for searches no longer than this at a time, so that it makes progress under constant searches.
LONGEST_WAIT_SECONDS = 0.1


class Ended(Exception):  # noqa: N818 - nothing went wrong
    """A sync that was ended by its caller; the next one goes on from there."""


class Background:
    """Does `work` once for any number of requests that come while it runs, and never twice at the same time.

    `work` is a method whose object is not kept alive: once that is gone, the thread ends. It must not raise.
    """

    def __init__(self, work: Callable[[], None], every_seconds: float = 0.0) -> None:
        self._work, self._every = weakref.WeakMethod(work), every_seconds
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due: float | None = None  # by the monotonic clock
        self._stopped = False
        if every_seconds:
            self.request(every_seconds)

    def request(self, after: float = 0.0) -> None:
        """Have the work done soon, or `after` some seconds, unless it is done before."""
        with self._changed:
            at = time.monotonic() + after
            self._due = at if self._due is None else min(at, self._due)
            # A thread that is not alive has ended by an unforeseen error.
            if not self._stopped and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="openclaw-memory sync", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self) -> None:
        """End, after the work under way. Calling it twice is allowed."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while self._wait():
            work = self._work()
            if work is None:
                return
            work()
            del work  # nothing here may keep its object alive

    def _wait(self) -> bool:
        """Wait until work is due; return False when the thread should end."""
        with self._changed:
            if self._every and self._due is None:
                self._due = time.monotonic() + self._every
            while not self._stopped:
                seconds = IDLE_SECONDS if self._due is None else self._due - time.monotonic()
                if seconds <= 0:
                    self._due = None
                    return True
                if not self._changed.wait(seconds) and self._due is None:
                    break
            self._thread = None
            return False


class SearchPriority:
    """Counts the searches that run, and lets a sync wait until they are done."""

    def __init__(self) -> None:
        self._searches, self._changed = 0, threading.Condition()

    @contextmanager
    def search(self) -> Iterator[None]:
        """Count as a search that runs, for as long as the block lasts."""
        with self._changed:
            self._searches += 1
        try:
            yield
        finally:
            with self._changed:
                self._searches -= 1
                self._changed.notify_all()

    def yield_to_searches(self) -> None:
        """Wait while searches run, for a short time at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._searches, LONGEST_WAIT_SECONDS)
