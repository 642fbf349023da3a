"""Asking a service for vectors: tried again, halved where it is too much, checked, and each failure told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential, wait_random

from openclaw_memory.chunking.sliding_window import split_utf8
from openclaw_memory.embeddings import PROBE, checked_vectors
from openclaw_memory.embeddings._failures import Meaning, ServiceError, failure
from openclaw_memory.embeddings._limits import SHORTEST_PIECE, LearntLimits
from openclaw_memory.embeddings._pace import Pace
from openclaw_memory.embeddings._pieces import joined, packs, weight
from openclaw_memory.embeddings._service import Service
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix

T = TypeVar("T")

# Of a wait, so that clients that failed together do not come back together; OpenClaw's number.
JITTER = 0.2
AGAIN = {Meaning.PASSING, Meaning.BUSY}


class Answer(NamedTuple):
    """What came of some texts of a request, given by their places in it: their vectors, or why there are none."""

    places: Sequence[int]
    vectors: Matrix | None
    error: EmbedderError | None = None


@dataclass(slots=True)
class _Halved:
    """What became of the texts of one request, in parts: the answers, and the parts that were refused."""

    answers: list[Answer] = field(default_factory=list)
    refused: list[tuple[Meaning, Sequence[int]]] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)  # the places of texts that were answered, and not in pieces
    probed: bool = False

    @property
    def last_was_refused(self) -> bool:
        """Whether the text before was refused for what it says."""
        error = self.answers[-1].error if self.answers else None
        return isinstance(error, ServiceError) and error.meaning is Meaning.REFUSED

    def failed(self, error: ServiceError, places: Iterable[int]) -> list[Answer]:
        """What was answered, and the same error for all the rest."""
        good = [answer for answer in self.answers if answer.vectors is not None]
        answered = {place for answer in good for place in answer.places}
        return [*good, Answer([place for place in places if place not in answered], None, error)]


class Asking:
    """Asks one service, and keeps what its answers taught: how much it takes, and how many dimensions it gives."""

    def __init__(self, service: Service, pace: Pace) -> None:
        self.service, self.pace = service, pace
        self.limits = LearntLimits(service.limits)
        self.dims: int | None = service.settings.get("dimensions")
        self._dims_are_sure = self.dims is not None
        self._other_dims: int | None = None
        self.answered = False

    async def answers(self, texts: Sequence[str], *, as_query: bool) -> list[Answer]:
        """Ask for texts that may be blank, too long or too many for one request."""
        limits = self.limits.now
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
            answers += await self._pack(texts, places, as_query)
        if blank:  # services refuse them, and they say nothing
            answers.append(await self._blank(blank, as_query))
        return answers

    async def attempts(
        self, seconds: float, call: Callable[..., Awaitable[T]], *args: Any, as_query: bool, tries: int | None = None
    ) -> T:
        """What `call` comes to within `seconds`, tried as often as `pace` allows, or `tries` times.

        Raises:
            ServiceError: it failed, whatever the reason.
        """
        pace = self.pace

        def enough(state: RetryCallState) -> bool:
            allowed = pace.busy_tries if _is_busy(state) and not as_query else pace.tries
            return state.attempt_number >= (allowed if tries is None else tries)

        again = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, ServiceError) and error.meaning in AGAIN),
            stop=enough,
            wait=lambda state: _wait(state, pace, as_query),
            reraise=True,
        )
        return await again(self._within, seconds, call, *args)

    async def _pack(self, texts: Sequence[str], places: list[int], as_query: bool) -> list[Answer]:
        """Ask for texts that should fit one request; where they do not, or one is refused, ask for half of them."""
        halved = _Halved()
        parts = [places]
        while parts:
            part = parts.pop()
            asked = [texts[place] for place in part]
            # A neighbour may just have taught that this one is too long by itself.
            if len(part) == 1 and len(pieces := split_utf8(asked[0], self.limits.now.input_tokens)) > 1:
                halved.answers.append(await self._joined(pieces, part, as_query))
                continue
            try:
                vectors = await self._vectors(asked, as_query)
            except ServiceError as error:
                if hopeless := await self._hopeless(error, part, halved, as_query):
                    return halved.failed(hopeless, places)
                halved.refused.append((error.meaning, part))
                if middle := len(part) // 2:
                    parts += [part[middle:], part[:middle]]
                else:
                    halved.answers.append(await self._alone(error, asked[0], part, as_query))
            else:
                halved.answers.append(Answer(part, vectors))
                halved.whole.update(part)
        self._learn(halved, texts)
        return halved.answers

    async def _hopeless(
        self, error: ServiceError, part: list[int], halved: _Halved, as_query: bool
    ) -> ServiceError | None:
        """The error that all texts share, where no part of them would fare better.

        A service that never answered, or refuses two neighbours one after the other, may refuse any text: another one
        tells, once for each request that is halved.
        """
        if not error.isolated:
            return error
        two_in_a_row = len(part) == 1 and error.meaning is Meaning.REFUSED and halved.last_was_refused
        if halved.probed or (self.answered and not two_in_a_row):
            return None
        halved.probed = True
        try:
            await self._vectors([PROBE], as_query)
        except ServiceError as again:
            return ServiceError(str(error), Meaning.DENIED) if again.isolated else again
        return None

    def _learn(self, halved: _Halved, texts: Sequence[str]) -> None:
        """Ask for less from now on where texts were too much together, but not one of them by itself."""
        for meaning, part in halved.refused:
            if halved.whole.issuperset(part):
                self.limits.refused(meaning, [weight(texts[place]) for place in part])

    async def _alone(self, error: ServiceError, text: str, places: list[int], as_query: bool) -> Answer:
        """What becomes of one text that was refused: its pieces, where it was too large, or the error."""
        size = weight(text)
        if error.meaning is not Meaning.TOO_LARGE or size < 2 * SHORTEST_PIECE:
            return Answer(places, None, error)
        answer = await self._joined(split_utf8(text, size // 2), places, as_query)
        if answer.error is None:
            self.limits.refused(error.meaning, [size])
        return answer

    async def _joined(self, parts: list[str], places: list[int], as_query: bool) -> Answer:
        """Ask for the pieces of one text, and join their vectors."""
        answers = await self.answers(parts, as_query=as_query)
        try:
            vectors = in_places(answers, len(parts), self.service.origin)
        except EmbedderError as error:
            return Answer(places, None, error)
        return Answer(places, joined(vectors, [weight(part) for part in parts])[None, :])

    async def _blank(self, places: list[int], as_query: bool) -> Answer:
        if self.dims is None:
            try:
                await self._vectors([PROBE], as_query)
            except ServiceError as error:
                return Answer(places, None, error)
        return Answer(places, np.zeros((len(places), self.dims or 0), dtype=np.float32))

    async def _vectors(self, texts: list[str], as_query: bool) -> Matrix:
        """The vectors of texts that fit one request, asked for as often as `pace` allows."""
        return await self.attempts(self.pace.request_seconds, self._once, texts, as_query, as_query=as_query)

    async def _once(self, texts: list[str], as_query: bool) -> Matrix:
        origin = self.service.origin
        vectors = checked_vectors(await self.service.send(texts, as_query), len(texts), origin)
        if not vectors.any(axis=1).all():
            raise ServiceError(f"{origin} sent a vector of zeros; check the model", Meaning.PASSING)
        self._check_dims(vectors.shape[1])
        self.answered = True
        self.limits.answered()
        return vectors

    def _check_dims(self, dims: int) -> None:
        """Refuse other dimensions than before.

        A first answer may be the wrong one: until a second has agreed with it, two others that agree take its place.
        """
        if self.dims is None or dims == self.dims:
            self._dims_are_sure = self._dims_are_sure or self.dims is not None
            self.dims = dims
        elif not self._dims_are_sure and dims == self._other_dims:
            self.dims, self._dims_are_sure = dims, True
        else:
            self._other_dims = dims
            asked_for = self.service.settings.get("dimensions") is not None
            raise ServiceError(
                f"{self.service.origin} sent {dims} dimensions where {self.dims} were expected; check the model"
                + (" and the option dimensions" if asked_for else ""),
                Meaning.DENIED if asked_for else Meaning.PASSING,
            )

    async def _within(self, seconds: float, call: Callable[..., Awaitable[T]], *args: Any) -> T:
        """What `call` comes to within `seconds`; whatever it raises becomes a ServiceError."""
        try:
            async with asyncio.timeout(seconds):
                return await call(*args)
        except TimeoutError as error:
            words = f"{self.service.origin} gave no whole answer within {seconds:g} s; the next sync asks again"
            raise ServiceError(words, Meaning.PASSING) from error
        except Exception as error:
            raise failure(error, self.service.origin, self.service.secrets) from error


def in_places(answers: Iterable[Answer], count: int, origin: str) -> Matrix:
    """The vectors of all `count` texts in their order.

    Raises:
        EmbedderError: the first one among the answers, or they differ in their dimensions.
    """
    found = list(answers)
    for answer in found:
        if answer.error is not None:
            raise answer.error
    matrices = [answer.vectors for answer in found if answer.vectors is not None]
    matrix: Matrix = np.zeros((count, same_dims(matrices, origin)), dtype=np.float32)
    for answer in found:
        matrix[list(answer.places)] = answer.vectors
    return matrix


def same_dims(matrices: Iterable[Matrix], origin: str) -> int:
    """The dimensions that all the matrices have.

    Raises:
        ServiceError: they differ: the service changed its mind between two requests.
    """
    first, *others = sorted({int(matrix.shape[1]) for matrix in matrices})
    if others:
        words = f"{origin} sent {first} dimensions and then {others[0]}; ask again, or check the model"
        raise ServiceError(words, Meaning.PASSING)
    return first


def _wait(state: RetryCallState, pace: Pace, as_query: bool) -> float:
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


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _is_busy(state: RetryCallState) -> bool:
    error = _error(state)
    return isinstance(error, ServiceError) and error.meaning is Meaning.BUSY
