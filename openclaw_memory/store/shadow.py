"""Build the next index in a file next to the live one: copied, published into it, put in its place, and removed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from openclaw_memory.errors import IndexLockedError, StoreError, remedy
from openclaw_memory.store import connection
from openclaw_memory.store.connection import Connections, connect, create_file, fetch, is_index
from openclaw_memory.workspace.atomic import open_folder

if TYPE_CHECKING:
    from openclaw_memory.store.connection import OnConnect
    from openclaw_memory.types import ConnectionHook

SUFFIX = ".rebuild-"
# A search holds the index that it began with for a few hundredths of a second; so often, and so long, it is waited for.
SETTLE_TRIES, SETTLE_PAUSE = 20, 0.02


def copied(live: Connections, extension: str | None, on_connect: OnConnect | None = None) -> Connections:
    """Return connections to a new file next to the live one, with the same content, through the same hook.

    Writes to it do not wait for the disk: it is disposable until it is published.

    Raises:
        StoreError: It cannot be made; the folder may be read-only, or the disk full.
    """
    path = new_file(live.path)
    built = Connections(
        partial(connect, read_only=False, extension=extension, durable=False, on_connect=on_connect), path
    )
    try:
        with live.lend() as source, built.alone() as target:
            copy(source, target)
    except BaseException:
        remove(built)
        raise
    return built


def new_file(index_path: Path) -> Path:
    """Make the empty file of the next index, next to an index, and return its path.

    Raises:
        StoreError: It cannot be made.
    """
    path = index_path.with_name(f"{index_path.name}{SUFFIX}{os.getpid()}-{os.urandom(4).hex()}")
    try:
        create_file(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made ({error.strerror}), which the next index needs next to the old one: {remedy(error)}"
        ) from error
    return path


def copy(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy a whole database over another, in one transaction: readers of the target see its old content or the new.

    SQLite copies pages, so that connections of other processes follow as they follow any other write.
    """
    with target.backup("main", source, "main") as pages:
        pages.step(-1)


def settle(db: apsw.Connection, tries: int | None = None) -> bool:
    """Move what was committed from the log into the file and onto the disk, and cut the log, without blocking others.

    Returns False where a reader still holds an old state.
    """
    for _ in range(tries or SETTLE_TRIES):
        ((_, logged, moved),) = fetch(db, "PRAGMA wal_checkpoint(PASSIVE)")
        if moved == logged:
            break
        time.sleep(SETTLE_PAUSE)  # a reader is still in the old index
    else:
        return False  # a later commit moves it
    db.set_busy_timeout(0)
    try:
        # Nothing is left to be moved, which would be done under the write lock: the log, as large as the index, is cut.
        return fetch(db, "PRAGMA wal_checkpoint(TRUNCATE)")[0][:1] == (0,)
    finally:
        db.set_busy_timeout(connection.BUSY_TIMEOUT_MS)


def remove(built: Connections) -> None:
    """Close the connections to such a file, and remove it. Calling it twice is allowed."""
    built.close()
    discard(built.path)


def discard(path: Path) -> None:
    """Remove such a file, to which no connection is open."""
    _remove(path.parent, path.name)


def sweep(index_path: Path) -> list[str]:
    """Remove what killed builders have left next to an index, and return the names.

    The caller holds the lock `sync` of this index, so that no such file is in use.
    """
    return _remove(index_path.parent, f"{index_path.name}{SUFFIX}")


def _remove(folder: Path, beginning: str) -> list[str]:
    """Remove the files whose names begin so, a database and SQLite's own files; return their names."""
    removed = []
    with suppress(OSError):  # what cannot be removed now is left to the next sync, which sweeps
        for file in sorted(folder.iterdir()):
            if file.name.startswith(beginning):
                file.unlink(missing_ok=True)
                removed.append(file.name)
    return removed


ALONE_MS = 1000  # a search that began before is over by then
_PLAIN = "key="  # how SQLite is told that a copy has no key, as the original may have one


def rewrite(
    db: apsw.Connection, index: Path, make_hook: Callable[[], ConnectionHook | None], announce: Callable[[], None]
) -> None:
    """Replace an index by a copy that another hook opens. Killed, it leaves the old file or the new one.

    Args:
        db: A connection to the index.
        index: Its file.
        make_hook: Makes the hook that opens the copy, None for a plain one; called once no other connection is open.
        announce: Called when the copy is on the disk, before it takes the place.

    Raises:
        IndexLockedError: It is open elsewhere.
        StoreError: The copy cannot be made.
    """
    _keep_others_out(db, index)
    copy = _copy_with_hook(db, index, make_hook())
    announce()
    try:
        os.replace(copy, index)
        with open_folder(str(index.parent), ()) as folder:
            folder.flush(index.name)
    except OSError as error:
        raise StoreError(f"{index} cannot be replaced ({error.strerror}): {remedy(error)}") from error


def _keep_others_out(db: apsw.Connection, index: Path) -> None:
    """Keep every other connection out of the file, until this one is closed, with all of it in the file.

    SQLite gives up its log only where no other connection is open, in any process.
    """
    try:
        db.set_busy_timeout(ALONE_MS)
        fetch(db, "PRAGMA locking_mode = EXCLUSIVE")
        mode = fetch(db, "PRAGMA journal_mode = DELETE")
        fetch(db, "BEGIN EXCLUSIVE; COMMIT")
    except (apsw.BusyError, apsw.LockedError):
        mode = []
    if mode != [("delete",)]:
        raise IndexLockedError(
            f"{index} is open elsewhere, which its key cannot be changed under: close each memory of it, and end each "
            f"program that uses it (`fuser -v {index}` shows which); then try again"
        )


def _copy_with_hook(db: apsw.Connection, index: Path, hook: ConnectionHook | None) -> Path:
    """Return a copy of an index, which is on the disk and opens."""
    copy = new_file(index)
    opened = partial(connect, copy, read_only=False, extension=None, on_connect=hook.on_connect if hook else None)
    try:
        options = _PLAIN
        if hook is not None:
            with closing(opened()) as empty:
                options = hook.get_uri_options(empty)
        db.execute("VACUUM INTO ?", (f"{copy.absolute().as_uri()}?{options}",))
        with closing(opened()) as made:
            fetch(made, "PRAGMA journal_mode = WAL")
            if not is_index(made):
                raise StoreError(f"the copy {copy} of {index} is not one: try again")
        descriptor = os.open(copy, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        discard(copy)
        raise
    return copy
