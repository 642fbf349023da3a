"""Opens the index file: permissions, pragmas, the sqlite-vec extension, and SQLite's errors in this library's words."""

from __future__ import annotations

import importlib.util
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import apsw

from openclaw_memory.errors import CorruptIndexError, IndexLockedError, StoreError, remedy

OWN_TABLES = {"meta", "files", "chunks", "vectors", "chunk_terms"}
APPLICATION_ID = 0x4F434D31  # "OCM1" in the file's header: tells an index from any other SQLite file
BUSY_TIMEOUT_MS = 10_000
PAGE_SIZE = 16_384  # a vector of 256 to 1,536 dims fits a page; measured faster than 4,096 for vector rows
CACHE_KIB = 16_384
# No mmap: it won 5 % at 100,000 chunks, and a file cut short beneath a mapping kills the process.
OWN_FOLDER = ".memory"

# SQLite has one code for every statement that fails by itself. These words stand for tables of ours that are missing or
# make no sense; all others are a mistake of a statement, not of the file.
DAMAGE_WORDS = (
    "no such table",
    "no such fts5 table",
    "fts5 file format",
    "no such column",
    "has no column",
    "malformed",
    "constructor",
    "unrecognized option",
    "parse error in",
    "no such module: fts5",
    "fts5vocab: unknown table type",
    "unsupported file format",
    "SQL logic error",
)

READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
PRAGMAS = f"""
PRAGMA page_size = {PAGE_SIZE};
PRAGMA synchronous = NORMAL;
PRAGMA cache_size = -{CACHE_KIB};
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA journal_size_limit = {CACHE_KIB * 1024};
"""


def fetch(db: apsw.Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement; `values` are bound to its question marks."""
    return db.execute(statement, values).fetchall()


def damaged(path: Path | str, what: object) -> CorruptIndexError:
    """The error of an index that is damaged, with its remedy."""
    error = CorruptIndexError(
        f"{path} is damaged ({what}); it is made from your files: sync again, which keeps it aside and builds it anew"
    )
    error.found = str(what)
    return error


@contextmanager
def own_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into those of `errors.py`, each with its remedy."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise IndexLockedError(
            f"{path}: another process held the index for more than {BUSY_TIMEOUT_MS // 1000} s ({error}); try again"
        ) from error
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, UnicodeDecodeError) as error:
        raise damaged(path, error) from error
    except apsw.SQLError as error:
        if any(words in str(error) for words in DAMAGE_WORDS):
            raise damaged(path, error) from error
        raise StoreError(f"{path}: {error}; delete the index and sync again if this stays") from error
    except apsw.FullError as error:
        raise StoreError(f"{path}: the disk is full ({error}); free some space and sync again") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError) as error:
        raise StoreError(f"{path} cannot be read or written ({error}); check the disk and the permissions") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}; delete the index and sync again if this stays") from error
    except UnicodeEncodeError as error:
        raise StoreError(
            f"{path}: {error.object!r} is not valid Unicode text; leave the lone surrogates out"
        ) from error


def find_extension() -> tuple[str | None, str | None]:
    """The path of sqlite-vec's library, tried out, or None and the reason why it does not work.

    Does not import the package `sqlite_vec`, which imports numpy.
    """
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return None, "the package sqlite-vec is not installed"
    library = os.path.join(spec.submodule_search_locations[0], "vec0")
    db = apsw.Connection(":memory:")
    try:
        load_extension(db, library)
        fetch(db, "SELECT vec_distance_l2(vec_int8(x'00'), vec_int8(x'01'))")
    except (apsw.Error, AttributeError) as error:  # AttributeError: an apsw built without extension loading
        return None, f"sqlite-vec does not load: {error}"
    finally:
        db.close()
    return library, None


def load_extension(db: apsw.Connection, library: str) -> None:
    """Load a library, and allow it to no SQL statement afterwards."""
    db.enable_load_extension(True)
    db.load_extension(library)
    db.enable_load_extension(False)


def prepare_file(path: Path) -> None:
    """Create the index file (0600) and its missing folders (0700), and keep the folder out of Git.

    A `.gitignore` with `*` is written beside a new index when the folder is our own or holds nothing else.

    Raises:
        StoreError: the path is a folder or a link, or cannot be created.
    """
    try:
        if path.is_dir() or path.is_symlink():
            kind = "a symbolic link" if path.is_symlink() else "a folder"
            raise StoreError(f"{path} is {kind}, where the index file belongs; move it away")
        if path.parent.exists() and not path.parent.is_dir():
            raise StoreError(f"{path.parent} is a file, where the folder of the index belongs; move it away")
        for folder in reversed([path.parent, *path.parent.parents]):
            if not folder.exists():
                with suppress(FileExistsError):
                    folder.mkdir(mode=0o700)
        if path.exists():
            return
        if path.parent.name == OWN_FOLDER or not any(path.parent.iterdir()):
            create_file(path.with_name(".gitignore"), b"*\n")
        create_file(path)
    except OSError as error:
        raise StoreError(
            f"the index {path} cannot be made ({error.strerror}: {error.filename or path}): {remedy(error)}, "
            "or keep it elsewhere: set XDG_CACHE_HOME to a folder of your own, or Memory.open(..., index_path=...)"
        ) from error


def create_file(path: Path, content: bytes = b"") -> None:
    """Create a file for its owner alone; one that is there stays as it is."""
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def connect(path: Path, *, read_only: bool, extension: str | None, durable: bool = True) -> apsw.Connection:
    """One connection with all pragmas set and, where `extension` names it, sqlite-vec loaded.

    What is not `durable` is never waited for until it is on the disk: it may be lost with the machine's power.
    """
    if not read_only:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    elif _needs_no_log(path):
        uri = f"{path.absolute().as_uri()}?immutable=1"
        db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    else:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        fetch(db, PRAGMAS)
        if not durable:
            db.execute("PRAGMA synchronous = OFF")
        if extension is not None:
            load_extension(db, extension)
    except BaseException:
        db.close()
        raise
    return db


def is_index(db: apsw.Connection) -> bool:
    """Whether the tables are there; False for an empty file.

    Raises:
        StoreError: it is somebody else's database.
        CorruptIndexError: it has our tables, and another program's sign in its header.
    """
    tables = {name for (name,) in fetch(db, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return False
    if fetch(db, "PRAGMA application_id") != [(APPLICATION_ID,)]:
        if tables >= OWN_TABLES:
            raise damaged(db.filename, "its header names another program")
        raise StoreError(f"{db.filename} is a SQLite database of something else; give another path for the index")
    return True


def _needs_no_log(path: Path) -> bool:
    """Whether the file can only be read as it lies: its folder is read-only, so that SQLite could add no `-shm`."""
    wal = path.with_name(path.name + "-wal")
    return not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)


@dataclass(frozen=True, slots=True)
class Pool:
    """The connections that one process has opened: those lent out, and those that wait to be."""

    pid: int = field(default_factory=os.getpid)
    idle: deque[apsw.Connection] = field(default_factory=deque)
    lent: set[apsw.Connection] = field(default_factory=set)
    writing: Lock = field(default_factory=Lock)

    def close(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):
            while True:
                self.idle.pop().close()

    def leave(self) -> None:
        """Close the idle connections of a parent process in its child: no file and no lock is touched for it.

        SQLite's books of locks are inherited, the locks are not: as long as one of these connections were open, new
        ones would be taken to hold what only the parent holds.
        """
        with suppress(IndexError):
            while True:
                db = self.idle.pop()
                db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                db.close()


class Connections:
    """Connections to one index file, each lent to one thread at a time. A child process opens its own."""

    def __init__(self, connect: Callable[[Path], apsw.Connection], path: Path) -> None:
        self.path = path
        self._connect = connect
        self._pool = Pool()
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[apsw.Connection]:
        """A connection for the time of a `with` block, outside any transaction.

        One on which something failed is closed, and not lent again: sqlite-vec ends the process when its table is used
        after a DROP of it has failed.
        """
        with own_errors(self.path):
            pool = self._own_pool()
            db = self._take(pool)
            try:
                yield db
            except BaseException:
                if pool.pid == os.getpid():
                    db.close(True)
                raise
            else:
                pool.idle.append(db)
            finally:
                pool.lent.discard(db)
                if self._closed:
                    pool.close()

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """A connection inside a read transaction: all statements see one state of the index."""
        with self.lend() as db, transaction(db, READ):
            yield db

    @contextmanager
    def alone(self) -> Iterator[apsw.Connection]:
        """A connection outside any transaction, while no other thread writes through these connections."""
        with self._own_pool().writing, self.lend() as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """A connection inside a write transaction, committed at the end and rolled back on any error."""
        with self.alone() as db, transaction(db, WRITE):
            yield db

    def close(self) -> None:
        """Close every connection; those in use are closed when their work ends."""
        self._closed = True
        if self._pool.pid == os.getpid():
            self._pool.close()
        else:
            self._pool.leave()

    def _own_pool(self) -> Pool:
        """The connections of this process: after a fork, none of those that the parent has opened.

        Raises:
            StoreError: a thread of the parent used one just when it was forked.
        """
        pool = self._pool
        if pool.pid != os.getpid():
            if pool.lent:
                raise StoreError(
                    f"{self.path} was in use when this process was forked, and cannot be used in it; fork while "
                    "nothing is under way, or start processes by spawning them"
                )
            pool.leave()
            self._pool = pool = Pool()
        return pool

    def _take(self, pool: Pool) -> apsw.Connection:
        if self._closed:
            raise StoreError(f"{self.path}: this store is closed; open it again")
        try:
            db = pool.idle.pop()
        except IndexError:
            db = self._connect(self.path)
        pool.lent.add(db)
        return db


class Pinned(Connections):
    """One connection inside a read transaction, in place of many: every reading sees the same state."""

    def __init__(self, db: apsw.Connection, path: Path) -> None:
        super().__init__(self._refuse, path)
        self._db = db

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """The connection, in the transaction that it is in."""
        with own_errors(self.path):
            yield self._db

    def _refuse(self, path: Path) -> apsw.Connection:
        raise StoreError(f"{path}: a snapshot is only read; write to the store itself")


@contextmanager
def transaction(db: apsw.Connection, begin: str) -> Iterator[None]:
    """A transaction begun by the statement `begin`, committed at the end and rolled back on any error."""
    db.execute(begin)
    try:
        yield
        # A reading that failed, and whose error was caught to be told, may have ended the transaction by itself.
        if db.in_transaction or begin != READ:
            db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
