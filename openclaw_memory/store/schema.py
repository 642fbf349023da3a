"""Make the tables of `schema.sql`, and check their version."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.store.connection import APPLICATION_ID, WRITE, begin, fetch, is_index, make_damage_error

if TYPE_CHECKING:
    import apsw

# Raise it whenever schema.sql changes. The file's `user_version` has it: an index of another version is built again.
SCHEMA_VERSION = 12
OUTDATED = "its tables are of version"
WRITE_VERSION = 18  # the byte that says which versions of SQLite may write: 1, or 2 with a write-ahead log
DERIVED = ("term_counts", "chunk_terms", "chunks", "document_vectors", "files")  # all but meta and the cache of vectors
INDEX_ID = "index_id"  # the row of meta that is another one in each new file
CHUNK_IDS = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"


def create_tables(db: apsw.Connection) -> None:
    """Make the tables of an empty file and name it by a random id, unless another process has just made them.

    An index without a log, as one that was just written anew has none, gets one.

    Raises:
        StoreError: The file is a SQLite database of another program; it is left as it is.
        CorruptIndexError: It is an index with a damaged header.
    """
    exists = is_index(db)
    fetch(db, "PRAGMA journal_mode = WAL")
    if not exists:
        with begin(db, WRITE):
            if not is_index(db):
                _run_schema(db)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"INSERT INTO meta (key, value) VALUES ('{INDEX_ID}', hex(randomblob(16)))")


def renew_tables(db: apsw.Connection) -> None:
    """Drop the tables of files, chunks and terms, and make them again. Ids of chunks continue."""
    last_ids = fetch(db, CHUNK_IDS)
    for table in DERIVED:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    _run_schema(db)
    db.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES ('chunks', ?)", last_ids)


def check_header(db: apsw.Connection) -> None:
    """Check the field of the header that would make SQLite take the file for a read-only one.

    It is read through SQLite: opening and closing the file separately would drop every POSIX lock that this process
    holds on the database.

    Raises:
        CorruptIndexError: It has a value that SQLite never wrote.
    """
    exists, value = db.read("main", 0, WRITE_VERSION, 1)
    if exists and value[0] not in {1, 2}:
        raise make_damage_error(db.filename, "its header forbids writing")


def check_version(db: apsw.Connection) -> None:
    """Check the version of the tables.

    Raises:
        CorruptIndexError: They are of another version: the index has to be built again.
    """
    ((version,),) = fetch(db, "PRAGMA user_version")
    if version != SCHEMA_VERSION:
        raise make_damage_error(db.filename, f"{OUTDATED} {version}, this library writes {SCHEMA_VERSION}")


@cache
def _read_schema() -> str:
    return Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")


def _run_schema(db: apsw.Connection) -> None:
    fetch(db, _read_schema())
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
