"""Ask the operating system: open files through no link, check the process of an object, read a table that ships."""

from __future__ import annotations

import os
from pathlib import Path

from openclaw_memory.errors import StoreError

# Flags of `os.open` for a file that is no link. O_NONBLOCK: opening a FIFO must not wait for a writer.
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def check_process(pid: int, name: object) -> None:
    """Raise StoreError in any other process than the one that has opened something: it lacks its threads and locks."""
    if pid != os.getpid():
        raise StoreError(f"{name} was opened before this process was forked: open the memory in the child")


def read_lines(module: str, name: str) -> list[str]:
    """Read the lines of a table that ships beside a module; those that begin with `#` are comments.

    Args:
        module: The `__file__` of the module.
        name: The name of the table.
    """
    return [line for line in Path(module).with_name(name).read_text("utf-8").splitlines() if not line.startswith("#")]
