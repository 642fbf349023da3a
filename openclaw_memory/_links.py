"""Check the paths of files that this library makes for symbolic links, and open none."""

from __future__ import annotations

import os
from pathlib import Path

# Flags of `os.open` for a file that is no link. O_NONBLOCK: opening a FIFO must not wait for a writer.
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def find_link(path: Path, trusted: Path) -> str | None:
    """Find the first symbolic link between a trusted folder and a file below it; None if there is none.

    Links may lead to the trusted folder itself: a person chose it.

    Args:
        path: The file.
        trusted: A folder above it.
    """
    ways = [path, *path.parents]
    below = ways[: ways.index(trusted)]
    return next((f"{part} is a symbolic link" for part in reversed(below) if os.path.islink(part)), None)
