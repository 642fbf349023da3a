"""Read and write the rows of meta, files and chunks, within a transaction that the caller has begun."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import asdict

from openclaw_memory.errors import IndexReplacedError, StoreError
from openclaw_memory.store.connection import fetch, make_damage_error
from openclaw_memory.store.schema import CHUNK_IDS, INDEX_ID
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, IndexMeta, StoredChunk
from openclaw_memory.types.conditions import Metadata
from openclaw_memory.types.files import SOURCES

if TYPE_CHECKING:
    import apsw

# By the state of the files, their records at an earlier one, and the paths of those that were written since.
FileCache: TypeAlias = dict[tuple[Any, ...], tuple[Mapping[str, FileRecord], set[str]]]

META_KEY = "memory_index_meta_v1"
FILES_CHANGE = "files_change"  # the row of meta that has another value after each change of files
STATE_OF_FILES = f"SELECT key, value FROM meta WHERE key IN {(INDEX_ID, FILES_CHANGE)} ORDER BY key"
# The row of meta that names the last writes, for those who keep a part of the index in memory: the token of each, the
# ids of the chunks that it removed, and of those whose terms it changed; the latest last.
CHANGES = "changes"
MAX_WRITES, MAX_IDS = 64, 2000
NOTE = "note:"  # keys of texts of `set_meta` begin so: they outlive a reset
SET_META = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"
FINISH = """
UPDATE meta SET value = json_set(value, '$.building', NULL) WHERE key = ? AND value ->> '$.building' = ?
"""
SHA256 = re.compile("[0-9a-f]{64}")
# A chunk whose file is not there is read too, and shows as damaged.
COLUMNS = """
chunks.id, files.path, files.source, start_line, end_line, start_char, text, context, section, ordinal, metadata,
checksum
"""
ALL = f"SELECT {COLUMNS} FROM chunks LEFT JOIN files ON files.id = chunks.file_id"
CHECKSUM_BYTES = 8  # as an INTEGER of SQLite has: a text that was altered passes once in 2**64
MAX_NAMED = 10  # as many as SQLite's own check is asked for
STAMP_COLUMNS = ("path", "source", "hash", "size", "mtime_ns", "inode", "checked_ns", "lacks", "ctime_ns")
FILE_COLUMNS = (*STAMP_COLUMNS, "doc_id", "part_of", "left_out")
_TEXT = (str, type(None))
FILE_TYPES = dict.fromkeys(FILE_COLUMNS, (int,)) | {
    "path": (str,), "source": (str,), "hash": (str, bytes), "lacks": _TEXT, "doc_id": _TEXT, "part_of": _TEXT,
    "left_out": _TEXT,
}  # fmt: skip
CONDITIONS = {
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
CHUNK_COLUMNS = """
id, file_id, vector_id, start_line, end_line, start_char, section, ordinal, metadata, checksum, context, text
"""
ADD_CHUNK = f"INSERT INTO chunks ({CHUNK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Ids of a file's chunks grow with their lines: looking back from the last one reads only these, and one more.
CHUNKS_FROM_LINE = f"""
SELECT {CHUNK_COLUMNS} FROM chunks WHERE file_id = ?1 AND id > coalesce(
  (SELECT id FROM chunks WHERE file_id = ?1 AND start_line < ?2 ORDER BY id DESC LIMIT 1), 0
) ORDER BY id
"""
NEXT_ORDINAL = "SELECT ordinal + 1 FROM chunks WHERE file_id = ? AND start_line < ? ORDER BY id DESC LIMIT 1"
LAST_IDS = f"SELECT coalesce(({CHUNK_IDS}), 0), coalesce((SELECT max(id) FROM chunks), 0)"
CHUNKS_OF = f"SELECT id FROM chunks WHERE file_id IN (SELECT id FROM files {CONDITIONS['paths']})"
TEXTS = """
SELECT text, context, metadata FROM chunks WHERE file_id = (SELECT id FROM files WHERE path = ?) AND start_line >= ?
"""
ADD_TERMS = "INSERT INTO chunk_terms (rowid, terms, context_terms) VALUES (?, ?, ?)"
REMOVE_TERMS = "DELETE FROM chunk_terms WHERE rowid = ?"


# --- meta ------------------------------------------------------------------------------------------------------------


def read_value(db: apsw.Connection, key: str) -> Any:
    """Return the value of a row of meta; None if there is none."""
    values = fetch(db, "SELECT value FROM meta WHERE key = ?", (key,))
    return values[0][0] if values else None


def read_meta(db: apsw.Connection) -> IndexMeta | None:
    """Return the description of the index; None when it is new."""
    if (value := read_value(db, META_KEY)) is None:
        return None
    try:
        meta = IndexMeta(**json.loads(value))
    except (TypeError, ValueError) as error:
        raise make_damage_error(db.filename, f"its meta cannot be read: {error}") from error
    texts, numbers = (meta.provider, meta.model, meta.identity), (meta.schema_version, meta.dims or 0)
    if {*map(type, texts)} != {str} or {*map(type, numbers)} != {int} or not isinstance(meta.chunking, dict):
        raise make_damage_error(db.filename, f"its meta cannot be read: {value}")
    return meta


def write_meta(db: apsw.Connection, new: IndexMeta) -> None:
    """Store the description of the index from now on; of the other rows, its id and the notes stay."""
    db.execute("DELETE FROM meta WHERE key != ? AND key NOT GLOB ?", (INDEX_ID, f"{NOTE}*"))
    db.execute(SET_META, (META_KEY, json.dumps({**asdict(new), "chunking": dict(new.chunking)}, sort_keys=True)))


def check_meta(db: apsw.Connection, made_for: IndexMeta | None) -> None:
    """Refuse rows that were made for another model or chunking than those of the index.

    Raises:
        IndexReplacedError: The index was deleted meanwhile, and the file is a new one.
        StoreError: The index was built again meanwhile.
    """
    if made_for is None:
        return
    if (meta := read_meta(db)) is None:
        raise IndexReplacedError(f"{db.filename} was deleted while it was in use; sync again")
    if (meta.identity, dict(meta.chunking)) != (made_for.identity, dict(made_for.chunking)):
        raise StoreError(f"{db.filename} was built again by another process meanwhile; sync again")


def write_meta_text(db: apsw.Connection, name: str, text: str) -> bool:
    """Store a text under a name; return whether the one before, as JSON, had keys that it lacks: names of files."""
    before = read_meta_text(db, name)
    db.execute(SET_META, (NOTE + name, text))
    return not _list_keys(before) <= _list_keys(text)


def read_meta_text(db: apsw.Connection, name: str) -> str | None:
    """Return the text under a name; None for an unknown name."""
    text = read_value(db, NOTE + name)
    return None if text is None else str(text)


def list_meta_texts(db: apsw.Connection) -> dict[str, str]:
    """Return every such text by the key of its row."""
    return dict(fetch(db, "SELECT key, value FROM meta WHERE key GLOB ?", (f"{NOTE}*",)))


def restore_meta_texts(db: apsw.Connection, texts: Mapping[str, str]) -> None:
    """Store the texts of another index, as `list_meta_texts` returns them."""
    db.executemany(SET_META, texts.items())


def _list_keys(text: str | None) -> set[str]:
    """Return the keys of a JSON object, and of the objects in it; none of any other text."""
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        return set()
    parts = (parsed, *parsed.values()) if isinstance(parsed, dict) else ()
    return {key for part in parts if isinstance(part, dict) for key in part}


def record_changes(db: apsw.Connection, removed: Iterable[int], renewed: Iterable[int] = ()) -> None:
    """Record the chunks that this transaction removed, and those that got other terms."""
    writes = [*read_log(read_value(db, CHANGES)), [secrets.randbits(53), list(removed), list(renewed)]][-MAX_WRITES:]
    while len(writes) > 1 and sum(len(ids) for _, *lists in writes for ids in lists) > MAX_IDS:
        del writes[0]
    db.execute(SET_META, (CHANGES, json.dumps(writes)))


def read_log(row: object) -> list[list[Any]]:
    """Return the writes that the row names; none where it cannot be read, and the next write begins another list."""
    with suppress(TypeError, ValueError):
        writes = json.loads(row)  # type: ignore[arg-type]
        if all(isinstance(token, int) for token, _, _ in writes):
            return list(writes)
    return []


# --- files -----------------------------------------------------------------------------------------------------------


def load_files(db: apsw.Connection, cache: FileCache) -> Mapping[str, FileRecord]:
    """Return all files by their paths: the same object as long as none has changed."""
    state = tuple(fetch(db, STATE_OF_FILES))
    records, later = cache.get(state, (None, set[str]()))
    if records is None or later:
        written = {*later}
        read = find_files(db, *([] if records is None else ["paths", json.dumps([*written])]))
        pairs = ((path, record) for path, record in (records or {}).items() if path not in written)
        records = MappingProxyType(dict(sorted((*pairs, *read.items()))))
        cache.clear()
        cache[state] = records, set()
    return records


@contextmanager
def follow_files(db: apsw.Connection, cache: FileCache, paths: Iterable[str]) -> Iterator[None]:
    """Have `load_files` read only the files at these paths again, which are those that the block writes."""
    records, later = cache.get(tuple(fetch(db, STATE_OF_FILES)), (None, set[str]()))
    yield
    if records is not None:
        later.update(paths)
        cache[tuple(fetch(db, STATE_OF_FILES))] = records, later


def find_files(db: apsw.Connection, by: str = "", *values: str) -> dict[str, FileRecord]:
    """Return files by their paths: all files, or those that meet one of `CONDITIONS` for these values."""
    rows = fetch(db, f"SELECT {', '.join(FILE_COLUMNS)} FROM files {CONDITIONS.get(by, '')} ORDER BY path", values)
    return {row[0]: _make_record(db, row) for row in rows}


def add_files(
    db: apsw.Connection, files: Sequence[tuple[FileRecord, Sequence[ChunkRow]]], vector_ids: Mapping[str, int | None]
) -> list[int]:
    """Add files with their chunks, not the rows with an identity; return the ids of the chunks."""
    _mark_change(db)
    first, added = find_last_id(db) + 1, list[int]()
    for record, rows in files:
        db.execute(ADD_FILE, (*_list_columns(record), record.doc_id, record.part_of, record.left_out))
        chunks = list(enumerate(row for row in rows if row.identity is None))
        added += _add_chunks(db, db.last_insert_rowid(), record, chunks, vector_ids, first + len(added))
    return added


def stamp_files(db: apsw.Connection, records: Iterable[FileRecord]) -> None:
    """Update the stamps of indexed files, and why they lack vectors."""
    _mark_change(db)
    db.executemany(STAMP, map(_list_columns, records))


def remove_files(db: apsw.Connection, paths: Iterable[str]) -> tuple[int, list[int]]:
    """Remove files and their chunks; return the number of files, and the ids of their chunks."""
    _mark_change(db)
    count = 0
    chunk_ids: list[int] = []
    for path in paths:
        for (file_id,) in fetch(db, "DELETE FROM files WHERE path = ? RETURNING id", (path,)):
            count += 1
            deleted = fetch(db, "DELETE FROM chunks WHERE file_id = ? RETURNING id", (file_id,))
            chunk_ids += [chunk_id for (chunk_id,) in deleted]
    db.executemany(REMOVE_TERMS, ((chunk_id,) for chunk_id in chunk_ids))
    return count, chunk_ids


def extend_file(
    db: apsw.Connection, record: FileRecord, rows: Sequence[ChunkRow], start: int, vector_ids: Mapping[str, int | None]
) -> tuple[list[int], list[int], list[int]]:
    """Replace the chunks of a file from a line on, except for unchanged ones at the beginning.

    Returns:
        The ids of the removed chunks, of the added ones and of the unchanged ones.

    Raises:
        StoreError: The file is not indexed.
    """
    file_ids = fetch(db, "SELECT id FROM files WHERE path = ?", (record.path,))
    if not file_ids:
        raise StoreError(f"{record.path} is not indexed, and cannot be extended from line {start}: sync again")
    ((file_id,),) = file_ids
    old = fetch(db, CHUNKS_FROM_LINE, (file_id, start))
    ((first,),) = fetch(db, NEXT_ORDINAL, (file_id, start)) or [(0,)]
    new = list(enumerate(rows, first))
    unchanged = [
        (columns[0], row)
        for columns, (_, row) in takewhile(
            lambda pair: pair[0] == _make_columns(file_id, record, pair[0][0], *pair[1], vector_ids),
            zip(old, new, strict=False),
        )
    ]
    removed = [columns[0] for columns in old[len(unchanged) :]]
    # The terms of a chunk may have changed without it: the day of a transcript is known by its first dated line.
    db.executemany(REMOVE_TERMS, ((chunk_id,) for chunk_id in (*removed, *(chunk_id for chunk_id, _ in unchanged))))
    db.executemany("DELETE FROM chunks WHERE id = ?", ((chunk_id,) for chunk_id in removed))
    _add_terms(db, unchanged)
    stamp_files(db, [record])
    added = _add_chunks(db, file_id, record, new[len(unchanged) :], vector_ids, find_last_id(db) + 1)
    return removed, list(added), [chunk_id for chunk_id, _ in unchanged]


def _mark_change(db: apsw.Connection) -> None:
    """Record that files have changed."""
    db.execute(SET_META, (FILES_CHANGE, os.urandom(8).hex()))


def _make_record(db: apsw.Connection, row: tuple[Any, ...]) -> FileRecord:
    """Return the record of a row.

    Raises:
        CorruptIndexError: It was never written so: the path, the source or a stamp has a wrong type.
    """
    path, source, digest, *columns = row
    if source not in SOURCES or not _is_sound(tuple(map(type, row))):
        raise make_damage_error(db.filename, f"the record of {path!r} is odd")
    return FileRecord(path, source, digest.hex() if isinstance(digest, bytes) else digest, *columns)


@cache
def _is_sound(types: tuple[type, ...]) -> bool:
    """Return whether columns of a file have types that were written: of thousands of rows, there are a few kinds."""
    return all(kind in FILE_TYPES[column] for column, kind in zip(FILE_COLUMNS, types, strict=True))


def _list_columns(record: FileRecord) -> tuple[str | bytes | int | None, ...]:
    """Return the values of `STAMP_COLUMNS`; a SHA-256 takes half its length."""
    digest = bytes.fromhex(record.hash) if SHA256.fullmatch(record.hash) else record.hash
    stamp = (record.size, record.mtime_ns, record.inode, record.checked_ns)
    return record.path, record.source, digest, *stamp, record.vectors_missing, record.ctime_ns


# --- chunks ----------------------------------------------------------------------------------------------------------


def read_chunks(db: apsw.Connection, ids: Iterable[int]) -> list[StoredChunk]:
    """Return the chunks of these ids, in ascending order.

    Raises:
        CorruptIndexError: One of them is not as it was written.
    """
    if not (ordered := sorted(set(ids))):
        return []
    chunks = []
    for row in fetch(db, CHUNKS, (json.dumps(ordered),)):
        stored = _make_chunk(row)
        if compute_checksum(stored, row[10]) != row[11]:
            raise make_damage_error(db.filename, f"chunk {stored.id} of {stored.path!r} is not what was written")
        chunks.append(stored)
    return chunks


def read_file_chunks(db: apsw.Connection, paths: Sequence[str]) -> list[StoredChunk]:
    """Return the chunks of files, those of each in order."""
    return read_chunks(db, (chunk_id for (chunk_id,) in fetch(db, CHUNKS_OF, (json.dumps(paths),))))


def list_stored_lines(db: apsw.Connection, paths: Iterable[str], from_line: int = 1) -> set[str]:
    """Return the text of these files from a line on, line by line: of chunks, headings and metadata."""
    return _split_lines(row for path in paths for row in fetch(db, TEXTS, (path, from_line)))


def list_lines(rows: Iterable[ChunkRow]) -> set[str]:
    """Return the text of rows line by line, as `list_stored_lines`."""
    return _split_lines((row.chunk.text, row.chunk.context, _encode_metadata(row.chunk)) for row in rows)


def _split_lines(rows: Iterable[Sequence[object]]) -> set[str]:
    return {line for row in rows for text in row for line in str(text).splitlines()}


def find_last_id(db: apsw.Connection) -> int:
    """Return the highest id that a chunk has ever had.

    Raises:
        CorruptIndexError: A chunk has a higher one than was ever given out.
    """
    ((last, highest),) = fetch(db, LAST_IDS)
    if not isinstance(last, int) or last < highest:
        raise make_damage_error(db.filename, f"the last chunk is {highest}, and {last!r} is said to be")
    return last


def list_problems(db: apsw.Connection) -> Iterator[str]:
    """Yield a sentence for each chunk that is not as it was written, for ten at most."""
    count = 0
    for row in db.execute(ALL):
        stored = _make_chunk(row)
        if compute_checksum(stored, row[10]) != row[11] and (count := count + 1) <= MAX_NAMED:
            yield f"chunk {stored.id} of {stored.path!r} is not what was written"


def _add_chunks(
    db: apsw.Connection,
    file_id: int,
    record: FileRecord,
    rows: Sequence[tuple[int, ChunkRow]],
    vector_ids: Mapping[str, int | None],
    first: int,
) -> range:
    """Add chunks, each with its ordinal, to a file; return their ids: consecutive from `first`, never used before."""
    ids = range(first, first + len(rows))
    pairs = zip(ids, rows, strict=True)
    db.executemany(ADD_CHUNK, (_make_columns(file_id, record, chunk_id, *row, vector_ids) for chunk_id, row in pairs))
    _add_terms(db, zip(ids, (row for _, row in rows), strict=True))
    return ids


def _add_terms(db: apsw.Connection, rows: Iterable[tuple[int, ChunkRow]]) -> None:
    db.executemany(ADD_TERMS, ((chunk_id, row.terms, row.context_terms) for chunk_id, row in rows))


def _make_columns(
    file_id: int, record: FileRecord, chunk_id: int, ordinal: int, row: ChunkRow, vector_ids: Mapping[str, int | None]
) -> tuple[int | str | None, ...]:
    """Return the values of `CHUNK_COLUMNS`."""
    vector_id = None if row.vector_key is None else vector_ids[row.vector_key]
    chunk, metadata = row.chunk, _encode_metadata(row.chunk)
    checksum = compute_checksum(StoredChunk(chunk_id, record.path, record.source, chunk, ordinal), metadata)
    place = chunk.start_line, chunk.end_line, chunk.start_char, chunk.section
    return chunk_id, file_id, vector_id, *place, ordinal, metadata, checksum, chunk.context, chunk.text


def compute_checksum(stored: StoredChunk, metadata: str | None) -> int:
    """Return the hash of a chunk, its id, its file and its place."""
    chunk = stored.chunk
    place = f"{stored.id}\0{stored.path}\0{stored.source}\0{chunk.start_line}\0{chunk.end_line}\0{chunk.start_char}"
    text = f"{chunk.section}\0{stored.ordinal}\0{len(chunk.context)}\0{chunk.context}\0{metadata}\0{chunk.text}"
    digest = blake2b(f"{place}\0{text}".encode(), digest_size=CHECKSUM_BYTES, person=b"chunk").digest()
    return int.from_bytes(digest, "big", signed=True)


def _make_chunk(row: tuple[Any, ...]) -> StoredChunk:
    """Return the chunk of a row of `COLUMNS`."""
    chunk = Chunk(row[3], row[4], row[5], row[6], row[7], row[8], decode_metadata(row[10]))
    return StoredChunk(row[0], row[1], row[2], chunk, row[9], digest=row[11])


def _encode_metadata(chunk: Chunk) -> str | None:
    return json.dumps(dict(chunk.metadata), ensure_ascii=False, sort_keys=True) if chunk.metadata else None


def decode_metadata(text: Any) -> Metadata:
    """Return the metadata of a row; none if it cannot be read, which its checksum then shows."""
    if text is None:
        return {}
    try:
        metadata = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return metadata if isinstance(metadata, dict) else {}
