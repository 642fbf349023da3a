"""Make embedders by the names of their providers.

A provider is a module of this package, or a function registered under the entry point group
`openclaw_memory.embedders`, that offers `create(model, **options)` and returns an `Embedder`, or a `Service`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, get_type_hints

from msgspec import ValidationError, convert

from openclaw_memory.embeddings.vectors import quote_name
from openclaw_memory.errors import ConfigError, EmbedderError, suggest
from openclaw_memory.plugins import has_plugin, list_plugins, load_plugin

if TYPE_CHECKING:
    from collections.abc import Callable

    from openclaw_memory.config.sections import EmbeddingConfig
    from openclaw_memory.embeddings.service import RetryPolicy
    from openclaw_memory.types import Embedder

# The modules of this package that offer `create`.
OWN_PROVIDERS = ("gemini", "hashing", "local", "openai", "static", "voyage")
# The order of OpenClaw's first design for `auto`, and the model that ships where none of them is available.
AUTO_ORDER: tuple[str, ...] = ("local", "openai", "gemini", "voyage", "static")
# The option for `embedding.batch_size`: services have the first, local models the other.
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
        from openclaw_memory.config.sections import EmbeddingConfig

        return load_first_available(EmbeddingConfig(provider="auto"), {})
    return _create(provider, model, options, lambda: retry)


def _create(
    provider: str, model: str | None, options: Mapping[str, Any], make_policy: Callable[[], RetryPolicy | None]
) -> Embedder:
    from openclaw_memory.types import Embedder

    create = _load_factory(provider)
    try:
        signature(create).bind(model, **options)
    except TypeError as error:
        raise EmbedderError(
            f"embedder {provider!r}: {error}; it takes {', '.join(signature(create).parameters)}"
        ) from error
    _check_options(provider, create, options)
    embedder = create(model, **options)
    if isinstance(embedder, Embedder):
        return embedder
    from openclaw_memory.embeddings.service import Service

    if not isinstance(embedder, Service):
        kind = type(embedder).__name__
        raise EmbedderError(f"embedder {provider!r}: {kind} lacks parts of openclaw_memory.types.Embedder: add them")
    from openclaw_memory.embeddings.remote import RemoteEmbedder

    return RemoteEmbedder(embedder, make_policy())


def _check_options(provider: str, create: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Check the types and ranges of options; raise EmbedderError for a wrong one."""
    with suppress(NameError, TypeError):  # hints that cannot be read, or that are of no plain type
        hints = get_type_hints(create, include_extras=True)
        for name in options.keys() & hints:
            try:
                convert(options[name], hints[name])
            except ValidationError as error:
                value = "" if name == "api_key" else f"={options[name]!r:.80}"
                raise EmbedderError(f"option {name}{value} of embedder {provider!r}: {error}") from error


def load_configured(provider: str, rules: EmbeddingConfig) -> Embedder | None:
    """Return the embedder of a provider with its settings; raise EmbedderError if it may not send texts elsewhere."""
    if provider == "none":
        return None
    options = dict(rules.providers.get(provider, {}))
    model = options.pop("model", None)
    parameters = signature(_load_factory(provider)).parameters.keys()
    if rules.batch_size is not None and not _SIZES & options.keys():
        options.update(dict.fromkeys(_SIZES & parameters, rules.batch_size))
    if provider == rules.provider and rules.model is not None:
        model = rules.model
    requests = 4 if "concurrency" in parameters else options.pop("concurrency", 4)

    def make_policy() -> RetryPolicy:
        from openclaw_memory.embeddings.service import RetryPolicy

        return RetryPolicy(requests, rules.query_seconds)

    embedder = _create(provider, model, options, make_policy)
    check_allowed(embedder, rules)
    return embedder


def load_first_available(rules: EmbeddingConfig, unavailable: dict[str, str]) -> Embedder | None:
    """Return the first embedder of `AUTO_ORDER` that is available and allowed.

    Args:
        rules: The settings; the local model counts only if they name one.
        unavailable: Gets the reasons why others were passed over.

    Raises:
        EmbedderError: None is available.
    """
    for provider in AUTO_ORDER:
        try:
            if provider == "local" and not rules.providers.get("local", {}).get("model"):
                raise EmbedderError("no local model is configured; name one in embedding.providers.local.model")
            return load_configured(provider, rules)
        except EmbedderError as error:
            unavailable[provider] = str(error)
    reasons = "; ".join(f"{provider}: {reason}" for provider, reason in unavailable.items())
    raise EmbedderError(f"no provider is available ({reasons}); fix one of them, or choose 'static' or 'none'")


def check_allowed(embedder: Embedder | None, rules: EmbeddingConfig) -> None:
    """Raise EmbedderError if an embedder may send text to another machine and must not."""
    if embedder is None or rules.allow_remote or embedder.leaves_machine is False:
        return
    place = getattr(embedder, "endpoint", None) or "another machine"
    raise EmbedderError(
        f"the embedder {embedder.provider} {embedder.model} may send text to {place}, and embedding.allow_remote is "
        "off; allow it, or choose a local provider; what sends nothing says so: local=True for a function or a "
        "framework's model, leaves_machine = False in a class of your own"
    )


def check_provider(name: str) -> None:
    """Raise ConfigError for an unknown provider, besides `auto` and `none`; import nothing."""
    if name not in {"auto", "none", *OWN_PROVIDERS} and not has_plugin("embedders", name):
        raise ConfigError(_describe_unknown(name))


def list_providers() -> tuple[str, ...]:
    """Return the installed providers, besides `auto` and `none`."""
    return tuple(sorted({*OWN_PROVIDERS, *list_plugins("embedders")}))


def _load_factory(name: str) -> Callable[..., Any]:
    if name in OWN_PROVIDERS:
        create: Callable[..., Any] = import_module(f"openclaw_memory.embeddings.{name}").create
        return create
    if not has_plugin("embedders", name):
        raise EmbedderError(_describe_unknown(name))
    try:
        factory: Callable[..., Any] = load_plugin("embedders", name)
    except ConfigError as error:
        raise EmbedderError(f"embedder {name!r}: {error}") from error
    return factory


def _describe_unknown(name: str) -> str:
    names = ("auto", "none", *list_providers())
    return f"unknown embedder {quote_name(name)}; {suggest(name, names)}the providers are {', '.join(names)}"
