"""Which embedder a memory uses: the one its opener named or a fallback, each made at its first use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from openclaw_memory import _forks
from openclaw_memory._log import warn
from openclaw_memory.config import EmbeddingConfig
from openclaw_memory.embeddings.registry import allowed, check_provider, first_available, from_callable, made
from openclaw_memory.embeddings.vectors import PROBE, own_errors
from openclaw_memory.errors import ConfigError, EmbedderError
from openclaw_memory.types import Embedder
from openclaw_memory.types.protocols import PreparingEmbedder, ServiceEmbedder, TokenEmbedder

if TYPE_CHECKING:
    from openclaw_memory.types import IndexMeta, Matrix, Vector
    from openclaw_memory.types.index import TokenVectors

T = TypeVar("T")

# An embedder that is there, a provider's name, a function from texts to vectors, or None for keywords only.
EmbedderChoice: TypeAlias = "Embedder | EmbedderSelector | Callable[[list[str]], Any] | str | None"
# A service that failed to answer a question is not asked again for so long: searches go by keywords at once.
SILENT_SECONDS = 30.0
_OF_FRAMEWORKS = "what a framework calls an embedding is wrapped by its adapter: LlamaIndexEmbedder, LangChainEmbedder"


class CircuitBreakerEmbedder:
    """An embedder whose every failure is an EmbedderError, so that search can go on by keywords.

    A service that failed is left alone for a while: questions fail at once, until anything of it succeeds.
    """

    def __init__(self, inner: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self.inner = inner
        self.provider, self.model, self.identity = inner.provider, inner.model, inner.identity
        self.endpoint = inner.endpoint if isinstance(inner, ServiceEmbedder) else None
        self.leaves_machine = inner.leaves_machine
        self._failed = f"the embedder {inner.provider} {inner.model} failed"
        self._clock = clock
        self._open_until: tuple[float, str] | None = None
        self.failure: str | None = None  # why the latest question has no vector

    def embed_query(self, text: str) -> Vector:
        return self.asked(self.inner.embed_query, text)

    def probe(self, text: str) -> Vector:
        """As `embed_query`, whatever happened before."""
        return self._answer(self.inner.embed_query, text)

    def asked(self, ask: Callable[[str], T], text: str) -> T:
        """Return what the method `ask` of the embedder returns for a question, unless it is left alone for now."""
        silence = self._open_until
        if silence is not None and self._clock() < silence[0]:
            raise EmbedderError(silence[1])
        return self._answer(ask, text)

    def _answer(self, ask: Callable[[str], T], text: str) -> T:
        try:
            with own_errors(self._failed):
                answer = ask(text)
        except EmbedderError as error:
            from openclaw_memory.embeddings.remote.errors import ServiceError

            self.failure = str(error)
            if self.endpoint and not (isinstance(error, ServiceError) and error.isolated):
                self._open_until = (self._clock() + SILENT_SECONDS, str(error))
            raise
        self._open_until = self.failure = None
        return answer

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        with own_errors(self._failed):
            return self.inner.embed_documents(texts)

    def close(self) -> None:
        """End what the embedder keeps open."""
        self.inner.close()

    def record_success(self) -> None:
        """It has answered by some other way: questions need not wait any longer."""
        self._open_until = self.failure = None


@dataclass(slots=True)
class EmbedderSelector:
    """The embedder that a memory wants and the one it falls back to; safe to use from several threads.

    `make` makes the wanted one, None for keywords alone, and puts into a dictionary which providers it passed over,
    and why. `requested` is what the opener asked for. An embedder that was `handed_in` is not closed here, and of those
    that are lent none.
    """

    make: Callable[[dict[str, str]], Embedder | None]
    requested: str
    rules: EmbeddingConfig
    handed_in: bool = False
    is_lent: bool = False
    unavailable: dict[str, str] = field(default_factory=dict)
    _wanted: list[CircuitBreakerEmbedder | None] = field(default_factory=list)
    _fallback: list[CircuitBreakerEmbedder | None] = field(default_factory=list)
    _refusal: tuple[float, str] | None = None
    _lock: threading.RLock = field(default_factory=_forks.rlock)

    def wanted(self) -> CircuitBreakerEmbedder | None:
        """Return the wanted embedder, None for keywords alone; raise EmbedderError if it cannot be made."""
        try:
            embedder = self._once(self._wanted, lambda: self.make(self.unavailable))
        except EmbedderError as error:
            self._refusal = (time.monotonic() + SILENT_SECONDS, str(error))
            raise
        self._refusal = None
        return embedder

    def fallback(self) -> CircuitBreakerEmbedder | None:
        """Return the fallback, None where none is configured; raise EmbedderError if it cannot be made."""
        return self._once(self._fallback, lambda: made(self.rules.fallback, self.rules))

    def for_search(self, stored: IndexMeta | None) -> CircuitBreakerEmbedder | None:
        """Return the fallback where the index holds its vectors, else the wanted one, or raise EmbedderError."""
        if stored is not None and self._is_of_fallback(stored):
            return self.fallback()
        refusal = self._refusal
        if refusal is not None and time.monotonic() < refusal[0]:  # trying again may take long
            raise EmbedderError(refusal[1])
        return self.wanted()

    def for_sync(
        self, stored: IndexMeta | None, *, force: bool = False
    ) -> tuple[CircuitBreakerEmbedder | None, str | None]:
        """Return the one to sync with; None, and why, where the wanted one is not available. Log who receives notes.

        The fallback takes its place only where that costs no good index: in a new one, or in one of its own. Nor does
        what `auto` finds now replace what it found before, unless with `force`.
        """
        try:
            wanted = self.wanted()
            if not force and self.requested == "auto" and (lost := unavailable_reason(stored, self.unavailable)):
                return None, lost
            if wanted is not None and self._has_fallback() and (stored is None or stored.identity != wanted.identity):
                wanted.probe(PROBE)
        except EmbedderError as error:
            replaceable = stored is None or stored.identity == "none" or self._is_of_fallback(stored)
            if not self._has_fallback() or not replaceable:
                return None, str(error)
            self.unavailable[self.requested] = str(error)
            try:
                fallback = self.fallback()
            except EmbedderError as second:
                return None, f"{error}; and the fallback: {second}"
            warn(f"{self.rules.fallback} replaces {self.requested}: {error}")
            return _announced(fallback, stored), None
        self.unavailable.pop(self.requested, None)
        return _announced(wanted, stored), None

    def lent(self) -> EmbedderSelector:
        """Return the same embedders for one of several memories, which does not close them."""
        return replace(self, is_lent=True)

    def close(self) -> None:
        """Close the embedders that were made here, and let go of them; one that is being made now is not waited for."""
        if self.is_lent:
            return
        places = (self._fallback,) if self.handed_in else (self._wanted, self._fallback)
        for place in places:
            while place:
                if (embedder := place.pop()) is not None:
                    embedder.close()

    def _has_fallback(self) -> bool:
        return self.rules.fallback not in {"none", self.requested}

    def _is_of_fallback(self, stored: IndexMeta) -> bool:
        # The provider's name is compared first, so that a fallback that is not needed is not made.
        if not self._has_fallback() or stored.provider != self.rules.fallback:
            return False
        try:
            fallback = self.fallback()
        except EmbedderError:  # it is reported where it is needed; whose index this is cannot be known
            return False
        return fallback is not None and fallback.identity == stored.identity

    def _once(
        self, place: list[CircuitBreakerEmbedder | None], make: Callable[[], Embedder | None]
    ) -> CircuitBreakerEmbedder | None:
        with self._lock:
            if there := place[:1]:  # `close` may empty it meanwhile
                return there[0]
            with own_errors("the embedder cannot be made"):
                embedder = allowed(make(), self.rules)
            guarded = None if embedder is None else CircuitBreakerEmbedder(embedder)
            place.append(guarded)
            return guarded


def unavailable_reason(stored: IndexMeta | None, unavailable: Mapping[str, str]) -> str | None:
    """Return why the provider that made an index is unavailable; None where it was not passed over."""
    if stored is None or (reason := unavailable.get(stored.provider)) is None:
        return None
    return (
        f"the index was built with {stored.provider}, which is unavailable ({reason}). Fix that, or run "
        "sync(force=True) to rebuild it with another provider."
    )


def unguarded(embedder: T) -> T | Embedder:
    """Return the embedder without its circuit breaker.

    Args:
        embedder: Any embedder, or something else, which is returned as it is.

    Returns:
        The embedder inside.
    """
    return embedder.inner if isinstance(embedder, CircuitBreakerEmbedder) else embedder


def as_preparing(embedder: Embedder | None) -> PreparingEmbedder | None:
    """Return the embedder itself, without its circuit breaker, where it wants to see missing texts first."""
    inner = unguarded(embedder)
    return inner if isinstance(inner, PreparingEmbedder) else None


def embedded_query(embedder: Embedder, text: str) -> tuple[Vector | None, TokenVectors | None]:
    """Return what the embedder has for a question: its vector, and the vectors of its tokens if it gives tokens."""
    inner = unguarded(embedder)
    if not isinstance(inner, TokenEmbedder):
        return embedder.embed_query(text), None
    if isinstance(embedder, CircuitBreakerEmbedder):
        return embedder.asked(inner.embed_query_tokens, text)
    return inner.embed_query_tokens(text)


def probed(embedder: Embedder) -> Vector:
    """Return the answer of an embedder that is asked now, though it was to be left alone; or raise EmbedderError."""
    return embedder.probe(PROBE) if isinstance(embedder, CircuitBreakerEmbedder) else embedder.embed_query(PROBE)


def sent_to(embedder: CircuitBreakerEmbedder) -> str | None:
    """Return a sentence that names the server on another machine that receives the notes; None where none is known."""
    if not embedder.leaves_machine or embedder.endpoint is None:
        return None
    return f"the text of notes and questions is sent to {embedder.endpoint} ({embedder.provider} {embedder.model})"


def _announced(embedder: CircuitBreakerEmbedder | None, stored: IndexMeta | None) -> CircuitBreakerEmbedder | None:
    """Return the embedder; before it gets the first notes of an index, log who receives them."""
    new = stored is None or embedder is None or stored.identity != embedder.identity
    if embedder is not None and new and (receiver := sent_to(embedder)) is not None:
        warn(receiver)
    return embedder


def handed_in(
    given: Embedder | EmbedderSelector | Callable[[], Embedder | None] | None, rules: EmbeddingConfig
) -> EmbedderSelector:
    """Return the embedders of a memory that is put together from its parts: one that is ready, or its maker."""
    if given is None or isinstance(given, Embedder | EmbedderSelector):
        return embedders_of(given, rules)
    return EmbedderSelector(lambda _: given(), rules.provider, rules)


def embedders_of(choice: EmbedderChoice, rules: EmbeddingConfig) -> EmbedderSelector:
    """Return an embedder that is made at its first use, for `Memory(embedder=...)`.

    Args:
        choice: As for `Memory.open`: `"default"` is the embedder of `rules`.
        rules: The settings.

    Raises:
        ConfigError: `choice` names no embedder.
    """
    if isinstance(choice, EmbedderSelector):
        return choice
    _check(rules)
    if choice is None:
        return EmbedderSelector(lambda _: None, "none", rules)
    if isinstance(choice, Embedder):
        return EmbedderSelector(lambda _: choice, choice.provider, rules, handed_in=True)
    if isinstance(choice, str):
        provider = rules.provider if choice == "default" else choice
        check_provider(provider)
        if provider == "auto":
            return EmbedderSelector(lambda unavailable: first_available(rules, unavailable), provider, rules)
        return EmbedderSelector(lambda _: made(provider, rules), provider, rules)
    if isinstance(choice, FunctionType) and "<lambda>" not in choice.__qualname__:
        name = f"{choice.__module__}.{choice.__qualname__}"
        return EmbedderSelector(lambda _: from_callable(choice, name), "callable", rules)
    kind = type(choice).__name__
    if missing := missing_parts(choice):
        raise ConfigError(
            f"this embedder, a {kind}, lacks {', '.join(missing)}; add them as openclaw_memory.Embedder describes them"
        )
    if callable(choice) and not isinstance(choice, type):
        raise ConfigError(
            f"this embedder, a {kind}, has no name that keeps its vectors apart from those of another model; give it "
            f"one: openclaw_memory.embeddings.from_callable(function, 'my model'); {_OF_FRAMEWORKS}"
        )
    raise ConfigError(
        f"embedder of type {kind} is not an embedder, a provider's name, a function from texts to vectors or None; "
        f"{_OF_FRAMEWORKS}"
    )


def missing_parts(choice: object) -> list[str]:
    """Return what an object with the methods of an embedder lacks of the protocol; empty for anything else."""
    if isinstance(choice, type) or not all(hasattr(choice, name) for name in ("embed_query", "embed_documents")):
        return []
    return [name for name in ("provider", "model", "identity", "leaves_machine", "close") if not hasattr(choice, name)]


def _check(rules: EmbeddingConfig) -> None:
    for provider in (rules.fallback, *rules.providers):
        check_provider(provider)
    if rules.fallback == "auto":
        raise ConfigError("embedding.fallback cannot be 'auto'; name one provider, such as 'static'")
    if rules.provider == "auto" and rules.model is not None:
        raise ConfigError(
            f"embedding.model = {rules.model!r} needs a provider other than 'auto'; set it as "
            "embedding.providers.NAME.model"
        )
