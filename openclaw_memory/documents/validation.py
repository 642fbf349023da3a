"""Checks of what callers pass (ids, counts, vectors), and the mapping from chunks to documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.errors import EmbedderError, InvalidInputError, QueryError
from openclaw_memory.text.front_matter import EMBEDDING, KEY, MODEL, make_vector_key
from openclaw_memory.types import Document, Hit, Store, StoredChunk
from openclaw_memory.workspace.document_cache import CachedDocument, split_key
from openclaw_memory.workspace.documents import derive_key
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

# Two vectors of one text by one model are as like as this, whatever rounding and batches do to them.
_SAME = 0.99


def chunks_of(store: Store, document: Document) -> list[StoredChunk]:
    """Return the chunks of a document; of lines in a person's file, those that overlap the lines."""
    chunks = store.file_chunks(document.path)
    if document.metadata.get("citation") != document.id:
        return chunks
    first, last = document.metadata["start_line"], document.metadata["end_line"]
    return [one for one in chunks if one.chunk.start_line <= last and first <= one.chunk.end_line]


def is_same(made: Vector, given: Any) -> bool:
    """Return whether two vectors are those of one text by one model: of equal shape and nearly the same direction.

    Args:
        made: A vector of length 1, shape (dims,).
        given: A vector of any length.
    """
    import numpy as np

    row = np.asarray(given, dtype=np.float64)
    return made.shape == row.shape and float(made @ row) >= _SAME * float(np.linalg.norm(row))


def unit_of(vector: Any) -> Vector:
    """Return a vector scaled to length 1; zeros stay zeros, and what is not finite stays so, which the index refuses.

    Raises:
        QueryError: It does not consist of numbers.
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


def unit_rows(rows: Matrix) -> Matrix:
    """Return vectors scaled to length 1, as `unit_of` does it."""
    import numpy as np

    units: Matrix = np.stack([unit_of(row) for row in rows])
    return units


def rows_of(vectors: Any, count: int) -> Matrix:
    """Return the vectors that came with `count` documents, as float32 of shape (count, dims).

    Raises:
        EmbedderError: They are not numbers, not finite, or of another shape.
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
        raise EmbedderError("the vectors hold a NaN, an infinity, or a number beyond float32: check the embedder")
    return rows


def above_text(row: Vector, model: str, text: str | None = None) -> dict[str, Any]:
    """Return what the front matter says of a document's vector; with its key if it came with a `text`.

    Without a key the vector is that of the file as it is, and is made again after each change.
    """
    about = {MODEL: model, "dims": len(row)}
    return {EMBEDDING: about if text is None else {**about, KEY: make_vector_key(row.astype("<f4").tobytes(), text)}}


def check_question(unit: Vector, dims: int) -> None:
    """Raise EmbedderError if the vector of a question does not have `dims` dimensions, or is not finite."""
    import numpy as np

    if unit.shape != (dims,):
        raise EmbedderError(
            f"the query vector has shape {unit.shape}, the vectors that came with documents have {dims} dimensions: "
            "embed the question with the model of the documents"
        )
    if not np.isfinite(unit).all():
        raise EmbedderError("the query vector holds a NaN or an infinity; check the embedder")


def check_ids(ids: object) -> None:
    """Raise InvalidInputError if ids are not a list of strings."""
    if not isinstance(ids, Sequence) or isinstance(ids, str) or not all(isinstance(one, str) for one in ids):
        raise InvalidInputError(f"ids must be a list of strings, not {ids!r}")


def check_k(k: object) -> None:
    """Raise QueryError if a count of results is not a whole number above zero."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise QueryError(f"k must be a whole number of at least 1, not {k!r}")


Where: TypeAlias = Callable[[Document], bool]

# Filters and long documents take more hits than are wanted: each search fetches so many times more.
WIDER = 16
# Two unit vectors that lie further apart are not of one text by one model, whatever rounding does to them.
UNLIKE = 0.1
# The fields that this library itself writes.
OURS = frozenset({"id", "collection", "metadata", EMBEDDING})


def document_in(path: str, seen: CachedDocument, name: str = "") -> Document | None:
    """Return the document in a cached file, or None; `name` is its id if none can be read in it.

    It shares its values with the cache and must not be changed; `owned` copies it.
    """
    doc_id, content = seen.doc_id, seen.content
    if content is None or (doc_id is None and not path.startswith(f"{DOCUMENTS_FOLDER}/")):
        return None
    metadata, embedding = content.fields.get("metadata"), content.fields.get(EMBEDDING)
    collection, name = split_key(doc_id or name or derive_key(path))
    return Document(
        name,
        content.text,
        metadata if isinstance(metadata, dict) else {},
        path,
        {field: value for field, value in content.fields.items() if field not in OURS},
        str(embedding.get(MODEL, "")) if isinstance(embedding, dict) else "",
        seen.line,
        collection,
    )


def owned(document: Document) -> Document:
    """Return a document with metadata and fields of its own, so that the caller may change them."""
    return replace(document, metadata=deepcopy(document.metadata), fields=deepcopy(document.fields))


def distinct(
    pairs: Iterable[tuple[Document | None, float]], k: int, where: Where | None
) -> list[tuple[Document, float]]:
    """Return the first k that pass `where`, each id once."""
    found: dict[str, tuple[Document, float]] = {}
    for document, score in pairs:
        if document is not None and document.id not in found and (where is None or where(document)):
            found[document.id] = (owned(document), score)
            if len(found) == k:
                break
    return list(found.values())


def overlaps(one: Document, found: Iterable[tuple[Document, float]]) -> bool:
    """Whether a document consists of lines of a person's file, some of which were found already."""
    about = one.metadata
    return about.get("citation") == one.id and any(
        other.path == one.path
        and other.metadata.get("citation") == other.id
        and other.metadata["start_line"] <= about["end_line"]
        and about["start_line"] <= other.metadata["end_line"]
        for other, _ in found
    )


def stored_hits(
    store: Store, search: Callable[[int], list[Hit]], wanted: int, least: float = -1.0
) -> Iterator[tuple[StoredChunk, float]]:
    """Yield the chunks that a search finds, best first, down to a score of `least`.

    The first `wanted` are fetched, then more and more, each once.
    """
    looked_at: set[int] = set()
    while True:
        hits = search(wanted)
        fresh = [hit for hit in hits if hit.chunk_id not in looked_at and hit.score >= least]
        chunks = {stored.id: stored for stored in store.chunks(hit.chunk_id for hit in fresh)}
        yield from ((chunks[hit.chunk_id], hit.score) for hit in fresh if hit.chunk_id in chunks)
        if len(hits) < wanted or hits[-1].score < least:
            return
        looked_at.update(hit.chunk_id for hit in fresh)
        wanted *= WIDER
