"""What callers hand over, checked: ids, counts and vectors; and the chunks that hold a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import EmbedderError, QueryError
from openclaw_memory.types import Document, Store, StoredChunk

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector


def chunks_of(store: Store, document: Document) -> list[StoredChunk]:
    """The chunks that hold any of a document: of a person's file those of its lines."""
    chunks = store.chunks_of(document.path)
    if document.metadata.get("citation") != document.id:
        return chunks
    first, last = document.metadata["start_line"], document.metadata["end_line"]
    return [one for one in chunks if one.chunk.start_line <= last and first <= one.chunk.end_line]


def unit_of(vector: Any) -> Vector:
    """A vector scaled to length 1; one of zeros stays, and one that the index refuses, as it is not finite.

    Raises:
        QueryError: it is not of numbers.
    """
    import numpy as np

    try:
        row = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise QueryError(f"a vector must be a list or an array of numbers, not {vector!r:.80}") from error
    # Scaled by the largest number first: the squares of large ones would be infinite.
    largest = float(np.abs(row).max(initial=0))
    if 0 < largest < np.inf:
        row = row / largest
        row = row / np.linalg.norm(row)
    unit: Vector = row.astype(np.float32)
    return unit


def rows_of(vectors: Any, count: int) -> Matrix:
    """Vectors that came with `count` documents, as float32 of shape (count, dims).

    Raises:
        EmbedderError: they are no numbers, not finite, or of another shape.
    """
    import numpy as np

    try:
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused as that
            rows: Matrix = np.asarray(vectors).astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbedderError(f"vectors must be numbers, as many in each as in the others ({error})") from error
    if rows.ndim != 2 or rows.shape[0] != count or (count and not rows.shape[1]):
        raise EmbedderError(f"{count} documents came with vectors of shape {rows.shape}: give one row for each")
    if not np.isfinite(rows).all():
        raise EmbedderError("the vectors hold a NaN, an infinity, or a number beyond float32: mend what makes them")
    return rows


def check_ids(ids: object) -> None:
    """Raise QueryError where ids are no list of strings."""
    if not isinstance(ids, Sequence) or isinstance(ids, str) or not all(isinstance(one, str) for one in ids):
        raise QueryError(f"ids must be a list of strings, not {ids!r}")


def check_k(k: object) -> None:
    """Raise QueryError where a count of results is no whole number above zero."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise QueryError(f"k must be a whole number of at least 1, not {k!r}")
