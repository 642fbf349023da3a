"""The sign that somebody is at work on an index: a lock that falls when its process ends, however it ends.

It tells an index that is being built from one whose builder was killed. Those at work keep nobody out; who wants to be
alone with the index waits for no one, and keeps others waiting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUFFIX = ".at-work"


@contextmanager
def at_work(index_path: Path | None) -> Iterator[None]:
    """Show the sign while the block runs; several may show it at once. None: an index without a file has no sign."""
    descriptor = None if index_path is None else _opened(index_path)
    try:
        if descriptor is not None:
            _locked(descriptor, alone=False)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def somebody_is_at_work(index_path: Path | None) -> bool:
    """Whether anybody, in any process, shows the sign now; False where it cannot be known."""
    descriptor = None if index_path is None or not _sign(index_path).exists() else _opened(index_path)
    if descriptor is None:
        return False
    try:
        return not _locked(descriptor, alone=True)
    finally:
        os.close(descriptor)


@contextmanager
def alone_at_work(index_path: Path | None) -> Iterator[bool]:
    """Keep others from beginning work while the block runs; False where somebody is at work, or nothing can be known.

    An index without a file has nobody else.
    """
    descriptor = None if index_path is None else _opened(index_path)
    try:
        yield index_path is None or (descriptor is not None and _locked(descriptor, alone=True))
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _sign(index_path: Path) -> Path:
    return Path(f"{index_path}{SUFFIX}")


def _opened(index_path: Path) -> int | None:
    try:
        return os.open(_sign(index_path), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:  # the sign is a courtesy: an index that cannot be written says so itself
        return None


def _locked(descriptor: int, *, alone: bool) -> bool:
    """Lock until the descriptor is closed; with `alone` without waiting, and False where others hold it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    except BlockingIOError:
        return False
    except OSError:  # a network file system without locks: nothing can be known
        return True
    return True
