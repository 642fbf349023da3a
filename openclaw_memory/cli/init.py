"""Make a workspace: an empty one, or one of all the Markdown in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openclaw_memory.config import MemoryConfig
from openclaw_memory.errors import WorkspaceError, remedy
from openclaw_memory.workspace import Workspace

SETTINGS = ".memory/config.toml"
_ALL_MARKDOWN = """\
# What is set here holds for this folder. It may name nothing outside of it.
[files]
extra_paths = ["."]  # all Markdown in this folder is memory, but for hidden folders and the like of node_modules
"""
_LONG_TERM = """\
# Long-term memory

What stays true for long: people, preferences, decisions. Notes of the day go to memory/YYYY-MM-DD.md.
"""


def make_workspace(folder: Path) -> list[str]:
    """Create `MEMORY.md` and `memory/` in `folder`, and the folder too; return the names of what was missing.

    What exists is left as it is. Folders are for the owner alone (0700), files too (0600).

    Raises:
        WorkspaceError: The folder cannot be made or written, or a file is in its place.
    """
    made: list[str] = []
    with _told(folder):
        _make_folder(folder)
        if not (folder / "memory").is_dir():
            (folder / "memory").mkdir(mode=0o700)
            made.append("memory")
        return [*(["MEMORY.md"] if _make_file(folder / "MEMORY.md", _LONG_TERM) else []), *made]


def take_all_markdown(folder: Path) -> list[str]:
    """Let all Markdown below `folder` count as memory, from now on and for every program; return what was made.

    No note is made or changed.

    Raises:
        WorkspaceError: The folder is missing or cannot be written, or it has settings of its own that say otherwise.
    """
    Workspace.open(folder)  # a folder of notes is there: one that is not was misspelled
    settings = folder / SETTINGS
    with _told(folder, 'name a file with [defaults] and files.extra_paths = ["."] as --config'):
        _make_folder(settings.parent)
        # What lies there is of this machine, as the index is.
        _make_file(settings.with_name(".gitignore"), "*\n")
        if _make_file(settings, _ALL_MARKDOWN):
            return [SETTINGS]
    if "." not in MemoryConfig().with_workspace_file(settings).files.extra_paths:
        raise WorkspaceError(f'{settings} is there already: add `extra_paths = ["."]` to its table [files]')
    return []


def _make_folder(folder: Path) -> None:
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _make_file(path: Path, text: str) -> bool:
    """Write a file for its owner alone; return False if it exists, which is left as it is."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(file, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
    return True


@contextmanager
def _told(folder: Path, otherwise: str = "choose a folder of your own") -> Iterator[None]:
    """Raise what the system refuses as a WorkspaceError; `otherwise` is what else can be done."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"{folder} cannot be made a workspace: {error.strerror}: {error.filename}; {remedy(error)}, or {otherwise}"
        ) from error
