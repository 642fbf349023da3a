"""An embedding service behind a network as an embedder: requests in parallel, tried again, halved, and checked."""

from __future__ import annotations

import json
import math
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from openclaw_memory.chunking.sliding_window import split_utf8
from openclaw_memory.embeddings.remote.batching import encodable, joined, packs, weight
from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError, failure, reasons
from openclaw_memory.embeddings.remote.http import deadline, on_this_machine, public, seconds_left, secrets_in, sleep
from openclaw_memory.embeddings.remote.limits import SHORTEST_PIECE, AdaptiveLimits, Limits
from openclaw_memory.embeddings.remote.retry import RetryPolicy, retried
from openclaw_memory.embeddings.remote.workers import Workers
from openclaw_memory.embeddings.vectors import PROBE, checked_vectors, installing
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from openclaw_memory.embeddings.batch.api import BatchApi
    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")

# What a caller waits for beyond a deadline that the thread of a question should have kept.
GRACE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Service:
    """How a service is asked, by whatever SDK or HTTP client.

    `send` takes texts and whether they are questions, and returns a vector for each, in their order, as numbers or
    arrays. It is called in several threads at once, and ends in time where it asks through `http_client`; what it
    raises is read by `remote.errors.failure`. `endpoint` is the URL that receives the texts: a password or a query in
    it is taken out. `settings` is whatever else changes a vector (dimensions, prompts, names of extra headers), and
    must hold no secret. `secrets` (a key, values of extra headers) are shown in no message, also where the service
    repeats them.
    """

    provider: str
    model: str
    endpoint: str
    limits: Limits
    send: Callable[[list[str], bool], Sequence[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    close: Callable[[], None] | None = None
    batch: BatchApi | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "secrets", (*self.secrets, *secrets_in(self.endpoint)))
        object.__setattr__(self, "endpoint", public(self.endpoint))

    @property
    def origin(self) -> str:
        """Who is asked, for messages."""
        return f"{self.endpoint} ({self.provider} {self.model})"


class Answer(NamedTuple):
    """What came of some texts of a request, given by their places in it: their vectors, or why there are none."""

    places: Sequence[int]
    vectors: Matrix | None
    error: EmbedderError | None = None


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
        """Return the unit vector of a question, shape (dims,), or raise within `policy.query_seconds`.

        Raises:
            ServiceError: there is no vector, whatever the reason.
        """
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
        """Return the unit vectors of texts, shape (len(texts), dims); the first failure ends it.

        Raises:
            ServiceError: there are not all vectors, whatever the reason.
        """
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
        Requests that belong together name how many `closings` there were when the first was made: after another one
        they are cancelled at once.
        """
        ask = partial(self._pipeline.answers, [encodable(text) for text in pack], as_query=False)
        try:
            return self._begun(self._documents, ask, since=since)
        except ServiceError as error:
            failed: Future[list[Answer]] = Future()
            failed.set_result([Answer(range(len(pack)), None, error)])
            return failed

    def ask(self, call: Callable[..., T], *args: Any, seconds: float, tries: int | None = None) -> T:
        """Return what `call` of the service returns, `seconds` each time.

        It is tried as patiently as documents are, or `tries` times: what must not happen twice is tried once.

        Raises:
            ServiceError: it failed, whatever the reason.
        """
        ask = partial(self._pipeline.call, seconds, partial(call, *args), as_query=False, tries=tries)
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
        self._lock = Lock()
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
        """Return what `call` returns within `seconds`, tried as often as the policy allows, or `tries` times.

        Raises:
            ServiceError: it failed, whatever the reason.
        """
        once = partial(self._within, seconds, call)
        return retried(self.policy, sleep, once, as_query=as_query, tries=tries)

    def _within(self, seconds: float, call: Callable[[], T]) -> T:
        """Return what `call` returns within `seconds`; whatever it raises becomes a ServiceError."""
        origin = self.service.origin
        try:
            with deadline(seconds):
                return call()
        except Exception as error:
            seconds_left()  # where the whole request is over, or cancelled, it is not this try that failed
            if any("Timeout" in type(reason).__name__ for reason in reasons(error)):  # ours, or of an HTTP library
                message = f"{origin} gave no whole answer within {seconds:g} s; the next sync asks again"
                raise ServiceError(message, FailureKind.PASSING) from error
            raise failure(error, origin, self.service.secrets) from error

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
        vectors = checked_vectors(self.service.send(texts, as_query), len(texts), origin)
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
    """Return the vectors of all `count` texts in their order.

    Raises:
        EmbedderError: the first one among the answers, or they differ in their dimensions.
    """
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
    """Return the dimensions that all the matrices have.

    Raises:
        ServiceError: they differ: the service changed its mind between two requests.
    """
    first, *others = sorted({int(matrix.shape[1]) for matrix in matrices})
    if others:
        message = f"{origin} sent {first} dimensions and then {others[0]}; ask again, or check the model"
        raise ServiceError(message, FailureKind.PASSING)
    return first


# --- what the providers share ------------------------------------------------------------------------------------


def required_key(provider: str, package: str, given: str | None, *variables: str) -> str:
    """Return the key that was given, or the first one that the environment holds.

    Raises:
        EmbedderError: there is none.
    """
    for key in (given, *map(os.environ.get, variables)):
        if key and key.strip():
            return key.strip()
    missing = "" if find_spec(package) else f"; its package is missing too: {installing(provider)}"
    raise EmbedderError(
        f"embedder {provider!r} has no key: set {' or '.join(variables)} in the environment, or the option api_key"
        f"{missing}"
    )


def check_numbers(provider: str, **options: int | None) -> None:
    """Refuse numbers below 1; None is the provider's default.

    Raises:
        EmbedderError: it names the option.
    """
    for name, number in options.items():
        if number is not None and number < 1:
            raise EmbedderError(f"embedder {provider!r} cannot be asked with {name}={number}; it must be at least 1")


def shared_settings(
    headers: Mapping[str, str] | None, dimensions: int | None, max_input_tokens: int | None
) -> dict[str, Any]:
    """Return what of these options changes a vector, or may: of `headers` the names."""
    return {
        "dimensions": dimensions,
        "headers": sorted(header.lower() for header in headers or {}) or None,
        "max_input_tokens": max_input_tokens,
    }


def secrets_of(key: str, headers: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return what no message may show: the key, and the values of the headers, also without a scheme (`Bearer`)."""
    values = [str(value) for value in (headers or {}).values()]
    return (key, *values, *(value.partition(" ")[2] for value in values))
