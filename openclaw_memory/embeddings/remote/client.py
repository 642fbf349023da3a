"""An embedding service behind a network as an embedder: its requests run in threads, and can be cancelled."""

from __future__ import annotations

import json
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakSet

from openclaw_memory import _forks
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError
from openclaw_memory.embeddings.remote.http import deadline, limit_answers
from openclaw_memory.embeddings.remote.pipeline import Answer, RequestPipeline, in_places, same_dims
from openclaw_memory.embeddings.remote.service import RetryPolicy, estimate_answer, on_this_machine
from openclaw_memory.embeddings.vectors import encodable, packs, weight

if TYPE_CHECKING:
    from openclaw_memory.embeddings.remote.service import Service
    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")
_Tasks: TypeAlias = deque[tuple[Future[Any], Callable[[Future[Any]], Any]]]

# What a caller waits for beyond a deadline that the thread of a question should have kept.
GRACE_SECONDS = 0.5


class RemoteEmbedder:
    """An embedder that asks a service. Safe to use from several threads, also inside a running event loop."""

    def __init__(self, service: Service, policy: RetryPolicy | None = None) -> None:
        self.service = service
        self.policy = policy or RetryPolicy()
        self.provider, self.model, self.endpoint = service.provider, service.model, service.endpoint
        self.leaves_machine = not on_this_machine(self.endpoint)
        settings = {name: value for name, value in service.settings.items() if value is not None}
        shown = [json.dumps(settings, sort_keys=True)] if settings else []
        self.identity = " ".join([self.provider, self.endpoint, self.model, *shown])
        self._pipeline = RequestPipeline(service, self.policy)
        name = f"embedding with {self.provider}"
        # Questions have threads of their own: they must not wait for documents.
        self._documents = Workers(name, self.policy.concurrency)
        self._questions = Workers(name, self.policy.concurrency)
        self._process: int | None = None
        if service.close is not None:  # also connections of an embedder that is only forgotten
            weakref.finalize(self, service.close).atexit = False

    @property
    def has_answered(self) -> bool:
        """Whether the service has ever answered this embedder."""
        return self._pipeline.has_answered

    @property
    def closings(self) -> int:
        """How often this embedder was closed."""
        return self._documents.closings

    def embed_query(self, text: str) -> Vector:
        seconds = self.policy.query_seconds
        ask = partial(self._pipeline.answers, [encodable(text)], as_query=True)
        request: Future[list[Answer]] = self._begun(self._questions, ask, seconds)
        try:
            answers: list[Answer] = self._result(request, seconds + GRACE_SECONDS)
        except TimeoutError as error:
            raise ServiceError(
                f"{self.endpoint} gave no answer within {seconds:g} s; set a longer embedding.query_seconds, or see "
                "whether the service is up",
                FailureKind.PASSING,
            ) from error
        vector: Vector = in_places(answers, 1, self.service.origin)[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        if not texts:
            return np.zeros((0, self._pipeline.dims or 0), dtype=np.float32)
        origin, limits = self.service.origin, self._pipeline.limits.now
        pending = [(pack, self.submit(pack)) for pack in packs(texts, limits.items, limits.request_tokens, weight)]
        try:
            matrices = [in_places(self._result(request), len(pack), origin) for pack, request in pending]
        finally:
            for _, request in pending:
                request.cancel()
        same_dims(matrices, origin)
        return np.concatenate(matrices)

    def submit(self, pack: Sequence[str], since: int | None = None) -> Future[list[Answer]]:
        """Ask for the vectors of documents in the background, at most `concurrency` requests at once.

        The future fails only when it is cancelled, as `close` does: whatever else goes wrong is in the answers.

        Args:
            pack: The texts of one request.
            since: How many `closings` there were when the first of requests that belong together was made: after
                another one they are cancelled at once.
        """
        ask = partial(self._pipeline.answers, [encodable(text) for text in pack], as_query=False)
        try:
            return self._begun(self._documents, ask, since=since)
        except ServiceError as error:
            failed: Future[list[Answer]] = Future()
            failed.set_result([Answer(range(len(pack)), None, error)])
            return failed

    def ask(
        self, call: Callable[..., T], *args: Any, seconds: float, tries: int | None = None, texts: int | None = None
    ) -> T:
        """Return the answer of a call of the service.

        Args:
            call: A function of the service.
            args: Its arguments.
            seconds: How long each try may take.
            tries: How often it is tried; by default as patiently as documents are.
            texts: How many vectors the answer may hold: a longer one is refused.

        Raises:
            ServiceError: The call failed.
        """
        bounded = partial(call, *args)
        if texts is not None:
            bounded = partial(_call_within, estimate_answer(texts, self.service.settings.get("dimensions")), bounded)
        ask = partial(self._pipeline.call, seconds, bounded, as_query=False, tries=tries)
        return self._result(self._begun(self._documents, ask))

    def close(self) -> None:
        """End connections, and requests that are waited for. The next request opens new connections."""
        if self._is_forked():  # threads and connections are the parent's
            return
        self._questions.close()
        self._documents.close()
        if self.service.close is not None:
            self.service.close()

    def _begun(
        self, workers: Workers, ask: Callable[[], T], seconds: float = math.inf, since: int | None = None
    ) -> Future[T]:
        def work(request: Future[T]) -> T:
            with deadline(seconds, request):
                return ask()

        if self._is_forked():
            raise ServiceError(
                f"embedding with {self.provider}: this process was forked after the embedder was used; make one in "
                "each process",
                FailureKind.DENIED,
            )
        self._process = os.getpid()
        return workers.submit(work, since)

    def _result(self, request: Future[T], seconds: float | None = None) -> T:
        try:
            return request.result(seconds)
        except CancelledError as error:
            message = f"asking {self.endpoint} was ended by close(); ask again"
            raise ServiceError(message, FailureKind.PASSING) from error
        finally:
            request.cancel()

    def _is_forked(self) -> bool:
        return self._process is not None and self._process != os.getpid()


def _call_within(most_bytes: int, call: Callable[[], T]) -> T:
    with limit_answers(most_bytes):
        return call()


class Workers:
    """Runs work in at most `count` threads, which end when there is none left.

    `concurrent.futures.ThreadPoolExecutor` would hold up the end of the interpreter until its last request is
    answered: these threads are daemons.
    """

    def __init__(self, name: str, count: int) -> None:
        self.closings = 0
        self._name, self._count = name, count
        self._lock = _forks.lock()
        self._tasks: _Tasks = deque()
        self._threads = 0
        self._unfinished: WeakSet[Future[Any]] = WeakSet()

    def submit(self, work: Callable[[Future[T]], T], since: int | None = None) -> Future[T]:
        """Begin `work`, which is given its future; cancel it if there were more than `since` closings."""
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
