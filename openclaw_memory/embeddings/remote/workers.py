"""A bounded pool of threads whose work can be cancelled while it runs."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError

T = TypeVar("T")

# How long closing waits for the threads to end, in seconds.
CLOSING_SECONDS = 2.0
_cancelling = threading.Lock()


class Request(Future[T]):
    """A future that can be cancelled although its work runs: who waits for it goes on, the work ends a little later."""

    def cancel(self) -> bool:
        """Cancel it; returns False where it is done already."""
        with _cancelling:
            if self.cancelled():
                return True
            if not super().cancel():
                return False
            self.set_running_or_notify_cancel()  # or `wait` for the first of several is not notified
            return True


_Queue: TypeAlias = "SimpleQueue[tuple[Request[Any], Callable[[Request[Any]], Any]] | None]"


class Workers:
    """Runs work in at most `count` threads, which begin with the first work and end with `close`.

    `concurrent.futures.ThreadPoolExecutor` would hold up the end of the interpreter until its last request is
    answered: these threads are daemons.
    """

    def __init__(self, name: str, count: int) -> None:
        self.closings = 0
        self._name, self._count = name, count
        self._lock = threading.Lock()
        self._begin()

    def submit(self, work: Callable[[Request[T]], T], since: int | None = None) -> Request[T]:
        """Begin `work`, which is given its request.

        Work that belongs to what began when there were `since` closings is cancelled if there are more now.

        Raises:
            ServiceError: no thread can be started.
        """
        request: Request[T] = Request()
        with self._lock:  # under which `close` counts: no work slips in between the check and its beginning
            if since is not None and since != self.closings:
                request.cancel()
                return request
            self._start_thread()
            self._unfinished.add(request)
            self._queue.put((request, work))
        return request

    def close(self) -> None:
        """Cancel all work, and end the threads. Calling it twice is allowed."""
        with self._lock:
            self.closings += 1
            for request in list(self._unfinished):
                request.cancel()
            self._end()
            self._begin()

    def _begin(self) -> None:
        self._queue: _Queue = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unfinished: weakref.WeakSet[Request[Any]] = weakref.WeakSet()
        # Neither the threads nor this may refer to this object: they also end when the last reference to it goes.
        self._end = weakref.finalize(self, _end, self._queue, self._threads)
        self._end.atexit = False

    def _start_thread(self) -> None:
        if len(self._threads) >= self._count:
            return
        thread = threading.Thread(target=_run, args=(self._queue,), name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._threads:
                raise ServiceError(f"{self._name}: {error}; end some threads", FailureKind.PASSING) from error
            return
        self._threads.append(thread)


def _run(queue: _Queue) -> None:
    while (task := queue.get()) is not None:
        request, work = task
        with suppress(Exception):  # a request that was cancelled meanwhile takes no result
            try:
                result = None if request.cancelled() else work(request)
            except BaseException as error:  # noqa: BLE001 - the caller that waits for the request gets it
                request.set_exception(error)
            else:
                request.set_result(result)
        result = None
        del task, request, work  # what they hold may be forgotten before the next work comes
    queue.put(None)


def _end(queue: _Queue, threads: list[threading.Thread]) -> None:
    queue.put(None)
    until = time.monotonic() + CLOSING_SECONDS
    for thread in threads:
        if thread is not threading.current_thread():  # it may be collected there
            thread.join(max(0.0, until - time.monotonic()))
