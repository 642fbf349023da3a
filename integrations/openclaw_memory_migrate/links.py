"""Make the relative links of lines that move to another folder lead to the same files as before (pure)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from openclaw_memory.text import split_blocks
from openclaw_memory_migrate.types import Section

# The target of an inline link or image, with pairs of parentheses in it, up to its end or its title.
_INLINE = re.compile(r"(?<=\]\()[ \t]*(<[^<>]+>|[^\s()<>]++(?:\([^\s()<>]*+\)[^\s()<>]*+)*)(?=[ \t]*\)|[ \t]+[\"'(])")
_DEFINED = re.compile(r" {0,3}\[[^\]\[^][^\]\[]*\]:[ \t]+(<[^<>]+>|\S+)")
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\#?]")  # a scheme or a drive; a root; a place in the same file
_ENDING = re.compile(r"\.\w{1,8}$")  # `f[i](x)` is no link


class Link(NamedTuple):
    """A relative link in line `line`, 1-based, of the old file: its path as written, up to the `#`."""

    line: int
    path: str


def rewrite_links(
    sections: Sequence[Section], lines: Sequence[str], base: str | None, moved_to: Mapping[str, str]
) -> tuple[list[Section], list[Link]]:
    """Rewrite links so that they lead to the same files from the notes; return the sections and all relative links.

    A link out of the workspace stays as it is, and so do links in code.

    Args:
        sections: The sections, with lines of the old file.
        lines: The old file.
        base: The folder of the old file, relative to the workspace, "" for the workspace; None where it is outside.
        moved_to: From paths, relative to the folder of the old file, to where those files are in the workspace now.
    """
    fences = [block for block in split_blocks(lines) if block.kind in {"fence", "front"}]
    code = {at for block in fences for at in range(block.first, block.stop)}
    links: list[Link] = []

    def rewrite_line(number: int, line: str, folder: str) -> str:
        if number - 1 in code or ("](" not in line and "]:" not in line):
            return line
        parts, at = [], 0
        for start, stop in _find_targets(line):
            path, mark, place = _split_target(line[start:stop])
            links.append(Link(number, path))
            if (to := find_new_place(path, moved_to)) is not None:
                parts += [line[at:start], posixpath.relpath(to, folder), mark, place]
            else:
                parts += [line[at:start], path if base is None else _make_relative(folder, base, path), mark, place]
            at = stop
        return "".join((*parts, line[at:]))

    new = [
        replace(
            section,
            lines=tuple(
                rewrite_line(at, line, posixpath.dirname(section.path))
                for at, line in enumerate(section.lines, section.first_line)
            ),
        )
        for section in sections
    ]
    return new, links


def find_new_place(path: str, moved_to: Mapping[str, str]) -> str | None:
    """Return the current path of a link's target, relative to the workspace, or None if it was not moved.

    Args:
        path: The path of the link.
        moved_to: As for `rewrite_links`.
    """
    return moved_to.get(posixpath.normpath(path)) or moved_to.get(posixpath.normpath(unquote(path)))


def is_outside(base: str | None, path: str) -> bool:
    """Tell if the path of a link leads out of the workspace.

    Args:
        base: The folder of the old file, as for `rewrite_links`.
        path: The path.
    """
    return base is None or posixpath.normpath(posixpath.join(base, path)).split("/")[0] == ".."


def _make_relative(folder: str, base: str, path: str) -> str:
    if is_outside(base, path):
        return path
    target = posixpath.normpath(posixpath.join(base, path))
    return posixpath.relpath(target, folder) + ("/" if path.endswith("/") else "")


def _find_targets(line: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each relative link path in a line, without angle brackets."""
    code = [match.span() for match in _CODE.finditer(line)]
    defined = _DEFINED.match(line)
    for match in (*([defined] if defined else ()), *_INLINE.finditer(line)):
        start, stop = match.span(1)
        if line[start] == "<":
            start, stop = start + 1, stop - 1
        target = line[start:stop]
        path = _split_target(target)[0]
        if any(first <= start < last for first, last in code) or _ELSEWHERE.match(target):
            continue
        if "/" in path or _ENDING.search(path):
            yield start, stop


def _split_target(target: str) -> tuple[str, str, str]:
    """Split a target into its path, the mark after it, and the part after the mark."""
    end = min((at for mark in "#?" if (at := target.find(mark)) >= 0), default=len(target))
    return target[:end], target[end : end + 1], target[end + 1 :]
