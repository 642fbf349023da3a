"""The tables of an index: made in an empty file, made anew by a reset, and told from those of another version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import StoreError
from openclaw_memory.store.connection import APPLICATION_ID, fetch, is_index, transaction

if TYPE_CHECKING:
    import apsw

SCHEMA_VERSION = 2  # raise it whenever schema.sql changes; the file's `user_version` says which one its tables have
DERIVED = ("term_counts", "chunk_terms", "chunks", "files")  # all but meta and the cache of vectors
CHUNK_IDS = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"


def create(db: apsw.Connection) -> None:
    """Make the tables of an empty file; does nothing where another process was quicker.

    Raises:
        StoreError: the file is a SQLite database of something else; it is left as it is.
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
    """
    ((version,),) = fetch(db, "PRAGMA user_version")
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"{db.filename} has tables of another version of this library ({version or 1}, not {SCHEMA_VERSION}); "
            "sync to build the index again"
        )


def _run_schema(db: apsw.Connection) -> None:
    fetch(db, Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
