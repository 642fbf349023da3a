"""Choose the embedder of a memory, each made at its first use, and leave one alone that fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct, field, structs

from openclaw_memory._safe import warn
from openclaw_memory.config.sections import EmbeddingConfig
from openclaw_memory.embeddings.registry import check_allowed, check_provider, load_configured, load_first_available
from openclaw_memory.embeddings.vectors import PROBE, translate_errors
from openclaw_memory.errors import ConfigError, EmbedderError
from openclaw_memory.types import Embedder
from openclaw_memory.types.protocols import PreparingEmbedder, ServiceEmbedder, TokenEmbedder

if TYPE_CHECKING:
    from openclaw_memory.types import IndexMeta, Matrix, Vector
    from openclaw_memory.types.index import TokenVectors

T = TypeVar("T")

# An embedder, a framework's embedding model, a provider's name, a function from texts to vectors; None: keywords only.
EmbedderChoice: TypeAlias = "Embedder | EmbedderSelector | Callable[[list[str]], Any] | str | None"
# A service that failed to answer a query is not asked again for so long: searches go by keywords at once.
CIRCUIT_OPEN_SECONDS = 30.0
QUICK = {"static", "hashing", "none"}  # providers that are fast enough to need no interim one
INTERIM = "static"  # the provider that answers until the vectors of a slower one exist
ROLES = "wanted", "fallback", "interim"  # of the embedders of a memory


class CircuitBreakerEmbedder:
    """An embedder that raises only EmbedderErrors, so that search can go on by keywords.

    Queries to a service that failed fail at once for `CIRCUIT_OPEN_SECONDS`, or until it succeeds; syncs still ask it.

    Attributes:
        inner: The embedder inside.
        failure: Why the latest query has no vector, or None.
        lines: The lines of searches with this embedder, in all memories that share it.
    """

    def __init__(self, inner: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self.inner = inner
        self.provider, self.model, self.identity = inner.provider, inner.model, inner.identity
        self.endpoint = inner.endpoint if isinstance(inner, ServiceEmbedder) else None
        self.leaves_machine = inner.leaves_machine
        self.failure: str | None = None
        self.lines: Any = None
        self._message = f"the embedder {inner.provider} {inner.model} failed"
        self._clock = clock
        self._open_until: tuple[float, str] | None = None

    def embed_query(self, text: str) -> Vector:
        return self.call(self.inner.embed_query, text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        with translate_errors(self._message):
            return self.inner.embed_documents(texts)

    def call(self, method: Callable[[str], T], text: str, *, force: bool = False) -> T:
        """Return the answer of a method of the embedder to a query; while it is left alone, only with `force`."""
        silence = self._open_until
        if not force and silence is not None and self._clock() < silence[0]:
            raise EmbedderError(silence[1])
        try:
            with translate_errors(self._message):
                answer = method(text)
        except EmbedderError as error:
            self.failure = str(error)
            if self.endpoint and not getattr(error, "is_isolated", False):
                self._open_until = (self._clock() + CIRCUIT_OPEN_SECONDS, str(error))
            raise
        self.record_success()
        return answer

    def record_success(self) -> None:
        """Close the circuit: queries need not wait any longer."""
        self._open_until = self.failure = None

    def close(self) -> None:
        """End the connections of the embedder."""
        self.inner.close()


class EmbedderSelector(Struct):
    """The embedder that a memory wants and the one it falls back to; safe to use from several threads.

    Attributes:
        make: Makes the wanted embedder, None for keywords alone. It is given a dictionary for the reasons why providers
            were passed over.
        requested: The provider that was asked for.
        rules: The settings.
        has_interim: Whether the bundled model answers until the vectors of the wanted one exist.
        closes: Those that `close` closes: no embedder that was made elsewhere, and none that several memories share.
        unavailable: Why providers are not used.
    """

    make: Callable[[dict[str, str]], Embedder | None]
    requested: str
    rules: EmbeddingConfig
    has_interim: bool = False
    closes: tuple[str, ...] = ROLES
    unavailable: dict[str, str] = field(default_factory=dict)
    _loaded: dict[str, CircuitBreakerEmbedder | None] = field(default_factory=dict)
    _refusal: tuple[float, str] | None = None
    _receivers: set[str] = field(default_factory=set)  # those that the log has named
    _locks: Mapping[str, threading.Lock] = field(default_factory=lambda: {role: threading.Lock() for role in ROLES})

    def load(self) -> CircuitBreakerEmbedder | None:
        """Return the wanted embedder, None for keywords alone; raise EmbedderError if it cannot be made."""
        try:
            embedder = self._load("wanted", lambda: self.make(self.unavailable))
        except EmbedderError as error:
            self._refusal = (time.monotonic() + CIRCUIT_OPEN_SECONDS, str(error))
            raise
        self._refusal = None
        return embedder

    def get_wanted(self) -> CircuitBreakerEmbedder | None:
        """Return the wanted embedder if it was made already."""
        return self._loaded.get("wanted")

    def load_fallback(self) -> CircuitBreakerEmbedder | None:
        """Return the fallback, None if none is configured; raise EmbedderError if it cannot be made."""
        return self._load("fallback", lambda: load_configured(self.rules.fallback, self.rules))

    def load_interim(self) -> CircuitBreakerEmbedder | None:
        """Return the embedder that answers until the vectors of the wanted one exist."""
        return self._load("interim", lambda: load_configured(INTERIM, self.rules))

    def is_interim(self, stored: IndexMeta | None) -> bool:
        """Return whether an index is the interim one's, which answers until the vectors of the wanted one exist."""
        return self.has_interim and stored is not None and stored.provider == INTERIM

    def select_for_search(self, stored: IndexMeta | None) -> CircuitBreakerEmbedder | None:
        """Return the interim one or the fallback if the index is its own, else the wanted one; raise EmbedderError."""
        if self.is_interim(stored):
            return self.load_interim()
        if stored is not None and self._is_of_fallback(stored):
            return self.load_fallback()
        refusal = self._refusal
        if refusal is not None and time.monotonic() < refusal[0]:  # trying again may take long
            raise EmbedderError(refusal[1])
        return self.load()

    def select_for_sync(
        self, stored: IndexMeta | None, *, force: bool = False, waits: bool = True
    ) -> tuple[CircuitBreakerEmbedder | None, str | None]:
        """Return the embedder for a sync, or None and why the wanted one is not available. Log who receives notes.

        The fallback takes its place only where that costs no good index: in a new one, or in one of its own. Nor does
        another provider of `auto` replace the one that made the index, unless with `force`. A sync that waits for
        no vectors of a slow embedder gets the interim one.
        """
        if not waits and (self.is_interim(stored) or (stored is None and self.has_interim)):
            return self.load_interim(), None
        try:
            embedder = self.load()
            if not force and self.requested == "auto" and (reason := explain_unavailable(stored, self.unavailable)):
                return None, reason
            if embedder is not None and self._has_fallback() and _is_new(embedder, stored):
                probe(embedder)
        except EmbedderError as error:
            is_replaceable = stored is None or stored.identity == "none" or self._is_of_fallback(stored)
            if not self._has_fallback() or not is_replaceable:
                return None, str(error)
            is_news = self.unavailable.get(self.requested) != str(error)
            self.unavailable[self.requested] = str(error)
            try:
                fallback = self.load_fallback()
            except EmbedderError as second:
                return None, f"{error}; and the fallback: {second}"
            if is_news:
                warn(f"{self.rules.fallback} replaces {self.requested}: {error}")
            return self._log(fallback, stored), None
        self.unavailable.pop(self.requested, None)
        return self._log(embedder, stored), None

    def share(self) -> EmbedderSelector:
        """Return the same embedders for one of several memories, which does not close them."""
        return structs.replace(self, closes=())

    def close(self) -> None:
        """Close the embedders that were made here; one that is being made now is not waited for."""
        for role in self.closes:
            if (embedder := self._loaded.pop(role, None)) is not None:
                embedder.close()

    def _log(self, embedder: CircuitBreakerEmbedder | None, stored: IndexMeta | None) -> CircuitBreakerEmbedder | None:
        """Return the embedder; before it gets the first notes of an index, log who receives them, once."""
        receiver = describe_receiver(embedder) if embedder is not None and _is_new(embedder, stored) else None
        if receiver is not None and receiver not in self._receivers:
            self._receivers.add(receiver)
            warn(receiver)
        return embedder

    def _has_fallback(self) -> bool:
        return self.rules.fallback not in {"none", self.requested}

    def _is_of_fallback(self, stored: IndexMeta) -> bool:
        # The provider's name is compared first, so that a fallback that is not needed is not made.
        if self._has_fallback() and stored.provider == self.rules.fallback:
            with suppress(EmbedderError):  # it is reported where it is needed
                return getattr(self.load_fallback(), "identity", None) == stored.identity
        return False

    def _load(self, role: str, make: Callable[[], Embedder | None]) -> CircuitBreakerEmbedder | None:
        with self._locks[role]:  # making one may take minutes, in which another answers
            with suppress(KeyError):  # `close` may take it away meanwhile
                return self._loaded[role]
            with translate_errors("the embedder cannot be made"):
                embedder = make()
                check_allowed(embedder, self.rules)
            self._loaded[role] = guarded = None if embedder is None else CircuitBreakerEmbedder(embedder)
            return guarded


def explain_unavailable(stored: IndexMeta | None, unavailable: Mapping[str, str]) -> str | None:
    """Return why the provider that made an index is unavailable; None if it was not passed over."""
    if stored is None or (reason := unavailable.get(stored.provider)) is None:
        return None
    return (
        f"the index was built with {stored.provider}, which is unavailable ({reason}). Fix that, or run "
        "sync(force=True) to rebuild it with another provider."
    )


def get_inner(embedder: T) -> T | Embedder:
    """Return the embedder without its circuit breaker.

    Args:
        embedder: Any embedder, or something else, which is returned as it is.

    Returns:
        The embedder inside.
    """
    return embedder.inner if isinstance(embedder, CircuitBreakerEmbedder) else embedder


def get_preparing(embedder: Embedder | None) -> PreparingEmbedder | None:
    """Return the embedder without its circuit breaker if it wants to see missing texts first, else None."""
    inner = get_inner(embedder)
    return inner if isinstance(inner, PreparingEmbedder) else None


def embed_query(embedder: Embedder, text: str) -> tuple[Vector | None, TokenVectors | None]:
    """Return the vector of a query, and the vectors of its tokens if the embedder gives tokens."""
    inner = get_inner(embedder)
    if not isinstance(inner, TokenEmbedder):
        return embedder.embed_query(text), None
    if isinstance(embedder, CircuitBreakerEmbedder):
        return embedder.call(inner.embed_query_tokens, text)
    return inner.embed_query_tokens(text)


def probe(embedder: Embedder) -> Vector:
    """Return the vector of a word, also from a service that is left alone, or raise EmbedderError."""
    if isinstance(embedder, CircuitBreakerEmbedder):
        return embedder.call(embedder.inner.embed_query, PROBE, force=True)
    return embedder.embed_query(PROBE)


def describe_receiver(embedder: CircuitBreakerEmbedder) -> str | None:
    """Return a sentence that names the server on another machine that receives the notes, or None."""
    if not embedder.leaves_machine or embedder.endpoint is None:
        return None
    return f"the text of notes and questions is sent to {embedder.endpoint} ({embedder.provider} {embedder.model})"


def make_selector(choice: EmbedderChoice, rules: EmbeddingConfig) -> EmbedderSelector:
    """Return the embedders of a memory, each made at its first use.

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
    if isinstance(choice, str):
        provider = rules.provider if choice == "default" else choice
        check_provider(provider)
        if provider == "auto":
            return EmbedderSelector(lambda unavailable: load_first_available(rules, unavailable), provider, rules)
        return EmbedderSelector(lambda _: load_configured(provider, rules), provider, rules, provider not in QUICK)
    embedder = _wrap(choice)
    return EmbedderSelector(lambda _: embedder, embedder.provider, rules, closes=("fallback",))


def _is_new(embedder: Embedder, stored: IndexMeta | None) -> bool:
    """Return whether an index has no vectors of the embedder."""
    return stored is None or stored.identity != embedder.identity


def _wrap(choice: object) -> Embedder:
    """Return an embedder for an object or a function that makes vectors."""
    if isinstance(choice, Embedder):
        return choice
    from openclaw_memory.embeddings.callables import CustomEmbedder, is_embedding_model

    if is_embedding_model(choice):
        identity = getattr(choice, "identity", None)
        return CustomEmbedder(choice, identity=identity if isinstance(identity, str) else None)
    if callable(choice) and not isinstance(choice, type):
        return CustomEmbedder(choice)
    raise ConfigError(
        f"embedder of type {type(choice).__name__} is not an embedder, an object with embed_documents and embed_query, "
        "a provider's name, a function from texts to vectors or None"
    )


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
