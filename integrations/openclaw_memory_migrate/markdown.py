"""Plan for a Markdown file: sections by the day in their heading, everything else to one note (pure)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from openclaw_memory.text import parse_day, split_blocks
from openclaw_memory_migrate.links import Link, find_new_place, is_outside, rewrite_links
from openclaw_memory_migrate.types import LeftOut, MigrationPlan, Section

LEGACY = "memory/legacy.md"  # undated, so that time does not weigh on what is in it
SNAPSHOT = "session snapshot"  # its heading has no day, but the link below it has
_ISO = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_SHOWN_LINES = 10  # of those whose links were dead
_FIRST_YEAR = 1900  # what is below is a number, such as a version


def plan(
    text: str,
    base: str | None = "",
    is_there: Callable[[str], bool] = lambda _: True,
    moved_to: Mapping[str, str] = MappingProxyType({}),
) -> MigrationPlan:
    """Plan where each line of a Markdown file goes. Its relative links lead to the same files from there.

    Args:
        text: The file, as `decode` returns it.
        base: The folder of the file, relative to the workspace, "" for the workspace itself; None where it is outside.
        is_there: Whether the path of a link, relative to the file, leads to something.
        moved_to: From paths, relative to the folder of the file, to where those files are in the workspace now.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    sections, links = rewrite_links([*_split_sections(lines)], lines, base, moved_to)
    dead = [link for link in links if not is_there(link.path)]
    left_out = [
        LeftOut(f"line {link.line}", f"its link leads to {link.path!r}, outside the workspace: copy that, and link it")
        for link in links
        if is_outside(base, link.path) and find_new_place(link.path, moved_to) is None and link not in dead
    ]
    notices = [f"{len(dead):,} links led to files that are not there already: {_list_lines(dead)}"] if dead else []
    return MigrationPlan("markdown", tuple(sections), left_out=tuple(left_out), notices=tuple(notices))


def _list_lines(links: Sequence[Link]) -> str:
    numbers = [*dict.fromkeys(link.line for link in links)]
    listed = ", ".join(map(str, numbers[:_SHOWN_LINES]))
    return f"{'line' if len(numbers) == 1 else 'lines'} {listed}{', ...' if len(numbers) > _SHOWN_LINES else ''}"


def _split_sections(lines: Sequence[str]) -> Iterator[Section]:
    cuts = [*_find_cuts(lines), (len(lines), 0, None)]
    for (first, _, day), (stop, _, _) in pairwise(cuts):
        span = range(first, stop)
        while span and not lines[span[-1]].strip():
            span = span[:-1]
        while span and not lines[span[0]].strip():
            span = span[1:]
        if span:
            path = LEGACY if day is None else f"memory/{day}.md"
            yield Section(path, span[0] + 1, tuple(lines[span[0] : span[-1] + 1]))


def _find_cuts(lines: Sequence[str]) -> list[tuple[int, int, datetime.date | None]]:
    """Return where sections begin, with the level of their heading and their day.

    Text below a dated heading is of its day, unless it has a heading with another one. A deeper heading of the same
    day begins no section.
    """
    cuts: list[tuple[int, int, datetime.date | None]] = [(0, 0, None)]
    above: list[tuple[int, datetime.date | None]] = []
    for block in split_blocks(lines):
        if block.kind != "heading":
            continue
        level, title = block.get_title(lines)
        above = [outer for outer in above if outer[0] < level]
        day = _find_day(title) or (above[-1][1] if above else None)
        if day is None and title.casefold() == SNAPSHOT:
            day = _find_day_below(lines, block.stop)
        above.append((level, day))
        _, level_before, day_before = cuts[-1]
        if day != day_before or level <= level_before or not level_before:
            cuts.append((block.first, level, day))
    return cuts


def _find_day(text: str) -> datetime.date | None:
    for match in _ISO.finditer(text):
        if (day := _make_date(*map(int, match.groups()))) is not None:
            return day
    return parse_day(text)


def _find_day_below(lines: Sequence[str], first: int) -> datetime.date | None:
    """Return the first day in the lines below a heading, up to the next one."""
    for line in lines[first:]:
        if line.startswith("#"):
            return None
        if (day := _find_day(line)) is not None:
            return day
    return None


def _make_date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day) if year >= _FIRST_YEAR else None
    except ValueError:
        return None
