"""Lines of chunks: what they say, where they belong together, and what transcripts repeat of notes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from openclaw_memory.text.markdown_blocks import count_front_matter, parse_front_matter
from openclaw_memory.text.terms import fold, split_words, stem_word
from openclaw_memory.types import Source, StoredChunk
from openclaw_memory.types.files import LEFT_OUT
from openclaw_memory.workspace.paths import is_date_title

SAME_BEGINNING = 5  # letters by which two words are forms of one, if they are that long
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


def matter_not_asked_for(lines: Sequence[Line], firsts: Iterable[int], asked: Collection[str]) -> frozenset[int]:
    """Return the indices of lines of front matter that answer nothing by themselves.

    Front matter says what a note is about, and filters it. A field answers where the question names it, and in a note
    that says nothing else.

    Args:
        lines: The lines, by path and position.
        firsts: The indices of lines that are the first ones of their files.
        asked: The words of the question, lower case. One that begins as the name of a field does names it.
    """
    found: set[int] = set()
    for first in firsts:
        if lines[first].text.removeprefix("\ufeff").rstrip() != "---":
            continue
        path = lines[first].path
        own = [first + at for at, _ in enumerate(takewhile(lambda line: line.path == path, lines[first:]))]  # noqa: B023
        texts = [lines[at].text for at in own if lines[at].number == lines[first].number + at - first]
        stop = count_front_matter(texts)
        if not any(lines[at].says_something for at in own[stop:]):
            continue
        is_asked = False
        for at, text in zip(own[:stop], texts, strict=False):
            if names := parse_front_matter([text]):  # else an item of the field above it
                is_asked = any(
                    _are_alike(word, other) for name in names for word in split_words(name) for other in asked
                )
            if not is_asked:
                found.add(at)
    return frozenset(found)


def _are_alike(one: str, other: str) -> bool:
    """Return whether two words are forms of one, such as `attendees` and `attended`."""
    return stem_word(one) == stem_word(other) or (
        len(one) > SAME_BEGINNING <= len(other) and one[:SAME_BEGINNING] == other[:SAME_BEGINNING]
    )


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
