"""The next index, built in a file next to the live one: copied, published into it, and removed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import StoreError, remedy
from openclaw_memory.store import connection
from openclaw_memory.store.connection import Connections, connect, create_file, fetch

if TYPE_CHECKING:
    import apsw

    from openclaw_memory.security.keys import Key

SUFFIX = ".rebuild-"
# A search holds the index that it began with for a few hundredths of a second; so often, and so long, it is waited for.
SETTLE_TRIES, SETTLE_PAUSE = 20, 0.02


def copied(live: Connections, extension: str | None, key: Key | None = None) -> Connections:
    """Return connections to a new file next to the live one, with the same content, encrypted with the same key.

    Writes to it do not wait for the disk: it is disposable until it is published.

    Raises:
        StoreError: It cannot be made; the folder may be read-only, or the disk full.
    """
    path = new_file(live.path)
    built = Connections(partial(connect, read_only=False, extension=extension, durable=False, key=key), path)
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


def leftovers(index_path: Path) -> list[Path]:
    """Return the files of builds next to an index, whether under way or cut short."""
    return _beginning_with(index_path.parent, f"{index_path.name}{SUFFIX}")


def sweep(index_path: Path) -> list[str]:
    """Remove what killed builders have left next to an index, and return the names.

    The caller holds the lock `sync` of this index, so that no such file is in use.
    """
    return _remove(index_path.parent, f"{index_path.name}{SUFFIX}")


def _remove(folder: Path, beginning: str) -> list[str]:
    """Remove the files whose names begin so, a database and SQLite's own files; return their names."""
    gone = []
    with suppress(OSError):  # what cannot be removed now is left to the next sync, which sweeps
        for file in _beginning_with(folder, beginning):
            file.unlink(missing_ok=True)
            gone.append(file.name)
    return gone


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder, sorted; none where it is missing or cannot be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _beginning_with(folder: Path, beginning: str) -> list[Path]:
    return [file for file in files_in(folder) if file.name.startswith(beginning)]
