"""Embedders by name, and the few functions that all of them share.

A provider is a module of this package, or a function elsewhere registered under the entry point group
`openclaw_memory.embedders`, that offers `create(model, **options)` and returns an `Embedder`, or a `Service` that is to
be asked over a network.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import ConfigError, EmbedderError, MissingExtraError, OpenClawMemoryError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from openclaw_memory.embeddings.remote.retry import RetryPolicy
    from openclaw_memory.types import Embedder, Matrix, Vector

# The modules of this package that offer `create`.
OWN_PROVIDERS = ("gemini", "hashing", "local", "openai", "static", "voyage")
ENTRY_POINT_GROUP = "openclaw_memory.embedders"
# What `auto` tries: the order of OpenClaw's first design, and the model that ships where none of them can be had.
AUTO_ORDER: tuple[str, ...] = ("local", "openai", "gemini", "voyage", "static")
# What every embedder has a vector for: the question that asks whether it answers.
PROBE = "memory"
# A vector shorter than this has no direction worth trusting and is not scaled up; OpenClaw's number.
MIN_MAGNITUDE = 1e-10
# No provider has a longer name; an API key is longer.
_LONGEST_NAME, _BEGINNING = 24, 6


def load_embedder(
    provider: str | None = "static", model: str | None = None, *, retry: RetryPolicy | None = None, **options: Any
) -> Embedder | None:
    """The embedder of a provider: `static`, `openai`, an installed one, ...; None for `none` (keyword-only).

    `model` None is the provider's own default; `retry` says how patiently a service is asked, `options` are the
    provider's own.

    Raises:
        EmbedderError: nobody knows the provider, or it does not take the model or an option.
        MissingExtraError: the provider needs a package that is not installed.
    """
    if provider is None or provider == "none":
        return None
    if provider == "auto":
        if model is not None or options:
            raise EmbedderError("'auto' takes no model and no options; name the provider that they are for")
        from openclaw_memory.config import EmbeddingConfig
        from openclaw_memory.embeddings.selection import first_available

        return first_available(EmbeddingConfig(provider="auto"), {})
    create = _factory(provider)
    _check_options(provider, create, model, options)
    from openclaw_memory.types import Embedder

    embedder = _behind_service(create(model, **options), retry)
    if not isinstance(embedder, Embedder):
        raise EmbedderError(
            f"embedder {provider!r} made a {type(embedder).__name__}, which lacks parts of the Embedder protocol; "
            "mend it"
        )
    return embedder


def check_provider(name: str) -> None:
    """Refuse a provider that nobody knows; nothing of it is imported.

    Raises:
        ConfigError: nobody does; the message names those that are known.
    """
    if name in {"auto", "none", *AUTO_ORDER} or name in OWN_PROVIDERS:
        return
    from importlib.metadata import entry_points

    if not entry_points(group=ENTRY_POINT_GROUP, name=name):
        raise ConfigError(_unknown(name))


def providers() -> tuple[str, ...]:
    """The names that `load_embedder` knows here and now, besides `auto` and `none`."""
    from importlib.metadata import entry_points

    return tuple(sorted({*OWN_PROVIDERS, *(point.name for point in entry_points(group=ENTRY_POINT_GROUP))}))


def from_callable(
    embed: Callable[[list[str]], Any],
    name: str,
    *,
    embed_query: Callable[[str], Any] | None = None,
    local: bool = False,
) -> Embedder:
    """Make an embedder of a function that takes a list of strings and returns as many vectors.

    What the functions return is checked, freed of non-finite numbers and normalised.

    Args:
        embed: Takes texts, returns their vectors.
        name: Becomes the model: give another name to a function that makes other vectors.
        embed_query: Takes one question, returns its vector; by default `embed` is asked.
        local: Vouches that no text is sent to another machine, which `embedding.allow_remote = false` asks for.
    """
    return _CallableEmbedder(embed, name, embed_query, local=local)


def normalised(matrix: ArrayLike) -> Matrix:
    """`matrix`, shape (n, dims), as float32 rows of length 1, non-finite numbers set to 0.

    A row shorter than 1e-10 keeps its length.
    """
    import numpy as np

    rows = np.asarray(matrix, dtype=np.float64)
    if not np.isfinite(rows).all():  # looking costs a tenth of replacing
        rows = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths < MIN_MAGNITUDE] = 1.0
    unit: Matrix = (rows / lengths[:, None]).astype(np.float32)
    return unit


def checked_vectors(raw: ArrayLike, count: int, origin: str) -> Matrix:
    """What came back for `count` texts, as normalised float32, shape (count, dims); `origin` says who sent it.

    Raises:
        EmbedderError: it is not `count` vectors of numbers that all have the same, positive number of dimensions.
    """
    import numpy as np

    if count == 0:
        return np.zeros((0, 0), dtype=np.float32)
    try:
        matrix = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:  # the last one: an integer of hundreds of digits
        raise EmbedderError(
            f"{origin} returned no table of numbers ({error}); it must return one vector of equal length per text"
        ) from error
    if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
        raise EmbedderError(f"{origin} returned shape {matrix.shape} for {count} texts; it must be ({count}, dims)")
    return normalised(matrix)


@contextmanager
def own_errors(what: str) -> Iterator[None]:
    """Turn whatever foreign code raises into an EmbedderError that begins with `what`; our own errors pass."""
    try:
        yield
    except OpenClawMemoryError:
        raise
    except Exception as error:
        raise EmbedderError(f"{what}: {type(error).__name__}: {error}; mend it, or choose another one") from error


def package(name: str, extra: str) -> Any:
    """Return the module `name`, which comes with one of our extras.

    Raises:
        MissingExtraError: it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"embedder {extra!r} needs a package that cannot be imported ({error}): {installing(extra)}"
        ) from error


def installing(extra: str) -> str:
    """Return the command that installs one of our extras."""
    return f'pip install "openclaw-memory-index[{extra}]"'


def vector_key(text: str) -> str:
    """The key of a vector: SHA-256 hex of the exact string that is embedded."""
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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


def _behind_service(made: object, retry: RetryPolicy | None) -> object:
    """The embedder that asks the service, where a provider describes one; anything else is handed on."""
    from openclaw_memory.types import Embedder

    if isinstance(made, Embedder):
        return made
    from openclaw_memory.embeddings.remote.client import RemoteEmbedder, Service

    return RemoteEmbedder(made, retry) if isinstance(made, Service) else made


def _factory(name: str) -> Callable[..., Any]:
    from importlib import import_module

    if name in OWN_PROVIDERS:
        create: Callable[..., Any] = import_module(f"openclaw_memory.embeddings.{name}").create
        return create
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        try:
            loaded: Callable[..., Any] = point.load()
        except EmbedderError:
            raise
        except (ImportError, AttributeError) as error:
            raise EmbedderError(
                f"embedder {name!r} ({point.value}) cannot be loaded: {error}; reinstall the package that brings it"
            ) from error
        return loaded
    raise EmbedderError(_unknown(name))


def _unknown(name: str) -> str:
    known = ("auto", "none", *providers())
    return f"unknown embedder {named(name)}; {nearest(name, known)}the providers are {', '.join(known)}"


def named(name: object) -> str:
    """A name that nobody knows, as a message shows it: it may be a key that was put in its place."""
    from openclaw_memory.text.redaction import redact

    if not isinstance(name, str):
        return f"a value of type {type(name).__name__}"
    return repr(redact(name)) if len(name) <= _LONGEST_NAME else f"{name[:_BEGINNING]!r}... ({len(name)} characters)"


def _check_options(name: str, create: Callable[..., Any], model: str | None, options: dict[str, Any]) -> None:
    from inspect import signature

    try:
        signature(create).bind(model, **options)
    except TypeError as error:
        takes = ", ".join(signature(create).parameters)
        raise EmbedderError(f"embedder {name!r}: {error}; it takes {takes}") from error
