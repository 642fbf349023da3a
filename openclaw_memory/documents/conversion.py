"""Check ids, counts and vectors that callers pass; make documents of cached files and of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from openclaw_memory.errors import EmbedderError, InvalidInputError, QueryError
from openclaw_memory.text.front_matter import EMBEDDING, KEY, MODEL
from openclaw_memory.types import Document, Hit, Store, StoredChunk
from openclaw_memory.workspace.document_cache import CachedDocument, split_key
from openclaw_memory.workspace.documents import derive_key
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

Where: TypeAlias = Callable[[Document], bool]

# Filters and long documents take more hits than results: each search fetches so many times more.
WIDER = 16
# The fields that this library itself writes.
OWN_FIELDS = frozenset({"id", "collection", "metadata", EMBEDDING})


def read_document(path: str, cached: CachedDocument | None, name: str = "") -> Document | None:
    """Return the document in a cached file, or None; `name` is its id if none can be read in it.

    It shares its values with the cache and must not be changed; `copy_document` copies it.
    """
    if cached is None or cached.content is None:
        return None
    if cached.doc_id is None and not path.startswith(f"{DOCUMENTS_FOLDER}/"):
        return None
    fields = cached.content.fields
    metadata, embedding = fields.get("metadata"), fields.get(EMBEDDING)
    collection, name = split_key(cached.doc_id or name or derive_key(path))
    return Document(
        name,
        cached.content.text,
        metadata if isinstance(metadata, dict) else {},
        path,
        {field: value for field, value in fields.items() if field not in OWN_FIELDS},
        str(embedding.get(MODEL, "")) if isinstance(embedding, dict) else "",
        cached.line,
        collection,
    )


def copy_document(document: Document) -> Document:
    """Return a document with metadata and fields of its own, which the caller may change."""
    return replace(document, metadata=deepcopy(document.metadata), fields=deepcopy(document.fields))


def has_chunk(document: Document, stored: StoredChunk) -> bool:
    """Return whether a chunk of its file is one of a document; of lines in a person's file, one that overlaps them."""
    if document.metadata.get("citation") != document.id:
        return True
    first, last = document.metadata["start_line"], document.metadata["end_line"]
    return bool(stored.chunk.start_line <= last and first <= stored.chunk.end_line)


def take_distinct(
    pairs: Iterable[tuple[Document | None, float]], k: int, where: Where | None
) -> list[tuple[Document, float]]:
    """Return the first k that pass `where`, each id once."""
    results: dict[str, tuple[Document, float]] = {}
    for document, score in pairs:
        if document is not None and document.id not in results and (where is None or where(document)):
            results[document.id] = (copy_document(document), score)
            if len(results) == k:
                break
    return list(results.values())


def iterate_hits(
    store: Store, search: Callable[[int], list[Hit]], count: int, min_score: float = -1.0
) -> Iterator[tuple[StoredChunk, float]]:
    """Yield the chunks that a search finds, best first, each once: the first `count`, then more and more."""
    yielded: set[int] = set()
    while True:
        hits = search(count)
        fresh = [hit for hit in hits if hit.chunk_id not in yielded and hit.score >= min_score]
        chunks = {stored.id: stored for stored in store.get_chunks(hit.chunk_id for hit in fresh)}
        yield from ((chunks[hit.chunk_id], hit.score) for hit in fresh if hit.chunk_id in chunks)
        if len(hits) < count or hits[-1].score < min_score:
            return
        yielded.update(hit.chunk_id for hit in fresh)
        count *= WIDER


def to_unit(vector: Any) -> Vector:
    """Return a vector scaled to length 1; zeros stay zeros, and non-finite numbers stay, which the index refuses.

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


def to_rows(vectors: Any, count: int) -> Matrix:
    """Return the vectors that came with `count` documents, as float32 of shape (count, dims).

    Raises:
        EmbedderError: They are not numbers, not finite, or of another shape.
    """
    import numpy as np

    try:
        with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite, and is refused as that
            rows: Matrix = np.asarray(vectors).astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbedderError(f"vectors must be numbers, as many in each as in the others ({error})") from error
    if rows.ndim != 2 or rows.shape[0] != count or (count and not rows.shape[1]):
        raise EmbedderError(f"{count} documents came with vectors of shape {rows.shape}: give one row for each")
    if not np.isfinite(rows).all():
        raise EmbedderError("the vectors hold a NaN, an infinity, or a number beyond float32: check the embedder")
    return rows


def describe_vector(row: Vector, model: str, *, is_kept: bool) -> dict[str, Any]:
    """Return the front matter for a document's vector; with its key if it is kept whatever becomes of the text.

    Without a key the vector is that of the file as it is, and is made again after each change.
    """
    fields: dict[str, Any] = {MODEL: model, "dims": len(row)}
    return {EMBEDDING: fields | ({KEY: sha256(row.astype("<f4").tobytes()).hexdigest()} if is_kept else {})}


def check_ids(ids: object) -> None:
    """Raise InvalidInputError if ids are not a list of strings."""
    if not isinstance(ids, Sequence) or isinstance(ids, str) or not all(isinstance(name, str) for name in ids):
        raise InvalidInputError(f"ids must be a list of strings, not {ids!r}")
