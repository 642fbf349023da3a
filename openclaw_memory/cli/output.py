"""Print results, tables, findings and JSON, safe for a terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.config.environment import has_vscode_terminal, read_editor, use_colours

if TYPE_CHECKING:
    from openclaw_memory.cli.doctor import Finding
    from openclaw_memory.types import SearchResult, Status, SyncReport
    from openclaw_memory.types.results import Item

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


def show_sync(report: SyncReport) -> None:
    """Print the counts of a sync and the first files, then the files that are not indexed, with the reasons."""
    from openclaw_memory.types.results import limit_names

    names = limit_names([*report.added, *report.changed, *report.removed])
    counts = f"{len(report.added)} added, {len(report.changed)} changed, {len(report.removed)} removed"
    click.echo(
        f"{counts}, {report.unchanged} unchanged, {report.embedded} chunks embedded in "
        f"{report.seconds:.2f} s" + (f": {clean_line(', '.join(names))}" if names else "")
    )
    files = [("failed", "red", report.failed), ("skipped", "yellow", report.skipped)]
    lines = [(kind, colour, f"{file.path}: {file.reason}") for kind, colour, rows in files for file in rows]
    lines += [("rebuilt", "yellow", report.rebuilt)] if report.rebuilt else []
    for kind, colour, line in (*lines, *(("waiting", "yellow", reason) for reason in list_waiting(report))):
        click.echo(f"{click.style(kind.ljust(7), fg=colour)}  {clean_line(line)}")


def list_waiting(report: SyncReport) -> list[str]:
    """List the reasons why files lack vectors."""
    from openclaw_memory.indexing.changes import explain_missing_vectors

    return explain_missing_vectors(Counter(file.reason for file in report.waiting))


def show_items(items: Sequence[Item]) -> None:
    """Print the day, kind, path and size of each remembered file, and the sum."""
    for item in items:
        day = "no day    " if item.last_date is None else str(item.last_date)
        about = ", ".join(filter(None, (item.type, item.source, item.sensitivity)))
        counts = f"{item.lines:,} lines, {item.size:,} bytes"
        click.echo(f"{day}  {item.kind:<10}  {render(clean_line(item.path), fg='cyan')}  {counts}  {clean_line(about)}")
        if item.problem is not None:
            show_note(clean_line(item.problem))
    click.echo(f"{len(items):,} files, {sum(item.size for item in items):,} bytes")


def open_editor(file: Path, line: int) -> None:
    """Open a file in the editor of VISUAL or EDITOR at a line, and wait until it is closed.

    Raises:
        click.ClickException: The editor cannot be started, or fails.
    """
    editor = read_editor()
    if re.match(r"(.*/)?(code|codium|cursor)\b", editor):
        click.edit(editor=f"{editor} --wait --goto", filename=f"{file}:{line}")
    else:
        click.edit(editor=f"{editor} +{line}" if editor else None, filename=str(file))


def show_results(
    results: Iterable[SearchResult], files: Mapping[str, Path], *, query: str = "", explain: bool = False
) -> None:
    """Print each result as its citation and score, and its lines below, folded to the width of the terminal.

    A citation is a link on a terminal that shows links: it opens the file of `files`, by path of a result.
    """
    links = files if sys.stdout.isatty() and use_colours() is not False else {}
    click.echo("\n".join(_format_rows(results, links, query=query, explain=explain)))


def _format_rows(
    results: Iterable[SearchResult], links: Mapping[str, Path], *, query: str, explain: bool
) -> Iterator[str]:
    from openclaw_memory.types.results import mark_weak

    columns = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 4
    for number, result in enumerate(results, 1):
        if number > 1:
            yield ""
        is_weak = result.confidence == "weak"
        score = click.style(f"{result.score:.2f}{mark_weak(result)}", dim=True)
        place = render(clean_line(result.citation), fg="cyan", bold=not is_weak)
        if file := links.get(result.path):
            place = f"\x1b]8;;{make_link(file, result.start_line)}\x1b\\{place}\x1b]8;;\x1b\\"
        yield f"{click.style(f'{number:>2}', dim=True)}  {place}  {score}"
        for line in clean(result.snippet).split("\n"):
            yield from (f"    {mark_words(row, query, dim=is_weak)}" for row in fold_line(line, columns))
        if explain:
            parts = "  ".join(f"{name} {value:.3g}" for name, value in result.parts.items())
            yield f"    {render(parts, dim=True)}"


def make_link(file: Path, line: int) -> str:
    """Make the URL that opens a file: in its Obsidian vault, at the line in VS Code's terminal, else by its type."""
    if any((folder / ".obsidian").is_dir() for folder in file.parents):
        return f"obsidian://open?path={quote(str(file), safe='')}"
    return f"vscode://file{quote(file.as_posix())}:{line}" if has_vscode_terminal() else file.as_uri()


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
