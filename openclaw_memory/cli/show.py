"""What the commands print: cited results, tables, JSON, all of it safe for a terminal."""

from __future__ import annotations

import datetime
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from openclaw_memory.types import SearchResult, Status

# Notes come from anywhere: C0 and C1 controls could drive a terminal, bidirectional controls could make it show another
# text than the one that is there, and lone surrogates cannot be written at all.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MAX_WIDTH = 100  # columns; longer lines are hard to read
_MAX_LISTED = 10  # names of files; more would push everything else off the screen


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: `note` is a thing to know, `problem` one to mend; `remedy` says how, empty when all is well."""

    check: str
    level: Literal["ok", "note", "problem"]
    detail: str
    remedy: str = ""


def clean(text: str) -> str:
    """`text` with every character that could steer a terminal shown as U+FFFD; tabs and line feeds stay."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def say(text: str = "") -> None:
    """Print text that may hold parts of notes; styles are added by `paint`, after cleaning."""
    click.echo(text)


def paint(text: str, **style: Any) -> str:
    """Clean text in a style; a terminal without colours, or a pipe, gets the bare text."""
    return click.style(clean(text), **style)


def complain(message: str, details: str = "") -> None:
    """One line on stderr that begins with `error:`, and below it the details with their line breaks."""
    click.echo(f"{click.style('error:', fg='red')} {clean(' '.join(message.split()))}", err=True)
    if details:
        click.echo(clean(details), err=True)


def note(message: str) -> None:
    """One line on stderr that begins with `note:`."""
    click.echo(f"{click.style('note:', fg='yellow')} {clean(' '.join(message.split()))}", err=True)


def say_json(value: Any) -> None:
    """Print any of the library's values as JSON; everything beyond ASCII is escaped, so that it is safe to show."""
    import json

    click.echo(json.dumps(plain(value), indent=2, default=str))


def say_json_line(value: Any) -> None:
    """Print a value as `say_json` does, on one line."""
    import json

    click.echo(json.dumps(plain(value), default=str))


def plain(value: Any) -> Any:
    """Dataclasses and mappings as dicts, tuples as lists; a dataclass with a `citation` shows it."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        if "citation" not in shown and hasattr(value, "citation"):
            shown["citation"] = value.citation
        return shown
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


def say_results(results: Iterable[SearchResult], *, explain: bool = False) -> None:
    """Each result as its citation and score, and the lines below it, folded to the width of the terminal."""
    columns = width() - 4
    for number, result in enumerate(results, 1):
        if number > 1:
            say()
        score = click.style(f"{result.score:.2f}", dim=True)
        say(f"{click.style(f'{number:>2}', dim=True)}  {paint(result.citation, fg='cyan', bold=True)}  {score}")
        for line in clean(result.snippet).split("\n"):
            for row in folded(line, columns):
                say(f"    {row}")
        if explain:
            parts = "  ".join(f"{name} {value:.3g}" for name, value in result.parts.items())
            say(f"    {paint(parts, dim=True)}")


def say_table(rows: Iterable[tuple[str, object]]) -> None:
    """Names and values in two columns."""
    known = [(name, str(value)) for name, value in rows]
    longest = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        say(f"{click.style(name.ljust(longest), dim=True)}  {clean(value)}")


def say_findings(findings: Iterable[Finding]) -> None:
    """Each finding in a line, and below it what to do."""
    colours = {"ok": "green", "note": "yellow", "problem": "red"}
    for finding in findings:
        level = click.style(finding.level.ljust(7), fg=colours[finding.level])
        say(f"{level}  {clean(finding.check)}: {clean(finding.detail)}")
        if finding.remedy:
            say(f"         {clean(finding.remedy)}")


def say_status(state: Status, options: str) -> None:
    """The state of a memory as a table, and below it whatever works less well than it could."""
    sources = ", ".join(f"{name} {files} files, {chunks} chunks" for name, (files, chunks) in state.sources.items())
    on_disk = ", ".join(f"{name} {size(count)}" for name, count in state.bytes.items() if count)
    say_table(
        [
            ("workspace", state.workspace),
            ("index", state.index_path),
            ("search", f"{state.mode}, {in_use(state)}"),
            *((f"not {provider}", reason) for provider, reason in state.passed_over.items()),
            ("holds", f"{state.files} files, {state.chunks} chunks" + (f" ({sources})" if sources else "")),
            *((("extra paths", ", ".join(state.extra_paths)),) if state.extra_paths else ()),
            ("on disk", on_disk or "nothing"),
            *((name, _inline(table)) for name, table in (("vector", state.vector), ("keyword", state.fts))),
            ("cache", _inline(state.cache)),
            *((("batch", _inline(state.batch)),) if state.batch.get("enabled") or state.batch.get("jobs") else ()),
            ("last sync", last_sync(state)),
            *((("watcher", state.watcher),) if state.watcher else ()),
            ("engine", _inline(state.engine)),
        ]
    )
    if (error := state.last_error) is not None:
        say(f"{click.style('error', fg='red')}    {clean(failure(error))}")
    for path in first_of(behind(state)):
        why = f"{state.dirty[path]}; " if path in state.dirty else ""  # the last one may say how many more there are
        do = f"run `openclaw-memory index{options}`"
        say(f"{click.style('dirty', fg='yellow')}    {clean(f'{path}: {why}{do}')}")
    for file in state.skipped:
        say(f"{click.style('skipped', fg='yellow')}  {clean(file.path)}: {clean(file.reason)}")
    for notice in state.notices:
        say(f"{click.style('note', fg='yellow')}     {clean(notice)}")


def last_sync(state: Status) -> str:
    """When the latest sync ran, what for, and what it did, in a line."""
    if (last := state.last_sync) is None:
        return "none is known"
    counts = [f"{last[name]} {name}" for name in ("added", "changed", "removed") if last.get(name)]
    if last.get("failed"):
        counts.append(f"{len(last['failed'])} failed")
    done = ", ".join(counts) or "nothing to do"
    rebuilt = f"; built again: {last['rebuilt']}" if last.get("rebuilt") else ""
    return f"{ago(last['at'])} ({last.get('reason')}, {last.get('seconds')} s): {done}{rebuilt}"


def failure(error: Mapping[str, Any]) -> str:
    """What ended a sync, and when, as far as that is known."""
    when = f" {ago(error['at'])}" if error.get("at") else ""
    return f"the last sync{when} ended with: {error.get('error')}"


def ago(moment: str) -> str:
    """A time in ISO 8601, in words: `3 min ago`, or the time itself where it is over a day old, or not past."""
    seconds = (datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(moment)).total_seconds()
    if seconds < -1 or seconds > 86_400:
        return moment
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 3600 else f"{seconds / 3600:.0f} h ago"


def size(count: int) -> str:
    """A number of bytes in the unit that suits it: `512 B`, `1.5 kB`, `20.0 MB`; a kB has 1,000 bytes."""
    number, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


def _inline(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in table.items() if value is not None)


def first_of(names: Sequence[str]) -> list[str]:
    """The first ten names, and in how many more they go on."""
    rest = len(names) - _MAX_LISTED
    return [*names[:_MAX_LISTED], *([f"and {rest:,} more"] if rest > 0 else [])]


def behind(state: Status) -> list[str]:
    """The files whose words the index does not hold as they are now.

    One that only lacks vectors is none of them, nor one that is left out and said to be.
    """
    told = {file.path for file in (*state.waiting, *state.skipped)}
    return [path for path in state.dirty if path not in told]


def in_use(state: Status) -> str:
    """Provider and model, and what was asked for where that is another one."""
    name = f"{state.provider} {state.model}".strip() or "nothing"
    if state.requested_provider == state.provider:
        return name
    if state.requested_provider == "auto":
        return f"{name}, chosen by auto"
    return f"{name}, in place of {state.requested_provider}"


def width() -> int:
    """Columns to write in."""
    return min(shutil.get_terminal_size().columns, _MAX_WIDTH)


def folded(line: str, columns: int) -> Iterator[str]:
    """`line` in rows of at most `columns` columns, cut at spaces where there are any; wide characters take two."""
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
