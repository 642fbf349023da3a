"""The path of a workspace's index."""

from __future__ import annotations

import os
from pathlib import Path

from openclaw_memory._links import link_to
from openclaw_memory.store.signature import look

DERIVED_FOLDER = ".memory"
INDEX_NAME = "index.sqlite"


def index_place(root: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the index file of the workspace in `root`, and notices about its place.

    It is inside the workspace, or in the user's cache folder where the workspace cannot be written, where a link is in
    its place there (a folder from strangers might lead to files of others), or the index of another user. Where the
    cache folder cannot be written either, an index inside the workspace is read as it is, but never through a link.
    """
    folder = root / DERIVED_FOLDER
    link = _link_in(folder)
    if link is None and os.access(folder if folder.exists() else root, os.W_OK):
        found = look(folder / INDEX_NAME, root)
        if found is None or found.maker != "another":
            return folder / INDEX_NAME, ()
        index = _in_cache(root)
        words = (
            f"nothing is read from {folder / INDEX_NAME}: {found.why}; the index is kept in {index} until "
            "that file is deleted"
        )
        return index, (words,)
    index = _in_cache(root)
    if link is not None:
        remedy = "to keep it in the workspace, put a folder or a file of its own there"
        return index, (f"{link} and is not followed: the index is kept in {index}; {remedy}",)
    if not _can_be_made(index) and os.access(folder / INDEX_NAME, os.R_OK):
        return folder / INDEX_NAME, (f"neither {root} nor {index.parent} can be written: the index stays as it is",)
    return index, (f"{root} cannot be written: the index is kept in {index}",)


def _in_cache(root: Path) -> Path:
    from hashlib import sha256

    from platformdirs import user_cache_path

    digest = sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    return user_cache_path("openclaw-memory") / digest / INDEX_NAME


def _link_in(folder: Path) -> str | None:
    """Return what is a link, in words: the folder of the index, or a file in it that belongs to the index."""
    if link := link_to(folder, folder.parent):
        return link
    try:
        names = [name for name in os.listdir(folder) if name.startswith(INDEX_NAME) and ".damaged-" not in name]
    except OSError:
        return None
    return link_to(folder / INDEX_NAME, folder, beside=[name.removeprefix(INDEX_NAME) for name in sorted(names)])


def _can_be_made(path: Path) -> bool:
    there = next(place for place in (path, *path.parents) if place.exists())
    return os.access(there, os.W_OK)
