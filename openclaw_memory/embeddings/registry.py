"""Embedders by name, and the few functions that all of them share.

A provider is a module of this package, or a function elsewhere registered under the entry point group
`openclaw_memory.embedders`, that offers `create(model, **options)` and returns an `Embedder`, or a `Service` that is to
be asked over a network.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings.vectors import checked_vectors, named, own_errors
from openclaw_memory.errors import ConfigError, EmbedderError, nearest
from openclaw_memory.plugins import has_plugin, list_plugins, load_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openclaw_memory.config import EmbeddingConfig
    from openclaw_memory.embeddings.remote.service import RetryPolicy
    from openclaw_memory.types import Embedder, Matrix, Vector

# The modules of this package that offer `create`.
OWN_PROVIDERS = ("gemini", "hashing", "local", "openai", "static", "voyage")
# What `auto` tries: the order of OpenClaw's first design, and the model that ships where none of them is available.
AUTO_ORDER: tuple[str, ...] = ("local", "openai", "gemini", "voyage", "static")
# What providers call the number of texts that are embedded at once: services the first, local models the other.
_SIZES = frozenset({"max_items", "batch_size"})


def load_embedder(
    provider: str | None = "static", model: str | None = None, *, retry: RetryPolicy | None = None, **options: Any
) -> Embedder | None:
    """Return the embedder of a provider.

    Args:
        provider: `static`, `openai`, an installed one, ...; `none` is keyword-only.
        model: None is the provider's own default.
        retry: How patiently a service is asked.
        options: The provider's own.

    Returns:
        The embedder; None for `none`.

    Raises:
        EmbedderError: The provider is unknown, or does not take the model or an option.
        MissingExtraError: The provider needs a package that is not installed.
    """
    if provider is None or provider == "none":
        return None
    if provider == "auto":
        if model is not None or options:
            raise EmbedderError("'auto' takes no model and no options; name the provider that they are for")
        from openclaw_memory.config import EmbeddingConfig

        return first_available(EmbeddingConfig(provider="auto"), {})
    return _loaded(provider, model, options, lambda: retry)


def _loaded(
    provider: str, model: str | None, options: Mapping[str, Any], retry: Callable[[], RetryPolicy | None]
) -> Embedder:
    """Return the embedder of a provider; how patiently it is asked is looked up for a service alone."""
    from inspect import signature

    from openclaw_memory.types import Embedder

    create = _factory(provider)
    try:
        signature(create).bind(model, **options)
    except TypeError as error:
        takes = ", ".join(signature(create).parameters)
        raise EmbedderError(f"embedder {provider!r}: {error}; it takes {takes}") from error
    embedder = create(model, **options)
    if not isinstance(embedder, Embedder):
        from openclaw_memory.embeddings.remote.client import RemoteEmbedder
        from openclaw_memory.embeddings.remote.service import Service

        if isinstance(embedder, Service):
            return RemoteEmbedder(embedder, retry())
        raise EmbedderError(
            f"embedder {provider!r} made a {type(embedder).__name__}, which lacks parts of the Embedder protocol; "
            "add what openclaw_memory.Embedder describes"
        )
    return embedder


def first_available(rules: EmbeddingConfig, unavailable: dict[str, str]) -> Embedder | None:
    """Return the first embedder of `AUTO_ORDER` that is available and allowed, for `auto`.

    The local one counts only where `rules` name its model. Why the others were not taken is put into `unavailable`.
    """
    for provider in AUTO_ORDER:
        try:
            if provider == "local" and not rules.providers.get("local", {}).get("model"):
                raise EmbedderError("no local model is configured; name one in embedding.providers.local.model")
            return allowed(made(provider, rules), rules)
        except EmbedderError as error:
            unavailable[provider] = str(error)
    reasons = "; ".join(f"{provider}: {reason}" for provider, reason in unavailable.items())
    raise EmbedderError(f"no provider is available ({reasons}); fix one of them, or choose 'static' or 'none'")


def made(provider: str, rules: EmbeddingConfig) -> Embedder | None:
    """Return the embedder of a provider with the options that `rules` hold for it; None for `none`."""
    if provider == "none":
        return None
    options = dict(rules.providers.get(provider, {}))
    model = options.pop("model", None)
    if rules.batch_size is not None and not _SIZES & options.keys():
        from inspect import signature

        takes = _SIZES & signature(_factory(provider)).parameters.keys()
        options.update(dict.fromkeys(takes, rules.batch_size))
    if provider == rules.provider and rules.model is not None:
        model = rules.model

    def retry() -> RetryPolicy:
        from openclaw_memory.embeddings.remote.service import RetryPolicy

        return RetryPolicy(rules.concurrency, rules.query_seconds, rules.request_seconds)

    return _loaded(provider, model, options, retry)


def allowed(embedder: Embedder | None, rules: EmbeddingConfig) -> Embedder | None:
    """Return the embedder, or raise EmbedderError where it may send text to another machine and must not."""
    if embedder is None or rules.allow_remote or embedder.leaves_machine is False:
        return embedder
    from openclaw_memory.types.protocols import ServiceEmbedder

    if isinstance(embedder, ServiceEmbedder):
        raise EmbedderError(
            f"{embedder.provider} sends text to {embedder.endpoint}, and embedding.allow_remote is off; allow it, or "
            "choose a local provider"
        )
    raise EmbedderError(
        f"the embedder {embedder.provider} {embedder.model} may send text to another machine, and "
        "embedding.allow_remote is off; if it does not, say so: local=True for a function or a framework's model, "
        "leaves_machine = False in a class of your own; otherwise allow it, or choose a local provider"
    )


def check_provider(name: str) -> None:
    """Raise ConfigError for an unknown provider, besides `auto` and `none`; nothing of it is imported."""
    if name not in {"auto", "none", *OWN_PROVIDERS} and not has_plugin("embedders", name):
        raise ConfigError(_unknown(name))


def providers() -> tuple[str, ...]:
    """Return the names that `load_embedder` knows here and now, besides `auto` and `none`."""
    return tuple(sorted({*OWN_PROVIDERS, *list_plugins("embedders")}))


def from_callable(
    embed: Callable[[list[str]], Any],
    name: str,
    *,
    embed_query: Callable[[str], Any] | None = None,
    local: bool = False,
) -> Embedder:
    """Make an embedder of a function that takes a list of strings and returns as many vectors.

    Args:
        embed: Takes texts, returns their vectors.
        name: Becomes the model: give another name to a function that makes other vectors.
        embed_query: Takes one question, returns its vector; by default `embed` is asked.
        local: Vouches that no text is sent to another machine, which `embedding.allow_remote = false` asks for.

    Returns:
        The embedder; what the functions return is checked, freed of non-finite numbers and normalised.
    """
    return _CallableEmbedder(embed, name, embed_query, local=local)


class _CallableEmbedder:
    """A plain function as an embedder; its dimensions are those of its first answer."""

    provider = "callable"

    def __init__(
        self,
        embed: Callable[[list[str]], Any],
        name: str,
        embed_query: Callable[[str], Any] | None,
        *,
        local: bool,
    ) -> None:
        self._embed, self._embed_query = embed, embed_query
        self.leaves_machine = not local
        self._dims = 0
        self.model = name
        self.identity = f"{self.provider}:{name}"

    def embed_query(self, text: str) -> Vector:
        ask = self._embed_query
        vector: Vector = self._checked((lambda texts: [ask(texts[0])]) if ask else self._embed, [text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        return self._checked(self._embed, texts) if texts else np.zeros((0, self._dims), dtype=np.float32)

    def close(self) -> None:
        """Do nothing: what the function keeps open is its own."""

    def _checked(self, embed: Callable[[list[str]], Any], texts: Sequence[str]) -> Matrix:
        with own_errors(f"the function {self.model!r} failed"):
            raw = embed(list(texts))
        vectors = checked_vectors(raw, len(texts), f"the function {self.model!r}")
        if not vectors.any() and any(character.isalnum() for text in texts for character in text):
            raise EmbedderError(
                f"the function {self.model!r} returned zeros for {len(texts)} texts; check what it does"
            )
        self._dims = self._dims or vectors.shape[1]
        if vectors.shape[1] != self._dims:
            raise EmbedderError(
                f"the function {self.model!r} returned {vectors.shape[1]} dimensions after {self._dims}; "
                "it must always return the same number"
            )
        return vectors


def _factory(name: str) -> Callable[..., Any]:
    if name in OWN_PROVIDERS:
        create: Callable[..., Any] = import_module(f"openclaw_memory.embeddings.{name}").create
        return create
    if not has_plugin("embedders", name):
        raise EmbedderError(_unknown(name))
    try:
        loaded: Callable[..., Any] = load_plugin("embedders", name)
    except ConfigError as error:
        raise EmbedderError(f"embedder {name!r}: {error}") from error
    return loaded


def _unknown(name: str) -> str:
    known = ("auto", "none", *providers())
    return f"unknown embedder {named(name)}; {nearest(name, known)}the providers are {', '.join(known)}"
