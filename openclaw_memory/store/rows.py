"""The rows of meta, files, chunks and vectors: reads and writes within a transaction that the caller has begun."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from openclaw_memory.errors import CorruptIndexError, EmbedderError, StoreError
from openclaw_memory.store.connection import fetch
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, IndexMeta, StoredChunk

if TYPE_CHECKING:
    import apsw

META_KEY = "memory_index_meta_v1"
# Of a key's 32 bytes these are stored, twice (row and index). That two of ten million texts share 96 bits of SHA-256
# has a chance below 1e-14.
KEY_BYTES = 12

CURRENT_MODEL = f"""
SELECT id, dims FROM models WHERE identity = (SELECT value ->> '$.identity' FROM meta WHERE key = '{META_KEY}')
"""
# An all-zero vector has no direction: its id counts as none, so that such a chunk is found by its terms alone.
KNOWN_KEYS = f"""
SELECT wanted.value, iif(embedding = zeroblob(length(embedding)), NULL, vectors.id) FROM json_each(?) AS wanted
CROSS JOIN vectors ON vectors.model_id = ? AND vectors.key = substr(unhex(wanted.value), 1, {KEY_BYTES})
"""
FINISH = """
UPDATE meta SET value = json_set(value, '$.building', NULL) WHERE key = ? AND value ->> '$.building' = ?
"""
FILES = "SELECT path, source, hash, size, mtime_ns, inode, checked_ns FROM files ORDER BY path"
CHUNKS = """
SELECT chunks.id, files.path, files.source, start_line, end_line, start_char, text, context, section
FROM json_each(?) AS wanted CROSS JOIN chunks ON chunks.id = wanted.value
CROSS JOIN files ON files.id = chunks.file_id ORDER BY chunks.id
"""
ADD_FILE = "INSERT INTO files (path, source, hash, size, mtime_ns, inode, checked_ns) VALUES (?, ?, ?, ?, ?, ?, ?)"
STAMP = "UPDATE files SET source = ?2, hash = ?3, size = ?4, mtime_ns = ?5, inode = ?6, checked_ns = ?7 WHERE path = ?1"
ADD_CHUNK = """
INSERT INTO chunks (id, file_id, vector_id, start_line, end_line, start_char, section, context, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
CHUNKS_OF = "SELECT id FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = ?)"
ADD_TERMS = "INSERT INTO chunk_terms (rowid, terms, context_terms) VALUES (?, ?, ?)"
ADD_VECTOR = "INSERT INTO vectors (model_id, key, embedding) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


def meta(db: apsw.Connection) -> IndexMeta | None:
    """What the index was built with; None when it is new."""
    rows = fetch(db, "SELECT value FROM meta WHERE key = ?", (META_KEY,))
    if not rows:
        return None
    try:
        return IndexMeta(**json.loads(rows[0][0]))
    except (TypeError, ValueError) as error:
        raise CorruptIndexError(f"{db.filename}: its meta is damaged ({error}); delete it and sync again") from error


def forget_all(db: apsw.Connection, new: IndexMeta) -> None:
    """Remove all files and chunks and remember `new`; vectors stay."""
    db.execute("DELETE FROM chunks")
    db.execute("DELETE FROM files")
    db.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")
    db.execute("DELETE FROM meta")
    value = json.dumps({**asdict(new), "chunking": dict(new.chunking)}, sort_keys=True)
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (META_KEY, value))
    db.execute("INSERT INTO models (identity) VALUES (?) ON CONFLICT DO NOTHING", (new.identity,))
    if new.dims is not None:
        fix_dims(db, new.dims)


def finish(db: apsw.Connection, build: str) -> None:
    """Say in meta that the build of this name is complete."""
    db.execute(FINISH, (META_KEY, build))


def model(db: apsw.Connection) -> tuple[int, int | None]:
    """Id and dimensions (None before its first vectors) of the identity in meta.

    Raises:
        StoreError: there is no meta yet.
    """
    rows = fetch(db, CURRENT_MODEL)
    if not rows:
        raise StoreError(f"{db.filename} has no meta yet; call reset(meta) first")
    return rows[0][0], rows[0][1]


def dims(db: apsw.Connection) -> int | None:
    """Dimensions of the vectors under the identity in meta; None before the first ones."""
    rows = fetch(db, CURRENT_MODEL)
    return rows[0][1] if rows else None


def fix_dims(db: apsw.Connection, dims: int) -> None:
    """Hold the vectors of the current identity to `dims` dimensions.

    Raises:
        EmbedderError: there are others of another number.
    """
    model_id, fixed = model(db)
    if fixed is not None and fixed != dims:
        raise EmbedderError(
            f"the vectors have {dims} dimensions, {db.filename} holds some of {fixed} under the same identity; "
            "name the dimensions in the embedder's identity, or delete the index and sync again"
        )
    if fixed is None:
        db.execute("UPDATE models SET dims = ? WHERE id = ?", (dims, model_id))
    db.execute("UPDATE meta SET value = json_set(value, '$.dims', ?) WHERE key = ?", (dims, META_KEY))


def known_keys(db: apsw.Connection, model_id: int, keys: Iterable[str]) -> dict[str, int | None]:
    """Those of the keys that are stored, with the ids of their vectors (None for an all-zero one)."""
    return dict(fetch(db, KNOWN_KEYS, (json.dumps(list(keys)), model_id)))


def add_vectors(db: apsw.Connection, model_id: int, keys: Sequence[str], embeddings: Iterable[bytes]) -> None:
    """Store embeddings by their keys; one that is stored already stays."""
    db.executemany(ADD_VECTOR, ((model_id, _digest(key), row) for key, row in zip(keys, embeddings, strict=True)))


def files(db: apsw.Connection) -> dict[str, FileRecord]:
    """Every file by its path."""
    return {row[0]: FileRecord(*row) for row in fetch(db, FILES)}


def chunks(db: apsw.Connection, ids: Iterable[int]) -> list[StoredChunk]:
    """The chunks of these ids, in ascending order."""
    rows = fetch(db, CHUNKS, (json.dumps(sorted(set(ids))),))
    return [StoredChunk(row[0], row[1], row[2], Chunk(*row[3:])) for row in rows]


def chunks_of(db: apsw.Connection, path: str) -> list[StoredChunk]:
    """The chunks of one file, in order."""
    return chunks(db, (chunk_id for (chunk_id,) in fetch(db, CHUNKS_OF, (path,))))


def add_file(
    db: apsw.Connection, record: FileRecord, rows: Sequence[ChunkRow], vector_ids: Mapping[str, int | None]
) -> range:
    """Add a file and its chunks; returns their ids, consecutive and never used before."""
    db.execute(ADD_FILE, _columns(record))
    file_id = db.last_insert_rowid()
    used = fetch(db, "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
    first = used[0][0] + 1 if used else 1
    ids = range(first, first + len(rows))
    db.executemany(
        ADD_CHUNK,
        (
            (chunk_id, file_id, vector_ids[row.vector_key] if row.vector_key is not None else None, *_span(row.chunk))
            for chunk_id, row in zip(ids, rows, strict=True)
        ),
    )
    terms = ((chunk_id, row.terms, row.context_terms) for chunk_id, row in zip(ids, rows, strict=True))
    db.executemany(ADD_TERMS, terms)
    return ids


def stamp_files(db: apsw.Connection, records: Iterable[FileRecord]) -> None:
    """Update the stamps of files that are indexed."""
    db.executemany(STAMP, map(_columns, records))


def remove_files(db: apsw.Connection, paths: Iterable[str]) -> tuple[int, list[int]]:
    """Remove files and their chunks; returns how many files there were, and the ids of their chunks."""
    removed, chunk_ids = 0, []
    for path in paths:
        for (file_id,) in fetch(db, "DELETE FROM files WHERE path = ? RETURNING id", (path,)):
            removed += 1
            chunk_ids += fetch(db, "DELETE FROM chunks WHERE file_id = ? RETURNING id", (file_id,))
    db.executemany("DELETE FROM chunk_terms WHERE rowid = ?", chunk_ids)
    return removed, [chunk_id for (chunk_id,) in chunk_ids]


def _span(chunk: Chunk) -> tuple[int, int, int, int, str, str]:
    return chunk.start_line, chunk.end_line, chunk.start_char, chunk.section, chunk.context, chunk.text


def _columns(record: FileRecord) -> tuple[str, str, str, int, int, int, int]:
    return (
        record.path,
        record.source,
        record.hash,
        record.size,
        record.mtime_ns,
        record.inode,
        record.checked_ns,
    )


def _digest(key: str) -> bytes:
    try:
        return bytes.fromhex(key)[:KEY_BYTES]
    except ValueError as error:
        raise StoreError(
            f"the vector key {key!r} is not hexadecimal; use the SHA-256 of the embedded string"
        ) from error
