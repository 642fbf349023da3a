"""The next index, in a file of its own beside the one that answers: copied, published into it, and swept away."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import StoreError, remedy
from openclaw_memory.store.connection import BUSY_TIMEOUT_MS, Connections, connect, create_file, fetch

if TYPE_CHECKING:
    import apsw

SUFFIX = ".rebuild-"


def copied(live: Connections, extension: str | None) -> Connections:
    """Connections to a new file beside the live one, which holds all that this one holds now.

    Nothing in it is waited for until it is on the disk: it is disposable until it is published.

    Raises:
        StoreError: it cannot be made; the folder may be read-only, or the disk full.
    """
    path = live.path.with_name(f"{live.path.name}{SUFFIX}{os.getpid()}-{os.urandom(4).hex()}")
    try:
        create_file(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made ({error.strerror}), and the index is built again beside the old one: "
            f"{remedy(error)}"
        ) from error
    built = Connections(partial(connect, read_only=False, extension=extension, durable=False), path)
    try:
        with live.lend() as source, built.alone() as target:
            copy(source, target)
    except BaseException:
        remove(built)
        raise
    return built


def copy(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy a whole database over another, in one transaction: whoever reads the target sees its old content or the new.

    SQLite copies pages, so that connections of other processes follow as they follow any other write.
    """
    with target.backup("main", source, "main") as pages:
        pages.step(-1)


def settle(db: apsw.Connection) -> None:
    """Bring what was committed from the log into the file, and onto the disk, keeping nobody out for it."""
    fetch(db, "PRAGMA wal_checkpoint(PASSIVE)")
    db.set_busy_timeout(0)
    try:
        # Nothing is left to be moved, but for what a reader still holds: the log, as large as the index, is cut.
        fetch(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)


def remove(built: Connections) -> None:
    """Close the connections to a file beside, and remove it. Calling it twice is allowed."""
    built.close()
    _remove(built.path.parent, built.path.name)


def leftovers(index_path: Path) -> list[Path]:
    """The files beside an index in which a next one is built, or was when its builder ended."""
    return _beginning_with(index_path.parent, f"{index_path.name}{SUFFIX}")


def sweep(index_path: Path) -> list[str]:
    """Remove what builders that were killed have left beside an index; returns the names.

    Whoever calls it has the turn to sync this index, so that no such file is anybody's.
    """
    return _remove(index_path.parent, f"{index_path.name}{SUFFIX}")


def _remove(folder: Path, beginning: str) -> list[str]:
    """Remove the files whose names begin so: a database, and what SQLite keeps beside it; returns their names."""
    gone = []
    with suppress(OSError):  # what cannot be removed now is left to the next sync, which sweeps
        for file in _beginning_with(folder, beginning):
            file.unlink(missing_ok=True)
            gone.append(file.name)
    return gone


def _beginning_with(folder: Path, beginning: str) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name.startswith(beginning)) if folder.is_dir() else []
