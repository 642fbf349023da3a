"""Which embedder a memory uses: whatever its opener named, made at the first use, its failures in our words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.config import Embedding
from openclaw_memory.embeddings import check_provider, from_callable, load_embedder, own_errors
from openclaw_memory.errors import ConfigError
from openclaw_memory.types import Embedder

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

# An embedder that is there, a provider's name, a function from texts to vectors, or None for keywords only.
EmbedderChoice: TypeAlias = Embedder | Callable[[list[str]], Any] | str | None


def embedder_maker(choice: EmbedderChoice, rules: Embedding) -> Embedder | Callable[[], Embedder | None] | None:
    """The embedder that `choice` names, or a function that makes it; `"default"` is what `rules` say.

    Raises:
        ConfigError: nobody knows the provider, or `choice` is nothing of the kind.
    """
    if choice is None or isinstance(choice, Embedder):
        return choice
    if isinstance(choice, str):
        provider, model = (rules.provider, rules.model) if choice == "default" else (choice, None)
        check_provider(provider)
        return lambda: load_embedder(provider, model)
    if callable(choice):
        named = choice if hasattr(choice, "__qualname__") else type(choice)
        return lambda: from_callable(choice, f"{named.__module__}.{named.__qualname__}")
    raise ConfigError(
        f"embedder {choice!r} is none of: an embedder, a provider's name, a function from texts to vectors, None"
    )


def made(make: Callable[[], Embedder | None]) -> GuardedEmbedder | None:
    """What `make` makes, guarded.

    Raises:
        EmbedderError: it cannot be made, whatever the reason.
    """
    with own_errors("the embedder cannot be made"):
        embedder = make()
    return None if embedder is None else GuardedEmbedder(embedder)


class GuardedEmbedder:
    """An embedder whose every failure is an EmbedderError, so that search can go on by keywords."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.provider, self.model, self.identity = inner.provider, inner.model, inner.identity
        self._failed = f"the embedder {inner.provider} {inner.model} failed"

    def embed_query(self, text: str) -> Vector:
        with own_errors(self._failed):
            return self.inner.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        with own_errors(self._failed):
            return self.inner.embed_documents(texts)
