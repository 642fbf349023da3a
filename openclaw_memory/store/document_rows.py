"""The rows of vectors that came with documents: one for each document, under the identity of its model.

They are in a table of their own, so that no chunk, count or keyword search ever meets them. A row names its vector by
model and key, and is found as soon as that vector is stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.store import vector_rows
from openclaw_memory.store.connection import fetch
from openclaw_memory.store.rows import CONDITIONS, read_value
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, Hit, Source, StoredChunk

if TYPE_CHECKING:
    import apsw

    from openclaw_memory.types import Vector

# Data about document rows, by the state that it was read in (`CHANGE`) and its name; `_load` fills it.
Cache: TypeAlias = dict[tuple[object, object], Any]

CHANGE = "document_vectors_change"  # the row of meta that has another value after each change of rows or their vectors
FEW = 4  # rows that pass a filter are few if there are more than so many times as many more
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
SELECT document_vectors.id, embedding, dims FROM json_each(?1) AS chosen
CROSS JOIN document_vectors ON document_vectors.id = chosen.value
CROSS JOIN vectors ON {JOIN} JOIN models ON models.id = vectors.model_id
"""
STORED = "SELECT document_vectors.id, path, source FROM document_vectors JOIN files ON files.id = file_id"
BY_ID = f"{STORED} WHERE document_vectors.id IN (SELECT value FROM json_each(?)) ORDER BY document_vectors.id DESC"
OF_MODEL = f"{STORED} JOIN models ON models.id = model_id"
BY_PATH = f"{OF_MODEL} {CONDITIONS['paths']} AND identity = ? ORDER BY document_vectors.id"


def add_rows(db: apsw.Connection, files: Iterable[tuple[FileRecord, Iterable[ChunkRow]]]) -> None:
    """Add the rows of files that have an identity; `rows.add_files` adds the others."""
    vectors = [
        (row.identity, row.vector_key, record.path)
        for record, rows in files
        for row in rows
        if row.identity is not None and row.vector_key is not None
    ]
    if vectors:
        models = {identity: vector_rows.add_model(db, identity) for identity in {vector[0] for vector in vectors}}
        db.executemany(ADD, ((models[identity], vector_rows.digest(key), path) for identity, key, path in vectors))
        mark_change(db)


def remove_rows(db: apsw.Connection, paths: Iterable[str]) -> None:
    """Remove the rows of these files, which still exist themselves."""
    if [row for path in paths for row in fetch(db, REMOVE, (path,))]:
        mark_change(db)


def mark_change(db: apsw.Connection, model_id: int | None = None) -> None:
    """Record that rows, or vectors of a model that rows may name, have changed."""
    if model_id is None or fetch(db, "SELECT 1 FROM document_vectors WHERE model_id = ? LIMIT 1", (model_id,)):
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (CHANGE, os.urandom(8).hex()))


def count_identities(db: apsw.Connection, cache: Cache) -> Mapping[str, tuple[int, int]]:
    """Return how many rows each identity has, and how many of these have their vectors."""

    def count() -> dict[str, tuple[int, int]]:
        return {identity: (rows, vectors) for identity, rows, vectors in fetch(db, COUNTS)}

    return dict(_load(db, cache, "identities", count))


def search_rows(
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

    from openclaw_memory.store.vectors import check_vector, decode_rows, score, select_largest

    model_id, dims = vector_rows.read_model(db, identity) or (0, None)
    if dims is None or k < 1:
        return []
    query = check_vector(vector, dims)

    def read() -> Any:
        ids, matrix = decode_rows(fetch(db, ALL, (model_id, source)), len(query))
        return np.array(ids, np.int64), matrix

    def map_first_chunks() -> tuple[dict[int, int], list[int]]:
        pairs = fetch(db, FIRST_CHUNKS, (model_id,))
        return {first: row for row, first in pairs if first}, [row for row, first in pairs if not first]

    ids, matrix = _load(db, cache, (identity, source), read)
    places: Any = slice(None)
    if passing is not None:
        rows, without = _load(db, cache, (identity, "by first chunk"), map_first_chunks)
        row_ids = np.array(sorted([*(rows[chunk_id] for chunk_id in passing if chunk_id in rows), *without]), np.int64)
        places = np.searchsorted(ids, row_ids)
        row_ids, places = row_ids[places < len(ids)], places[places < len(ids)]
        places = places[ids[places] == row_ids]
    is_narrow = passing is not None and FEW * len(passing) < len(ids)
    with np.errstate(invalid="ignore"):  # OpenBLAS sets the flag for lanes past the end of a short vector
        scores = score(matrix[places], query) if is_narrow else score(matrix, query)[places]
    ids = ids[places]
    top = select_largest(scores, k)
    best = top[np.argsort(-scores[top], kind="stable")][:k]
    return [Hit(-int(ids[at]), min(1.0, max(-1.0, float(scores[at])))) for at in best.tolist()]


def read_vectors(db: apsw.Connection, ids: Iterable[int]) -> Mapping[int, Vector]:
    """Return the vectors of rows by their ids, which are below 0; others, and rows without a vector, are left out."""
    from openclaw_memory.store.vectors import decode_rows

    rows = fetch(db, CHOSEN, (_select_own(ids),))
    return {-row_id: decode_rows([(row_id, embedding)], dims)[1][0] for row_id, embedding, dims in rows}


def read_rows(db: apsw.Connection, ids: Iterable[int]) -> list[StoredChunk]:
    """Return rows by their ids, which are below 0, in ascending order; others are left out."""
    return _make_chunks(fetch(db, BY_ID, (_select_own(ids),)))


def read_file_rows(db: apsw.Connection, paths: Sequence[str], identity: str) -> list[StoredChunk]:
    """Return the rows of files under an identity."""
    return _make_chunks(fetch(db, BY_PATH, (json.dumps(paths), identity)))


def _make_chunks(rows: Sequence[tuple[int, str, Source]]) -> list[StoredChunk]:
    return [StoredChunk(-row_id, path, source, NO_TEXT) for row_id, path, source in rows]


def _select_own(ids: Iterable[int]) -> str:
    """Return the ids in the table, as JSON: outside they are negative, so that they differ from those of chunks."""
    return vector_rows.as_json([-row_id for row_id in ids if row_id < 0])


def _load(db: apsw.Connection, cache: Cache, name: object, read: Callable[[], Any]) -> Any:
    """Return the result of `read`, kept until rows or their vectors change."""
    key = (read_value(db, CHANGE), name)
    if (data := cache.get(key)) is None:
        data = read()
        for old in [old for old in list(cache) if old[0] != key[0]]:
            cache.pop(old, None)
        cache[key] = data
    return data
