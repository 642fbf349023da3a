"""Write an index anew, in a file next to the live one or in place, and erase the bytes of removed texts.

`PRAGMA secure_delete` is not enough to erase a text: pages that SQLite balances keep copies of rows that have moved
away. Only a file that is written again from its rows holds nothing but the index. Rows that go are noted when they go,
and erased at the end of a sync.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from openclaw_memory.errors import IndexLockedError, StoreError, suggest_remedy
from openclaw_memory.store import connection, fts
from openclaw_memory.store.connection import WRITE, Connections, begin, connect, create_file, fetch, is_index
from openclaw_memory.store.rows import SET_META, read_value
from openclaw_memory.workspace.atomic import open_folder

if TYPE_CHECKING:
    from openclaw_memory.store.connection import OnConnect
    from openclaw_memory.types import ConnectionHook

SUFFIX = ".rebuild-"
# A search holds the index that it began with for a few hundredths of a second; so often, and so long, it is waited for.
SETTLE_TRIES, SETTLE_PAUSE = 20, 0.02
# Rows of meta: one that is there while no vector may have become unused since the last pruning; and a number, another
# one after each removal, while there is something to erase.
PRUNED, ERASE = "pruned", "erase"
ERASE_TRIES = 5  # a tenth of a second: searches are over by then, and other readers are not waited for
ALONE_MS = 1000  # a search that began before is over by then
NO_KEY = "key="  # tells SQLite that a copy has no key, as the original may have one


def copy_index(live: Connections, extension: str | None, on_connect: OnConnect | None = None) -> Connections:
    """Return connections to a new file next to the live one, with the same content, through the same hook.

    Writes to it do not wait for the disk: it is disposable until it is published.

    Raises:
        StoreError: It cannot be made; the folder may be read-only, or the disk full.
    """
    path = create_copy(live.path)
    copy = Connections(
        partial(connect, read_only=False, extension=extension, durable=False, on_connect=on_connect), path
    )
    try:
        with live.open() as source, copy.lock() as target:
            copy_pages(source, target)
    except BaseException:
        remove(copy)
        raise
    return copy


def create_copy(index_path: Path) -> Path:
    """Make the empty file of the next index, next to an index, and return its path.

    Raises:
        StoreError: It cannot be made.
    """
    path = index_path.with_name(f"{index_path.name}{SUFFIX}{os.getpid()}-{os.urandom(4).hex()}")
    try:
        create_file(path)
    except OSError as error:
        raise StoreError(f"the next index {path} cannot be made ({error.strerror}): {suggest_remedy(error)}") from error
    return path


def copy_pages(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy a whole database over another, in one transaction: readers of the target see its old content or the new.

    SQLite copies pages, so that connections of other processes follow as they follow any other write.
    """
    with target.backup("main", source, "main") as pages:
        pages.step(-1)


def settle(db: apsw.Connection, tries: int = SETTLE_TRIES) -> bool:
    """Move all commits from the log into the file and onto the disk, and cut the log, without blocking others.

    Returns False while a reader still holds an old state.
    """
    for _ in range(tries):
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


def remove(copy: Connections) -> None:
    """Close the connections to a copy, and remove it. Calling it twice is allowed."""
    copy.close()
    _remove_files(copy.path.parent, copy.path.name)


def sweep(index_path: Path) -> None:
    """Remove the files that killed builders have left next to an index.

    The caller holds the lock `sync` of this index, so that no such file is in use.
    """
    _remove_files(index_path.parent, f"{index_path.name}{SUFFIX}")


def _remove_files(folder: Path, beginning: str) -> None:
    """Remove the files with this beginning of their names, SQLite's own included."""
    with suppress(OSError):  # the next sync sweeps again
        for file in folder.iterdir():
            if file.name.startswith(beginning):
                file.unlink(missing_ok=True)


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
    # Keep every other connection out, until this one is closed, with the whole log in the file: SQLite gives up its
    # log only if no other connection is open, in any process.
    mode: list[tuple[str]] = []
    with suppress(apsw.BusyError, apsw.LockedError):
        db.set_busy_timeout(ALONE_MS)
        fetch(db, "PRAGMA locking_mode = EXCLUSIVE")
        mode = fetch(db, "PRAGMA journal_mode = DELETE")
        fetch(db, "BEGIN EXCLUSIVE; COMMIT")
    if mode != [("delete",)] or db.in_transaction:
        raise IndexLockedError(
            f"{index} is open elsewhere, which its key cannot be changed under: close each memory of it, and end each "
            f"program that uses it (`fuser -v {index}` shows which); then try again"
        )
    copy = _copy_with_hook(db, index, make_hook())
    announce()
    try:
        os.replace(copy, index)
        with open_folder(str(index.parent), ()) as folder:
            folder.flush(index.name)
    except OSError as error:
        raise StoreError(f"{index} cannot be replaced ({error.strerror}): {suggest_remedy(error)}") from error


def _copy_with_hook(db: apsw.Connection, index: Path, hook: ConnectionHook | None) -> Path:
    """Return a copy of an index, which is on the disk and opens."""
    copy = create_copy(index)
    open_copy = partial(connect, copy, read_only=False, extension=None, on_connect=hook.on_connect if hook else None)
    try:
        options = NO_KEY
        if hook is not None:
            with closing(open_copy()) as empty:
                options = hook.get_uri_options(empty)
        db.execute("VACUUM INTO ?", (f"{copy.absolute().as_uri()}?{options}",))
        with closing(open_copy()) as written:
            fetch(written, "PRAGMA journal_mode = WAL")
            if not is_index(written):
                raise StoreError(f"the copy {copy} of {index} is not one: try again")
        descriptor = os.open(copy, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _remove_files(copy.parent, copy.name)
        raise
    return copy


# --- erasing ----------------------------------------------------------------------------------------------------------


def record_removal(db: apsw.Connection, *, erase: bool) -> None:
    """Note, in the transaction of a change, that vectors may be in no use; with `erase`, that a text was removed."""
    db.execute("DELETE FROM meta WHERE key = ?", (PRUNED,))
    if erase:
        db.execute(SET_META, (ERASE, secrets.randbits(60)))


def has_leftovers(db: apsw.Connection, *, keep_unused: bool) -> bool:
    """Return whether there is anything to prune or to erase."""
    return has_unerased(db) or (not keep_unused and read_value(db, PRUNED) is None)


def has_unerased(db: apsw.Connection) -> bool:
    """Return whether a removed text was not erased yet."""
    return read_value(db, ERASE) is not None


def mark_pruned(db: apsw.Connection) -> None:
    """Note, in the transaction that removes unused vectors, that it did."""
    db.execute(SET_META, (PRUNED, 1))


def erase(db: apsw.Connection) -> None:
    """Erase the bytes of removed rows, outside any transaction.

    Something stays while a reader, in any process, still holds an old state: the next sync goes on.
    """
    if (number := read_value(db, ERASE)) is None:
        return
    with begin(db, WRITE):
        db.execute(fts.MERGE)
    # An index beyond the page cache would be in memory as a whole, did the copy go where temporary tables go.
    fetch(db, "PRAGMA temp_store = FILE")
    try:
        db.execute("VACUUM")
    finally:
        fetch(db, "PRAGMA temp_store = MEMORY")
    if settle(db, ERASE_TRIES):
        db.execute("DELETE FROM meta WHERE key = ? AND value = ?", (ERASE, number))
