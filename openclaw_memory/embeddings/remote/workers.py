"""A bounded pool of daemon threads whose work can be cancelled while it runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError

T = TypeVar("T")
_Tasks: TypeAlias = deque[tuple[Future[Any], Callable[[Future[Any]], Any]]]


class Workers:
    """Runs work in at most `count` threads, which end when there is none left.

    `concurrent.futures.ThreadPoolExecutor` would hold up the end of the interpreter until its last request is
    answered: these threads are daemons.
    """

    def __init__(self, name: str, count: int) -> None:
        self.closings = 0
        self._name, self._count = name, count
        self._lock = threading.Lock()
        self._tasks: _Tasks = deque()
        self._threads = 0
        self._unfinished: WeakSet[Future[Any]] = WeakSet()

    def submit(self, work: Callable[[Future[T]], T], since: int | None = None) -> Future[T]:
        """Begin `work`, which is given its future; cancel it if there were more than `since` closings.

        Raises:
            ServiceError: no thread can be started.
        """
        future: Future[T] = Future()
        with self._lock:  # under which `close` counts: no work slips in between the check and its beginning
            if since is not None and since != self.closings:
                future.set_exception(CancelledError())
                return future
            if self._threads < self._count:
                self._start_thread()
            self._unfinished.add(future)
            self._tasks.append((future, work))
        return future

    def close(self) -> None:
        """Cancel all work. A thread that waits for its server ends when that answers, or at the deadline."""
        with self._lock:
            self.closings += 1
            self._tasks, self._threads = deque(), 0
            for future in list(self._unfinished):
                with suppress(InvalidStateError):  # it is done
                    future.set_exception(CancelledError())

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._run, args=(self._tasks,), name=self._name, daemon=True).start()
            self._threads += 1
        except RuntimeError as error:
            if not self._threads:
                raise ServiceError(f"{self._name}: {error}; end some threads", FailureKind.PASSING) from error

    def _run(self, tasks: _Tasks) -> None:
        while True:
            with self._lock:
                if not tasks:
                    self._threads -= tasks is self._tasks  # those from before `close` are not counted any more
                    return
                future, work = tasks.popleft()
            with suppress(InvalidStateError):  # a future that was cancelled meanwhile takes no result
                try:
                    result = None if future.done() else work(future)
                except BaseException as error:  # noqa: BLE001 - the caller that waits for the future gets it
                    future.set_exception(error)
                else:
                    future.set_result(result)
            result = None
            del future, work  # what they hold may be forgotten before the next work comes
