"""Read lines of notes and transcripts: labels, questions, front matter, and other forms of one line."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from openclaw_memory.text.days import get_path_day, is_date_title
from openclaw_memory.text.markdown_blocks import count_front_matter, parse_front_matter
from openclaw_memory.text.terms import fold, split_words, stem_word
from openclaw_memory.types import Source, StoredChunk
from openclaw_memory.types.conditions import DAY
from openclaw_memory.types.files import LEFT_OUT, Span

DAY_CHARS = len("2026-01-06")  # with which the context of a transcript's chunk begins
SAME_BEGINNING = 5  # letters by which two words are forms of one, if they are that long
_NOTHING = ("", LEFT_OUT.strip())
_LABEL = re.compile(r"\s*(?:[-*+]\s+)?(?:\*\*)?([^\W\d_][^\s:*]{0,40})(?:\*\*)?:(?:\*\*)?\s")
_LIST_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_MARKS = "\"'“”„*_"
_BLANK_LINES = re.compile(r"\n\s*\n")


class Line(NamedTuple):
    """A line of a file, or a piece of a very long one; `line_end` is the length of its line end in the file."""

    path: str
    source: Source
    number: int
    start_char: int
    text: str
    line_end: int = 1

    @property
    def end_char(self) -> int:
        return self.start_char + len(self.text)


def get_day(stored: StoredChunk) -> date | None:
    """Return the day of a chunk, by its heading, front matter or messages, or else by its path; None if unknown."""
    day = stored.chunk.metadata.get(DAY)
    return date.fromisoformat(str(day)) if day else get_path_day(stored.path) if stored.source == "memory" else None


def split_lines(chunks: Sequence[StoredChunk]) -> list[Line]:
    """Return the lines of chunks of one file, each once, by position."""
    lines: list[Line] = []
    end = -1
    for stored in sorted(chunks, key=lambda stored: stored.chunk.start_char):
        number, start = stored.chunk.start_line, stored.chunk.start_char
        for text in stored.chunk.text.split("\n"):
            if start >= end:
                own = text.removesuffix("\r")
                lines.append(Line(stored.path, stored.source, number, start, own, len(text) - len(own) + 1))
                end = start + max(len(text), 1)
            number, start = number + 1, start + len(text) + 1
    return lines


def has_content(text: str) -> bool:
    """Return whether a line is not blank, not a title that is a date, and not the mark of lines left out."""
    return text.strip() not in _NOTHING and not is_date_title(text)


def strip_role(text: str) -> str:
    """Return a line of a transcript without the role that a turn begins with."""
    return text.removeprefix("User: ").removeprefix("Assistant: ")


def find_label(text: str) -> str:
    """Return the label of a line ("Anna:"), folded; "" for none."""
    label = _LABEL.match(text) if ":" in text else None
    return fold(label[1]) if label else ""


def is_question(text: str) -> bool:
    """Return whether a line is a question."""
    return ("?" in text or "？" in text) and text.rstrip(" *_\"')").endswith(("?", "？"))


def join_lines(lines: Sequence[Line]) -> str:
    """Return lines of one file as text, with `LEFT_OUT` between those that do not follow one another.

    In a transcript, blank lines replace hidden text, and are left out.
    """
    parts = [line.text for line in lines[:1]]
    for above, line in pairwise(lines):
        joint = "\n" * (line.number - above.number) or " " * (line.start_char - above.end_char)
        parts += [joint if _is_next(above, line) else LEFT_OUT, line.text]
    text = "".join(parts)
    return remove_blank_lines(text) if lines and lines[0].source == "sessions" else text


def find_spans(lines: Sequence[Line]) -> tuple[Span, ...]:
    """Return the runs of lines that follow one another."""
    spans = [(lines[0].number, lines[0].number)]
    for above, line in pairwise(lines):
        if _is_next(above, line) or above.number == line.number:
            spans[-1] = (spans[-1][0], line.number)
        else:
            spans.append((line.number, line.number))
    return tuple(spans)


def _is_next(above: Line, line: Line) -> bool:
    """Return whether there are only line ends between two lines, of few blank lines, or blanks within a long line."""
    rows, gap = line.number - above.number, line.start_char - above.end_char
    if rows == 0:
        return gap <= 1
    return gap == rows * max(above.line_end, line.line_end) and (rows <= len(LEFT_OUT) or line.source == "sessions")


def remove_blank_lines(text: str) -> str:
    """Return a text with only line breaks between its lines."""
    return _BLANK_LINES.sub("\n", text)


def find_idle_front_matter(texts: Sequence[str], numbers: Sequence[int], query_words: Collection[str]) -> list[int]:
    """Return the indices of lines of front matter that answer nothing by themselves.

    Front matter describes a note, and filters it. A field answers if the query names it, or if the note has no other
    text.

    Args:
        texts: The lines of a note that are known, the first one first.
        numbers: Their numbers.
        query_words: The words of the query, lower case. One that begins as the name of a field does names it.
    """
    whole = [text for at, text in enumerate(texts) if numbers[at] == numbers[0] + at]
    stop = count_front_matter(whole)
    if not any(map(has_content, texts[stop:])):
        return []
    idle, is_named = [], False
    for at, text in enumerate(whole[:stop]):
        if names := parse_front_matter([text]):  # else an item of the field above it
            parts = [word for name in names for word in split_words(name)]
            is_named = any(_is_alike(part, word) for part in parts for word in query_words)
        if not is_named:
            idle.append(at)
    return idle


def _is_alike(first: str, second: str) -> bool:
    """Return whether two words are forms of one, such as `attendees` and `attended`."""
    return stem_word(first) == stem_word(second) or (
        len(first) > SAME_BEGINNING <= len(second) and first[:SAME_BEGINNING] == second[:SAME_BEGINNING]
    )


@lru_cache(maxsize=16384)
def list_forms(text: str) -> tuple[str, ...]:
    """Return a line of a note, and the text after each label in it ("10:30 Anna: "); nothing for a blank line."""
    remaining, forms = normalise_line(text), list[str]()
    while remaining:
        forms.append(remaining)
        remaining = remaining.partition(": ")[2].strip(_MARKS)
    return tuple(forms)


@lru_cache(maxsize=16384)
def normalise_line(text: str) -> str:
    """Return a line without list marker, emphasis and enclosing quotes; case and width of spaces are normalised."""
    marker = _LIST_MARKER.match(text)
    parts = text[marker.end() if marker else 0 :].replace("**", "").split()
    return " ".join(parts).strip(_MARKS).casefold()
