"""Tools that all embedders share: checked and normalised vectors, texts in packs, errors of the library."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory.errors import EmbedderError, MissingExtraError, OpenClawMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")

UNLIMITED = 1_000_000_000  # tokens, of a model that reads any text whole
MAX_DIMENSIONS = 8192  # of sqlite-vec; the largest models give 4,096
PROBE = "memory"  # a query that every embedder has a vector for
# A shorter vector has no direction worth trusting, and is not scaled up; OpenClaw's number.
MIN_MAGNITUDE = 1e-10
# No provider has a longer name; an API key is longer.
_MAX_NAME, _PREFIX = 24, 6


def normalize(matrix: ArrayLike) -> Matrix:
    """Return the rows as float32 of length 1, non-finite numbers set to 0; one below 1e-10 keeps its length."""
    import numpy as np

    rows = np.asarray(matrix, dtype=np.float64)
    if not np.isfinite(rows).all():  # a tenth of the cost of replacing
        rows = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths < MIN_MAGNITUDE] = 1.0
    unit: Matrix = (rows / lengths[:, None]).astype(np.float32)
    return unit


def check_vectors(raw: ArrayLike, count: int, origin: str) -> Matrix:
    """Return vectors normalised, as float32 of the shape (count, dims).

    Args:
        raw: The vectors, as numbers or arrays.
        count: How many texts they are of.
        origin: Who sent them, for the error.

    Raises:
        EmbedderError: They are not `count` vectors of numbers, all of the same number of dimensions, which is at most
            8,192.
    """
    import numpy as np

    if count == 0:
        return np.zeros((0, 0), dtype=np.float32)
    try:
        matrix = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:  # the last one: an integer of hundreds of digits
        raise EmbedderError(f"{origin} returned no table of numbers ({error}): return one vector per text") from error
    if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
        raise EmbedderError(f"{origin} returned shape {matrix.shape} for {count} texts; it must be ({count}, dims)")
    if matrix.shape[1] > MAX_DIMENSIONS:
        raise EmbedderError(
            f"{origin} returned {matrix.shape[1]} dimensions, more than {MAX_DIMENSIONS}: choose another model"
        )
    return normalize(matrix)


def merge_vectors(vectors: Sequence[Vector] | Matrix, weights: Sequence[int]) -> Vector:
    """Return the unit vector of a text from the vectors of its pieces."""
    import numpy as np

    if len(vectors) == 1:
        return vectors[0]
    whole: Vector = normalize(np.average(vectors, axis=0, weights=weights)[None, :])[0]
    return whole


@contextmanager
def translate_errors(message: str) -> Iterator[None]:
    """Raise whatever foreign code raises as an EmbedderError that begins with `message`; our own errors pass."""
    try:
        yield
    except OpenClawMemoryError:
        raise
    except Exception as error:
        raise EmbedderError(f"{message}: {type(error).__name__}: {error}; fix it, or choose another one") from error


def make_vector_key(text: str) -> str:
    """Return the key of the vector of exactly this text: its SHA-256 in hex."""
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def import_package(name: str, extra: str) -> Any:
    """Return the module `name`, which comes with one of our extras, or raise MissingExtraError."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"embedder {extra!r} lacks a package ({error}): {describe_install(extra)}") from error


def describe_install(extra: str) -> str:
    """Return the command that installs one of our extras, which no registry of packages has."""
    return f'pip install ".[{extra}]" in a checkout of openclaw_memory'


def quote_name(name: object) -> str:
    """Return an unknown name for a message, cut if it may be a key that was put in its place."""
    from openclaw_memory.text.redaction import redact

    if not isinstance(name, str):
        return f"a value of type {type(name).__name__}"
    return repr(redact(name)) if len(name) <= _MAX_NAME else f"{name[:_PREFIX]!r}... ({len(name)} characters)"


def count_bytes(text: str) -> int:
    """Return the UTF-8 bytes of a text: no tokenizer makes more tokens."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def make_encodable(text: str) -> str:
    """Return the text with lone surrogates, which no request can carry, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def pack(items: Iterable[T], max_items: int, max_weight: int, weigh: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in order, in lists of at most `max_items` that weigh at most `max_weight` together.

    An item that weighs more is a list of its own. An item is taken from `items` no sooner than needed.
    """
    some: list[T] = []
    total = 0
    for item in items:
        size = weigh(item)
        if some and total + size > max_weight:
            yield some
            some, total = [], 0
        some.append(item)
        total += size
        if len(some) >= max_items:
            yield some
            some, total = [], 0
    if some:
        yield some
