"""An embedding service behind a network as an embedder: requests in parallel, retried, ended in time, and checked."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import numpy as np
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential, wait_random

from openclaw_memory.chunking.tokens import split_utf8
from openclaw_memory.embeddings import checked_vectors
from openclaw_memory.embeddings._background import Background
from openclaw_memory.embeddings._failures import Meaning, ServiceError, failure
from openclaw_memory.embeddings._pace import Pace
from openclaw_memory.embeddings._pieces import joined, packs, weight
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from openclaw_memory.embeddings._jobs import Jobs
    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")

# Of a wait, so that clients that failed together do not come back together; OpenClaw's number.
JITTER = 0.2
# What a caller waits for beyond a deadline that the event loop should have kept.
GRACE_SECONDS = 0.5
AGAIN = {Meaning.PASSING, Meaning.BUSY}
# A text is not parted further where it is still too large: no model reads less than so many bytes.
SHORTEST_PIECE = 256
# What any service has a vector for.
PROBE = "memory"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold: `items` texts of `request_tokens` together, each of `input_tokens` at most.

    Tokens are estimated from above, one for each UTF-8 byte; a longer text is embedded in pieces.
    """

    items: int
    input_tokens: int
    request_tokens: int = 8000


@dataclass(frozen=True, slots=True)
class Service:
    """What the pipeline must know of a service.

    `send` takes texts and whether they are questions, and returns a vector for each, in their order, as numbers or
    arrays; what it raises is read by `_failures.failure`. `endpoint` is the URL that receives the texts, `settings`
    whatever else changes a vector (dimensions, prompts, names of extra headers): no secret may stand in either.
    """

    provider: str
    model: str
    endpoint: str
    limits: Limits
    send: Callable[[list[str], bool], Awaitable[Sequence[Any]]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None
    jobs: Jobs | None = None


class Answer(NamedTuple):
    """What came of some texts of a request, given by their places in it: their vectors, or why there are none."""

    places: Sequence[int]
    vectors: Matrix | None
    error: EmbedderError | None = None


class RemoteEmbedder:
    """An embedder that asks a service. Safe to use from several threads, also inside a running event loop."""

    def __init__(self, service: Service, pace: Pace | None = None) -> None:
        self.service = service
        self.pace = pace or Pace()
        self.provider, self.model, self.endpoint = service.provider, service.model, _public(service.endpoint)
        settings = {name: value for name, value in service.settings.items() if value is not None}
        parts = [
            self.provider,
            self.endpoint,
            self.model,
            *([json.dumps(settings, sort_keys=True)] if settings else []),
        ]
        self.identity = " ".join(parts)
        self._limits = service.limits  # as the service says, or less, as its answers taught
        self._dims: int | None = service.settings.get("dimensions")
        self._answered = False
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._background = Background(f"embedding with {self.provider}", service.close)

    @property
    def concurrency(self) -> int:
        """How many requests run at once."""
        return self.pace.concurrency

    @property
    def leaves_machine(self) -> bool:
        """Whether texts go to another machine."""
        return not on_this_machine(self.endpoint)

    def embed_query(self, text: str) -> Vector:
        """The unit vector of a question, shape (dims,), or an error within `pace.query_seconds`."""
        seconds = self.pace.query_seconds
        future = self._background.run(self._question(text))
        try:
            (answer,) = future.result(seconds + GRACE_SECONDS)
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
        vector: Vector = _vectors([answer], 1)[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """The unit vectors of texts, shape (len(texts), dims); the first failure ends it."""
        if not texts:
            return np.zeros((0, self._dims or 0), dtype=np.float32)
        pending = [(pack, self.submit(pack)) for pack in self.packs(texts)]
        try:
            return np.concatenate([_vectors(future.result(), len(pack)) for pack, future in pending])
        except CancelledError as error:
            raise self._closed() from error
        finally:
            for _, future in pending:
                future.cancel()

    def packs(self, texts: Iterable[str]) -> Iterable[list[str]]:
        """The texts in their order, as many together as one request may hold."""
        return packs(texts, self._limits.items, self._limits.request_tokens, weight)

    def submit(self, pack: Sequence[str]) -> Future[list[Answer]]:
        """Ask for the vectors of documents in the background, at most `concurrency` requests at once."""
        return self._background.run(self._documents([_encodable(text) for text in pack]))

    def ask(self, call: Callable[..., Awaitable[T]], *args: Any, seconds: float) -> T:
        """What `call` of the service's SDK comes to, tried as patiently as documents are, `seconds` each time.

        Raises:
            ServiceError: it failed, whatever the reason.
        """

        async def asked() -> T:
            return await self._attempts(as_query=False)(self._within, seconds, call, *args)

        future = self._background.run(asked())
        try:
            return future.result()
        except CancelledError as error:
            raise self._closed() from error
        finally:
            future.cancel()

    def close(self) -> None:
        """End requests under way and connections. The next request opens new ones."""
        self._background.close()

    @property
    def _origin(self) -> str:
        return f"{self.endpoint} ({self.provider} {self.model})"

    def _closed(self) -> ServiceError:
        return ServiceError(f"asking {self.endpoint} was ended by close(); ask again", Meaning.PASSING)

    async def _question(self, text: str) -> list[Answer]:
        async with asyncio.timeout(self.pace.query_seconds):
            return await self._answers([_encodable(text)], as_query=True)

    async def _documents(self, texts: list[str]) -> list[Answer]:
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = loop, asyncio.Semaphore(self.pace.concurrency)
        async with self._slots[1]:
            return await self._answers(texts, as_query=False)

    async def _answers(self, texts: list[str], *, as_query: bool) -> list[Answer]:
        """Ask for texts that may be blank, too long or too many for one request."""
        limits = self._limits
        answers: list[Answer] = []
        blank, short = [], []
        for place, text in enumerate(texts):
            if not text.strip():
                blank.append(place)
            elif len(parts := split_utf8(text, limits.input_tokens)) > 1:
                answers.append(await self._joined(parts, [place], as_query))
            else:
                short.append(place)
        for places in packs(short, limits.items, limits.request_tokens, lambda place: weight(texts[place])):
            answers += await self._pack([texts[place] for place in places], places, as_query)
        if blank:  # services refuse them, and they say nothing
            answers.append(await self._blank(blank, as_query))
        return answers

    async def _pack(self, texts: list[str], places: list[int], as_query: bool) -> list[Answer]:
        """Ask for texts that should fit one request; where they do not, or one is refused, ask for half of them."""
        try:
            return [Answer(places, await self._asked(texts, as_query))]
        except ServiceError as error:
            if not error.isolated:
                return [Answer(places, None, error)]
            if not self._answered and (denied := await self._denied(error, as_query)):
                return [Answer(places, None, denied)]
            self._learn(error.meaning, texts)
            half = len(texts) // 2
            if half > 0:
                first = await self._pack(texts[:half], places[:half], as_query)
                return first + await self._pack(texts[half:], places[half:], as_query)
            if error.meaning is not Meaning.TOO_LARGE or weight(texts[0]) < 2 * SHORTEST_PIECE:
                return [Answer(places, None, error)]
            return [await self._joined(split_utf8(texts[0], weight(texts[0]) // 2), places, as_query)]

    async def _denied(self, error: ServiceError, as_query: bool) -> ServiceError | None:
        """`error` as one that no text is to blame for, where a service that never answered refuses any text."""
        try:
            await self._asked([PROBE], as_query)
        except ServiceError as again:
            return ServiceError(str(error), Meaning.DENIED) if again.isolated else again
        return None

    def _learn(self, meaning: Meaning, texts: list[str]) -> None:
        """Ask for less from now on than what was just too much."""
        limits, total = self._limits, sum(map(weight, texts))
        if meaning is Meaning.TOO_MANY:
            self._limits = replace(limits, items=max(1, min(limits.items, len(texts) // 2)))
        elif meaning is Meaning.TOO_LARGE and len(texts) > 1:
            self._limits = replace(limits, request_tokens=max(SHORTEST_PIECE, min(limits.request_tokens, total // 2)))
        elif meaning is Meaning.TOO_LARGE:
            self._limits = replace(limits, input_tokens=max(SHORTEST_PIECE, min(limits.input_tokens, total // 2)))

    async def _joined(self, parts: list[str], places: list[int], as_query: bool) -> Answer:
        """Ask for the pieces of one text, and join their vectors."""
        answers = await self._answers(parts, as_query=as_query)
        if error := next((answer.error for answer in answers if answer.error is not None), None):
            return Answer(places, None, error)
        return Answer(places, joined(_vectors(answers, len(parts)), [weight(part) for part in parts])[None, :])

    async def _blank(self, places: list[int], as_query: bool) -> Answer:
        if self._dims is None:
            try:
                await self._asked([PROBE], as_query)
            except ServiceError as error:
                return Answer(places, None, error)
        return Answer(places, np.zeros((len(places), self._dims or 0), dtype=np.float32))

    async def _asked(self, texts: list[str], as_query: bool) -> Matrix:
        """The vectors of texts that fit one request, asked for as often as `pace` allows."""
        return await self._attempts(as_query)(self._once, texts, as_query)

    def _attempts(self, as_query: bool) -> AsyncRetrying:
        return AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, ServiceError) and error.meaning in AGAIN),
            stop=lambda state: state.attempt_number >= self._tries(state, as_query),
            wait=lambda state: self._wait(state, as_query),
            reraise=True,
        )

    async def _once(self, texts: list[str], as_query: bool) -> Matrix:
        origin = self._origin
        raw = await self._within(self.pace.request_seconds, self.service.send, texts, as_query)
        try:
            vectors = checked_vectors(raw, len(texts), origin)
        except EmbedderError as error:
            raise ServiceError(str(error), Meaning.PASSING) from error
        if not vectors.any(axis=1).all():
            raise ServiceError(f"{origin} sent a vector of zeros; check the model", Meaning.PASSING)
        if self._dims is not None and vectors.shape[1] != self._dims:
            words = f"{origin} sent {vectors.shape[1]} dimensions where {self._dims} were expected; check the model"
            raise ServiceError(words, Meaning.PASSING)
        self._dims = int(vectors.shape[1])
        self._answered = True
        return vectors

    async def _within(self, seconds: float, call: Callable[..., Awaitable[T]], *args: Any) -> T:
        """What `call` comes to within `seconds`; whatever it raises becomes a ServiceError."""
        try:
            async with asyncio.timeout(seconds):
                return await call(*args)
        except TimeoutError as error:
            words = f"{self._origin} gave no whole answer within {seconds:g} s; the next sync asks again"
            raise ServiceError(words, Meaning.PASSING) from error
        except EmbedderError as error:
            raise error if isinstance(error, ServiceError) else ServiceError(str(error), Meaning.PASSING) from error
        except Exception as error:
            raise failure(error, self._origin) from error

    def _tries(self, state: RetryCallState, as_query: bool) -> int:
        return self.pace.busy_tries if _is_busy(state) and not as_query else self.pace.tries

    def _wait(self, state: RetryCallState, as_query: bool) -> float:
        pace = self.pace
        if not _is_busy(state) or as_query:
            return _backoff(state, pace.first_wait, pace.longest_wait)
        asked_for = getattr(_error(state), "retry_after", None)
        if asked_for is not None:
            return min(float(asked_for), pace.busy_longest_wait)
        return _backoff(state, pace.busy_first_wait, pace.busy_longest_wait)


def _backoff(state: RetryCallState, first: float, longest: float) -> float:
    """A wait in seconds: `first`, doubled after each try, with jitter, and never above `longest`."""
    wait = wait_exponential(multiplier=first, max=longest) + wait_random(0, JITTER * first)
    return min(wait(state), longest)


def _vectors(answers: Iterable[Answer], count: int) -> Matrix:
    """The vectors of all `count` texts in their order; raises the first error among the answers."""
    found = list(answers)
    for answer in found:
        if answer.error is not None:
            raise answer.error
    dims = next(answer.vectors.shape[1] for answer in found if answer.vectors is not None)
    matrix: Matrix = np.zeros((count, dims), dtype=np.float32)
    for answer in found:
        matrix[list(answer.places)] = answer.vectors
    return matrix


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _is_busy(state: RetryCallState) -> bool:
    error = _error(state)
    return isinstance(error, ServiceError) and error.meaning is Meaning.BUSY


def _encodable(text: str) -> str:
    """The text with lone surrogates, which no request can carry, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def on_this_machine(url: str) -> bool:
    """Whether what is sent to `url` stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _public(url: str) -> str:
    """The URL without what may be secret: a user's name and password, and the query."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")
