"""The turn to sync an index: one at a time, in all threads and processes, by a lock that falls when its holder ends.

The lock file stays where it is, since one that is removed could be locked twice. It says who holds it: a process and
a thread, so that those who wait can be told, and a thread does not wait for itself.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import SyncBusyError

if TYPE_CHECKING:
    from filelock import BaseFileLock

SUFFIX = ".sync-lock"
POLL_SECONDS = 0.05
# Whoever asks whether somebody is at work holds the lock for an instant: it is tried for this long at the least.
GRACE_SECONDS = 0.1
TOLD_EVERY_SECONDS = 1.0
HOLDER_BYTES = 64
HOLDER_AT = 1  # Windows lets nobody read the byte that is locked, which is the first


@contextmanager
def one_at_a_time(
    index_path: Path | None, wait: float | None = None, told: Callable[[str], None] | None = None
) -> Iterator[bool]:
    """Take the turn for as long as the block runs; yields whether nobody else can have it meanwhile.

    It is waited for `wait` seconds, or as long as it takes where that is None; `told` is called with the reason at
    once and every second, and what it raises ends the waiting. An index without a file has nobody else. Where no lock
    can be made (the folder is read-only, the file system has none), and where this very thread has the turn already,
    the block runs all the same, and False is yielded.

    Raises:
        SyncBusyError: somebody else still has the turn after `wait` seconds.
    """
    lock = None if index_path is None else _taken(index_path, wait, told)
    try:
        yield index_path is None or lock is not None
    finally:
        if lock is not None and index_path is not None:
            _sign(index_path, "")  # first: the next holder must not be taken for this one before it has signed
            lock.release()


def somebody_is_at_work(index_path: Path | None) -> bool:
    """Whether anybody, in any thread or process, has the turn now; False where it cannot be known."""
    import filelock

    if index_path is None or not _lock_path(index_path).exists():
        return False
    lock = _lock(index_path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def _taken(index_path: Path, wait: float | None, told: Callable[[str], None] | None) -> BaseFileLock | None:
    """The lock, held; None where there can be none, or this thread has it."""
    import filelock

    if not index_path.parent.is_dir():
        return None
    lock, me = _lock(index_path), (os.getpid(), threading.get_ident())
    started = time.monotonic()
    tell_at = 0.0
    while True:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            pass
        except OSError:  # an index that cannot be written says so itself
            return None
        else:
            _sign(index_path, f"{me[0]} {me[1]}")
            return lock
        holder, waited = _holder(index_path), time.monotonic() - started
        if holder == me:
            return None
        who = "somebody else" if holder is None else f"thread {holder[1]} of process {holder[0]}"
        if wait is not None and waited >= max(wait, GRACE_SECONDS):
            raise SyncBusyError(
                f"{index_path} is being synced by {who}, and was waited for {wait:g} s; try again, or wait for longer"
            )
        if told is not None and waited >= max(tell_at, GRACE_SECONDS):
            told(f"waiting: {who} syncs this index")
            tell_at = waited + TOLD_EVERY_SECONDS
        time.sleep(POLL_SECONDS)


def _lock_path(index_path: Path) -> Path:
    return Path(f"{index_path}{SUFFIX}")


def _lock(index_path: Path) -> BaseFileLock:
    import filelock

    # A soft lock, which stands in where the system has none, goes by what its file says: that is ours to write.
    return filelock.FileLock(_lock_path(index_path), mode=0o600, thread_local=False, fallback_to_soft=False)


def _sign(index_path: Path, holder: str) -> None:
    with suppress(OSError), _lock_path(index_path).open("r+b", buffering=0) as file:  # a full disk: nobody is named
        file.seek(HOLDER_AT)
        file.write(holder.encode().ljust(HOLDER_BYTES))


def _holder(index_path: Path) -> tuple[int, int] | None:
    """The process and the thread that have the lock; None where that cannot be known."""
    try:
        with _lock_path(index_path).open("rb", buffering=0) as file:
            file.seek(HOLDER_AT)
            process, thread = file.read(HOLDER_BYTES).split()
        return int(process), int(thread)
    except (OSError, ValueError):
        return None
