"""Print results, tables, findings and JSON, safe for a terminal."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.config.environment import use_colours

if TYPE_CHECKING:
    from openclaw_memory.cli.doctor import Finding
    from openclaw_memory.types import SearchResult, Status

_MAX_WIDTH = 100  # columns; longer lines are hard to read


def render(text: str, **style: Any) -> str:
    """Render clean text in a style; bare text for a pipe or a terminal without colours.

    Args:
        text: Any text.
        style: As for `click.style`.
    """
    return click.style(clean(text), **style)


def show_error(message: str) -> None:
    """Print one line on stderr that begins with `error:`."""
    click.echo(f"{click.style('error:', fg='red')} {clean(' '.join(message.split()))}", err=True, color=use_colours())


def show_note(message: str) -> None:
    """Print one line on stderr that begins with `note:`.

    Args:
        message: The sentence.
    """
    click.echo(f"{click.style('note:', fg='yellow')} {clean(' '.join(message.split()))}", err=True)


def show_json(value: Any, indent: int | None = 2) -> None:
    """Print any of the library's values as JSON; everything beyond ASCII is escaped, so that it is safe to show.

    Args:
        value: Structs, dataclasses, mappings, sequences and plain values.
        indent: Columns of each level; None for one line.
    """
    import json

    click.echo(json.dumps(to_plain(value), indent=indent, default=str))


def to_plain(value: Any) -> Any:
    """Convert structs, dataclasses and mappings to dicts, tuples to lists; a `citation` is added to its fields."""
    names = getattr(value, "__struct_fields__", ()) or getattr(value, "__dataclass_fields__", ())
    if names:
        data = {name: to_plain(getattr(value, name)) for name in names}
        citation = getattr(value, "citation", None)
        return data if citation is None else {**data, "citation": citation}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in value]
    return value


def show_findings(findings: Iterable[Finding]) -> None:
    """Print each finding on a line, and its remedy below."""
    colour = {"ok": "green", "note": "yellow", "problem": "red"}
    for finding in findings:
        level = click.style(finding.level.ljust(7), fg=colour[finding.level])
        click.echo(f"{level}  {clean(finding.check)}: {clean(finding.detail)}")
        if finding.remedy:
            click.echo(f"         {clean(finding.remedy)}")


def show_status(state: Status, options: str) -> None:
    """Print the state of a memory as a table, and below it whatever works less well than it could."""
    from openclaw_memory.types.status import list_behind, list_details, list_overview, list_shortcomings

    rows = [(name, str(value)) for name, value in (*list_overview(state), *list_details(state))]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"{click.style(name.ljust(width), dim=True)}  {clean(value)}")
    for kind, text in list_shortcomings(state):
        colour = "red" if kind in {"error", "problem"} else "yellow"
        click.echo(f"{click.style(kind.ljust(width), fg=colour)}  {clean_line(text)}")
    if list_behind(state):
        show_note(f"run `openclaw-memory index{options}` to index what is dirty")


def show_results(results: Iterable[SearchResult], *, query: str = "", explain: bool = False) -> None:
    """Print each result as its citation and score, and its lines below, folded to the width of the terminal."""
    click.echo("\n".join(_format_rows(results, query=query, explain=explain)))


def _format_rows(results: Iterable[SearchResult], *, query: str, explain: bool) -> Iterator[str]:
    from openclaw_memory.types.results import mark_weak

    columns = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 4
    for number, result in enumerate(results, 1):
        if number > 1:
            yield ""
        is_weak = result.confidence == "weak"
        score = click.style(f"{result.score:.2f}{mark_weak(result)}", dim=True)
        place = render(clean_line(result.citation), fg="cyan", bold=not is_weak)
        yield f"{click.style(f'{number:>2}', dim=True)}  {place}  {score}"
        for line in clean(result.snippet).split("\n"):
            yield from (f"    {mark_words(row, query, dim=is_weak)}" for row in fold_line(line, columns))
        if explain:
            parts = "  ".join(f"{name} {value:.3g}" for name, value in result.parts.items())
            yield f"    {render(parts, dim=True)}"


def mark_words(row: str, query: str, *, dim: bool = False) -> str:
    """Mark the words of a query in a row, in other forms too (boat, boats)."""
    from openclaw_memory.text.terms import split_at_query_words

    parts = split_at_query_words(row, query)
    parts[1::2] = [click.style(part, fg="red", bold=True) for part in parts[1::2]]  # as grep marks
    parts[::2] = [click.style(part, dim=True) if dim and part else part for part in parts[::2]]
    return "".join(parts)


def fold_line(line: str, columns: int) -> list[str]:
    """Fold a line into rows of at most `columns` columns, at spaces where possible; wide characters take two."""
    has_wide = any(unicodedata.east_asian_width(character) in "WF" for character in line)
    return textwrap.wrap(line, columns // 2 if has_wide else columns, tabsize=4, break_on_hyphens=False) or [""]
