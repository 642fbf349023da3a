"""Opens the index file: permissions, hook, pragmas, the sqlite-vec extension, and SQLite's errors in our own words."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from openclaw_memory import _forks
from openclaw_memory._limited import Limited
from openclaw_memory.errors import CorruptIndexError, IndexLockedError, IndexReplacedError, StoreError, remedy
from openclaw_memory.plugins import list_plugins

Identity: TypeAlias = tuple[int, int]
# As `ConnectionHook.on_connect`.
OnConnect: TypeAlias = Callable[[apsw.Connection], int | None]

OWN_TABLES = {"meta", "files", "chunks", "vectors", "chunk_terms"}
APPLICATION_ID = 0x4F434D31  # "OCM1" in the file's header marks an index
BUSY_TIMEOUT_MS = 10_000
# OpenClaw's: a library on a file server that is gone would hang for ever.
LOAD_SECONDS = 30.0
# Of the whole process: what hangs in loading a library holds up every other thread that loads it.
_loading = Limited("openclaw-memory-sqlite-vec")
PAGE_SIZE = 16_384  # a vector of 256 to 1,536 dims fits a page; measured faster than 4,096 for vector rows
CACHE_KIB = 16_384
# No mmap: it won 5 % at 100,000 chunks, and a file cut short beneath a mapping kills the process.
IN_MEMORY = ":memory:"
# The files in which SQLite keeps its journal next to the database.
COMPANIONS = ("-wal", "-shm", "-journal")
MAGIC = b"SQLite format 3\0"
_IN_THE_OPEN = re.compile(rb"\x40\x00[\x01\x02]{2}[^\x00]\x40\x20\x20", re.DOTALL)

# SQLite has one code for every statement that fails by itself. These words mean tables of ours that are missing or
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
    "must use the same text encoding",  # the encoding in the header is another than when it was opened
    "SQL logic error",
    "UNIQUE constraint failed on chunk_vectors",
    "validity bit is not set",
    "size doesn't match",
    "size mismatch",
)

READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
_ONLY_READ = apsw.SQLITE_OPEN_NOFOLLOW | apsw.SQLITE_OPEN_READONLY
# The file may come from strangers: what its schema says is not run, and no statement can change the schema by hand.
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


SHARED_BYTES = 32 * 1024  # SQLite makes the `-shm` beside a log in parts of this size
SHORTAGE = "the disk is full: the index answers as it is, and follows the notes once there is room"


def fetch(db: apsw.Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a statement; `values` are bound to its question marks."""
    return db.execute(statement, values).fetchall()


def damaged(path: Path | str, what: object) -> CorruptIndexError:
    """Return the error of a damaged index, with its remedy."""
    error = CorruptIndexError(f"{path} is damaged ({what}). Sync again: the index is built again from the notes.")
    error.found = str(what)
    return error


def is_full(folder: Path) -> bool:
    """Return whether a disk has no room for what processes share of a log; False where that is unknown."""
    try:
        state = os.statvfs(folder)
    except (AttributeError, OSError):  # Windows has none
        return False
    blocks = state.f_bfree if os.geteuid() == 0 else state.f_bavail  # some are kept for root
    takes_no_files = state.f_files > 0 and state.f_favail == 0  # file systems without such a limit say 0 of 0
    return takes_no_files or blocks * state.f_frsize < SHARED_BYTES


@contextmanager
def own_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into those of `errors.py`, each with its remedy."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise IndexLockedError(
            f"{path}: another process has locked it for more than {BUSY_TIMEOUT_MS // 1000} s ({error}); try again"
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
        if is_full(path.parent):  # SQLite cannot make what it shares with other processes, and says no more than this
            raise StoreError(f"{path}: the disk is full ({error}); free some space and try again") from error
        raise StoreError(f"{path} cannot be read or written ({error}); check the disk and the permissions") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}; delete the index and sync again if this stays") from error
    except UnicodeEncodeError as error:
        raise StoreError(
            f"{path}: {error.object!r} is not valid Unicode text; leave the lone surrogates out"
        ) from error


def find_extension() -> tuple[str | None, str | None]:
    """Return the path of sqlite-vec's library, tried out, or None and the reason why it does not work.

    After `LOAD_SECONDS` it counts as one that does not. Does not import the package `sqlite_vec`, which imports numpy.
    """
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return None, "the package sqlite-vec is not installed"
    library = os.path.join(spec.submodule_search_locations[0], "vec0")
    try:
        with _forks.no_fork():
            _loading.run(partial(_try_out, library), LOAD_SECONDS)
    # AttributeError: an apsw built without extension loading
    except (apsw.Error, AttributeError, TimeoutError) as error:
        return None, f"sqlite-vec does not load: {error}"
    return library, None


def _try_out(library: str) -> None:
    with closing(apsw.Connection(":memory:")) as db:
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
            if not folder.exists():
                with suppress(FileExistsError):
                    folder.mkdir(mode=0o700)
        if path.exists():
            return
        if not any(path.parent.iterdir()):
            create_file(path.with_name(".gitignore"), b"*\n")
        create_file(path)
    except OSError as error:
        raise StoreError(
            f"the index {path} cannot be made ({error.strerror}: {error.filename or path}): {remedy(error)}, "
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
    path: Path,
    *,
    read_only: bool,
    extension: str | None,
    durable: bool = True,
    on_connect: OnConnect | None = None,
) -> apsw.Connection:
    """Open a connection with all pragmas set and, where `extension` names it, sqlite-vec loaded.

    On a full disk it only reads. Without `durable`, a commit does not wait for the disk: it may be lost when the power
    fails. `on_connect` has the connection before its first statement.
    """
    name = str(path)
    if os.name == "posix" and name != IN_MEMORY:  # SQLite refuses links at any part of a path: those above are resolved
        name = os.path.join(os.path.realpath(path.parent), path.name)
    set_up = partial(_set_up, extension=extension, durable=durable, on_connect=on_connect)
    uri = Path(name).absolute().as_uri()
    if read_only and _needs_no_log(path):
        return set_up(apsw.Connection(f"{uri}?immutable=1", flags=_ONLY_READ | apsw.SQLITE_OPEN_URI))
    flags = _ONLY_READ if read_only else apsw.SQLITE_OPEN_NOFOLLOW | apsw.SQLITE_OPEN_READWRITE
    try:
        return set_up(apsw.Connection(name, flags=flags | apsw.SQLITE_OPEN_URI))  # no path begins as a URI does
    except (apsw.IOError, apsw.CantOpenError, apsw.FullError) as error:  # pragmas read the file
        if getattr(error, "extendedresult", 0) != apsw.SQLITE_IOERR_SHMSIZE and not is_full(path.parent):
            raise
    return set_up(OnFullDisk(f"{uri}?readonly_shm=1", flags=_ONLY_READ | apsw.SQLITE_OPEN_URI))


class OnFullDisk(apsw.Connection):
    """A connection that only reads, as the disk has no room for the index of the log that processes share.

    It makes that index in its own memory, and reads what is in the log too. It is as safe as any other if a process
    writes once there is room: it holds a lock that keeps the log from being copied to the file while it reads, and
    uses the shared index as soon as another process has made it. (`immutable=1` would see half of what that one
    writes, and `locking_mode=EXCLUSIVE` would keep all others out.)
    """


def _set_up(
    db: apsw.Connection, *, extension: str | None, durable: bool, on_connect: OnConnect | None
) -> apsw.Connection:
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


def first_bytes(path: Path, count: int) -> bytes:
    """Return the first bytes of a database as they are on the disk.

    They are read through SQLite: opening and closing the file separately would drop every POSIX lock that this process
    holds on it.
    """
    with closing(apsw.Connection(os.path.realpath(path.parent) + os.sep + path.name, flags=_ONLY_READ)) as db:
        return db.read("main", 0, 0, count)[1]


def has_moved(db: apsw.Connection) -> bool:
    """Return whether the file of a connection was deleted or replaced.

    SQLite knows its inode, which a later file may have too once this one is closed.
    """
    moved = ctypes.c_int()
    with suppress(apsw.ConnectionClosedError):
        return db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved)) and moved.value != 0
    return False


def needs_hook(header: bytes) -> bool:
    """Return whether the first 24 bytes of a file are those of an index that was written through a connection hook.

    SQLite keeps bytes 16 to 23 in the open: our size of a page, the versions, some room at the end of each page for
    what the hook's cipher adds, and three constants. A plain index begins with MAGIC, and has no such room.
    """
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
            raise damaged(db.filename, "its header names another program")
        raise StoreError(f"{db.filename} is a SQLite database of another program; give another path for the index")
    return True


def _needs_no_log(path: Path) -> bool:
    """Return whether the file can only be read as it is: in a read-only folder SQLite could add no `-shm`."""
    wal = path.with_name(path.name + "-wal")
    return not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)


class Pool:
    """The connections that one process has opened to a file, of which it keeps the idle ones.

    The first one is never lent: as long as it is open, SQLite keeps the log, so that a log that is gone was deleted.
    Those that only read for want of room are not kept: as long as there is one, SQLite would have every connection of
    this process only read, and the next one finds out whether there is room.
    """

    def __init__(self, path: Path, first: apsw.Connection) -> None:
        self.pid = os.getpid()
        self.idle: deque[apsw.Connection] = deque()
        self.writing = _forks.lock()
        self.only_reads = isinstance(first, OnFullDisk)
        self._first = first
        self._path, self._file, self._log = path, identity_of(path), identity_of(f"{path}-wal")

    @property
    def is_current(self) -> bool:
        """Whether the file and its log are still those that were opened, neither deleted nor replaced."""
        return self._file is not None and identity_of(self._path) == self._file and not self.has_lost_log

    @property
    def has_lost_log(self) -> bool:
        """Whether the log was deleted: its content is lost, and new connections would not agree with old ones."""
        return self._log is not None and identity_of(f"{self._path}-wal") != self._log

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still the one that was opened."""
        return identity_of(self._path) == self._file

    def close(self) -> None:
        """Close the connections that are not lent."""
        with suppress(IndexError):
            while True:
                self.idle.pop().close()
        self._first.close()

    def leave(self) -> None:
        """Close the idle connections of a parent process in its child, without touching files or locks.

        SQLite's table of locks is inherited, the locks are not: while one of these connections is open, SQLite would
        believe that this process holds locks which only the parent holds.
        """
        for db in (*self.idle, self._first):
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.close()
        self.idle.clear()


class Connections:
    """Connections to one index file, each lent to one thread at a time. A child process opens its own.

    An index that was deleted or replaced is opened again: `first` makes the file where it is missing, and returns a
    connection to it after checking that it is an index. `empty` gives readers an empty index where `is_absent` says
    that there is none.
    """

    def __init__(
        self,
        connect: Callable[[Path], apsw.Connection],
        path: Path,
        first: Callable[[], apsw.Connection] | None = None,
        empty: Callable[[], apsw.Connection] | None = None,
        is_absent: Callable[[], bool] = lambda: False,
    ) -> None:
        self.path = path
        self._connect = connect
        self._first = first or (lambda: connect(path))
        self._empty, self._is_absent = empty, is_absent
        self._pool: Pool | None = None
        self._opening = _forks.rlock()
        self._was_open = False
        self.only_reads = False  # as those did that were opened last, for want of room
        self._closed = False

    @property
    def shortage(self) -> str | None:
        """In words that the disk is full, if it is, as far as this is known."""
        return SHORTAGE if self.only_reads or is_full(self.path.parent) else None

    @contextmanager
    def lend(self) -> Iterator[apsw.Connection]:
        """Lend a connection for the time of a `with` block, outside any transaction.

        One on which something failed is closed and not lent again: sqlite-vec ends the process when its table is used
        after a failed DROP.

        Raises:
            IndexReplacedError: Something failed, and the file is no longer the one that was opened.
        """
        with own_errors(self.path), _forks.no_fork():
            pool = self.opened()
            try:
                db = self._take(pool)
            except apsw.Error as error:
                if not self._is_replaced(pool, error):
                    raise
                raise IndexReplacedError(f"{self.path} was deleted or replaced while in use ({error})") from error
            try:
                yield db
            except BaseException as error:
                is_replaced = self._is_replaced(pool, error)
                if pool.pid == os.getpid():
                    db.close(True)  # the last one that is closed takes the log with it
                if is_replaced:
                    raise IndexReplacedError(
                        f"{self.path} was deleted or replaced while it was in use ({error})"
                    ) from error
                raise
            else:
                if pool is self._pool and not pool.only_reads:
                    pool.idle.append(db)
                else:
                    db.close()
            finally:
                if self._closed:
                    pool.close()
                elif pool.only_reads and pool is self._pool:
                    self.forget()

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Lend a connection inside a read transaction: all statements see one state of the index."""
        if self._empty is not None and not self._closed and self._is_absent():
            with own_errors(self.path), _forks.no_fork(), closing(self._empty()) as nothing:
                yield nothing
            return
        with self.lend() as db, transaction(db, READ):
            yield db

    @contextmanager
    def alone(self) -> Iterator[apsw.Connection]:
        """Lend a connection outside any transaction, while no other thread writes through these connections."""
        with own_errors(self.path), _forks.no_fork():
            writing = self.opened().writing
        with writing, self.lend() as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """Lend a connection inside a write transaction, committed at the end and rolled back on any error."""
        with self.alone() as db:
            if self.only_reads:
                raise StoreError(f"{self.path}: the disk is full; free some space and sync again")
            with transaction(db, WRITE):
                yield db

    def close(self) -> None:
        """Close every connection; those in use are closed when their work ends."""
        self._closed = True
        self.forget()

    def forget(self) -> None:
        """Close every connection, and open the file again at the next use."""
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is None or _forks.is_cut():
            return
        with _forks.no_fork():
            if pool.pid == os.getpid():
                pool.close()
            else:
                pool.leave()

    def opened(self) -> Pool:
        """Return the connections of this process to the current file, which is opened where necessary.

        Raises:
            StoreError: This store is closed.
        """
        pool = self._pool
        if pool is not None and pool.pid == os.getpid() and pool.is_current and not self._closed:
            return pool
        with self._opening:
            if self._closed:
                raise StoreError(f"{self.path}: this store is closed; open it again")
            if pool is not self._pool:  # another thread was quicker
                return self.opened()
            is_deleted = pool is not None and pool.pid == os.getpid() and pool.is_in_place and pool.has_lost_log
            self.forget()
            if is_deleted:  # file by file: this one is of no use without its log
                with suppress(OSError):
                    self.path.unlink()
            try:
                first = self._first()
                pool = Pool(self.path, first)
                if has_moved(first):
                    pool.close()
                    raise IndexReplacedError(f"{self.path} was replaced while it was opened")
                self._pool, self.only_reads = pool, pool.only_reads
            except (apsw.IOError, apsw.CantOpenError, apsw.ProtocolError) as error:
                if not self._was_open or is_full(self.path.parent):
                    raise
                raise IndexReplacedError(
                    f"{self.path} was deleted or replaced while it was opened ({error})"
                ) from error
            self._was_open = True
            return pool

    def _is_replaced(self, pool: Pool, error: BaseException) -> bool:
        """Return whether something failed because the file is no longer the one that was opened.

        "locking protocol" is what SQLite says of a log that others take away while it opens it, again and again: the
        file may be in its place again by now, and is opened anew.
        """
        if isinstance(error, apsw.ProtocolError) and pool is self._pool:
            self.forget()
            return True
        return isinstance(error, apsw.Error | StoreError) and not pool.is_current

    def _take(self, pool: Pool) -> apsw.Connection:
        try:
            return pool.idle.pop()
        except IndexError:
            return self._connect(self.path)


class Pinned(Connections):
    """One connection inside a read transaction, in place of many: every reading sees the same state."""

    def __init__(self, db: apsw.Connection, path: Path, *, only_reads: bool) -> None:
        super().__init__(_refuse, path)
        self._db, self.only_reads = db, only_reads

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Lend the connection, in the transaction that it is in."""
        with own_errors(self.path):
            yield self._db


def _refuse(path: Path) -> apsw.Connection:
    raise StoreError(f"{path}: a snapshot is only read; write to the store itself")


def identity_of(path: Path | str) -> Identity | None:
    """Return what distinguishes a file from another one, or a link, that takes its place; None for a missing file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
def transaction(db: apsw.Connection, begin: str) -> Iterator[None]:
    """Run a block in a transaction that `begin` begins, committed at the end and rolled back on any error."""
    db.execute(begin)
    try:
        yield
        # A failed read whose error was caught and reported may have ended the transaction by itself.
        if db.in_transaction or begin != READ:
            db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
