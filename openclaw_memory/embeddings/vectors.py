"""What every embedder needs: texts in packs, vectors checked and normalised, errors in the library's own words."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory.errors import EmbedderError, MissingExtraError, OpenClawMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")

# sqlite-vec takes no more; the largest models give 4,096.
MAX_DIMENSIONS = 8192

# What every embedder has a vector for: the question that asks whether it answers.
PROBE = "memory"
# A vector shorter than this has no direction worth trusting and is not scaled up; OpenClaw's number.
MIN_MAGNITUDE = 1e-10
# No provider has a longer name; an API key is longer.
_LONGEST_NAME, _BEGINNING = 24, 6


def normalised(matrix: ArrayLike) -> Matrix:
    """Return the rows as float32 of length 1, non-finite numbers set to 0; one below 1e-10 stays as long."""
    import numpy as np

    rows = np.asarray(matrix, dtype=np.float64)
    if not np.isfinite(rows).all():  # looking costs a tenth of replacing
        rows = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths < MIN_MAGNITUDE] = 1.0
    unit: Matrix = (rows / lengths[:, None]).astype(np.float32)
    return unit


def checked_vectors(raw: ArrayLike, count: int, origin: str) -> Matrix:
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
        raise EmbedderError(
            f"{origin} returned no table of numbers ({error}); it must return one vector of equal length per text"
        ) from error
    if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
        raise EmbedderError(f"{origin} returned shape {matrix.shape} for {count} texts; it must be ({count}, dims)")
    if matrix.shape[1] > MAX_DIMENSIONS:
        raise EmbedderError(
            f"{origin} returned vectors of {matrix.shape[1]} dimensions; an index takes up to {MAX_DIMENSIONS}: "
            "choose another model"
        )
    return normalised(matrix)


def joined(vectors: Matrix, weights: Sequence[int]) -> Vector:
    """Return the unit vector, shape (dims,), of a text whose pieces have `vectors`, shape (n, dims)."""
    import numpy as np

    mean = np.average(vectors, axis=0, weights=weights)
    whole: Vector = normalised(mean[None, :])[0]
    return whole


@contextmanager
def own_errors(what: str) -> Iterator[None]:
    """Turn whatever foreign code raises into an EmbedderError that begins with `what`; our own errors pass."""
    try:
        yield
    except OpenClawMemoryError:
        raise
    except Exception as error:
        raise EmbedderError(f"{what}: {type(error).__name__}: {error}; fix it, or choose another one") from error


def vector_key(text: str) -> str:
    """Return the key of the vector of exactly this text: its SHA-256 in hex."""
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def package(name: str, extra: str) -> Any:
    """Return the module `name`, which comes with one of our extras, or raise MissingExtraError."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"embedder {extra!r} needs a package that cannot be imported ({error}): {installing(extra)}"
        ) from error


def installing(extra: str) -> str:
    """Return what installs one of our extras, which a registry of packages does not have."""
    return f'pip install ".[{extra}]" in a checkout of openclaw_memory'


def named(name: object) -> str:
    """Return an unknown name as a message may show it: it may be a key that was put in its place."""
    from openclaw_memory.text.redaction import redact

    if not isinstance(name, str):
        return f"a value of type {type(name).__name__}"
    return repr(redact(name)) if len(name) <= _LONGEST_NAME else f"{name[:_BEGINNING]!r}... ({len(name)} characters)"


def weight(text: str) -> int:
    """Return an upper bound of a text's tokens: its UTF-8 bytes, since no tokenizer makes two tokens of one byte."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def encodable(text: str) -> str:
    """Return the text with lone surrogates, which no request can carry, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def packs(items: Iterable[T], max_items: int, max_weight: int, weigh: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in their order, in lists of at most `max_items` that weigh at most `max_weight` together.

    An item that weighs more by itself is a list of its own. An item is taken from `items` no sooner than needed.
    """
    pack: list[T] = []
    total = 0
    for item in items:
        size = weigh(item)
        if pack and total + size > max_weight:
            yield pack
            pack, total = [], 0
        pack.append(item)
        total += size
        if len(pack) >= max_items:
            yield pack
            pack, total = [], 0
    if pack:
        yield pack
