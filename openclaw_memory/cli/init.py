"""Making an empty workspace."""

from __future__ import annotations

import os
from pathlib import Path

from openclaw_memory.errors import WorkspaceError

_LONG_TERM = """\
# Long-term memory

What stays true for long: people, preferences, decisions. Notes of the day go to memory/YYYY-MM-DD.md.
"""


def make_workspace(folder: Path) -> list[str]:
    """Create `MEMORY.md` and `memory/` in `folder`, and the folder too; returns the names of what was missing.

    What exists is left as it is. Folders are for the owner alone (0700), files too (0600).

    Raises:
        WorkspaceError: the folder cannot be made or written, or a file stands in its place.
    """
    made: list[str] = []
    try:
        for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        if not (folder / "memory").is_dir():
            (folder / "memory").mkdir(mode=0o700)
            made.append("memory")
        try:
            file = os.open(folder / "MEMORY.md", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return made
        with os.fdopen(file, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(_LONG_TERM)
        return ["MEMORY.md", *made]
    except OSError as error:
        raise WorkspaceError(
            f"{folder} cannot be made a workspace: {error.strerror}: {error.filename}; choose a folder of your own"
        ) from error
