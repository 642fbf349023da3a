"""Open the index file: permissions, hook, pragmas, the sqlite-vec extension, and SQLite's errors in our own words."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakSet

import apsw

from openclaw_memory._limited import Limited
from openclaw_memory._system import check_process
from openclaw_memory.errors import CorruptIndexError, IndexLockedError, IndexReplacedError, StoreError, suggest_remedy
from openclaw_memory.plugins import list_plugins

# As `ConnectionHook.on_connect`.
OnConnect: TypeAlias = Callable[[apsw.Connection], int | None]

OWN_TABLES = {"meta", "files", "chunks", "vectors", "chunk_terms"}
APPLICATION_ID = 0x4F434D31  # "OCM1" in the file's header marks an index
BUSY_TIMEOUT_MS = 10_000
# OpenClaw's: a library on a file server that is gone would hang for ever.
LOAD_SECONDS = 30.0
# Of the whole process: a library that hangs holds up every other thread that loads it.
_loading = Limited("openclaw-memory-sqlite-vec")
PAGE_SIZE = 16_384  # a vector of 256 to 1,536 dims fits a page; measured faster than 4,096 for vector rows
CACHE_KIB = 16_384
# No mmap: it won 5 % at 100,000 chunks, and a file cut short beneath a mapping kills the process.
IN_MEMORY = ":memory:"
# The files in which SQLite keeps its journal next to the database.
COMPANIONS = ("-wal", "-shm", "-journal")
MAGIC = b"SQLite format 3\0"
# Bytes 16 to 23 of an index that was written through a hook: SQLite keeps our size of a page, the versions and three
# constants in the open, and some room at the end of each page for a cipher. A plain index begins with MAGIC instead.
_IN_THE_OPEN = re.compile(rb"\x40\x00[\x01\x02]{2}[^\x00]\x40\x20\x20", re.DOTALL)

READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
_ONLY_READ = apsw.SQLITE_OPEN_NOFOLLOW | apsw.SQLITE_OPEN_READONLY
# The file may come from strangers: its schema runs nothing, and no statement can change the schema by hand.
GUARDS = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
}
PRAGMAS = f"""
PRAGMA page_size = {PAGE_SIZE};
PRAGMA synchronous = NORMAL;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA journal_size_limit = {CACHE_KIB * 1024};
"""


def fetch(db: apsw.Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a statement; `values` are bound to its question marks."""
    return db.execute(statement, values).fetchall()


# --- errors ----------------------------------------------------------------------------------------------------------


def make_damage_error(path: Path | str, fault: object) -> CorruptIndexError:
    """Return the error of a damaged index, with its remedy."""
    error = CorruptIndexError(f"{path} is damaged ({fault}). Sync again: the index is built again from the notes.")
    error.damage = str(fault)
    return error


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into those of `errors.py`, each with its remedy."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise IndexLockedError(
            f"{path}: another process has locked it for more than {BUSY_TIMEOUT_MS // 1000} s ({error}); try again"
        ) from error
    # SQLError: no statement fails by itself but where our tables are missing or make no sense.
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SQLError, UnicodeDecodeError) as error:
        raise make_damage_error(path, error) from error
    except apsw.FullError as error:
        raise StoreError(f"{path}: the disk is full ({error}); free some space and sync again") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError) as error:
        fault = "the disk is full" if _is_full(path.parent) else "cannot be read or written"
        raise StoreError(f"{path}: {fault} ({error}); check the disk and the permissions, and try again") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}; delete the index and sync again if this stays") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path}: {error.object!r} is not valid Unicode text; leave lone surrogates out") from error


def _is_full(folder: Path) -> bool:
    """Return whether a disk has no room for another file; False if that is unknown."""
    if sys.platform != "win32":  # it has no such call
        with suppress(OSError):
            state = os.statvfs(folder)
            return state.f_bavail * state.f_frsize < 2 * PAGE_SIZE or (state.f_files > 0 and state.f_favail == 0)
    return False


# --- opening ---------------------------------------------------------------------------------------------------------


def find_extension() -> tuple[str | None, str | None]:
    """Return the path of sqlite-vec's library, tried out, or None and the reason why it does not work.

    After `LOAD_SECONDS` it counts as one that does not. Does not import the package `sqlite_vec`, which imports numpy.
    """
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return None, "the package sqlite-vec is not installed"
    library = os.path.join(spec.submodule_search_locations[0], "vec0")
    try:
        _loading.run(partial(_try_extension, library), LOAD_SECONDS)
    # AttributeError: an apsw built without extension loading
    except (apsw.Error, AttributeError, TimeoutError) as error:
        return None, f"sqlite-vec does not load: {error}"
    return library, None


def _try_extension(library: str) -> None:
    with closing(apsw.Connection(IN_MEMORY)) as db:
        load_extension(db, library)
        fetch(db, "SELECT vec_distance_l2(vec_int8(x'00'), vec_int8(x'01'))")


def load_extension(db: apsw.Connection, library: str) -> None:
    """Load a library; afterwards no SQL statement may load one."""
    db.enable_load_extension(True)
    db.load_extension(library)
    db.enable_load_extension(False)


def prepare_file(path: Path) -> None:
    """Create the index file (0600) and its missing folders (0700), and keep the folder out of Git.

    A `.gitignore` with `*` is written next to a new index when the folder holds nothing else.

    Raises:
        StoreError: The path is a folder, or cannot be created.
    """
    try:
        if path.is_dir():
            raise StoreError(f"{path} is a folder, where the index file belongs; move it away")
        if path.parent.exists() and not path.parent.is_dir():
            raise StoreError(f"{path.parent} is a file, where the folder of the index belongs; move it away")
        for folder in reversed([path.parent, *path.parent.parents]):
            folder.mkdir(mode=0o700, exist_ok=True)
        if path.exists():
            return
        if not any(path.parent.iterdir()):
            create_file(path.with_name(".gitignore"), b"*\n")
        create_file(path)
    except OSError as error:
        raise StoreError(
            f"the index {path} cannot be made ({error.strerror}: {error.filename or path}): {suggest_remedy(error)}, "
            "or set OPENCLAW_MEMORY_HOME to a folder of your own, or Memory.open(..., index_path=...)"
        ) from error


def create_file(path: Path, content: bytes = b"") -> None:
    """Create a file that only its owner may read; an existing one stays as it is."""
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def connect(
    path: Path, *, read_only: bool, extension: str | None, durable: bool = True, on_connect: OnConnect | None = None
) -> apsw.Connection:
    """Open a connection with all pragmas set and, if `extension` names it, sqlite-vec loaded.

    Args:
        path: The file.
        read_only: Whether to open it for reading alone.
        extension: The library of sqlite-vec.
        durable: Whether a commit waits for the disk; else it may be lost when the power fails.
        on_connect: It has the connection before its first statement.
    """
    name = str(path)
    if os.name == "posix" and name != IN_MEMORY:  # SQLite refuses links at any part of a path: those above are resolved
        name = os.path.join(os.path.realpath(path.parent), path.name)
    flags = _ONLY_READ if read_only else apsw.SQLITE_OPEN_NOFOLLOW | apsw.SQLITE_OPEN_READWRITE
    if read_only and _needs_no_log(path):
        name = f"{Path(name).absolute().as_uri()}?immutable=1"
    db = apsw.Connection(name, flags=flags | apsw.SQLITE_OPEN_URI)  # no path begins as a URI does
    try:
        cache_kib = (on_connect and on_connect(db)) or CACHE_KIB
        for setting, value in GUARDS.items():
            db.config(setting, value)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        fetch(db, PRAGMAS)
        fetch(db, f"PRAGMA cache_size = -{cache_kib}")
        if not durable:
            db.execute("PRAGMA synchronous = OFF")
        if extension is not None:
            load_extension(db, extension)
    except BaseException:
        db.close()
        raise
    return db


def _needs_no_log(path: Path) -> bool:
    """Return whether the file can only be read as it is: in a read-only folder SQLite could add no `-shm`."""
    log = path.with_name(path.name + "-wal")
    return not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)


def read_header(path: Path, count: int) -> bytes:
    """Return the first bytes of a database as they are on the disk.

    They are read through SQLite: opening and closing the file separately would drop every POSIX lock that this process
    holds on it.
    """
    with closing(apsw.Connection(os.path.realpath(path.parent) + os.sep + path.name, flags=_ONLY_READ)) as db:
        return db.read("main", 0, 0, count)[1]


def needs_hook(header: bytes) -> bool:
    """Return whether the first 24 bytes of a file are those of an index that was written through a connection hook."""
    return not header.startswith(MAGIC) and _IN_THE_OPEN.fullmatch(header[16:24]) is not None


def make_hook_error(path: Path) -> StoreError:
    """Return the error for an index that is opened without its connection hook."""
    return StoreError(
        f"{path} was written through a connection hook and opened without it: open the memory again, give "
        f"SqliteStore(..., hook=...) the hook of the plug-in that wrote it ({', '.join(list_plugins('codecs'))}), or "
        "delete it and sync again: it is built from the notes"
    )


def is_index(db: apsw.Connection) -> bool:
    """Return whether the tables exist; False for an empty file.

    Raises:
        StoreError: It is another program's database.
        CorruptIndexError: It has our tables, but the header of another program.
    """
    tables = {name for (name,) in fetch(db, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return False
    if fetch(db, "PRAGMA application_id") != [(APPLICATION_ID,)]:
        if tables >= OWN_TABLES:
            raise make_damage_error(db.filename, "its header names another program")
        raise StoreError(f"{db.filename} is a SQLite database of another program; give another path for the index")
    return True


# --- the connections of a process ------------------------------------------------------------------------------------


class Pool:
    """The connections that one process has opened to a file; idle connections are kept.

    The first one is never lent: as long as it is open, SQLite keeps the log, so that a missing log was deleted.
    """

    def __init__(self, path: Path, first: apsw.Connection) -> None:
        self.pid = os.getpid()
        self.idle: deque[apsw.Connection] = deque()
        self.lent: deque[None] = deque()  # one for each connection that is lent
        self.writing = threading.Lock()
        self.first, self._path = first, path
        self._file, self._log = read_identity(path), read_identity(f"{path}-wal")
        _pools.add(self)

    @property
    def is_current(self) -> bool:
        """True if the file and its log are still those that were opened, neither deleted nor replaced."""
        return self._is_in_place and not self.has_lost_log

    @property
    def has_lost_log(self) -> bool:
        """True if the log of this file was deleted, with all that only it held."""
        return self._is_in_place and self._log is not None and read_identity(f"{self._path}-wal") != self._log

    @property
    def _is_in_place(self) -> bool:
        return self._file is not None and read_identity(self._path) == self._file

    def close(self) -> None:
        """Close the connections that are not lent."""
        while self.idle:
            with suppress(IndexError):
                self.idle.pop().close()
        self.first.close()


# Of this process, and of the one that it was forked from.
_pools: WeakSet[Pool] = WeakSet()


def close_inherited() -> None:
    """Close the connections that this process was forked with, without touching their files.

    SQLite's table of locks is inherited, the locks are not: while one of these connections is open, SQLite would
    believe that this process holds the locks of its parent.

    Raises:
        StoreError: The parent was at work on an index, whose locks nobody can free here.
    """
    inherited = [pool for pool in _pools if pool.pid != os.getpid()]
    if any(pool.lent for pool in inherited):
        raise StoreError(
            "this process was forked in the midst of work on an index: open no memory in it; fork while nothing is "
            "under way, or start processes by spawning them"
        )
    for pool in inherited:
        for db in (*pool.idle, pool.first):
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        pool.close()
        _pools.discard(pool)


class Connections:
    """Connections to one index file, each lent to one thread at a time. In a forked child they are refused.

    An index that was deleted or replaced is opened again, and one whose log was deleted is deleted.
    """

    def __init__(
        self,
        connect: Callable[[Path], apsw.Connection],
        path: Path,
        open_first: Callable[[], apsw.Connection] | None = None,
        open_empty: Callable[[], apsw.Connection | None] = lambda: None,
    ) -> None:
        """Take the functions that open connections.

        Args:
            connect: Opens one more connection.
            path: The file.
            open_first: Makes the file if it is missing, and returns a connection after checking that it is an index.
            open_empty: Returns a connection to an empty index, for readers if the file is missing; else None.
        """
        self.path = path
        self._connect, self._open_empty = connect, open_empty
        self._open_first = open_first or partial(connect, path)
        self._pool: Pool | None = None
        self._opening = threading.RLock()
        self._was_open = self._closed = False
        self._pid = os.getpid()

    @contextmanager
    def open(self) -> Iterator[apsw.Connection]:
        """Lend a connection for the time of a `with` block, outside any transaction.

        One on which something failed is closed and not lent again: sqlite-vec ends the process when its table is used
        after a failed DROP.

        Raises:
            IndexReplacedError: Something failed, and the file is no longer the one that was opened.
        """
        with translate_errors(self.path):
            pool, db = self._open(), None
            try:
                pool.lent.append(None)
                db = pool.idle.pop() if pool.idle else self._connect(self.path)
                yield db
            except BaseException as error:
                is_replaced = self._is_replaced(pool, error)
                if db is not None and pool.pid == os.getpid():
                    db.close(True)  # the last one that is closed takes the log with it
                if is_replaced:
                    raise IndexReplacedError(f"{self.path} was deleted or replaced while in use ({error})") from error
                raise
            else:
                if pool is self._pool:
                    pool.idle.append(db)
                else:
                    db.close()
            finally:
                pool.lent.pop()
                if self._closed:
                    pool.close()

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Lend a connection inside a read transaction: all statements see one state of the index."""
        with translate_errors(self.path):
            empty = None if self._closed else self._open_empty()
            if empty is not None:
                with closing(empty):
                    yield empty
                return
        with self.open() as db, begin(db, READ):
            yield db

    @contextmanager
    def lock(self) -> Iterator[apsw.Connection]:
        """Lend a connection outside any transaction, while no other thread writes through these connections."""
        with translate_errors(self.path):
            writing = self._open().writing
        with writing, self.open() as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """Lend a connection inside a write transaction, committed at the end and rolled back on any error."""
        with self.lock() as db, begin(db, WRITE):
            yield db

    def close(self) -> None:
        """Close every connection; those in use are closed when their work ends."""
        self._closed = True
        self.forget()

    def forget(self) -> None:
        """Close every connection, and open the file again at the next use."""
        if self._pid != os.getpid():  # they are the parent's
            return
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _open(self) -> Pool:
        """Return the connections of this process to the current file, which is opened if necessary.

        Raises:
            StoreError: This store is closed, or was opened before a fork.
            IndexReplacedError: The file was deleted or replaced while it was opened.
        """
        check_process(self._pid, self.path)
        pool = self._pool
        if pool is not None and pool.is_current and not self._closed:
            return pool
        with self._opening:
            if self._closed:
                raise StoreError(f"{self.path}: this store is closed; open it again")
            if pool is not self._pool:  # another thread was quicker
                return self._open()
            is_spoilt = pool is not None and pool.has_lost_log
            self.forget()
            close_inherited()
            if is_spoilt:
                with suppress(OSError):
                    self.path.unlink()
            try:
                before, first = read_identity(self.path), self._open_first()
                pool = Pool(self.path, first)
                if before is not None and read_identity(self.path) != before:
                    pool.close()
                    raise IndexReplacedError(f"{self.path} was replaced while it was opened")
            except (apsw.IOError, apsw.CantOpenError, apsw.ProtocolError) as error:
                if not self._was_open:
                    raise
                raise IndexReplacedError(f"{self.path} was deleted or replaced while opened ({error})") from error
            self._pool, self._was_open = pool, True
            return pool

    def _is_replaced(self, pool: Pool, error: BaseException) -> bool:
        """Return whether something failed because the file is no longer the one that was opened.

        Errors of reading and locking are SQLite's words if others take the file or its log away while it opens it: the
        file may be in its place again by now, and is opened anew.
        """
        if isinstance(error, apsw.ProtocolError | apsw.IOError):
            if pool is self._pool:
                self.forget()
            return True
        return isinstance(error, apsw.Error | StoreError) and not pool.is_current


class Pinned(Connections):
    """One connection inside a read transaction, in place of many: every reading sees the same state."""

    def __init__(self, db: apsw.Connection, path: Path) -> None:
        super().__init__(_refuse, path)
        self._db = db

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Lend the connection, in its transaction."""
        with translate_errors(self.path):
            yield self._db


def _refuse(path: Path) -> apsw.Connection:
    raise StoreError(f"{path}: a snapshot is only read; write to the store itself")


def read_identity(path: Path | str) -> tuple[int, int] | None:
    """Return the device and inode of a file, or of a link in its place; None for a missing file."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def is_missing(path: Path) -> bool:
    """Return whether a file certainly does not exist; one that may not be looked at is not missing."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


@contextmanager
def begin(db: apsw.Connection, statement: str) -> Iterator[None]:
    """Run a block in the transaction that a statement begins, committed at the end and rolled back on any error."""
    db.execute(statement)
    try:
        yield
        # A failed read whose error was caught and reported may have ended the transaction by itself.
        if db.in_transaction or statement != READ:
            db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
