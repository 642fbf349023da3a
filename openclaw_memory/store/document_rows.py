"""The rows of vectors that came with documents: one for each document, under the identity of its model.

They are in a table of their own, so that no chunk, count or keyword search ever meets them. A row names its vector by
model and key, and is found as soon as that vector is stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.store import schema, vector_cache
from openclaw_memory.store.connection import fetch
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, Hit, Source, StoredChunk

if TYPE_CHECKING:
    import apsw

    from openclaw_memory.types import Vector

# What was read of document rows, by the state that it was read in (`CHANGE`) and what it is; `_cached` fills it.
Cache: TypeAlias = dict[tuple[str | None, object], Any]

CHANGE = "document_vectors_change"  # the row of meta that has another value after each change of rows or their vectors
FEW = 4  # rows that pass a filter are few if there are more than so many times as many others
NO_TEXT = Chunk(1, 1, 0, "")
ADD = "INSERT INTO document_vectors (file_id, model_id, key) SELECT id, ?, ? FROM files WHERE path = ?"
REMOVE = "DELETE FROM document_vectors WHERE file_id IN (SELECT id FROM files WHERE path = ?) RETURNING id"
# Keys of vectors may be stored cut short: a row keeps all of its key, whatever their width comes to be.
JOIN = "vectors.model_id = document_vectors.model_id AND vectors.key = document_vectors.key"
FIRST_CHUNKS = """
SELECT document_vectors.id, (SELECT min(id) FROM chunks WHERE chunks.file_id = document_vectors.file_id)
FROM document_vectors WHERE model_id = ?
"""
COUNTS = f"""
SELECT identity, count(*), count(vectors.id) FROM document_vectors
JOIN models ON models.id = document_vectors.model_id LEFT JOIN vectors ON {JOIN}
GROUP BY identity ORDER BY identity
"""
ALL = f"""
SELECT document_vectors.id, embedding FROM document_vectors JOIN vectors ON {JOIN}
JOIN files ON files.id = file_id
WHERE document_vectors.model_id = ?1 AND (?2 IS NULL OR source = ?2) ORDER BY document_vectors.id
"""
CHOSEN = f"""
SELECT document_vectors.id, embedding, dims FROM json_each(?1) AS wanted
CROSS JOIN document_vectors ON document_vectors.id = wanted.value
CROSS JOIN vectors ON {JOIN} JOIN models ON models.id = vectors.model_id
"""
STORED = "SELECT document_vectors.id, path, source FROM document_vectors JOIN files ON files.id = file_id"
BY_ID = f"{STORED} WHERE document_vectors.id IN (SELECT value FROM json_each(?)) ORDER BY document_vectors.id DESC"
BY_PATH = f"{STORED} JOIN models ON models.id = model_id WHERE path = ? AND identity = ? ORDER BY document_vectors.id"


def add(db: apsw.Connection, files: Iterable[tuple[FileRecord, Iterable[ChunkRow]]]) -> None:
    """Add the rows of files that have an identity; `rows.add_files` adds the others."""
    wanted = [
        (row.identity, row.vector_key, record.path)
        for record, rows in files
        for row in rows
        if row.identity is not None and row.vector_key is not None
    ]
    if wanted:
        make(db)
        models = {identity: vector_cache.add_model(db, identity) for identity in {one[0] for one in wanted}}
        keyed = ((models[identity], vector_cache.digest(key), path) for identity, key, path in wanted)
        db.executemany(ADD, keyed)
        changed(db)


def remove(db: apsw.Connection, paths: Iterable[str]) -> None:
    """Remove the rows of these files, which still exist themselves."""
    if are_there(db) and [row for path in paths for row in fetch(db, REMOVE, (path,))]:
        changed(db)


def changed(db: apsw.Connection, model_id: int | None = None) -> None:
    """Record that rows, or vectors of a model that rows may name, have changed."""
    if model_id is None or fetch(db, "SELECT 1 FROM document_vectors WHERE model_id = ? LIMIT 1", (model_id,)):
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (CHANGE, os.urandom(8).hex()))


def identities(db: apsw.Connection, cache: Cache) -> Mapping[str, tuple[int, int]]:
    """Return how many rows each identity has, and how many of these have their vectors."""

    def count() -> dict[str, tuple[int, int]]:
        rows = fetch(db, COUNTS)
        return {identity: (count, found) for identity, count, found in rows}

    return dict(_cached(db, cache, "identities", count, {}))


def nearest(
    db: apsw.Connection,
    cache: Cache,
    vector: Vector,
    k: int,
    source: Source | None,
    identity: str,
    passing: frozenset[int] | None = None,
) -> list[Hit]:
    """Return the k rows of an identity with the highest cosine, best first; a vector of zeros has the cosine 0.

    A row counts if the first chunk of its file is among those `passing` a filter, or the file has no chunk.

    Raises:
        EmbedderError: The vector has other dimensions than the rows, or holds a NaN.
    """
    import numpy as np

    from openclaw_memory.store.vectors import checked, page, products

    model_id, dims = vector_cache.model(db, identity) or (0, None)
    if dims is None or k < 1:
        return []
    asked = checked(vector, dims)

    def read() -> Any:
        ids, matrix = page(fetch(db, ALL, (model_id, source)), len(asked))
        return np.array(ids, np.int64), matrix

    def by_first_chunk() -> tuple[dict[int, int], list[int]]:
        found = fetch(db, FIRST_CHUNKS, (model_id,))
        return {first: row for row, first in found if first}, [row for row, first in found if not first]

    ids, matrix = _cached(db, cache, (identity, source), read, ((), None))
    if not len(ids):
        return []
    places: Any = slice(None)
    if passing is not None:
        rows, without = _cached(db, cache, (identity, "by first chunk"), by_first_chunk, ({}, []))
        row_ids = np.array(sorted([*(rows[chunk_id] for chunk_id in passing if chunk_id in rows), *without]), np.int64)
        places = np.searchsorted(ids, row_ids)
        row_ids, places = row_ids[places < len(ids)], places[places < len(ids)]
        places = places[ids[places] == row_ids]
    is_narrow = passing is not None and FEW * len(passing) < len(ids)
    with np.errstate(invalid="ignore"):  # OpenBLAS sets the flag for lanes past the end of a short vector
        scores = products(matrix[places], asked) if is_narrow else products(matrix, asked)[places]
    ids = ids[places]
    top = np.arange(len(ids))
    if k < len(ids):  # all that are as near as the k-th: equal ones in the order of their ids
        top = np.flatnonzero(scores >= np.partition(scores, len(ids) - k)[len(ids) - k])
    best = top[np.argsort(-scores[top], kind="stable")][:k]
    return [Hit(-int(ids[at]), min(1.0, max(-1.0, float(scores[at])))) for at in best.tolist()]


def vectors(db: apsw.Connection, ids: Iterable[int]) -> Mapping[int, Vector]:
    """Return the vectors of rows by their ids, which are below 0; others, and rows without a vector, are left out."""
    from openclaw_memory.store.vectors import page

    wanted = _own(ids)
    if not wanted or not are_there(db):
        return {}
    found: dict[int, Vector] = {}
    for row_id, embedding, dims in fetch(db, CHOSEN, (vector_cache.as_json(wanted),)):
        found[-row_id] = page([(row_id, embedding)], dims)[1][0]
    return found


def stored(db: apsw.Connection, ids: Iterable[int]) -> list[StoredChunk]:
    """Return rows by their ids, which are below 0, in ascending order; others are left out."""
    wanted = _own(ids)
    return _stored(fetch(db, BY_ID, (vector_cache.as_json(wanted),))) if wanted and are_there(db) else []


def of_file(db: apsw.Connection, path: str, identity: str) -> list[StoredChunk]:
    """Return the rows of a file under an identity."""
    return _stored(fetch(db, BY_PATH, (path, identity))) if are_there(db) else []


def _stored(rows: Sequence[tuple[int, str, Source]]) -> list[StoredChunk]:
    return [StoredChunk(-row_id, path, source, NO_TEXT) for row_id, path, source in rows]


def _own(ids: Iterable[int]) -> list[int]:
    """Return the ids in the table: outside they are negative, so that they differ from those of chunks."""
    return [-one for one in ids if one < 0]


def make(db: apsw.Connection) -> None:
    """Make the table of these rows, unless there is one."""
    schema.make_document_rows(db)


def count(db: apsw.Connection) -> int:
    """Return how many rows there are."""
    return int(fetch(db, "SELECT count(*) FROM document_vectors")[0][0]) if are_there(db) else 0


def are_there(db: apsw.Connection) -> bool:
    """Whether this index has the table of these rows."""
    return bool(fetch(db, "SELECT 1 FROM sqlite_schema WHERE name = 'document_vectors'"))


def _cached(db: apsw.Connection, cache: Cache, what: object, read: Callable[[], Any], nothing: Any) -> Any:
    """Return what `read` returns, read again only if rows or their vectors have changed; `nothing` without rows."""
    known = fetch(db, "SELECT value FROM meta WHERE key = ?", (CHANGE,))
    if not known:
        return nothing
    key = (known[0][0], what)
    if key not in cache:
        found = read()
        for old in [one for one in list(cache) if one[0] != key[0]]:
            cache.pop(old, None)
        cache[key] = found
    return cache[key] if key in cache else read()
