"""An embedding service behind a network as an embedder: requests in parallel, each in the background."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from openclaw_memory.embeddings._address import on_this_machine
from openclaw_memory.embeddings._asking import Answer, Asking, in_places, same_dims
from openclaw_memory.embeddings._background import Background
from openclaw_memory.embeddings._failures import Meaning, ServiceError
from openclaw_memory.embeddings._limits import Limits
from openclaw_memory.embeddings._pace import Pace
from openclaw_memory.embeddings._pieces import encodable, packs, weight
from openclaw_memory.embeddings._service import Service

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

__all__ = ["Answer", "Limits", "RemoteEmbedder", "Service", "on_this_machine"]

T = TypeVar("T")

# What a caller waits for beyond a deadline that the event loop should have kept.
GRACE_SECONDS = 0.5


class RemoteEmbedder:
    """An embedder that asks a service. Safe to use from several threads, also inside a running event loop."""

    def __init__(self, service: Service, pace: Pace | None = None) -> None:
        self.service = service
        self.pace = pace or Pace()
        self.provider, self.model, self.endpoint = service.provider, service.model, service.endpoint
        settings = {name: value for name, value in service.settings.items() if value is not None}
        said = [json.dumps(settings, sort_keys=True)] if settings else []
        self.identity = " ".join([self.provider, self.endpoint, self.model, *said])
        self._asking = Asking(service, self.pace)
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._background = Background(f"embedding with {self.provider}", service.close)

    @property
    def concurrency(self) -> int:
        """How many requests run at once."""
        return self.pace.concurrency

    @property
    def answered(self) -> bool:
        """Whether the service has ever answered this embedder."""
        return self._asking.answered

    @property
    def closings(self) -> int:
        """How often this embedder was closed."""
        return self._background.closings

    @property
    def leaves_machine(self) -> bool:
        """Whether texts go to another machine."""
        return not on_this_machine(self.endpoint)

    def embed_query(self, text: str) -> Vector:
        """The unit vector of a question, shape (dims,), or an error within `pace.query_seconds`.

        Raises:
            ServiceError: there is no vector, whatever the reason.
        """
        seconds = self.pace.query_seconds
        future = self._background.run(self._question(text))
        try:
            answers = future.result(seconds + GRACE_SECONDS)
        except TimeoutError as error:
            raise ServiceError(
                f"{self.endpoint} gave no answer within {seconds:g} s; set a longer embedding.query_seconds, or see "
                "whether the service is up",
                Meaning.PASSING,
            ) from error
        except CancelledError as error:
            raise self._closed() from error
        finally:
            future.cancel()
        vector: Vector = in_places(answers, 1, self.service.origin)[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """The unit vectors of texts, shape (len(texts), dims); the first failure ends it.

        Raises:
            ServiceError: there are not all vectors, whatever the reason.
        """
        if not texts:
            return np.zeros((0, self._asking.dims or 0), dtype=np.float32)
        origin = self.service.origin
        pending = [(pack, self.submit(pack)) for pack in self.packs(texts)]
        try:
            matrices = [in_places(future.result(), len(pack), origin) for pack, future in pending]
        except CancelledError as error:
            raise self._closed() from error
        finally:
            for _, future in pending:
                future.cancel()
        same_dims(matrices, origin)
        return np.concatenate(matrices)

    def packs(self, texts: Iterable[str]) -> Iterable[list[str]]:
        """The texts in their order, as many together as one request may hold."""
        limits = self._asking.limits.now
        return packs(texts, limits.items, limits.request_tokens, weight)

    def submit(self, pack: Sequence[str], since: int | None = None) -> Future[list[Answer]]:
        """Ask for the vectors of documents in the background, at most `concurrency` requests at once.

        The future fails only when it is cancelled, as `close` does: whatever else went wrong stands in the answers.
        Requests that belong together name how many `closings` there were when the first was made: after another one
        they are cancelled at once.
        """
        try:
            return self._background.run(self._documents([encodable(text) for text in pack]), since)
        except ServiceError as error:
            failed: Future[list[Answer]] = Future()
            failed.set_result([Answer(range(len(pack)), None, error)])
            return failed

    def ask(self, call: Callable[..., Awaitable[T]], *args: Any, seconds: float, tries: int | None = None) -> T:
        """What `call` of the service's SDK comes to, `seconds` each time.

        It is tried as patiently as documents are, or `tries` times: what must not happen twice is tried once.

        Raises:
            ServiceError: it failed, whatever the reason.
        """
        future = self._background.run(self._called(seconds, call, args, tries))
        try:
            return future.result()
        except CancelledError as error:
            raise self._closed() from error
        finally:
            future.cancel()

    def close(self) -> None:
        """End requests under way and connections. The next request opens new ones."""
        self._background.close()

    def _closed(self) -> ServiceError:
        return ServiceError(f"asking {self.endpoint} was ended by close(); ask again", Meaning.PASSING)

    # Each coroutine holds this object, so that it stays, with its thread, until the last of them has ended.

    async def _question(self, text: str) -> list[Answer]:
        async with asyncio.timeout(self.pace.query_seconds):
            return await self._asking.answers([encodable(text)], as_query=True)

    async def _documents(self, texts: list[str]) -> list[Answer]:
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = loop, asyncio.Semaphore(self.pace.concurrency)
        async with self._slots[1]:
            return await self._asking.answers(texts, as_query=False)

    async def _called(
        self, seconds: float, call: Callable[..., Awaitable[T]], args: tuple[Any, ...], tries: int | None
    ) -> T:
        return await self._asking.attempts(seconds, call, *args, as_query=False, tries=tries)
