"""Print tables, findings and JSON, all of it safe for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.config.environment import use_colours

if TYPE_CHECKING:
    from openclaw_memory.cli.doctor import Finding
    from openclaw_memory.types import Status


def show(text: str = "") -> None:
    """Print text that may hold parts of notes; styles are added by `render`, after cleaning.

    Args:
        text: Clean text.
    """
    click.echo(text)


def render(text: str, **style: Any) -> str:
    """Return clean text in a style; bare text for a pipe or a terminal without colours.

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
        value: Structs, mappings, sequences and plain values.
        indent: Columns of each level; None for one line.
    """
    import json

    click.echo(json.dumps(to_plain(value), indent=indent, default=str))


def to_plain(value: Any) -> Any:
    """Return structs and mappings as dicts, tuples as lists; a struct with a `citation` shows it."""
    if isinstance(value, Struct) or (is_dataclass(value) and not isinstance(value, type)):
        names = value.__struct_fields__ if isinstance(value, Struct) else [field.name for field in fields(value)]
        shown = {name: to_plain(getattr(value, name)) for name in names}
        citation = getattr(value, "citation", None)
        if citation is not None:
            shown.setdefault("citation", citation)
        return shown
    if hasattr(value, "__struct_fields__"):
        return {name: to_plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in value]
    return value


def show_findings(findings: Iterable[Finding]) -> None:
    """Print each finding on a line, and below it what to do."""
    colours = {"ok": "green", "note": "yellow", "problem": "red"}
    for finding in findings:
        level = click.style(finding.level.ljust(7), fg=colours[finding.level])
        show(f"{level}  {clean(finding.check)}: {clean(finding.detail)}")
        if finding.remedy:
            show(f"         {clean(finding.remedy)}")


def show_status(state: Status, options: str) -> None:
    """Print the state of a memory as a table, and below it whatever works less well than it could."""
    from openclaw_memory.types.results import first_of
    from openclaw_memory.types.status import behind, details, failure, overview

    rows = [(name, str(value)) for name, value in (*overview(state), *details(state))]
    longest = max(len(name) for name, _ in rows)
    for name, value in rows:
        show(f"{click.style(name.ljust(longest), dim=True)}  {clean(value)}")
    if (error := state.last_error) is not None:
        show(f"{click.style('error', fg='red')}    {clean(failure(error))}")
    for path in first_of(behind(state)):
        why = f"{state.dirty[path]}; " if path in state.dirty else ""  # the last one may say how many more there are
        do = f"run `openclaw-memory index{options}`"
        show(f"{click.style('dirty', fg='yellow')}    {clean(f'{path}: {why}{do}')}")
    for file in state.skipped:
        show(f"{click.style('skipped', fg='yellow')}  {clean_line(file.path)}: {clean(file.reason)}")
    for notice in state.notices:
        show(f"{click.style('note', fg='yellow')}     {clean(notice)}")


def fold_line(line: str, columns: int) -> Iterator[str]:
    """Yield `line` in rows of at most `columns` columns, cut at spaces where possible; wide characters take two."""
    row, used, space = "", 0, 0
    for character in line.expandtabs(4).rstrip():
        size = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used + size > columns and row:
            cut = space if space > 0 else len(row)
            yield row[:cut].rstrip()
            row = row[cut:]
            used, space = _columns(row), 0
        row += character
        used += size
        if character == " ":
            space = len(row)
    yield row.rstrip()


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
