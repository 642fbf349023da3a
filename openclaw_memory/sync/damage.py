"""What is done with a damaged index: it is kept under another name, so that a new one can be built in its place."""

from __future__ import annotations

import os
import time
from pathlib import Path

from openclaw_memory.errors import StoreError

# SQLite keeps its journal in files beside the database; left behind, they would be replayed into the new one.
COMPANIONS = ("-wal", "-shm", "-journal")


def set_aside(index_path: Path) -> Path:
    """Rename a damaged index, with its companions, to `<name>.damaged-<time>`; no connection may be open on it.

    Raises:
        StoreError: it cannot be renamed; the folder may be read-only.
    """
    stamp = time.strftime("%Y%m%dT%H%M%S")
    aside = index_path.with_name(f"{index_path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = index_path.with_name(f"{index_path.name}.damaged-{stamp}-{number}")
    try:
        # The companions go first: a crash in between leaves a database without a journal, never a journal alone.
        for companion in COMPANIONS:
            if (beside := Path(f"{index_path}{companion}")).exists():
                os.replace(beside, f"{aside}{companion}")
        os.replace(index_path, aside)
    except OSError as error:
        raise StoreError(
            f"{index_path} is damaged and cannot be renamed ({error}); delete it and sync again"
        ) from error
    return aside
