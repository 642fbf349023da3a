"""Check that an object is used in the process that made it: a forked child has not its threads and locks."""

from __future__ import annotations

import os

from openclaw_memory.errors import StoreError


def check_process(pid: int, name: object) -> None:
    """Raise StoreError in any other process than the one that has opened something."""
    if pid != os.getpid():
        raise StoreError(f"{name} was opened before this process was forked: open the memory in the child")
