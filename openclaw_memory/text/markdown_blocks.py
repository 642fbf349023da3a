"""Split Markdown into blocks of lines: front matter, headings, fenced code, tables, list items and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["front", "heading", "fence", "table", "item", "text"]

_HEADING = re.compile(r"\ufeff? {0,3}(#{1,6})(?:[ \t]+(.*))?$", re.DOTALL)
# Any indent: fences occur in nested list items too. A backtick after the opening ones makes it inline code.
_FENCE = re.compile(r"\s*(?:(`{3,})[^`]*|(~{3,}).*)$", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
# Possessive, lest a long run of blanks be tried in every way it could be shared out.
_DELIMITER_ROW = re.compile(r"\s*+\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+$")
_UNDERLINE = re.compile(r" {0,3}(={2,}|-{2,})\s*$")
_KEY = re.compile(r"([\w.-]+)[ \t]*:(?:\s+(.*))?$", re.DOTALL)


class Block(NamedTuple):
    """Lines first..stop-1, 0-based, that belong together; blank lines between blocks are in no block."""

    kind: Kind
    first: int
    stop: int

    def get_title(self, lines: Sequence[str]) -> tuple[int, str]:
        """Return the level and the title of a heading block, ATX or underlined."""
        level = _get_underlined_level(lines, self.first)
        return (level, " ".join(lines[self.first].split())) if level else parse_heading(lines[self.first]) or (1, "")


def parse_heading(line: str) -> tuple[int, str] | None:
    """Return the level (1 to 6) and the title of an ATX heading line, or None. Code blocks are not recognised here."""
    if "#" not in line[:5]:
        return None
    match = _HEADING.match(line.rstrip("\r"))
    if match is None:
        return None
    title = " ".join((match[2] or "").split())
    bare = title.rstrip("#")
    return len(match[1]), bare.rstrip() if not bare or bare.endswith(" ") else title


def is_fence(line: str) -> bool:
    """Return whether the line could open or close fenced code."""
    return _FENCE.match(line) is not None


def is_item(line: str) -> bool:
    """Return whether a line begins a list item."""
    return _ITEM.match(line) is not None


def split_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the blocks of a file, in order; every line that is not blank is in exactly one.

    A fence that is never closed runs to the end of the file, as in CommonMark.

    Args:
        lines: The lines of the file.
    """
    index = count_front_matter(lines)
    if index:
        yield Block("front", 0, index)
    while index < len(lines):
        kind = _get_kind(lines, index)
        if kind is None:
            index += 1
            continue
        stop = _stop(lines, index, kind)
        yield Block(kind, index, stop)
        index = stop


def parse_front_matter(lines: Sequence[str]) -> dict[str, str]:
    """Return the plain `key: value` lines of a front matter block, keys in lower case; lists become "a, b"."""
    values: dict[str, str] = {}
    key = ""
    for line in lines:
        if match := _KEY.match(line):
            key = match[1].lower()
            values[key] = _parse_plain(match[2] or "")
        elif key and line.lstrip().startswith("- "):
            item = _parse_plain(line.strip().removeprefix("- "))
            values[key] = f"{values[key]}, {item}" if values[key] else item
        elif line.strip():
            key = ""
    return values


def _parse_plain(value: str) -> str:
    items = value.strip().strip("[]").split(",")
    return ", ".join(item for item in (item.strip().strip("\"'") for item in items) if item)


def count_front_matter(lines: Sequence[str]) -> int:
    """Return the line after the front matter, or 0; a file may also begin with a thematic break."""
    if lines[0].removeprefix("\ufeff").rstrip() != "---" or len(lines) < 2 or not _KEY.match(lines[1]):
        return 0
    for index in range(2, len(lines)):
        if lines[index].rstrip() in ("---", "..."):
            return index + 1
    return 0


def _get_kind(lines: Sequence[str], index: int) -> Kind | None:
    """Return the kind of block that begins at this line, or None for a blank one."""
    line = lines[index]
    start = line.lstrip()
    if not start:
        return None
    if parse_heading(line) is not None or _get_underlined_level(lines, index):
        return "heading"
    if start[0] in "`~" and is_fence(line):
        return "fence"
    if is_item(line):
        return "item"
    if "|" in line and index + 1 < len(lines) and "|" in lines[index + 1] and _DELIMITER_ROW.match(lines[index + 1]):
        return "table"
    return "text"


def _get_underlined_level(lines: Sequence[str], index: int) -> int:
    """Return 1 or 2, the level of a single line that a row of = or - makes a heading, else 0."""
    alone = index == 0 or not lines[index - 1].strip()
    below = _UNDERLINE.match(lines[index + 1]) if alone and index + 1 < len(lines) else None
    if below is None or not lines[index].strip() or parse_heading(lines[index]) is not None:
        return 0
    return 1 if below[1][0] == "=" else 2


def _stop(lines: Sequence[str], first: int, kind: Kind) -> int:
    """Return the line after the block of this kind that begins at `first`."""
    if kind == "heading":
        return first + (2 if _get_underlined_level(lines, first) else 1)
    if kind == "fence":
        return _fence_stop(lines, first)
    if kind == "table":
        return next((i for i in range(first + 2, len(lines)) if not _is_row(lines, i)), len(lines))
    indent = measure_indent(lines[first])
    for index in range(first + 1, len(lines)):
        inner = _get_kind(lines, index)
        if inner == "text" or (inner == "item" and kind == "item" and measure_indent(lines[index]) > indent):
            continue
        return index
    return len(lines)


def _is_row(lines: Sequence[str], index: int) -> bool:
    return "|" in lines[index] and _get_kind(lines, index) in ("text", "table")


def _fence_stop(lines: Sequence[str], first: int) -> int:
    marker = lines[first].lstrip()
    mark = marker[: len(marker) - len(marker.lstrip(marker[0]))]
    for index in range(first + 1, len(lines)):
        line = lines[index].strip()
        if line.startswith(mark) and not line.strip(mark[0]):
            return index + 1
    return len(lines)


def measure_indent(line: str) -> int:
    """Return the number of blanks that a line begins with."""
    return len(line) - len(line.lstrip())
