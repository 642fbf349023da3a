"""`RemoteEmbedder`: an embedding service as an embedder, asked from an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple

from openclaw_memory.chunking.sliding_window import split_utf8
from openclaw_memory.embeddings.service import FailureKind, RetryPolicy, ServiceError, is_on_this_machine, read_failure
from openclaw_memory.embeddings.vectors import PROBE, check_vectors, count_bytes, make_encodable, merge_vectors, pack
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from openclaw_memory.embeddings.service import Service
    from openclaw_memory.types import Matrix, Vector

# OpenClaw's waits between tries, in seconds, from the first, doubled, to the longest; and their jitter.
FIRST_WAIT, LONGEST_WAIT, JITTER = 0.5, 8.0, 0.2
# A service with a rate limit gets more time while documents are embedded, and up to the longest wait that it asks for.
BUSY_TRIES, BUSY_FIRST_WAIT, BUSY_LONGEST_WAIT = 5, 5.0, 60.0
# No model reads less: a text of so many bytes is not cut further.
MIN_PIECE = 256
IDLE_SECONDS = 30.0  # until an unused connection is closed
CLOSE_SECONDS = 5.0


class Embeddings(NamedTuple):
    """The vectors of some texts, zeros for those that failed, and the errors by the places of their texts."""

    vectors: Matrix
    errors: dict[int, ServiceError]


class RemoteEmbedder:
    """An embedder that asks a service. Safe to use from several threads, also inside a running event loop.

    Attributes:
        service: How the service is asked.
        policy: How patiently.
        has_answered: True once the service has answered.
    """

    check_vectors = staticmethod(check_vectors)

    def __init__(self, service: Service, policy: RetryPolicy | None = None) -> None:
        self.service = service
        self.policy = policy or RetryPolicy()
        self.provider, self.model, self.endpoint = service.provider, service.model, service.endpoint
        self.leaves_machine = not is_on_this_machine(self.endpoint)
        settings = {name: value for name, value in service.settings.items() if value is not None}
        suffix = [json.dumps(settings, sort_keys=True)] if settings else []
        self.identity = " ".join([self.provider, self.endpoint, self.model, *suffix])
        self.has_answered = False
        self._dims: int | None = service.settings.get("dimensions")
        self._connection: _Connection | None = None
        self._lock = threading.Lock()

    def embed_query(self, text: str) -> Vector:
        seconds = self.policy.query_seconds

        async def embed(connection: _Connection) -> Embeddings:
            try:
                async with asyncio.timeout(seconds):
                    return await self._embed(connection, [text], as_query=True)
            except TimeoutError:
                raise ServiceError(
                    f"{self.endpoint} gave no answer within {seconds:g} s; set a longer embedding.query_seconds, or "
                    "see whether the service is up",
                    FailureKind.PASSING,
                ) from None

        vectors, errors = self._wait(self._start(embed), 1)
        if errors:
            raise errors[0]
        vector: Vector = vectors[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        limits = self.service.limits
        answers = self.embed_requests(list(pack(texts, limits.items, limits.request_tokens, count_bytes)))
        for error in chain.from_iterable(errors.values() for _, errors in answers):
            raise error
        return np.concatenate([np.zeros((0, self._dims or 0), np.float32), *(vectors for vectors, _ in answers)])

    def embed_requests(self, requests: Sequence[Sequence[str]]) -> list[Embeddings]:
        """Embed documents, at most `policy.concurrency` requests at once.

        Args:
            requests: The texts of each request.

        Returns:
            The vectors and errors of each. After an error that is not isolated the others share it.
        """

        def start(texts: Sequence[str]) -> Future[Embeddings]:
            async def embed(connection: _Connection) -> Embeddings:
                async with connection.slots:
                    return await self._embed(connection, texts, as_query=False)

            return self._start(embed)

        futures = [start(texts) for texts in requests]
        answers: list[Embeddings] = []
        failure: ServiceError | None = None
        try:
            for texts, future in zip(requests, futures, strict=True):
                answer = self._wait(future, len(texts)) if failure is None else _fail(len(texts), failure)
                answers.append(answer)
                failure = failure or next((error for error in answer.errors.values() if not error.is_isolated), None)
        finally:
            for future in futures:
                future.cancel()
        return answers

    def close(self) -> None:
        """End connections, and requests that are waited for. The next request opens new connections."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _start(self, work: Callable[[_Connection], Coroutine[Any, Any, Embeddings]]) -> Future[Embeddings]:
        with self._lock:
            if self._connection is None or self._connection.pid != os.getpid():  # a forked child has not its thread
                self._connection = _Connection(self.service, self.policy)
                weakref.finalize(self, self._connection.close).atexit = False
            return asyncio.run_coroutine_threadsafe(work(self._connection), self._connection.loop)

    def _wait(self, future: Future[Embeddings], count: int) -> Embeddings:
        try:
            return future.result()
        except CancelledError:
            message = f"asking {self.endpoint} was ended by close(); ask again"
            return _fail(count, ServiceError(message, FailureKind.PASSING))
        finally:
            future.cancel()

    async def _embed(self, connection: _Connection, texts: Sequence[str], *, as_query: bool) -> Embeddings:
        """Embed texts that may be blank, too long or too many for one request."""
        import numpy as np

        limits = self.service.limits
        # A blank text says nothing, and services refuse it: a word is sent in its place, and its vector is zero.
        parts = [split_utf8(make_encodable(text) if text.strip() else PROBE, limits.input_tokens) for text in texts]
        pieces = [piece for some in parts for piece in some]
        rows, piece_errors = await self._embed_pieces(connection, pieces, as_query=as_query)
        errors: dict[int, ServiceError] = {}
        vectors: Matrix = np.zeros((len(texts), self._dims or 0), dtype=np.float32)
        start = 0
        for place, own in enumerate(parts):
            own_places = range(start, start := start + len(own))
            if failed := [piece_errors[at] for at in own_places if at in piece_errors]:
                errors[place] = failed[0]
            elif texts[place].strip():
                vectors[place] = merge_vectors([rows[at] for at in own_places], [count_bytes(piece) for piece in own])
        return Embeddings(vectors, errors)

    async def _embed_pieces(
        self, connection: _Connection, pieces: list[str], *, as_query: bool
    ) -> tuple[dict[int, Vector], dict[int, ServiceError]]:
        """Embed texts that the model can read, in halves if a request is refused; return vectors and errors."""
        limits = self.service.limits
        rows: dict[int, Vector] = {}
        errors: dict[int, ServiceError] = {}
        packs = list(pack(range(len(pieces)), limits.items, limits.request_tokens, lambda at: count_bytes(pieces[at])))
        packs.reverse()
        while packs:
            places = packs.pop()
            try:
                vectors = await self._request(connection, [pieces[at] for at in places], as_query=as_query)
                rows.update(zip(places, vectors, strict=True))
                continue
            except ServiceError as raised:
                error = raised
            if error.is_isolated and not self.has_answered:
                error = await self._find_reason(connection, error, as_query=as_query)
            if not error.is_isolated:  # the others would fail too
                errors |= dict.fromkeys(chain(places, *packs), error)
                break
            if middle := len(places) // 2:
                packs += [places[middle:], places[:middle]]
                continue
            (at,) = places
            size = count_bytes(pieces[at])
            if error.kind is FailureKind.TOO_LARGE and size >= 2 * MIN_PIECE:
                halves = split_utf8(pieces[at], size // 2)
                inner_rows, failed = await self._embed_pieces(connection, halves, as_query=as_query)
                if not failed:
                    rows[at] = merge_vectors(
                        [inner_rows[place] for place in range(len(halves))], [*map(count_bytes, halves)]
                    )
                    continue
                error = next(iter(failed.values()))
            errors[at] = error
        return rows, errors

    async def _find_reason(self, connection: _Connection, error: ServiceError, *, as_query: bool) -> ServiceError:
        """Return the error of a service that never answered; it may refuse any text, and not these alone."""
        try:
            await self._request(connection, [PROBE], as_query=as_query)
        except ServiceError as again:
            return ServiceError(str(error), FailureKind.DENIED) if again.is_isolated else again
        return error

    async def _request(self, connection: _Connection, texts: list[str], *, as_query: bool) -> Matrix:
        """Return the vectors of texts that fit one request, or raise the ServiceError of its last try."""
        tries, seconds = self.policy.tries, self.policy.request_seconds
        has_sdk = self.service.open_client is not None  # which tries again by itself, but not after a wrong answer
        deadline = seconds * tries if has_sdk else seconds
        for attempt in count(1):
            try:
                async with asyncio.timeout(deadline):
                    raw = await self.service.send(connection.client, texts, as_query)
                vectors = self._check(check_vectors(raw, len(texts), self.service.origin))
            except TimeoutError:
                message = f"{self.service.origin} gave no whole answer within {deadline:g} s; it is asked again later"
                is_final, error = has_sdk, ServiceError(message, FailureKind.PASSING)
            except Exception as raised:  # noqa: BLE001 - of httpx, of a provider, or of ours
                is_final = has_sdk and not isinstance(raised, EmbedderError | ValueError)
                error = read_failure(raised, self.service.origin, self.service.headers)
            else:
                self.has_answered = True
                return vectors
            is_busy = error.kind is FailureKind.BUSY and not as_query
            if is_final or not error.is_passing or attempt >= (BUSY_TRIES if is_busy else tries):
                raise error
            first, longest = (BUSY_FIRST_WAIT, BUSY_LONGEST_WAIT) if is_busy else (FIRST_WAIT, LONGEST_WAIT)
            pause = first * 2 ** (attempt - 1) * (1 + random.uniform(0, JITTER))  # noqa: S311 - no secret
            await wait(min(error.retry_after if is_busy and error.retry_after is not None else pause, longest))
        raise AssertionError("unreachable")

    def _check(self, vectors: Matrix) -> Matrix:
        """Return vectors; raise ServiceError if one is zero, or of other dimensions than before."""
        dims = vectors.shape[1]
        if not vectors.any(axis=1).all():
            raise ServiceError(f"{self.service.origin} sent a vector of zeros; check the model", FailureKind.PASSING)
        if dims != (self._dims or dims):
            is_option = self.service.settings.get("dimensions") is not None
            raise ServiceError(
                f"{self.service.origin} sent {dims} dimensions where {self._dims} were expected; check the model"
                + (" and the option dimensions" if is_option else ""),
                FailureKind.DENIED if is_option else FailureKind.PASSING,
            )
        self._dims = dims
        return vectors


def _fail(count: int, error: ServiceError) -> Embeddings:
    import numpy as np

    return Embeddings(np.zeros((count, 0), np.float32), dict.fromkeys(range(count), error))


async def wait(seconds: float) -> None:
    """Wait between two tries."""
    await asyncio.sleep(seconds)


def _open_httpx(service: Service) -> Any:
    import httpx

    return httpx.AsyncClient(
        base_url=service.endpoint,
        headers={**service.headers, "Accept-Encoding": "identity"},
        timeout=None,  # noqa: S113 - asyncio bounds the whole answer, and not the wait for its parts
        limits=httpx.Limits(keepalive_expiry=IDLE_SECONDS),
        # Of the environment: proxies and certificates, except for servers on this machine.
        trust_env=not is_on_this_machine(service.endpoint),
    )


class _Connection:
    """An event loop in a thread, and the client for its requests."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.slots = asyncio.Semaphore(policy.concurrency)
        self.client: Any = service.open_client(policy) if service.open_client else _open_httpx(service)
        # A daemon: the end of the interpreter does not wait for an answer.
        self._thread = threading.Thread(target=self._run, name=f"embedding with {service.provider}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cancel all requests, and end the connections and the thread."""
        if self.pid == os.getpid() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            if self._thread is not threading.current_thread():
                self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.__aexit__(None, None, None)  # as httpx and SDKs have it
        await self.loop.shutdown_default_executor()  # an SDK may have used a thread
