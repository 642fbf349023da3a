"""Lines of chunks: what they say, where they belong together, and what transcripts repeat of notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from openclaw_memory.text.terms import fold
from openclaw_memory.types import Source, StoredChunk
from openclaw_memory.types.files import LEFT_OUT
from openclaw_memory.workspace.paths import is_date_title

_NOTHING = ("", LEFT_OUT.strip())
_LABEL = re.compile(r"\s*(?:[-*+]\s+)?(?:\*\*)?([^\W\d_][^\s:*]{0,40})(?:\*\*)?:(?:\*\*)?\s")


class Line(NamedTuple):
    """A line of a file, or a piece of a very long one.

    `context` is that of the line's chunk, and `line_end` the length of what ends the line in its file.
    """

    path: str
    source: Source
    number: int
    start_char: int
    text: str
    context: str = ""
    line_end: int = 1

    @property
    def end_char(self) -> int:
        return self.start_char + len(self.text)

    @property
    def said(self) -> str:
        """The text to compare with the query: in a transcript, without the role that a turn begins with."""
        return self.text.removeprefix("User: ").removeprefix("Assistant: ") if self.source == "sessions" else self.text

    @property
    def says_something(self) -> bool:
        """False for a blank line and for a title that is a date, which the path of a daily note says already.

        Also for a line like that in place of those left out.
        """
        return self.text.strip() not in _NOTHING and not is_date_title(self.text)


def lines_of(chunks: Sequence[StoredChunk]) -> list[Line]:
    """Return the lines of chunks, each once, by path and position, notes before transcripts."""
    lines: list[Line] = []
    path, end = "", -1
    for stored in sorted(chunks, key=lambda stored: (stored.source, stored.path, stored.chunk.start_char)):
        number, start = stored.chunk.start_line, stored.chunk.start_char
        for text in stored.chunk.text.split("\n"):
            if stored.path != path or start >= end:
                own = text.removesuffix("\r")
                line_end = len(text) - len(own) + 1
                lines.append(Line(stored.path, stored.source, number, start, own, stored.chunk.context, line_end))
                path, end = stored.path, start + max(len(text), 1)
            number, start = number + 1, start + len(text) + 1
    return lines


def label_of(text: str) -> str:
    """Return the label of one line ("Anna:"), folded; "" for none."""
    label = _LABEL.match(text) if ":" in text else None
    return fold(label[1]) if label else ""


def asks(text: str) -> bool:
    """Return whether one line is a question."""
    return text.rstrip(" *_\"')").endswith(("?", "？"))


_LIST_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")

_MARKS = "\"'“”„*_"


def repeated(lines: Sequence[Line]) -> list[bool]:
    """Return for each line whether it is one of a transcript that repeats a line of a note, of any form there."""
    written = {form for line in lines if line.source == "memory" for form in _forms(line.text)}
    return [line.source == "sessions" and _plain(line.said) in written for line in lines]


@lru_cache(maxsize=16384)
def _forms(text: str) -> tuple[str, ...]:
    """Return a line of a note, and what follows each label in it ("10:30 Anna: "); nothing for a blank line."""
    rest, found = _plain(text), list[str]()
    while rest:
        found.append(rest)
        rest = rest.partition(": ")[2].strip(_MARKS)
    return tuple(found)


@lru_cache(maxsize=16384)
def _plain(text: str) -> str:
    """Return a line without list marker, emphasis and enclosing quotes; case and width of spaces are normalised."""
    marker = _LIST_MARKER.match(text)
    words = text[marker.end() if marker else 0 :].replace("**", "").split()
    return " ".join(words).strip(_MARKS).casefold()
