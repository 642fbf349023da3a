"""The path of a workspace's index."""

from __future__ import annotations

import os
from pathlib import Path

from openclaw_memory.store.signature import look

DERIVED_FOLDER = ".memory"
INDEX_NAME = "index.sqlite"
# The files in which SQLite keeps its journal next to the database.
COMPANIONS = ("-wal", "-shm", "-journal")


def index_place(root: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the index file of the workspace in `root`, and notices about its place.

    It is inside the workspace, or in the user's cache folder where the workspace cannot be written, or holds the index
    of another user. Where that cannot be written either, an index inside the workspace is read as it is.
    """
    folder = root / DERIVED_FOLDER
    if os.access(folder if folder.exists() else root, os.W_OK):
        found = look(folder / INDEX_NAME)
        if found is None or found.maker != "another":
            return folder / INDEX_NAME, ()
        index = _in_cache(root)
        words = (
            f"nothing is read from {folder / INDEX_NAME}: {found.why}; the index is kept in {index} until "
            "that file is deleted"
        )
        return index, (words,)
    index = _in_cache(root)
    if not _can_be_made(index) and os.access(folder / INDEX_NAME, os.R_OK):
        return folder / INDEX_NAME, (f"neither {root} nor {index.parent} can be written: the index stays as it is",)
    return index, (f"{root} cannot be written: the index is kept in {index}",)


def _in_cache(root: Path) -> Path:
    from hashlib import sha256

    from platformdirs import user_cache_path

    digest = sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    return user_cache_path("openclaw-memory") / digest / INDEX_NAME


def _can_be_made(path: Path) -> bool:
    there = next(place for place in (path, *path.parents) if place.exists())
    return os.access(there, os.W_OK)
