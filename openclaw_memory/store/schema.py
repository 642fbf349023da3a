"""The tables of an index: made in an empty file, made again by a reset, and checked for their version."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import StoreError
from openclaw_memory.store.connection import APPLICATION_ID, damaged, fetch, is_index, transaction

if TYPE_CHECKING:
    import apsw

SCHEMA_VERSION = 10  # raise it whenever schema.sql changes; the file's `user_version` says which one its tables have
WRITE_VERSION = 18  # the byte that says which versions of SQLite may write: 1, or 2 with a write-ahead log
DERIVED = ("term_counts", "chunk_terms", "chunks", "document_vectors", "files")  # all but meta and the cache of vectors
INDEX_ID = "index_id"  # the row of meta that is another one in each new file
META_VERSION = "SELECT value ->> '$.schema_version' FROM meta WHERE key = 'memory_index_meta_v1'"
CHUNK_IDS = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"


def create(db: apsw.Connection) -> None:
    """Make the tables of an empty file and name it by a random id, unless another process has just made them.

    An index without a log, as one that was just written anew has none, gets one.

    Raises:
        StoreError: The file is a SQLite database of another program; it is left as it is.
        CorruptIndexError: It is an index with a damaged header.
    """
    is_there = is_index(db)
    fetch(db, "PRAGMA journal_mode = WAL")
    if not is_there:
        with transaction(db, "BEGIN IMMEDIATE"):
            if not is_index(db):
                _run_schema(db)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"INSERT INTO meta (key, value) VALUES ('{INDEX_ID}', hex(randomblob(16)))")


def renew(db: apsw.Connection) -> None:
    """Drop the tables of files, chunks and terms, of whatever version, and make them again. Ids of chunks continue."""
    used = fetch(db, CHUNK_IDS)
    for table in DERIVED:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    _run_schema(db)
    db.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES ('chunks', ?)", used)


def check(db: apsw.Connection) -> None:
    """Refuse to write into tables of another version, which can only be read.

    Raises:
        StoreError: The tables are of another version; a sync makes them again.
        CorruptIndexError: Only the header says so.
    """
    ((version,),) = fetch(db, "PRAGMA user_version")
    if version != SCHEMA_VERSION:
        if wrong := wrong_version(db):
            raise damaged(db.filename, wrong)
        raise StoreError(
            f"{db.filename} has tables of another version of this library ({version or 1}, not {SCHEMA_VERSION}); "
            "sync to build the index again"
        )


def wrong_version(db: apsw.Connection) -> str | None:
    """Return in words how the header contradicts meta about the version of the tables; None where they agree."""
    ((version,),) = fetch(db, "PRAGMA user_version")
    if version != SCHEMA_VERSION and fetch(db, META_VERSION) == [(SCHEMA_VERSION,)]:
        return f"its header says that its tables are of version {version}, and not of {SCHEMA_VERSION}"
    return None


def check_header(db: apsw.Connection) -> None:
    """Check the field of the header that would make SQLite take the file for a read-only one.

    It is read through SQLite: opening and closing the file separately would drop every POSIX lock that this process
    holds on the database.

    Raises:
        CorruptIndexError: It has a value that SQLite never wrote.
    """
    there, found = db.read("main", 0, WRITE_VERSION, 1)
    if there and found[0] not in {1, 2}:
        raise damaged(db.filename, "its header forbids writing")


def make_document_rows(db: apsw.Connection) -> None:
    """Make the table of document rows, unless there is one."""
    fetch(db, _text("document_rows.sql"))


def make_token_rows(db: apsw.Connection) -> None:
    """Make the table of the codes of tokens, unless there is one."""
    fetch(db, _text("token_codes.sql"))


def make_document_indexes(db: apsw.Connection) -> None:
    """Make the indexes by which documents are found, unless they are there."""
    if not fetch(db, "SELECT 1 FROM sqlite_schema WHERE name = 'files_by_document'"):
        fetch(db, _text("document_indexes.sql"))


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _run_schema(db: apsw.Connection) -> None:
    fetch(db, _text("schema.sql"))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
