"""The rows of meta, files and chunks: reads and writes within a transaction that the caller has begun."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import blake2b
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.errors import IndexReplacedError, StoreError
from openclaw_memory.store.connection import damaged, fetch
from openclaw_memory.store.schema import CHUNK_IDS, INDEX_ID, SCHEMA_VERSION, make_document_indexes
from openclaw_memory.types import SOURCES, Chunk, ChunkRow, FileRecord, IndexMeta, StoredChunk
from openclaw_memory.types.where import Metadata

if TYPE_CHECKING:
    import apsw

# All files, by the state that they were read in.
FileCache: TypeAlias = dict[tuple[Any, ...], Mapping[str, FileRecord]]

META_KEY = "memory_index_meta_v1"
FILES_CHANGE = "files_change"  # the row of meta that has another value after each change of files
STATE_ROWS = (INDEX_ID, FILES_CHANGE)
STATE_OF_FILES = f"SELECT key, value FROM meta WHERE key IN {STATE_ROWS} ORDER BY key"
NOTE = "note:"  # what the names of notes begin with: they outlive a reset
FINISH = """
UPDATE meta SET value = json_set(value, '$.building', NULL) WHERE key = ? AND value ->> '$.building' = ?
"""
SHA256 = re.compile("[0-9a-f]{64}")
# A chunk whose file is not there is read too, and found to be damaged.
COLUMNS = """
chunks.id, files.path, files.source, start_line, end_line, start_char, text, context, section, ordinal, metadata,
checksum
"""
ALL = f"SELECT {COLUMNS} FROM chunks LEFT JOIN files ON files.id = chunks.file_id"
CHECKSUM_BYTES = 8  # what an INTEGER of SQLite holds: a text that was altered passes once in 2**64
MOST_NAMED = 10  # as many as SQLite's own check is asked for
FILE_COLUMNS = (
    "path", "source", "hash", "size", "mtime_ns", "inode", "checked_ns", "lacks", "ctime_ns", "doc_id", "part_of",
    "left_out",
)  # fmt: skip
_TEXT = (str, type(None))
FILE_TYPES = dict.fromkeys(FILE_COLUMNS, (int,)) | {
    "path": (str,), "source": (str,), "hash": (str, bytes), "lacks": _TEXT, "doc_id": _TEXT, "part_of": _TEXT,
    "left_out": _TEXT,
}  # fmt: skip
WANTED_FILES = {
    "paths": "WHERE path IN (SELECT value FROM json_each(?))",
    "ids": "WHERE doc_id IN (SELECT value FROM json_each(?))",
    "part_of": "WHERE part_of = ?",
    "id_range": "WHERE doc_id >= ? AND doc_id < ?",
}
CHUNKS = f"""
SELECT {COLUMNS} FROM json_each(?) AS wanted
CROSS JOIN chunks ON chunks.id = wanted.value
LEFT JOIN files ON files.id = chunks.file_id ORDER BY chunks.id
"""
ADD_FILE = f"INSERT INTO files ({', '.join(FILE_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
STAMP = """
UPDATE files SET hash = ?3, size = ?4, mtime_ns = ?5, inode = ?6, checked_ns = ?7, lacks = ?8, ctime_ns = ?9
WHERE path = ?1
"""
ADD_CHUNK = """
INSERT INTO chunks (
  id, file_id, vector_id, start_line, end_line, start_char, section, ordinal, metadata, checksum, context, text
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# Ids of a file's chunks grow with their lines: looking back from the last one reads no more than is wanted, and one.
CHUNKS_FROM_LINE = """
SELECT id, file_id, vector_id, start_line, end_line, start_char, section, ordinal, metadata, checksum, context, text
FROM chunks WHERE file_id = ?1 AND id > coalesce(
  (SELECT id FROM chunks WHERE file_id = ?1 AND start_line < ?2 ORDER BY id DESC LIMIT 1), 0
) ORDER BY id
"""
NEXT_ORDINAL = """
SELECT ordinal + 1 FROM chunks WHERE file_id = ? AND start_line < ? ORDER BY id DESC LIMIT 1
"""
LAST_IDS = f"SELECT coalesce(({CHUNK_IDS}), 0), coalesce((SELECT max(id) FROM chunks), 0)"
CHUNKS_OF = "SELECT id FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = ?)"
SAID = """
SELECT text, context, metadata FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = ?) AND start_line >= ?
"""
ADD_TERMS = "INSERT INTO chunk_terms (rowid, terms, context_terms) VALUES (?, ?, ?)"


def meta(db: apsw.Connection) -> IndexMeta | None:
    """Return what the index was built with; None when it is new."""
    rows = fetch(db, "SELECT value FROM meta WHERE key = ?", (META_KEY,))
    if not rows:
        return None
    try:
        found = IndexMeta(**json.loads(rows[0][0]))
    except (TypeError, ValueError) as error:
        raise damaged(db.filename, f"its meta cannot be read: {error}") from error
    texts, numbers = (found.provider, found.model, found.identity), (found.schema_version, found.dims or 0)
    if {*map(type, texts)} != {str} or {*map(type, numbers)} != {int} or not isinstance(found.chunking, dict):
        raise damaged(db.filename, f"its meta cannot be read: {rows[0][0]}")
    return found


def set_meta(db: apsw.Connection, new: IndexMeta) -> None:
    """Store what the index is built with from now on."""
    forget_meta(db, f"{NOTE}*")
    value = json.dumps({**asdict(new), "chunking": dict(new.chunking)}, sort_keys=True)
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (META_KEY, value))


def forget_meta(db: apsw.Connection, but: str = "") -> None:
    """Remove the rows of meta except the index id and names that match the glob `but`."""
    db.execute("DELETE FROM meta WHERE key != ? AND key NOT GLOB ?", (INDEX_ID, but))


def check_made_for(db: apsw.Connection, wanted: IndexMeta | None) -> None:
    """Refuse rows that were made for another model or chunking than those of the index.

    Raises:
        IndexReplacedError: The index was deleted meanwhile, and the file is a new one.
        StoreError: The index was built again meanwhile.
    """
    if wanted is None:
        return
    if (there := meta(db)) is None:
        raise IndexReplacedError(f"{db.filename} was deleted while it was in use; sync again")
    if (there.identity, dict(there.chunking)) != (wanted.identity, dict(wanted.chunking)):
        raise StoreError(f"{db.filename} was built again by another process meanwhile; sync again")


def finish(db: apsw.Connection, build: str) -> None:
    """Mark the build of this name as complete in meta."""
    db.execute(FINISH, (META_KEY, build))


def all_files(db: apsw.Connection, cache: FileCache) -> Mapping[str, FileRecord]:
    """Return all files by their paths: the same object as long as none has changed."""
    state = tuple(fetch(db, STATE_OF_FILES))
    if len(state) < len(STATE_ROWS):  # of an earlier version of this library, or nothing is indexed
        return files(db)
    if (known := cache.get(state)) is None:
        known = MappingProxyType(files(db))
        cache.clear()
        cache[state] = known
    return known


def _changed(db: apsw.Connection) -> None:
    """Record that files have changed."""
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (FILES_CHANGE, os.urandom(8).hex()))


def files(db: apsw.Connection, by: str = "", *wanted: str) -> dict[str, FileRecord]:
    """Return files by their paths: all of them, or those that are `wanted` by a name of `WANTED_FILES`."""
    which, values = (WANTED_FILES[by], wanted) if by else ("", ())
    is_older = fetch(db, "PRAGMA user_version") != [(SCHEMA_VERSION,)]
    if is_older and by in {"ids", "part_of", "id_range"}:
        return {}
    columns = ", ".join(FILE_COLUMNS[:-3] if is_older else FILE_COLUMNS)
    found = fetch(db, f"SELECT {columns} FROM files {which} ORDER BY path", values)
    records = [_record(db, row) for row in found]
    return {record.path: record for record in records}


def said_in(db: apsw.Connection, paths: Iterable[str], from_line: int = 1) -> set[str]:
    """Return what the chunks of these files say, from a line on: lines, headings, metadata."""
    return _parts(row for path in paths for row in fetch(db, SAID, (path, from_line)))


def said_by(new: Iterable[ChunkRow]) -> set[str]:
    """Return what these rows say, as `said_in`."""
    return _parts((row.chunk.text, row.chunk.context, _metadata_of(row.chunk)) for row in new)


def _parts(said: Iterable[Sequence[object]]) -> set[str]:
    return {line for row in said for text in row for line in str(text).splitlines()}


def chunks(db: apsw.Connection, ids: Iterable[int]) -> list[StoredChunk]:
    """Return the chunks of these ids, in ascending order.

    Raises:
        CorruptIndexError: One of them is not what was written.
    """
    if not (wanted := sorted(set(ids))):
        return []
    return list(checked(db, fetch(db, CHUNKS, (json.dumps(wanted),))))


def file_chunks(db: apsw.Connection, path: str) -> list[StoredChunk]:
    """Return the chunks of one file, in order."""
    return chunks(db, (chunk_id for (chunk_id,) in fetch(db, CHUNKS_OF, (path,))))


def add_files(
    db: apsw.Connection,
    files: Sequence[tuple[FileRecord, Sequence[ChunkRow]]],
    vector_ids: Mapping[str, int | None],
) -> list[int]:
    """Add files with their chunks, not the rows with an identity; return the ids of the chunks."""
    if any(record.doc_id is not None for record, _ in files):
        make_document_indexes(db)
    _changed(db)
    keyed, first, added = hasher(), last_id(db) + 1, list[int]()
    for record, rows in files:
        db.execute(ADD_FILE, (*_columns(record), record.doc_id, record.part_of, record.left_out))
        own = list(enumerate(row for row in rows if row.identity is None))
        added += add_chunks(db, db.last_insert_rowid(), record, own, vector_ids, first + len(added), keyed)
    return added


def add_chunks(
    db: apsw.Connection,
    file_id: int,
    record: FileRecord,
    rows: Sequence[tuple[int, ChunkRow]],
    vector_ids: Mapping[str, int | None],
    first: int,
    keyed: blake2b,
) -> range:
    """Add chunks, each with its ordinal, to a file; return their ids: consecutive from `first`, never used before."""
    ids = range(first, first + len(rows))
    columns = (
        _chunk_columns(keyed, file_id, record, one, *row, vector_ids) for one, row in zip(ids, rows, strict=True)
    )
    db.executemany(ADD_CHUNK, columns)
    _add_terms(db, zip(ids, (row for _, row in rows), strict=True))
    return ids


def last_id(db: apsw.Connection) -> int:
    """Return the highest id that a chunk has ever had.

    Raises:
        CorruptIndexError: A chunk has a higher one than was ever given out.
    """
    ((known, highest),) = fetch(db, LAST_IDS)
    if not isinstance(known, int) or known < highest:
        raise damaged(db.filename, f"the last chunk is {highest}, and {known!r} is said to be")
    return known


def stamp_files(db: apsw.Connection, records: Iterable[FileRecord]) -> None:
    """Update the stamps of indexed files, and what they lack."""
    _changed(db)
    db.executemany(STAMP, map(_columns, records))


def remove_files(db: apsw.Connection, paths: Iterable[str]) -> tuple[int, list[int]]:
    """Remove files and their chunks; return the number of files, and the ids of their chunks."""
    _changed(db)
    removed = 0
    chunk_ids: list[int] = []
    for path in paths:
        for (file_id,) in fetch(db, "DELETE FROM files WHERE path = ? RETURNING id", (path,)):
            removed += 1
            deleted = fetch(db, "DELETE FROM chunks WHERE file_id = ? RETURNING id", (file_id,))
            chunk_ids += [chunk_id for (chunk_id,) in deleted]
    _remove_terms(db, chunk_ids)
    return removed, chunk_ids


def extend_file(
    db: apsw.Connection,
    record: FileRecord,
    rows: Sequence[ChunkRow],
    from_line: int,
    vector_ids: Mapping[str, int | None],
) -> tuple[list[int], list[int], list[int]]:
    """Replace the chunks of a file from a line on, except for unchanged ones at the beginning.

    Returns:
        The ids of the removed chunks, of the added ones and of the unchanged ones.

    Raises:
        StoreError: The file is not indexed.
    """
    found = fetch(db, "SELECT id FROM files WHERE path = ?", (record.path,))
    if not found:
        raise StoreError(f"{record.path} is not indexed, and cannot be extended from line {from_line}: sync again")
    ((file_id,),) = found
    there = fetch(db, CHUNKS_FROM_LINE, (file_id, from_line))
    ((first,),) = fetch(db, NEXT_ORDINAL, (file_id, from_line)) or [(0,)]
    placed, keyed = list(enumerate(rows, first)), hasher()
    same = [
        (old[0], row)
        for old, (_, row) in takewhile(
            lambda pair: pair[0] == _chunk_columns(keyed, file_id, record, pair[0][0], *pair[1], vector_ids),
            zip(there, placed, strict=False),
        )
    ]
    removed = [old[0] for old in there[len(same) :]]
    _remove_terms(db, removed)
    db.executemany("DELETE FROM chunks WHERE id = ?", ((chunk_id,) for chunk_id in removed))
    # What a chunk is found by may have changed without it: the day of a transcript is known by its first dated line.
    _remove_terms(db, [chunk_id for chunk_id, _ in same])
    _add_terms(db, same)
    stamp_files(db, [record])
    added = add_chunks(db, file_id, record, placed[len(same) :], vector_ids, last_id(db) + 1, keyed)
    return removed, list(added), [chunk_id for chunk_id, _ in same]


def note(db: apsw.Connection, name: str, text: str) -> bool:
    """Store a text under a name; return whether the one before, as JSON, had keys that it does not: names of files."""
    before = noted(db, name)
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (NOTE + name, text))
    return not _keys(before) <= _keys(text)


def noted(db: apsw.Connection, name: str) -> str | None:
    """Return the text under a name; None for an unknown name."""
    rows = fetch(db, "SELECT value FROM meta WHERE key = ?", (NOTE + name,))
    return str(rows[0][0]) if rows else None


def _keys(text: str | None) -> set[str]:
    """Return the keys of a JSON object, and of the objects in it; none of any other text."""
    try:
        said = json.loads(text or "{}")
    except ValueError:
        return set()
    parts = (said, *said.values()) if isinstance(said, dict) else ()
    return {key for part in parts if isinstance(part, dict) for key in part}


def _add_terms(db: apsw.Connection, numbered: Iterable[tuple[int, ChunkRow]]) -> None:
    db.executemany(ADD_TERMS, ((chunk_id, row.terms, row.context_terms) for chunk_id, row in numbered))


def _remove_terms(db: apsw.Connection, chunk_ids: Iterable[int]) -> None:
    db.executemany("DELETE FROM chunk_terms WHERE rowid = ?", ((chunk_id,) for chunk_id in chunk_ids))


def notes(db: apsw.Connection) -> dict[str, str]:
    """Return every note by the name of its row."""
    return dict(fetch(db, "SELECT key, value FROM meta WHERE key GLOB ?", (f"{NOTE}*",)))


def keep_notes(db: apsw.Connection, kept: Mapping[str, str]) -> None:
    """Store notes of another index, as `notes` returns them."""
    db.executemany("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", kept.items())


def _record(db: apsw.Connection, row: tuple[Any, ...]) -> FileRecord:
    """Return the record of a row.

    Raises:
        CorruptIndexError: It was never written so: the path, the source or a stamp has a wrong type.
    """
    path, source, digest, *rest = row
    if source not in SOURCES or not _is_sound(tuple(map(type, row))):
        raise damaged(db.filename, f"the record of {path!r} is odd")
    return FileRecord(path, source, digest.hex() if isinstance(digest, bytes) else digest, *rest)


@cache
def _is_sound(types: tuple[type, ...]) -> bool:
    """Whether the columns of a file have types that were written: of thousands of rows, there are a few kinds."""
    return all(one in FILE_TYPES[column] for column, one in zip(FILE_COLUMNS, types, strict=False))


def _packed(digest: str) -> str | bytes:
    """Return a SHA-256 as bytes, in half its length; any other text stays as it is."""
    return bytes.fromhex(digest) if SHA256.fullmatch(digest) else digest


def _chunk_columns(
    keyed: blake2b,
    file_id: int,
    record: FileRecord,
    chunk_id: int,
    ordinal: int,
    row: ChunkRow,
    vector_ids: Mapping[str, int | None],
) -> tuple[int | str | None, ...]:
    vector_id = None if row.vector_key is None else vector_ids[row.vector_key]
    chunk = row.chunk
    metadata = _metadata_of(chunk)
    check = checksum(keyed, StoredChunk(chunk_id, record.path, record.source, chunk, ordinal), metadata)
    place = chunk.start_line, chunk.end_line, chunk.start_char, chunk.section
    return chunk_id, file_id, vector_id, *place, ordinal, metadata, check, chunk.context, chunk.text


def _metadata_of(chunk: Chunk) -> str | None:
    return json.dumps(dict(chunk.metadata), ensure_ascii=False, sort_keys=True) if chunk.metadata else None


def _columns(record: FileRecord) -> tuple[str, str, str | bytes, int, int, int, int, str | None, int]:
    return (
        record.path,
        record.source,
        _packed(record.hash),
        record.size,
        record.mtime_ns,
        record.inode,
        record.checked_ns,
        record.vectors_missing,
        record.ctime_ns,
    )


def hasher() -> blake2b:
    """Return the empty hash that `checksum` begins with."""
    return blake2b(digest_size=CHECKSUM_BYTES, person=b"chunk")


def checksum(empty: blake2b, stored: StoredChunk, metadata: str | None) -> int:
    """Return the hash of a chunk, its id, its file and its place."""
    chunk, hashed = stored.chunk, empty.copy()
    place = f"{stored.id}\0{stored.path}\0{stored.source}\0{chunk.start_line}\0{chunk.end_line}\0{chunk.start_char}"
    said = f"{chunk.section}\0{stored.ordinal}\0{len(chunk.context)}\0{chunk.context}\0{metadata}\0{chunk.text}"
    hashed.update(f"{place}\0{said}".encode())
    return int.from_bytes(hashed.digest(), "big", signed=True)


def stored_chunk(row: tuple[Any, ...]) -> StoredChunk:
    """Return the chunk of a row of `COLUMNS`, ordinal, metadata and checksum."""
    chunk = Chunk(row[3], row[4], row[5], row[6], row[7], row[8], metadata_in(row[10]))
    return StoredChunk(row[0], row[1], row[2], chunk, row[9])


def metadata_in(written: Any) -> Metadata:
    """Return the metadata of a row; none where it cannot be read, which its checksum then shows."""
    if written is None:
        return {}
    try:
        found = json.loads(written)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def checked(db: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> Iterator[StoredChunk]:
    """Yield the chunks of rows of `COLUMNS` and a checksum.

    Raises:
        CorruptIndexError: One is not what was written.
    """
    keyed = hasher()
    for row in rows:
        stored = stored_chunk(row)
        if checksum(keyed, stored, row[10]) != row[11]:
            raise damaged(db.filename, f"chunk {stored.id} of {stored.path!r} is not what was written")
        yield stored


def problems(db: apsw.Connection) -> Iterator[str]:
    """Yield which chunks are not what was written, the first ten of them, in words."""
    wrong, keyed = 0, hasher()
    for row in db.execute(ALL):
        stored = stored_chunk(row)
        if checksum(keyed, stored, row[10]) != row[11] and (wrong := wrong + 1) <= MOST_NAMED:
            yield f"chunk {stored.id} of {stored.path!r} is not what was written"
