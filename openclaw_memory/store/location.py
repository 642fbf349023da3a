"""The path of a workspace's index."""

from __future__ import annotations

import os
from pathlib import Path

from openclaw_memory._links import link_to
from openclaw_memory.errors import StoreError
from openclaw_memory.security.user_secret import secret
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
        # Whose key lasts only until the machine is started again may have made it: it is built again in its place.
        if found is None or found.maker != "another" or secret().problem or not _can_be_made(index := in_cache(root)):
            return folder / INDEX_NAME, ()
        words = (
            f"nothing is read from {folder / INDEX_NAME}: {found.why}; the index is kept in {index} until "
            "that file is deleted"
        )
        return index, (words,)
    index = in_cache(root)
    if link is not None:
        remedy = "to keep it in the workspace, put a folder or a file of its own there"
        return index, (f"{link} and is not followed: the index is kept in {index}; {remedy}",)
    if not _can_be_made(index) and os.access(folder / INDEX_NAME, os.R_OK):
        return folder / INDEX_NAME, (f"neither {root} nor {index.parent} can be written: the index stays as it is",)
    return index, (f"{root} cannot be written: the index is kept in {index}",)


def in_cache(root: Path) -> Path:
    """Return the index file of the workspace in `root` in the user's cache folder, where no stranger can put one."""
    from hashlib import sha256

    from platformdirs import user_cache_path

    digest = sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    try:
        return user_cache_path("openclaw-memory") / digest / INDEX_NAME
    except RuntimeError as error:  # a user without a home folder
        raise StoreError(
            f"the index of {root} cannot be kept in the user's cache folder ({error}): set XDG_CACHE_HOME to a folder "
            "of your own, or Memory.open(..., index_path=...)"
        ) from error


def _link_in(folder: Path) -> str | None:
    """Return what leads elsewhere or is no file, in words: the folder of the index, or what belongs to the index."""
    if link := link_to(folder, folder.parent):
        return link
    try:
        with os.scandir(folder) as entries:
            found = [one for one in entries if one.name.startswith(INDEX_NAME) and ".damaged-" not in one.name]
    except OSError:
        return None
    names = [one.name for one in found]
    for one in found:
        if one.name != INDEX_NAME and not one.is_symlink() and not one.is_file():
            return f"{one.path} is no file"
    return link_to(folder / INDEX_NAME, folder, beside=[name.removeprefix(INDEX_NAME) for name in sorted(names)])


def _can_be_made(path: Path) -> bool:
    there = next(place for place in (path, *path.parents) if place.exists())
    return os.access(there, os.W_OK)
