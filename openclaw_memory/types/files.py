"""Files and their lines: what is found on disk, what is left out, and an excerpt of what stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Source: TypeAlias = Literal["memory", "sessions"]
_CITATION = re.compile(r"(?P<path>.+)#L(?P<start>\d{1,9})(?:-L(?P<end>\d{1,9}))?")
SOURCES: tuple[Source, ...] = ("memory", "sessions")


def citation(path: str, start_line: int, end_line: int) -> str:
    """`path#L3` for one line, `path#L3-L9` for several; lines are 1-based."""
    return f"{path}#L{start_line}" if end_line <= start_line else f"{path}#L{start_line}-L{end_line}"


def cited(text: str) -> tuple[str, int, int] | None:
    """Path, first and last line out of what `citation` makes; None where it names no lines.

    No memory file has a name that ends like one.
    """
    match = _CITATION.fullmatch(text.strip())
    if match is None:
        return None
    first = int(match["start"])
    return match["path"], first, max(first, int(match["end"] or first))


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A file that counts as memory, as found on disk. `path` is relative to the workspace, with forward slashes."""

    path: str
    source: Source
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was found and left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a memory file. `next_start` leads on, None at the end; `cut`: the one line shown is not shown whole.

    `hash` is the SHA-256 of these lines as they stand in the file: an edit that names it changes nothing else. Where a
    text was not added because it stood there already, `existed` is True, and the lines are those that did.
    """

    path: str
    text: str
    start_line: int
    end_line: int
    next_start: int | None = None
    cut: bool = False
    hash: str = ""
    existed: bool = False

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)

    def _repr_html_(self) -> str:
        from openclaw_memory.display.tables import code, lines, table

        told = [("", "(it stood there already)")] if self.existed else []
        return table(code(self.citation), ("line", "text"), [(self.start_line, lines(self.text)), *told])
