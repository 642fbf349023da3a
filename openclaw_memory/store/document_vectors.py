"""The vectors that came with documents, one each, in a file of their own: rows in, one matrix out.

Like the index beside it the file is derived from the notes, and may be deleted at any time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from openclaw_memory.errors import StoreError
from openclaw_memory.store.connection import Connections, connect, damaged, fetch, prepare_file
from openclaw_memory.store.location import COMPANIONS, identity_of
from openclaw_memory.types import FileRecord

if TYPE_CHECKING:
    import apsw

    from openclaw_memory.types import Matrix, Vector

# A file with its document: the record, the model whose vector came with it ("" for none), and the vector as it is kept.
Row: TypeAlias = "tuple[FileRecord, str, Vector | None]"

_APPLICATION_ID = 0x4F434D44  # "OCMD"
_VERSION = 1  # raise it with the tables: those of another version are made anew
_TABLES = """
DROP TABLE IF EXISTS meta;
DROP TABLE IF EXISTS documents;
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
  path TEXT NOT NULL PRIMARY KEY, model TEXT NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, checked_ns INTEGER NOT NULL, lacks TEXT, embedding BLOB
);
"""
_PUT = "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_STAMP = "UPDATE documents SET hash = ?, size = ?, mtime_ns = ?, inode = ?, checked_ns = ? WHERE path = ?"
_ALL = "SELECT path, model, hash, size, mtime_ns, inode, checked_ns, lacks, embedding FROM documents ORDER BY path"


@dataclass(frozen=True)
class Kept:
    """What the file holds at one moment.

    `change` is another one after each change; `followed` is what was noted last, None before the files were followed.

    `matrix`, shape (n, dims), holds the unit vectors, or zeros, of the files `paths`; all are of `model`.
    """

    change: str
    followed: str | None
    records: Mapping[str, FileRecord]
    models: frozenset[str]
    model: str | None
    paths: Sequence[str]
    matrix: Matrix

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The rows of the matrix by the paths of their files."""
        return {path: at for at, path in enumerate(self.paths)}

    @cached_property
    def lacks(self) -> Mapping[str, str]:
        """The files whose documents came with a vector that is gone, and why it was not made again."""
        return {path: record.lacks for path, record in self.records.items() if record.lacks}

    @property
    def dims(self) -> int | None:
        """How many dimensions the vectors have; None where there are none."""
        return int(self.matrix.shape[1]) if len(self.paths) else None


class DocumentVectors:
    """The file at `path`. Safe to use from several threads and processes."""

    def __init__(self, connections: Connections, *, read_only: bool = False) -> None:
        self.path, self.read_only = connections.path, read_only
        self._connections = connections
        self._opened = identity_of(self.path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file; it is created where missing, with its folders.

        Raises:
            StoreError: it cannot be created, or is some other SQLite database.
            CorruptIndexError: it is damaged, or no database.
        """
        read_only = path.is_file() and not os.access(path, os.W_OK)
        if not read_only:
            if not path.exists():
                for companion in COMPANIONS:
                    Path(f"{path}{companion}").unlink(missing_ok=True)
            prepare_file(path)
        connections = Connections(partial(connect, read_only=read_only, extension=None), path)
        try:
            if not read_only:
                with connections.lend() as db:
                    fetch(db, "PRAGMA journal_mode = WAL")
                with connections.write() as db:
                    _make_tables(db)
        except BaseException:
            connections.close()
            raise
        return cls(connections, read_only=read_only)

    def is_current(self) -> bool:
        """Whether the file at `path` is still the one that was opened."""
        return self._opened is not None and identity_of(self.path) == self._opened

    def stamp(self) -> tuple[str, str | None]:
        """The `change` and `followed` of `kept`, at little cost."""
        with self._connections.read() as db:
            return _stamp(db)

    def kept(self) -> Kept:
        """All that the file holds.

        Raises:
            CorruptIndexError: the vectors make no sense together.
        """
        import numpy as np

        with self._connections.read() as db:
            change, followed = _stamp(db)
            rows = fetch(db, _ALL)
        records = {row[0]: FileRecord(row[0], "memory", *row[2:8]) for row in rows}
        with_vector = [row for row in rows if row[8] is not None]
        sizes, models = {len(row[8]) for row in with_vector}, {row[1] for row in with_vector}
        if len(sizes) > 1 or len(models) > 1:
            raise damaged(self.path, "its vectors are not of one model and length")
        blob = b"".join(row[8] for row in with_vector)
        matrix: Matrix = np.frombuffer(blob, dtype="<f4").reshape(len(with_vector), -1 if with_vector else 0)
        if not np.isfinite(matrix).all():
            raise damaged(self.path, "a vector holds a NaN or an infinity")
        named = frozenset(row[1] for row in rows if row[1])
        paths = [row[0] for row in with_vector]
        return Kept(change, followed, records, named, next(iter(models), None), paths, matrix)

    def write(
        self, replaced: Sequence[Row], stamped: Sequence[FileRecord] = (), removed: Iterable[str] = (), *, change: str
    ) -> None:
        """Put rows in the place of those of the same files, stamp others anew, and remove some, in one transaction."""
        put = [
            (one.path, model, one.hash, *_times(one), one.lacks, None if vector is None else vector.tobytes())
            for one, model, vector in replaced
        ]
        with self._connections.write() as db:
            db.executemany("DELETE FROM documents WHERE path = ?", ((path,) for path in removed))
            db.executemany(_PUT, put)
            db.executemany(_STAMP, ((one.hash, *_times(one), one.path) for one in stamped))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('change', ?)", (change,))

    def follow(self, followed: str, change: str) -> None:
        """Note up to where the files were followed, if `change` still is the latest: another file may lie here now."""
        with self._connections.write() as db:
            if _stamp(db)[0] == change:
                db.execute("INSERT OR REPLACE INTO meta VALUES ('followed', ?)", (followed,))

    def close(self) -> None:
        """Release the file. Calling it twice is allowed."""
        self._connections.close()


def _times(record: FileRecord) -> tuple[int, int, int, int]:
    return record.size, record.mtime_ns, record.inode, record.checked_ns


def _stamp(db: apsw.Connection) -> tuple[str, str | None]:
    said = dict(fetch(db, "SELECT key, value FROM meta"))
    return str(said.get("change", "")), said.get("followed")


def _make_tables(db: apsw.Connection) -> None:
    """Make the tables of an empty file, and those of another version anew.

    Raises:
        StoreError: the file is some other database.
    """
    tables = {name for (name,) in fetch(db, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and fetch(db, "PRAGMA application_id") != [(_APPLICATION_ID,)]:
        raise StoreError(f"{db.filename} is a SQLite database of something else; move it away")
    if tables and fetch(db, "PRAGMA user_version") == [(_VERSION,)]:
        return
    for statement in _TABLES.split(";"):
        db.execute(statement)
    for name, number in (("application_id", _APPLICATION_ID), ("user_version", _VERSION)):
        db.pragma(name, number)
