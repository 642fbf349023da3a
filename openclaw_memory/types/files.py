"""Define memory files, skipped files, excerpts and citations."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

Source: TypeAlias = Literal["memory", "sessions"]
_SPANS = r"L\d{1,9}(?:-L\d{1,9})?(?:,L\d{1,9}(?:-L\d{1,9})?)*"
# Alone, or as `recall` shows it to a model: in brackets, with digits that belong to the block.
_CITATION = re.compile(rf"(?P<open>\[)?(?P<path>.+)#(?P<spans>{_SPANS})(?: [0-9a-f]{{8}})?(?(open)\])")
SOURCES: tuple[Source, ...] = ("memory", "sessions")
# The first and the last line of a run of lines, 1-based, both included.
Span: TypeAlias = tuple[int, int]
# What stands in a text in place of the lines between two spans.
LEFT_OUT = "\n…\n"


def format_citation(path: str, *spans: Span) -> str:
    """Return `path#L3` for one line, `path#L3-L9` for several, `path#L3-L5,L9` where lines between are left out."""
    return f"{path}#" + ",".join(f"L{first}" if last <= first else f"L{first}-L{last}" for first, last in spans)


def parse_citation(text: str) -> tuple[str, tuple[Span, ...]] | None:
    """Return path and spans of a citation, or None if the text names no lines. The spans ascend and share no line.

    No memory file has a name that ends like one.

    Args:
        text: A citation, also as `recall` shows it: `[MEMORY.md#L3 0123abcd]`.
    """
    match = _CITATION.fullmatch(text.strip())
    if match is None:
        return None
    spans: list[Span] = []
    for first, *end in sorted([int(number[1:]) for number in run.split("-")] for run in match["spans"].split(",")):
        last = max([first, *end])
        if spans and first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(last, spans[-1][1])
        else:
            spans.append((first, last))
    return match["path"], tuple(spans)


def suggest_order(text: str) -> str | None:
    """Return the lines of a citation that end before they begin, as they should be written; None for any other text.

    Args:
        text: A path, or a citation: of `MEMORY.md#L9-L3` it is `L3-L9`.
    """
    if (match := _CITATION.fullmatch(text.strip())) is None:
        return None
    runs = [[int(number[1:]) for number in run.split("-")] for run in match["spans"].split(",")]
    return next((f"L{run[1]}-L{run[0]}" for run in runs if len(run) > 1 and run[1] < run[0]), None)


class MemoryFile(Struct, frozen=True):
    """A memory file found on disk. `path` is relative to the workspace, with forward slashes.

    `ctime_ns` is when the system last changed anything about it, which no program can set back; 0 if unknown.
    """

    path: str
    source: Source
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int = 0


class Skipped(Struct, frozen=True):
    """A file that was found and left out, and why."""

    path: str
    reason: str


class Excerpt(Struct, frozen=True):
    """Lines of a memory file.

    Attributes:
        path: The path of the file.
        text: The lines.
        start_line: The first line, 1-based.
        end_line: The last line, included.
        next_start: The line to continue from, or None at the end.
        cut: Whether the single line shown is shown in part.
        hash: The SHA-256 of the lines as they are in the file. An edit that names it changes nothing else.
        existed: Whether a text was not added because the file already had it; the lines are then the existing ones.
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
        """The file and its lines that were read: `path#L3-L9`."""
        return format_citation(self.path, (self.start_line, self.end_line))

    def _repr_html_(self) -> str:
        from openclaw_memory.display import render_code, render_lines, render_table

        notes = [("", "(the file already had it)")] if self.existed else []
        return render_table(
            render_code(self.citation), ("line", "text"), [(self.start_line, render_lines(self.text)), *notes]
        )


class SharedFiles(Protocol):
    """The notes of a memory that a workspace has a copy of."""

    def refresh(self) -> None:
        """Bring the folder up to date before it is read.

        Raises:
            StoreError: The keeper of the notes cannot be reached.
        """
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Hold the notes while files of the folder are changed; they are kept when the block ends.

        Raises:
            StoreError: They cannot be kept.
        """
        ...
