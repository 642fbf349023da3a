"""The rows of meta, files and chunks: reads and writes within a transaction that the caller has begun."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from openclaw_memory.errors import CorruptIndexError, StoreError
from openclaw_memory.store.connection import fetch
from openclaw_memory.store.layout import CHUNK_IDS
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, IndexMeta, StoredChunk

if TYPE_CHECKING:
    import apsw

META_KEY = "memory_index_meta_v1"
CLOCK = "vectors_clock"  # of the other rows of meta the one that belongs to the vectors, and stays with them
NOTE = "note:"  # what the names of notes begin with: they outlive a reset
FINISH = """
UPDATE meta SET value = json_set(value, '$.building', NULL) WHERE key = ? AND value ->> '$.building' = ?
"""
FILE_COLUMNS = ("path", "source", "hash", "size", "mtime_ns", "inode", "checked_ns", "lacks")
CHUNKS = """
SELECT chunks.id, files.path, files.source, start_line, end_line, start_char, text, context, section
FROM json_each(?) AS wanted CROSS JOIN chunks ON chunks.id = wanted.value
CROSS JOIN files ON files.id = chunks.file_id ORDER BY chunks.id
"""
ADD_FILE = f"INSERT INTO files ({', '.join(FILE_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
STAMP = """
UPDATE files SET source = ?2, hash = ?3, size = ?4, mtime_ns = ?5, inode = ?6, checked_ns = ?7, lacks = ?8
WHERE path = ?1
"""
ADD_CHUNK = """
INSERT INTO chunks (id, file_id, vector_id, start_line, end_line, start_char, section, context, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
CUT_CHUNKS = "DELETE FROM chunks WHERE file_id = ? AND start_line >= ? RETURNING id, vector_id"
CHUNKS_OF = "SELECT id FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = ?)"
ADD_TERMS = "INSERT INTO chunk_terms (rowid, terms, context_terms) VALUES (?, ?, ?)"


def meta(db: apsw.Connection) -> IndexMeta | None:
    """What the index was built with; None when it is new."""
    rows = fetch(db, "SELECT value FROM meta WHERE key = ?", (META_KEY,))
    if not rows:
        return None
    try:
        return IndexMeta(**json.loads(rows[0][0]))
    except (TypeError, ValueError) as error:
        raise CorruptIndexError(f"{db.filename}: its meta is damaged ({error}); delete it and sync again") from error


def set_meta(db: apsw.Connection, new: IndexMeta) -> None:
    """Remember what the index is built with from now on."""
    db.execute("DELETE FROM meta WHERE key <> ? AND key NOT GLOB ?", (CLOCK, f"{NOTE}*"))
    value = json.dumps({**asdict(new), "chunking": dict(new.chunking)}, sort_keys=True)
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (META_KEY, value))


def check_made_for(db: apsw.Connection, wanted: IndexMeta | None) -> None:
    """Refuse rows that were made for an index of another model or chunking than this one is by now.

    Raises:
        StoreError: it was built again meanwhile.
    """
    there = meta(db) if wanted is not None else None
    if there is None or wanted is None:
        return
    if (there.identity, dict(there.chunking)) != (wanted.identity, dict(wanted.chunking)):
        raise StoreError(f"{db.filename} was built again by another process meanwhile; sync again")


def finish(db: apsw.Connection, build: str) -> None:
    """Say in meta that the build of this name is complete."""
    db.execute(FINISH, (META_KEY, build))


def lacking(db: apsw.Connection) -> dict[str, int]:
    """How many files lack vectors, by the reason."""
    if "lacks" not in _file_columns(db):
        return {}
    return dict(fetch(db, "SELECT lacks, count(*) FROM files WHERE lacks IS NOT NULL GROUP BY lacks"))


def files(db: apsw.Connection) -> dict[str, FileRecord]:
    """Every file by its path; what tables of an older version do not hold has its default."""
    columns = ", ".join(_file_columns(db))
    return {row[0]: FileRecord(*row) for row in fetch(db, f"SELECT {columns} FROM files ORDER BY path")}


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
    return add_chunks(db, db.last_insert_rowid(), rows, vector_ids)


def add_chunks(
    db: apsw.Connection, file_id: int, rows: Sequence[ChunkRow], vector_ids: Mapping[str, int | None]
) -> range:
    """Add chunks to a file; returns their ids, consecutive and never used before."""
    used = fetch(db, CHUNK_IDS)
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
    """Update the stamps of files that are indexed, and what they lack."""
    db.executemany(STAMP, map(_columns, records))


def remove_files(db: apsw.Connection, paths: Iterable[str]) -> tuple[int, list[int], set[int]]:
    """Remove files and their chunks; returns how many files there were, the ids of their chunks and of the vectors."""
    removed = 0
    gone: list[tuple[int, int | None]] = []
    for path in paths:
        for (file_id,) in fetch(db, "DELETE FROM files WHERE path = ? RETURNING id", (path,)):
            removed += 1
            gone += fetch(db, "DELETE FROM chunks WHERE file_id = ? RETURNING id, vector_id", (file_id,))
    chunk_ids = [chunk_id for chunk_id, _ in gone]
    db.executemany("DELETE FROM chunk_terms WHERE rowid = ?", ((chunk_id,) for chunk_id in chunk_ids))
    return removed, chunk_ids, {vector_id for _, vector_id in gone if vector_id is not None}


def cut_file(db: apsw.Connection, path: str, from_line: int) -> tuple[int | None, list[int], set[int]]:
    """Remove the chunks of a file from a line on; returns the file's id, and the ids of those chunks and vectors."""
    found = fetch(db, "SELECT id FROM files WHERE path = ?", (path,))
    if not found:
        return None, [], set()
    file_id = int(found[0][0])
    gone = fetch(db, CUT_CHUNKS, (file_id, from_line))
    chunk_ids = [chunk_id for chunk_id, _ in gone]
    db.executemany("DELETE FROM chunk_terms WHERE rowid = ?", ((chunk_id,) for chunk_id in chunk_ids))
    return file_id, chunk_ids, {vector_id for _, vector_id in gone if vector_id is not None}


def note(db: apsw.Connection, name: str, text: str) -> None:
    """Keep a text under a name."""
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (NOTE + name, text))


def noted(db: apsw.Connection, name: str) -> str | None:
    """The text under a name; None where there is none."""
    rows = fetch(db, "SELECT value FROM meta WHERE key = ?", (NOTE + name,))
    return str(rows[0][0]) if rows else None


def _file_columns(db: apsw.Connection) -> list[str]:
    there = {name for (name,) in fetch(db, "SELECT name FROM pragma_table_info('files')")}
    return [name for name in FILE_COLUMNS if name in there]


def _span(chunk: Chunk) -> tuple[int, int, int, int, str, str]:
    return chunk.start_line, chunk.end_line, chunk.start_char, chunk.section, chunk.context, chunk.text


def _columns(record: FileRecord) -> tuple[str, str, str, int, int, int, int, str | None]:
    return (
        record.path,
        record.source,
        record.hash,
        record.size,
        record.mtime_ns,
        record.inode,
        record.checked_ns,
        record.lacks,
    )
