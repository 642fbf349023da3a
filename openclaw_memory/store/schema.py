"""The tables of an index: made in an empty file, made anew by a reset, and told from those of another version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import StoreError
from openclaw_memory.store.connection import APPLICATION_ID, damaged, fetch, is_index, transaction

if TYPE_CHECKING:
    import apsw

SCHEMA_VERSION = 5  # raise it whenever schema.sql changes; the file's `user_version` says which one its tables have
WRITE_VERSION = 18  # the byte that says which versions of SQLite may write: 1, or 2 with a write-ahead log
DERIVED = ("term_counts", "chunk_terms", "chunks", "document_vectors", "files")  # all but meta and the cache of vectors
META_VERSION = "SELECT value ->> '$.schema_version' FROM meta WHERE key = 'memory_index_meta_v1'"
CHUNK_IDS = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"


def create(db: apsw.Connection) -> None:
    """Make the tables of an empty file; does nothing where another process was quicker.

    Raises:
        StoreError: the file is a SQLite database of something else; it is left as it is.
        CorruptIndexError: it is one of ours, and its header does not say so.
    """
    if not is_index(db):
        fetch(db, "PRAGMA journal_mode = WAL")
        with transaction(db, "BEGIN IMMEDIATE"):
            if not is_index(db):
                _run_schema(db)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def renew(db: apsw.Connection) -> None:
    """Make the tables of files, chunks and terms anew, empty, whatever version made them. Ids of chunks go on."""
    used = fetch(db, CHUNK_IDS)
    for table in DERIVED:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    _run_schema(db)
    db.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES ('chunks', ?)", used)


def check(db: apsw.Connection) -> None:
    """Refuse to write into tables of another version.

    Raises:
        StoreError: they are; a sync makes them anew. Reading them is allowed.
        CorruptIndexError: only the header says so.
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
    """What the header says of the tables that meta denies, in words; None where they agree."""
    ((version,),) = fetch(db, "PRAGMA user_version")
    if version != SCHEMA_VERSION and fetch(db, META_VERSION) == [(SCHEMA_VERSION,)]:
        return f"its header says that its tables are of version {version}, and not of {SCHEMA_VERSION}"
    return None


def check_header(db: apsw.Connection) -> None:
    """Look at the one field of the header that would make SQLite take the file for one that must not be written.

    It is read through SQLite: closing a file that was opened beside it would drop every lock that this process holds on
    the database, as POSIX has it.

    Raises:
        CorruptIndexError: it has a value that SQLite never wrote.
    """
    there, found = db.read("main", 0, WRITE_VERSION, 1)
    if there and found[0] not in {1, 2}:
        raise damaged(db.filename, "its header forbids writing")


def _run_schema(db: apsw.Connection) -> None:
    fetch(db, Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
