"""Print the results of a search: cited, linked, with the words that were looked for marked, folded to the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.output import folded, paint

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import SearchResult
    from openclaw_memory.workspace import Workspace

_MAX_WIDTH = 100  # columns; longer lines are hard to read
_MARK = {"fg": "red", "bold": True}  # as grep marks, readable on light and dark

# Returns where the file of a result is, or None where it is not linked.
Linked = Callable[[str], Path | None]


def say_results(results: Iterable[SearchResult], *, query: str = "", explain: bool = False) -> None:
    """Print each result as its citation and score, and the lines below it, folded to the width of the terminal."""
    click.echo("\n".join(rows_of(list(results), query=query, explain=explain)))


def rows_of(
    results: Sequence[SearchResult],
    *,
    query: str = "",
    explain: bool = False,
    linked: Linked | None = None,
    context: tuple[Memory, int] | None = None,
) -> Iterator[str]:
    """Yield the rows that show results; weak ones are dimmed.

    Args:
        results: The results, best first.
        query: What was asked, whose words are marked.
        explain: Whether to show how each score came about.
        linked: Returns the file of a path, to which the citation is a hyperlink.
        context: The memory, and how many lines to show before and after those of each result.
    """
    import shutil

    columns = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 4
    stems = _stems(query)
    for number, result in enumerate(results, 1):
        if number > 1:
            yield ""
        is_weak = result.confidence == "weak"
        score = click.style(f"{result.score:.2f}{' weak' if is_weak else ''}", dim=True)
        place = paint(clean_line(result.citation), fg="cyan", bold=not is_weak)
        if linked is not None and (file := linked(result.path)) is not None:
            place = hyperlink(place, file)
        yield f"{click.style(f'{number:>2}', dim=True)}  {place}  {score}"
        if context is None:
            for line in clean(result.snippet).split("\n"):
                yield from (f"    {marked(row, stems, dim=is_weak)}" for row in folded(line, columns))
        else:
            yield from _in_context(result, *context, stems, columns)
        if explain:
            parts = "  ".join(f"{name} {value:.3g}" for name, value in result.parts.items())
            yield f"    {paint(parts, dim=True)}"


def marked(row: str, stems: frozenset[str], *, dim: bool = False) -> str:
    """Return a row with the words marked whose stems are asked for; their other forms too (boat, boats)."""
    if not stems:
        return click.style(row, dim=True) if dim else row
    from openclaw_memory.text.terms import word_spans, word_stem

    shown, end = "", 0
    for start, stop, word in word_spans(row):
        if word_stem(word) in stems and start >= end:
            shown += _plain(row[end:start], dim=dim) + click.style(row[start:stop], **_MARK)  # type: ignore[arg-type]
            end = stop
    return shown + _plain(row[end:], dim=dim)


def hyperlink(text: str, file: Path) -> str:
    """Return a text as a link to a file, which terminals show that know OSC 8."""
    return f"\033]8;;{file.as_uri()}\033\\{text}\033]8;;\033\\"


def file_of(workspace: Workspace, path: str) -> Path:
    """Return where the file of a result lies on disk."""
    from openclaw_memory.workspace.paths import locate

    place = locate(workspace.root, workspace.rules, path, workspace.sessions)
    return Path(place.base, *place.parts)


def paths_of(results: Iterable[SearchResult], workspace: Workspace) -> list[str]:
    """Return the files of results, each once, as they can be opened from the current folder."""
    here = os.getcwd()
    files = dict.fromkeys(str(file_of(workspace, result.path)) for result in results)
    return [min(file, _relative(file, here), key=len) for file in files]


def _relative(file: str, here: str) -> str:
    try:
        return os.path.relpath(file, here)
    except ValueError:  # on another drive
        return file


def is_tall(rows: Sequence[str]) -> bool:
    """Return whether rows go on a terminal, and are more than it shows at once."""
    import shutil

    return sys.stdout.isatty() and len(rows) >= shutil.get_terminal_size().lines


def _in_context(
    result: SearchResult, memory: Memory, around: int, stems: frozenset[str], columns: int
) -> Iterator[str]:
    """Yield all lines of a result, and so many around them, each with its number; what is not cited is dimmed."""
    first = max(1, result.start_line - around)
    excerpt = memory.get(result.path, start=first, lines=result.end_line - first + 1 + around)
    lines = clean(excerpt.text).split("\n")
    wide = len(str(first + len(lines)))
    for at, line in enumerate(lines, first):
        is_cited = any(start <= at <= end for start, end in result.spans)
        for part, row in enumerate(folded(line, columns - wide - 2)):
            number = str(at).rjust(wide) if part == 0 else " " * wide
            sign = ":" if is_cited else "-"
            shown = marked(row, stems if is_cited else frozenset(), dim=not is_cited)
            yield f"    {click.style(number + sign, dim=True)} {shown}"


def _stems(query: str) -> frozenset[str]:
    if not query:
        return frozenset()
    from openclaw_memory.text.terms import content_words, word_stem

    return frozenset(map(word_stem, content_words(query)))


def _plain(text: str, *, dim: bool) -> str:
    return click.style(text, dim=True) if dim and text else text
