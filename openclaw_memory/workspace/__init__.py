"""The files: which of them count as memory, how they are read safely, and how a note is added."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Self

from openclaw_memory.config import Files
from openclaw_memory.errors import NotFoundError, QueryError, WorkspaceError
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace import files, reading
from openclaw_memory.workspace.files import Scan
from openclaw_memory.workspace.paths import locate

if TYPE_CHECKING:
    import datetime

__all__ = ["Scan", "Workspace"]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder of notes and the rules that say which of its files count. It keeps nothing open and caches nothing."""

    root: Path
    rules: Files = field(default_factory=Files)

    @classmethod
    def open(cls, path: str | os.PathLike[str], rules: Files | None = None) -> Self:
        """The workspace at a folder; `~` is expanded.

        Raises:
            WorkspaceError: there is no such folder, it is a file, or it may not be looked into.
        """
        root = Path(os.path.abspath(os.path.expanduser(path)))
        try:
            mode = os.stat(root).st_mode
        except (FileNotFoundError, NotADirectoryError) as error:
            if not os.path.lexists(root):
                raise WorkspaceError(
                    f"workspace {root} does not exist: "
                    f"create it with `openclaw-memory init --workspace {quote(str(root))}`"
                ) from error
            mode = 0  # a symlink to nothing
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise WorkspaceError(
                f"workspace {root} cannot be reached ({error}): check the path, and its rights"
            ) from error
        if not stat.S_ISDIR(mode):
            raise WorkspaceError(f"workspace {root} is not a folder: name the folder that holds MEMORY.md and memory/")
        if not os.access(root, os.R_OK | os.X_OK):
            raise WorkspaceError(
                f"workspace {root} cannot be read: give yourself the right to "
                f"(as its owner: `chmod u+rx {quote(str(root))}`), or name a folder of your own"
            )
        return cls(root, rules or Files())

    def scan(self) -> Scan:
        """The memory files as they are on disk now, and what was left out and why.

        Raises:
            WorkspaceError: the folder cannot be listed.
            ConfigError: a glob of the rules cannot be read.
        """
        return files.scan(self.root, self.rules)

    def read(self, path: str) -> str:
        """The whole text of a memory file.

        Raises:
            PathNotAllowedError: the path names no memory file, or passes a symlink, or is no ordinary file.
            NotFoundError: there is no such file.
            UndecodableError: it is not text.
            WorkspaceError: it cannot be read.
        """
        return reading.decode(reading.read_bytes(self.root, path, self.rules), path)

    def excerpt(self, path: str, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Whole lines of a memory file from line `start` (1-based), by default 120 of them within 12,000 characters.

        Raises:
            QueryError: `start` or `lines` is less than 1.
            NotFoundError: there is no such file, or `start` lies beyond its end.
            PathNotAllowedError, UndecodableError, WorkspaceError: as `read`.
        """
        name = locate(self.root, self.rules, path).path
        start = 1 if start is None else start
        text = self.read(name)
        excerpt = reading.excerpt_of(name, text, start, reading.DEFAULT_LINES if lines is None else lines)
        if excerpt.end_line < start and start > 1:
            count = len(reading.split_lines(text))
            raise NotFoundError(f"{name} has {count} lines, none numbered {start}: start at {max(count, 1)} or before")
        return excerpt

    def append(self, text: str, date: datetime.date | str | None = None, title: str | None = None) -> Excerpt:
        """Add a text to the note of a day (today by default), whole or not at all; returns its lines.

        `date` is a day or its ISO form, `2026-11-21`. With a `title` the text gets a heading of its own.

        Raises:
            QueryError: the text is empty, or the date is none.
            PathNotAllowedError: the note is a symlink, no regular file, or left out by the globs.
            WriteError: it could not be written. The note is as it was.
        """
        import datetime

        from openclaw_memory.workspace import journal

        now = datetime.datetime.now().astimezone()
        if isinstance(date, str):
            try:
                date = datetime.date.fromisoformat(date)
            except ValueError as error:
                raise QueryError(f"date must be a day such as '2026-11-21', not {date!r}") from error
        return journal.append(self.root, text, date=date or now.date(), title=title, now=now, rules=self.rules)
