"""Make the relative links of lines that move to another folder lead to the same files as before (pure)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from openclaw_memory.text import blocks
from openclaw_memory_migrate.types import Section

# The target of an inline link or image, with pairs of parentheses in it, up to its end or its title.
_INLINE = re.compile(r"(?<=\]\()[ \t]*(<[^<>]+>|[^\s()<>]++(?:\([^\s()<>]*+\)[^\s()<>]*+)*)(?=[ \t]*\)|[ \t]+[\"'(])")
_DEFINED = re.compile(r" {0,3}\[[^\]\[^][^\]\[]*\]:[ \t]+(<[^<>]+>|\S+)")
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\#?]")  # a scheme or a drive; a root; a place in the same file
_ENDING = re.compile(r"\.\w{1,8}$")  # `f[i](x)` is no link


class Link(NamedTuple):
    """A relative link in line `line`, 1-based, of the old file: its path as written, without what follows `#`."""

    line: int
    path: str


def relinked(
    sections: Sequence[Section], lines: Sequence[str], base: str | None, moved_to: Mapping[str, str]
) -> tuple[list[Section], list[Link]]:
    """Return sections whose links lead from their notes to the same files, and all their relative links.

    A link out of the workspace stays as it is, and so does what is in code.

    Args:
        sections: The sections, with lines of the old file.
        lines: The old file.
        base: The folder of the old file, relative to the workspace, "" for the workspace; None where it is outside.
        moved_to: From paths, relative to the folder of the old file, to where those files are in the workspace now.
    """
    code = {at for one in blocks(lines) if one.kind in {"fence", "front"} for at in range(one.first, one.stop)}
    found: list[Link] = []

    def moved(number: int, line: str, folder: str) -> str:
        if number - 1 in code or ("](" not in line and "]:" not in line):
            return line
        parts, at = [], 0
        for start, stop in _targets(line):
            path, mark, place = _parted(line[start:stop])
            found.append(Link(number, path))
            if (to := new_place(path, moved_to)) is not None:
                parts += [line[at:start], posixpath.relpath(to, folder), mark, place]
            else:
                parts += [line[at:start], path if base is None else _from(folder, base, path), mark, place]
            at = stop
        return "".join((*parts, line[at:]))

    new = [
        replace(
            one,
            lines=tuple(
                moved(at, line, posixpath.dirname(one.path)) for at, line in enumerate(one.lines, one.first_line)
            ),
        )
        for one in sections
    ]
    return new, found


def new_place(path: str, moved_to: Mapping[str, str]) -> str | None:
    """Return where a file that a link leads to is now, relative to the workspace; None where it was not moved.

    Args:
        path: The path of the link.
        moved_to: As for `relinked`.
    """
    return moved_to.get(posixpath.normpath(path)) or moved_to.get(posixpath.normpath(unquote(path)))


def is_outside(base: str | None, path: str) -> bool:
    """Whether the path of a link leads out of the workspace.

    Args:
        base: The folder of the old file, as for `relinked`.
        path: The path.
    """
    return base is None or posixpath.normpath(posixpath.join(base, path)).split("/")[0] == ".."


def _from(folder: str, base: str, path: str) -> str:
    if is_outside(base, path):
        return path
    target = posixpath.normpath(posixpath.join(base, path))
    return posixpath.relpath(target, folder) + ("/" if path.endswith("/") else "")


def _targets(line: str) -> Iterator[tuple[int, int]]:
    """Yield where the relative paths of links in a line begin and end, without angle brackets."""
    code = [match.span() for match in _CODE.finditer(line)]
    defined = _DEFINED.match(line)
    for match in (*([defined] if defined else ()), *_INLINE.finditer(line)):
        start, stop = match.span(1)
        if line[start] == "<":
            start, stop = start + 1, stop - 1
        target = line[start:stop]
        path = _parted(target)[0]
        if any(first <= start < last for first, last in code) or _ELSEWHERE.match(target):
            continue
        if "/" in path or _ENDING.search(path):
            yield start, stop


def _parted(target: str) -> tuple[str, str, str]:
    """Part a target into its path, the mark after it, and what follows that."""
    end = min((at for mark in "#?" if (at := target.find(mark)) >= 0), default=len(target))
    return target[:end], target[end : end + 1], target[end + 1 :]
