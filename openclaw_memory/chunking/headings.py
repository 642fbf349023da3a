"""Heading-aware chunks: whole blocks packed under one heading, each a verbatim slice of the file."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, chain, groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.text.markdown_blocks import Block, count_front_matter, is_fence, parse_front_matter, split_blocks
from openclaw_memory.types import Chunk

# The context is embedded with every chunk: longer, it would drown the text.
MAX_CONTEXT = 200
MAX_CONTEXT_PART = 80
# A title and tags stand among the first lines of the front matter.
MAX_MATTER = 1000

# Lines of a chunk that the next one of its section repeats.
OVERLAP_LINES = 1

# A cut looks this far back at most for a place that parts no combined character.
MAX_CLUSTER = 32

_SENTENCE_END = re.compile(r"[.!?][\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*")


@dataclass(frozen=True, slots=True)
class _File:
    """The lines of a text, and the offset of each (one more than there are lines)."""

    text: str
    lines: Sequence[str]
    starts: Sequence[int]

    def measure(self, first: int, stop: int) -> int:
        """Return the number of characters of lines first..stop-1, without the last line break."""
        return self.starts[stop] - 1 - self.starts[first]


class _Section(NamedTuple):
    """Blocks under one heading. `above` are the outer titles; `title` is its own, "" for text before any heading.

    `head` is the first block, often the heading.
    """

    above: tuple[str, ...]
    title: str
    head: Block


class _Span(NamedTuple):
    """A future chunk: its lines, first..stop-1, and its characters."""

    first: int
    stop: int
    start_char: int
    end_char: int


def chunk_headings(text: str, _path: str, rules: ChunkingConfig, note_date: date | None) -> Iterator[Chunk]:
    """Yield chunks of at most `rules.max_chars` characters that never cross a heading.

    Front matter is a chunk of its own. A block that is too large is cut between lines, a line that is too large at the
    end of a sentence, else at a space. A chunk that continues its section begins with the last `OVERLAP_LINES`
    lines of the previous one if they fit. `text[c.start_char:][:len(c.text)] == c.text`.
    """
    lines = text.split("\n")
    # A list of numbers takes four times the memory, and there may be ten million lines.
    file = _File(text, lines, array("Q", chain((0,), accumulate(len(line) + 1 for line in lines))))
    day = note_date.isoformat() if note_date else ""
    matter = _read_matter(lines)
    for section, placed in groupby(_split_sections(lines), key=itemgetter(0)):
        about = matter if section.head.kind != "front" else ()
        tables: list[Block] = []
        for span in _pack(file, section, _collect_tables((block for _, block in placed), tables), rules):
            body = text[span.start_char : span.end_char].rstrip("\r\n")
            context = _make_context(day, about, section, span.first, body)
            if (header := _find_header(tables, span.first)) is not None:
                cells = lines[header][:MAX_CONTEXT].strip().strip("|").split("|")
                context = _join_parts([context, " | ".join(map(str.strip, cells))])
            yield Chunk(span.first + 1, span.stop, span.start_char, body, context, section.head.first + 1)


# --- sections ----------------------------------------------------------------------------------------------------


def _split_sections(lines: Sequence[str]) -> Iterator[tuple[_Section, Block]]:
    """Yield each block with its section."""
    titles: list[tuple[int, str]] = []
    section: _Section | None = None
    for block in split_blocks(lines):
        if block.kind == "heading":
            level, title = block.get_title(lines)
            title = title[:MAX_CONTEXT_PART]
            titles = [outer for outer in titles if outer[0] < level]
            section = _Section(tuple(outer[1] for outer in titles), title, block)
            titles.append((level, title))
        section = section or _Section((), "", block)
        yield section, block
        if block.kind == "front":
            section = None


def _collect_tables(section_blocks: Iterable[Block], tables: list[Block]) -> Iterator[Block]:
    for block in section_blocks:
        if block.kind == "table":
            tables.append(block)
        yield block


def _find_header(tables: Sequence[Block], line: int) -> int | None:
    """Return the first line of the table that a line continues, or None."""
    at = bisect_left(tables, line, key=attrgetter("first")) - 1
    return tables[at].first if at >= 0 and line < tables[at].stop else None


# --- packing -----------------------------------------------------------------------------------------------------


def _pack(file: _File, section: _Section, section_blocks: Iterable[Block], rules: ChunkingConfig) -> Iterator[_Span]:
    """Fill chunks greedily with the units of a section."""
    limit = rules.max_chars
    begin = end = -1  # lines of the chunk being filled; begin < 0: none
    for first, stop in _split_units(file, section_blocks, limit):
        if begin >= 0 and file.measure(begin, stop) <= limit:
            end = stop
        elif file.measure(first, stop) <= limit:
            if begin >= 0:
                yield _make_span(file, begin, end)
            begin = _find_overlap(file, end, first, stop, rules) if begin >= 0 else first
            end = stop
        else:
            # The first piece of a long line takes its heading along, when that leaves half of the room.
            joins = begin >= 0 and end == begin + 1 and section.head == ("heading", begin, end)
            joins = joins and file.starts[first] - file.starts[begin] <= limit // 2
            if begin >= 0 and not joins:
                yield _make_span(file, begin, end)
            yield from _split_line(file, begin if joins else first, first, limit)
            begin = -1
    if begin >= 0:
        yield _make_span(file, begin, end)


def _split_units(file: _File, section_blocks: Iterable[Block], limit: int) -> Iterator[tuple[int, int]]:
    """Yield line ranges to keep whole: blocks, and the lines of a block too large for one chunk with its heading."""
    anchor = -1
    for kind, first, stop in section_blocks:
        if file.measure(first if anchor < 0 else anchor, stop) <= limit:
            yield first, stop
        else:
            yield from ((line, line + 1) for line in range(first, stop) if file.lines[line].strip())
        anchor = first if kind == "heading" else -1


def _make_span(file: _File, first: int, stop: int) -> _Span:
    return _Span(first, stop, file.starts[first], file.starts[stop] - 1)


def _find_overlap(file: _File, end: int, first: int, stop: int, rules: ChunkingConfig) -> int:
    """Return the first line of the next chunk, which repeats the last lines before `end` and still holds first..stop-1.

    It never reaches the beginning of the previous chunk: from there on, first..stop-1 did not fit.
    """
    repeated = first
    for line in range(end - 1, end - 1 - OVERLAP_LINES, -1):
        if is_fence(file.lines[line]) or file.measure(line, stop) > rules.max_chars:
            break
        if file.lines[line].strip():
            repeated = line
    return repeated


def _split_line(file: _File, begin: int, line: int, limit: int) -> Iterator[_Span]:
    """Yield the pieces of a line that exceeds `limit`; the first one begins at line `begin`."""
    start, line_end = file.starts[begin], file.starts[line + 1] - 1
    while start < line_end:
        cut = line_end if line_end - start <= limit else _cut(file.text, start, start + limit)
        first = begin if start == file.starts[begin] else line
        yield _Span(first, line + 1, start, cut)
        start = cut
        while start < line_end and file.text[start].isspace():
            start += 1


def _cut(text: str, start: int, end: int) -> int:
    """Return where to cut text[start:end], in its second half if a sentence or a word ends there."""
    middle = start + (end - start) // 2
    cut = 0
    for match in _SENTENCE_END.finditer(text, middle, end + 1):
        if match.end() <= end:
            cut = match.end()
    if cut > middle:
        return cut
    space = text.rfind(" ", middle + 1, end + 1)
    if space > 0:
        return space
    for cut in range(end, max(middle, end - MAX_CLUSTER), -1):
        if not _is_joined(text, cut):
            return cut
    return end


def _is_joined(text: str, index: int) -> bool:
    """Return whether the character at `index` combines with the one before it."""
    before, character = text[index - 1], text[index]
    return (
        unicodedata.category(character) in ("Mn", "Mc", "Me")
        or "\u200d" in (before, character)
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= character <= "\udfff")
    )


# --- context -----------------------------------------------------------------------------------------------------


def _read_matter(lines: Sequence[str]) -> tuple[str, str]:
    """Return the title and the tags of the front matter, each "" if it has none."""
    values = parse_front_matter(lines[1 : min(stop - 1, MAX_MATTER)]) if (stop := count_front_matter(lines)) else {}
    return values.get("title", "")[:MAX_CONTEXT_PART], values.get("tags", "")[:MAX_CONTEXT_PART]


def _make_context(day: str, about: Sequence[str], section: _Section, first: int, body: str) -> str:
    """Return date, title and tags of the file and the titles above line `first`, without a date in a title."""
    kind, heading_line, _ = section.head
    opens = kind == "heading" and first == heading_line
    titles = section.above if opens else (*section.above, section.title)
    shown_texts = (*titles, body.partition("\n")[0]) if opens else titles
    return _join_parts([*(() if any(day in title for title in shown_texts) else (day,)), *about, *titles])


def _join_parts(parts: Sequence[str]) -> str:
    """Return the parts as one line of at most MAX_CONTEXT characters; the second part is dropped first."""
    unique: dict[str, str] = {}
    for part in parts:
        if part:
            unique.setdefault(part.casefold(), part)
    names = [" ".join(part.split())[:MAX_CONTEXT_PART].rstrip() for part in unique.values()]
    while len(names) > 2 and sum(map(len, names)) + 3 * (len(names) - 1) > MAX_CONTEXT:
        del names[1]
    return " > ".join(names)[:MAX_CONTEXT]
