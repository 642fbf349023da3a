"""Stamps of files: whether a file is as it was, and whether its stamp can be trusted to say so."""

from __future__ import annotations

import os
from typing import TypeAlias

from openclaw_memory.workspace.paths import Stamp

# Two writes within one tick of the file system's clock leave the same stamp. Linux stamps with its scheduler's tick (at
# most 10 ms, doubled here); a stamp of whole seconds comes from a coarse file system (FAT counts in 2 s).
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000

FileStamp: TypeAlias = tuple[int, int, int, int]


def stamp_of(info: os.stat_result | Stamp) -> FileStamp:
    """Return what changes whenever a file changes, once it is settled."""
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def is_settled(info: os.stat_result | Stamp, now: int) -> bool:
    """Whether any later write will give the file another stamp than it has `now`, in ns since 1970."""
    last = max(info.st_mtime_ns, info.st_ctime_ns)
    return now - last > (_TICK_NS if last % 1_000_000_000 else _COARSE_TICK_NS)
