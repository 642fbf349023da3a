"""Plan for a Markdown file: sections by the day in their heading, everything else to one note (pure)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from openclaw_memory.search import mentioned_dates
from openclaw_memory.text import blocks, title_of
from openclaw_memory_migrate.links import Link, is_outside, new_place, relinked
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
    sections, links = relinked([*_sections(lines)], lines, base, moved_to)
    lost = [one for one in links if not is_there(one.path)]
    left_out = [
        LeftOut(f"line {one.line}", f"its link leads to {one.path!r}, outside the workspace: copy that, and link it")
        for one in links
        if is_outside(base, one.path) and new_place(one.path, moved_to) is None and one not in lost
    ]
    notices = [f"{len(lost):,} links led to files that are not there already: {_named(lost)}"] if lost else []
    return MigrationPlan("markdown", tuple(sections), left_out=tuple(left_out), notices=tuple(notices))


def _named(links: Sequence[Link]) -> str:
    numbers = [*dict.fromkeys(one.line for one in links)]
    shown = ", ".join(map(str, numbers[:_SHOWN_LINES]))
    return f"{'line' if len(numbers) == 1 else 'lines'} {shown}{', ...' if len(numbers) > _SHOWN_LINES else ''}"


def _sections(lines: Sequence[str]) -> Iterator[Section]:
    cuts = [*_cuts(lines), (len(lines), 0, None)]
    for (first, _, day), (stop, _, _) in pairwise(cuts):
        kept = range(first, stop)
        while kept and not lines[kept[-1]].strip():
            kept = kept[:-1]
        while kept and not lines[kept[0]].strip():
            kept = kept[1:]
        if kept:
            path = LEGACY if day is None else f"memory/{day}.md"
            yield Section(path, kept[0] + 1, tuple(lines[kept[0] : kept[-1] + 1]))


def _cuts(lines: Sequence[str]) -> list[tuple[int, int, datetime.date | None]]:
    """Return where sections begin, with the level of their heading and their day.

    What is below a dated heading is of its day, unless it has a heading with another one. A deeper heading of the same
    day begins no section.
    """
    cuts: list[tuple[int, int, datetime.date | None]] = [(0, 0, None)]
    above: list[tuple[int, datetime.date | None]] = []
    for block in blocks(lines):
        if block.kind != "heading":
            continue
        level, title = title_of(lines, block)
        above = [outer for outer in above if outer[0] < level]
        day = _day_in(title) or (above[-1][1] if above else None)
        if day is None and title.casefold() == SNAPSHOT:
            day = _day_below(lines, block.stop)
        above.append((level, day))
        _, level_before, day_before = cuts[-1]
        if day != day_before or level <= level_before or not level_before:
            cuts.append((block.first, level, day))
    return cuts


def _day_in(text: str) -> datetime.date | None:
    for match in _ISO.finditer(text):
        if (day := _date(*map(int, match.groups()))) is not None:
            return day
    for found in mentioned_dates(text):
        if found.year and found.month and found.day and (day := _date(found.year, found.month, found.day)) is not None:
            return day
    return None


def _day_below(lines: Sequence[str], first: int) -> datetime.date | None:
    """Return the first day in the lines below a heading, up to the next one."""
    for line in lines[first:]:
        if line.startswith("#"):
            return None
        if (day := _day_in(line)) is not None:
            return day
    return None


def _date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day) if year >= _FIRST_YEAR else None
    except ValueError:
        return None
