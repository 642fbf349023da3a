"""Find links below a folder that is trusted, in the place of files that this library makes: they lead elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def link_to(path: Path, trusted: Path, *, hard: bool = True) -> str | None:
    """Return which part of the way from a trusted folder to a file below it is a link, in words; None for no link.

    What leads to the trusted folder may be links: a person chose it. A missing part is none.

    Args:
        path: The file.
        trusted: A folder above it.
        hard: Whether a file counts that has other names, which would change with it.
    """
    current, info = str(trusted), None
    for part in path.relative_to(trusted).parts:
        current = os.path.join(current, part)
        try:
            info = os.lstat(current)
        except OSError:  # missing; or to be looked at by nobody here, which opening it says
            return None
        if stat.S_ISLNK(info.st_mode):
            return f"{current} is a symbolic link"
    if hard and info is not None and stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
        return f"{current} has {info.st_nlink} hard links"
    return None
