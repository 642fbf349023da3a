"""What of a text a note does not say yet, section by section (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

# The headings above some lines, the outermost first, as they are written: `("## Anna", "### Tea")`.
Path: TypeAlias = tuple[str, ...]

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")


class _Section(NamedTuple):
    path: Path
    lines: list[str]


def missing(text: str, note: str, title: str, others: Iterable[tuple[str, str]] = ()) -> str:
    """The sections of a text that a note does not have, "" where it has them all; ready to be added at its end.

    A section is all that stands below a heading, or above the first one: its lines may depend on each other, and so it
    is there as a whole, line after line below the same headings, or is added as a whole. `title` is the heading of the
    note, `# 2026-11-21`, which says nothing of what follows it. What is added brings its headings along; where they
    cannot end those at the end of the note, the title does, once more. A section that begins with the lines that the
    note ends with is added without them. What `others` have, notes with their titles, is not added either.
    """
    there, fence = _sections(note, title)
    wanted, unclosed = _sections(text, title)
    wanted[-1].lines.extend(unclosed)
    added = list(fence)
    at, end = there[-1].path, [] if fence else there[-1].lines
    there += [section for other in others for section in _sections(*other)[0]]
    for section in wanted:
        if not any(_holds(other, section) for other in there):
            new = _behind(end, section.lines) if section.path == at and len(added) == len(fence) else section.lines
            lines = "\n".join(new).strip("\n")
            added += [*_way(at, section.path, title), *([lines] if lines else [])]
            at = section.path
            there.append(section)
    return "\n\n".join(added) if added != fence else ""


def _sections(text: str, title: str) -> tuple[list[_Section], list[str]]:
    """The sections of a text, that above its first heading before all others; and what ends code left open."""
    found = [_Section((), [])]
    fence = ""
    for line, fence in _lines(text):
        if fence or not _HEADING.match(line):
            found[-1].lines.append(line)
            continue
        heading = " ".join(line.split())
        above = found[-1].path
        while above and _level(above[-1]) >= _level(heading):
            above = above[:-1]
        found.append(_Section(() if heading == title else (*above, heading), []))
    return found, [fence] if fence else []


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line of a text, and what will end the code that goes on behind it, "" where it is none."""
    fence = ""
    for line in map(str.rstrip, text.split("\n")):
        mark = _FENCE.match(line)
        if not fence:
            fence = mark[1] if mark else ""
        elif mark and line.strip().startswith(fence) and not line.strip(fence[0] + " \t"):
            fence = ""
        yield line, fence


def _holds(there: _Section, wanted: _Section) -> bool:
    """Whether all lines of a section stand in another one, one after the other; blank ones do not matter."""
    if there.path != wanted.path:
        return False
    lines, sought = list(filter(None, there.lines)), list(filter(None, wanted.lines))
    return any(lines[at : at + len(sought)] == sought for at in range(len(lines) - len(sought) + 1))


def _behind(end: list[str], lines: list[str]) -> list[str]:
    """The lines that follow those with which a section, to be gone on with, ends already."""
    last = list(filter(None, end))
    said = [] if any(map(_FENCE.match, lines)) else [at for at, line in enumerate(lines) if line]
    for size in range(min(len(last), len(said)), 0, -1):
        if last[-size:] == [lines[at] for at in said[:size]]:
            return lines[said[size - 1] + 1 :]
    return lines


def _way(at: Path, to: Path, title: str) -> Path:
    """The headings to be written behind some lines, so that what follows stands below other ones."""
    same = next((n for n, (one, other) in enumerate(zip(at, to, strict=False)) if one != other), min(len(at), len(to)))
    if same == len(at) or (same < len(to) and _level(to[same]) <= _level(at[same])):
        return to[same:]
    # A heading ends one of its own level: the last that both have in common is said again.
    return to[same - 1 :] if same else (title, *to)


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))
