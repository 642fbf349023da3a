"""Print the results of a search: cited, with the words of the query marked, folded to the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.output import fold_line, render

if TYPE_CHECKING:
    from openclaw_memory.types import SearchResult
    from openclaw_memory.workspace import Workspace

_MAX_WIDTH = 100  # columns; longer lines are hard to read
_MARK = {"fg": "red", "bold": True}  # as grep marks, readable on light and dark


def show_results(results: Iterable[SearchResult], *, query: str = "", explain: bool = False) -> None:
    """Print each result as its citation and score, and the lines below it, folded to the width of the terminal."""
    click.echo("\n".join(_format_rows(results, query=query, explain=explain)))


def _format_rows(results: Iterable[SearchResult], *, query: str, explain: bool) -> Iterator[str]:
    import shutil

    columns = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 4
    stems = _stems(query)
    for number, result in enumerate(results, 1):
        if number > 1:
            yield ""
        is_weak = result.confidence == "weak"
        score = click.style(f"{result.score:.2f}{' weak' if is_weak else ''}", dim=True)
        place = render(clean_line(result.citation), fg="cyan", bold=not is_weak)
        yield f"{click.style(f'{number:>2}', dim=True)}  {place}  {score}"
        for line in clean(result.snippet).split("\n"):
            yield from (f"    {mark_words(row, stems, dim=is_weak)}" for row in fold_line(line, columns))
        if explain:
            parts = "  ".join(f"{name} {value:.3g}" for name, value in result.parts.items())
            yield f"    {render(parts, dim=True)}"


def mark_words(row: str, stems: frozenset[str], *, dim: bool = False) -> str:
    """Return a row with the words marked whose stems are asked for; their other forms too (boat, boats)."""
    if not stems:
        return click.style(row, dim=True) if dim else row
    from openclaw_memory.text.terms import locate_words, stem_word

    shown, end = "", 0
    for start, stop, word in locate_words(row):
        if stem_word(word) in stems and start >= end:
            shown += _plain(row[end:start], dim=dim) + click.style(row[start:stop], **_MARK)  # type: ignore[arg-type]
            end = stop
    return shown + _plain(row[end:], dim=dim)


def list_files(results: Iterable[SearchResult], workspace: Workspace) -> list[str]:
    """List the files of results, each once, as they can be opened from the current folder."""
    here, files = os.getcwd(), dict[str, None]()
    for result in results:
        place = workspace.locate(result.path)
        files[os.path.join(place.base, *place.parts)] = None
    return [min(file, _relative(file, here), key=len) for file in files]


def _relative(file: str, here: str) -> str:
    try:
        return os.path.relpath(file, here)
    except ValueError:  # on another drive
        return file


def _stems(query: str) -> frozenset[str]:
    if not query:
        return frozenset()
    from openclaw_memory.text.terms import select_content_words, stem_word

    return frozenset(map(stem_word, select_content_words(query)))


def _plain(text: str, *, dim: bool) -> str:
    return click.style(text, dim=True) if dim and text else text
