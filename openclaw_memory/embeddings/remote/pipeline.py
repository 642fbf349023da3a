"""One request of an embedding service: tried again, halved where it is too much, its vectors checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from openclaw_memory import _forks
from openclaw_memory.chunking.sliding_window import split_utf8
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError, failure, reasons, shows
from openclaw_memory.embeddings.remote.http import deadline, limit_answers, seconds_left, sleep
from openclaw_memory.embeddings.remote.service import Limits, estimate_answer
from openclaw_memory.embeddings.vectors import PROBE, checked_vectors, joined, packs, weight
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from openclaw_memory.embeddings.remote.service import RetryPolicy, Service
    from openclaw_memory.types import Matrix

T = TypeVar("T")

# No model reads less than so many bytes: a text is not parted further where it is still too large.
SHORTEST_PIECE = 256
# After so many answers twice as much is tried again: a proxy that is in trouble refuses what would fit, too.
ANSWERS_UNTIL_MORE = 50
# Of a wait, so that clients that failed together do not come back together; OpenClaw's number.
JITTER = 0.2


class Answer(NamedTuple):
    """What came of some texts of a request, given by their places in it: their vectors, or why there are none."""

    places: Sequence[int]
    vectors: Matrix | None
    error: EmbedderError | None = None


class AdaptiveLimits:
    """The limits that hold `now`: those of the service, or less for a while. Safe to use from several threads."""

    def __init__(self, given: Limits) -> None:
        self.now = self._given = given
        self._answers = 0
        self._lock = _forks.lock()

    def refused(self, kind: FailureKind, weights: Sequence[int]) -> None:
        """Ask for no more than half of what was too much: texts of `weights` that were answered in parts."""
        with self._lock:
            now, half = self.now, max(SHORTEST_PIECE, sum(weights) // 2)
            if kind is FailureKind.TOO_MANY:
                self.now = replace(now, items=max(1, min(now.items, len(weights) // 2)))
            elif kind is FailureKind.TOO_LARGE and len(weights) > 1:
                self.now = replace(now, request_tokens=min(now.request_tokens, half))
            elif kind is FailureKind.TOO_LARGE:
                self.now = replace(now, input_tokens=min(now.input_tokens, half))
            self._answers = 0

    def answered(self) -> None:
        """Count an answer; after enough of them, try twice as much."""
        with self._lock:
            self._answers += 1
            if self._answers < ANSWERS_UNTIL_MORE or self.now == self._given:
                return
            now, given, self._answers = self.now, self._given, 0
            self.now = Limits(
                min(given.items, 2 * now.items),
                min(given.input_tokens, 2 * now.input_tokens),
                min(given.request_tokens, 2 * now.request_tokens),
            )


@dataclass(slots=True)
class _Halved:
    """What became of the texts of one request, in parts: the answers, and the parts that were refused."""

    answers: list[Answer] = field(default_factory=list)
    refused: list[tuple[FailureKind, list[int]]] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)  # the places of texts that were answered, and not in pieces
    probed: bool = False

    def failed(self, error: ServiceError, places: Iterable[int]) -> list[Answer]:
        """Return what was answered, and the same error for all the rest."""
        good = [answer for answer in self.answers if answer.vectors is not None]
        answered = {place for answer in good for place in answer.places}
        return [*good, Answer([place for place in places if place not in answered], None, error)]


class RequestPipeline:
    """Asks one service, and keeps what its answers taught: how much it takes, and how many dimensions it gives."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        self.service, self.policy = service, policy
        self.limits = AdaptiveLimits(service.limits)
        self.dims: int | None = service.settings.get("dimensions")
        self._dims_are_sure = self.dims is not None
        self._other_dims: int | None = None
        self._lock = _forks.lock()
        self.has_answered = False

    def answers(self, texts: Sequence[str], *, as_query: bool) -> list[Answer]:
        """Ask for texts that may be blank, too long or too many for one request."""
        limits = self.limits.now
        answers: list[Answer] = []
        blank: list[int] = []
        short: list[int] = []
        for place, text in enumerate(texts):
            if not text.strip():
                blank.append(place)
            elif len(parts := split_utf8(text, limits.input_tokens)) > 1:
                answers.append(self._joined(parts, [place], as_query))
            else:
                short.append(place)
        for places in packs(short, limits.items, limits.request_tokens, lambda place: weight(texts[place])):
            answers += self._pack(texts, places, as_query)
        if blank:  # services refuse them, and they say nothing
            answers.append(self._blank(blank, as_query))
        return answers

    def call(self, seconds: float, call: Callable[[], T], *, as_query: bool, tries: int | None = None) -> T:
        """Return what `call` returns within `seconds`, or raise ServiceError after the last of its tries."""
        origin = self.service.origin

        def once() -> T:
            try:
                with deadline(seconds):
                    return call()
            except Exception as error:
                seconds_left()  # where the whole request is over, or cancelled, it is not this try that failed
                if any("Timeout" in type(reason).__name__ for reason in reasons(error)):  # ours, or of an HTTP library
                    message = f"{origin} gave no whole answer within {seconds:g} s; the next sync asks again"
                    raise ServiceError(message, FailureKind.PASSING) from error
                # A traceback shows the cause with its own words.
                cause = None if shows(error, self.service.secrets) else error
                raise failure(error, origin, self.service.secrets) from cause

        return retried(self.policy, once, as_query=as_query, tries=tries)

    def _pack(self, texts: Sequence[str], places: list[int], as_query: bool) -> list[Answer]:
        """Ask for texts that should fit one request; where they do not, or one is refused, ask for half of them."""
        halved = _Halved()
        parts = [places]
        while parts:
            part = parts.pop()
            asked = [texts[place] for place in part]
            # A neighbour may just have taught that this one is too long by itself.
            if len(part) == 1 and len(pieces := split_utf8(asked[0], self.limits.now.input_tokens)) > 1:
                halved.answers.append(self._joined(pieces, part, as_query))
                continue
            try:
                vectors = self._vectors(asked, as_query)
            except ServiceError as error:
                if hopeless := self._hopeless(error, part, halved, as_query):
                    return halved.failed(hopeless, places)
                halved.refused.append((error.kind, part))
                if middle := len(part) // 2:
                    parts += [part[middle:], part[:middle]]
                else:
                    halved.answers.append(self._alone(error, asked[0], part, as_query))
            else:
                halved.answers.append(Answer(part, vectors))
                halved.whole.update(part)
        # Ask for less from now on where texts were too much together, but not one of them by itself.
        for kind, part in halved.refused:
            if halved.whole.issuperset(part):
                self.limits.refused(kind, [weight(texts[place]) for place in part])
        return halved.answers

    def _hopeless(self, error: ServiceError, part: list[int], halved: _Halved, as_query: bool) -> ServiceError | None:
        """Return the error that all texts share, where no part of them would fare better.

        A service that never answered, or refuses two neighbours one after the other, may refuse any text: a probe
        finds out, once for each request that is halved.
        """
        if not error.isolated:
            return error
        before = halved.answers[-1].error if halved.answers else None
        refused_before = isinstance(before, ServiceError) and before.kind is FailureKind.REFUSED
        two_in_a_row = len(part) == 1 and error.kind is FailureKind.REFUSED and refused_before
        if halved.probed or (self.has_answered and not two_in_a_row):
            return None
        halved.probed = True
        try:
            self._vectors([PROBE], as_query)
        except ServiceError as again:
            return ServiceError(str(error), FailureKind.DENIED) if again.isolated else again
        return None

    def _alone(self, error: ServiceError, text: str, places: list[int], as_query: bool) -> Answer:
        """Return what becomes of one text that was refused: its pieces, where it was too large, or the error."""
        size = weight(text)
        if error.kind is not FailureKind.TOO_LARGE or size < 2 * SHORTEST_PIECE:
            return Answer(places, None, error)
        answer = self._joined(split_utf8(text, size // 2), places, as_query)
        if answer.error is None:
            self.limits.refused(error.kind, [size])
        return answer

    def _joined(self, parts: list[str], places: list[int], as_query: bool) -> Answer:
        """Ask for the pieces of one text, and join their vectors."""
        answers = self.answers(parts, as_query=as_query)
        try:
            vectors = in_places(answers, len(parts), self.service.origin)
        except EmbedderError as error:
            return Answer(places, None, error)
        return Answer(places, joined(vectors, [weight(part) for part in parts])[None, :])

    def _blank(self, places: list[int], as_query: bool) -> Answer:
        import numpy as np

        if self.dims is None:
            try:
                self._vectors([PROBE], as_query)
            except ServiceError as error:
                return Answer(places, None, error)
        return Answer(places, np.zeros((len(places), self.dims or 0), dtype=np.float32))

    def _vectors(self, texts: list[str], as_query: bool) -> Matrix:
        """Return the vectors of texts that fit one request, asked for as often as the policy allows."""
        return self.call(self.policy.request_seconds, partial(self._once, texts, as_query), as_query=as_query)

    def _once(self, texts: list[str], as_query: bool) -> Matrix:
        origin = self.service.origin
        with limit_answers(estimate_answer(len(texts), self.dims if self._dims_are_sure else None)):
            sent = self.service.send(texts, as_query)
        vectors = checked_vectors(sent, len(texts), origin)
        if not vectors.any(axis=1).all():
            raise ServiceError(f"{origin} sent a vector of zeros; check the model", FailureKind.PASSING)
        with self._lock:
            self._check_dims(vectors.shape[1])
        self.has_answered = True
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
                FailureKind.DENIED if asked_for else FailureKind.PASSING,
            )


def in_places(answers: list[Answer], count: int, origin: str) -> Matrix:
    """Return the vectors of all `count` texts in their order; raise the first error among the answers."""
    import numpy as np

    for answer in answers:
        if answer.error is not None:
            raise answer.error
    matrices = [answer.vectors for answer in answers if answer.vectors is not None]
    matrix: Matrix = np.zeros((count, same_dims(matrices, origin)), dtype=np.float32)
    for answer in answers:
        matrix[list(answer.places)] = answer.vectors
    return matrix


def same_dims(matrices: Iterable[Matrix], origin: str) -> int:
    """Return the dimensions that all the matrices have; raise ServiceError where they differ."""
    first, *others = sorted({int(matrix.shape[1]) for matrix in matrices})
    if others:
        message = f"{origin} sent {first} dimensions and then {others[0]}; ask again, or check the model"
        raise ServiceError(message, FailureKind.PASSING)
    return first


def retried(policy: RetryPolicy, call: Callable[[], T], *, as_query: bool, tries: int | None) -> T:
    """Return what `call` returns, called as often as the policy allows, or `tries` times; raise its last error."""
    from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential, wait_random

    def failed(state: RetryCallState) -> tuple[bool, float | None]:
        """Return whether the service is asked too often, and the wait that it asked for."""
        error = state.outcome.exception() if state.outcome is not None else None
        busy = not as_query and isinstance(error, ServiceError) and error.kind is FailureKind.BUSY
        return busy, error.retry_after if busy and isinstance(error, ServiceError) else None

    def enough(state: RetryCallState) -> bool:
        return state.attempt_number >= (tries or (policy.busy_tries if failed(state)[0] else policy.tries))

    def wait(state: RetryCallState) -> float:
        busy, asked_for = failed(state)
        first = policy.busy_first_wait if busy else policy.first_wait
        longest = policy.busy_longest_wait if busy else policy.longest_wait
        backoff = wait_exponential(first, longest) + wait_random(0, JITTER * first)
        return min(backoff(state) if asked_for is None else asked_for, longest)

    def passes(error: BaseException) -> bool:
        return isinstance(error, ServiceError) and error.kind in {FailureKind.PASSING, FailureKind.BUSY}

    return Retrying(retry=retry_if_exception(passes), stop=enough, wait=wait, sleep=sleep, reraise=True)(call)
