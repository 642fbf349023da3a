"""A checksum of all that a chunk says, so that text that has changed on the disk is never taken for what was written.

SQLite notices a page that makes no sense, and not a letter that has become another one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from openclaw_memory.store.connection import damaged, fetch
from openclaw_memory.types import Chunk, StoredChunk

if TYPE_CHECKING:
    import apsw

SINCE_SCHEMA = 3  # tables of older versions have none
# A chunk whose file is not there is read too, and found to be damaged.
COLUMNS = "chunks.id, files.path, files.source, start_line, end_line, start_char, text, context, section"
ALL = f"SELECT {COLUMNS}, checksum FROM chunks LEFT JOIN files ON files.id = chunks.file_id"
MOST_TOLD = 10  # as many as SQLite's own check is asked for


def are_there(db: apsw.Connection) -> bool:
    """Whether the chunks of this index have checksums."""
    ((version,),) = fetch(db, "PRAGMA user_version")
    return bool(version >= SINCE_SCHEMA)


def checksum(stored: StoredChunk) -> int:
    """CRC-32 of everything a chunk is cited and found with, its id and its file included; signed, to fit four bytes."""
    chunk = stored.chunk
    values = (
        stored.id,
        stored.path,
        stored.source,
        chunk.start_line,
        chunk.end_line,
        chunk.start_char,
        chunk.section,
        chunk.context,
        chunk.text,
    )
    crc = zlib.crc32("\0".join(map(str, values)).encode())
    return crc - (1 << 32) if crc >> 31 else crc


def stored_chunk(row: tuple[Any, ...]) -> StoredChunk:
    """The chunk of a row of `COLUMNS`."""
    return StoredChunk(row[0], row[1], row[2], Chunk(*row[3:9]))


def checked(db: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> Iterator[StoredChunk]:
    """The chunks of rows of `COLUMNS` and a checksum.

    Raises:
        CorruptIndexError: one is not what was written.
    """
    for row in rows:
        stored = stored_chunk(row)
        if checksum(stored) != row[9]:
            raise damaged(db.filename, f"chunk {stored.id} of {stored.path!r} is not what was written")
        yield stored


def problems(db: apsw.Connection) -> Iterator[str]:
    """What is wrong with the chunks of the whole index, in words."""
    if are_there(db):
        wrong = 0
        for row in db.execute(ALL):
            stored = stored_chunk(row)
            if checksum(stored) != row[9] and (wrong := wrong + 1) <= MOST_TOLD:
                yield f"chunk {stored.id} of {stored.path!r} is not what was written"
