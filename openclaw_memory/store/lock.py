"""A lock between threads and processes, kept in a file and released when its holder ends.

The file is never removed, since a removed one could be locked twice. It names its holder, a process and a thread, so
that those who wait can report the reason, and a thread does not wait for itself.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory._system import NO_LINK
from openclaw_memory.errors import SyncBusyError

if TYPE_CHECKING:
    from filelock import BaseFileLock

POLL_SECONDS = 0.05
# `is_locked` holds the lock for an instant: it is tried for this long at the least.
GRACE_SECONDS = 0.1
NOTIFY_SECONDS = 1.0
HOLDER_BYTES = 64
HOLDER_AT = 1  # on Windows the locked byte, which is the first, cannot be read


@contextmanager
def lock_file(path: Path, wait: float | None = None, notify: Callable[[str], None] | None = None) -> Iterator[bool]:
    """Hold the lock at `path` while the block runs; yields whether every other thread and process is kept out.

    Waits for `wait` seconds, or without end where that is None. `notify` is called with the reason at once and every
    second; an exception from it ends the waiting. Where no lock can be made (the folder is missing or read-only, the
    file system has no locks), and where this thread already holds the lock, the block runs and False is yielded.

    Raises:
        SyncBusyError: The lock is still held by another thread or process after `wait` seconds.
    """
    lock, process = _acquire(path, wait, notify), os.getpid()
    try:
        yield lock is not None
    finally:
        if lock is not None and process == os.getpid():  # a child that was forked meanwhile does not have it
            _sign(path, "")  # first: the next holder must not be taken for this one before it has signed
            lock.release()


def is_locked(path: Path) -> bool:
    """Return whether any thread or process holds the lock at `path` now; False where that is unknown."""
    if _read_holder(path) is None:  # a killed holder has left its name, a live one has signed
        return False
    import filelock

    lock = _make_lock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def _acquire(path: Path, wait: float | None, notify: Callable[[str], None] | None) -> BaseFileLock | None:
    """Return the lock once it is acquired; None if there can be none, or this thread has it."""
    import filelock

    if not path.parent.is_dir():
        return None
    lock, me = _make_lock(path), (os.getpid(), threading.get_ident())
    started = time.monotonic()
    notify_at = 0.0
    while True:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            pass
        except OSError:  # an index that cannot be written says so itself
            return None
        else:
            _sign(path, f"{me[0]} {me[1]}")
            return lock
        holder, waited = _read_holder(path), time.monotonic() - started
        if holder == me:
            return None
        who = "another process" if holder is None else f"thread {holder[1]} of process {holder[0]}"
        if wait is not None and waited >= max(wait, GRACE_SECONDS):
            raise SyncBusyError(f"{path} is held by {who}, and was waited for {wait:g} s; try again, or wait longer")
        if notify is not None and waited >= max(notify_at, GRACE_SECONDS):
            notify(f"waiting: {who} holds {path.name}")
            notify_at = waited + NOTIFY_SECONDS
        time.sleep(POLL_SECONDS)


def _make_lock(path: Path) -> BaseFileLock:
    import filelock

    # A soft lock, which is used where the system has none, goes by what its file says: that is ours to write.
    return filelock.FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)


def _sign(path: Path, holder: str) -> None:
    with suppress(OSError), open(os.open(path, os.O_RDWR | NO_LINK), "r+b", buffering=0) as file:
        file.seek(HOLDER_AT)
        file.write(holder.encode().ljust(HOLDER_BYTES))  # on a full disk the holder stays unnamed


def _read_holder(path: Path) -> tuple[int, int] | None:
    """Return the process and the thread that hold the lock; None if they are unknown."""
    try:
        with open(os.open(path, os.O_RDONLY | NO_LINK), "rb", buffering=0) as file:
            file.seek(HOLDER_AT)
            process, thread = file.read(HOLDER_BYTES).split()
        return int(process), int(thread)
    except (OSError, ValueError):
        return None
