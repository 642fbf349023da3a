"""Keep away from links in the place of files that this library makes: they lead elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

# Flags of `os.open` for a file that is no link. O_NONBLOCK: opening a FIFO must not wait for a writer.
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def new_file(path: Path) -> int:
    """Open a file to write that is new, and its owner's alone; what was under its name, such as a link, is gone.

    Args:
        path: The file.

    Raises:
        OSError: It cannot be made, or another one has come in between.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)


def link_to(path: Path, trusted: Path, *, hard: bool = True, beside: Sequence[str] = ()) -> str | None:
    """Return which part of the way from a trusted folder to a file below it is a link, in words; None for no link.

    What leads to the trusted folder may be links: a person chose it. A missing part is none.

    Args:
        path: The file.
        trusted: A folder above it.
        hard: Whether a file counts that has other names, which would change with it.
        beside: What further files of the same folder have after the name of this one, such as `-wal`.
    """
    *folders, name = path.relative_to(trusted).parts
    current = str(trusted)
    for part in folders:
        current = os.path.join(current, part)
        if link := _link(current, hard=False):
            return link
    file = os.path.join(current, name)
    return next((link for ending in ("", *beside) if (link := _link(file + ending, hard=hard))), None)


def _link(path: str, *, hard: bool) -> str | None:
    try:
        info = os.lstat(path)
    except OSError:  # missing; or nobody may look at it here, which opening it says
        return None
    if stat.S_ISLNK(info.st_mode):
        return f"{path} is a symbolic link"
    if hard and info.st_nlink > 1 and stat.S_ISREG(info.st_mode):
        return f"{path} has {info.st_nlink} hard links"
    return None
