"""Define the command that shows the access log, and checks it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from openclaw_memory.cli import Place, clean_line, show_json, show_note, with_place
from openclaw_memory.config import read_plugin_settings

if TYPE_CHECKING:
    from openclaw_memory_audit.entries import Entry
    from openclaw_memory_audit.reading import Verdict

NOT_WHOLE = 1  # the exit code if entries are wrong or missing
_PLACES = 3  # of an entry, on its line


@click.command()
@click.option("--verify", "check", is_flag=True, help="Check that no entry was changed or lost. Exit code 1: one was.")
@click.option("--op", metavar="NAME", help="Only this operation, such as search, get, append or forget.")
@click.option("--path", metavar="TEXT", help="Only paths with this text; a deleted file by its whole path.")
@click.option("--actor", metavar="TEXT", help="Only actors with this text in their name: mcp, tool:memory_get.")
@click.option("--session", metavar="NAME", help="Only this session.")
@click.option("--since", metavar="YYYY-MM-DD", help="Only entries of this day (UTC) or later.")
@click.option(
    "-n", "limit", type=click.IntRange(1), default=50, show_default=True, help="How many of the newest entries."
)
@with_place
def audit(place: Place, check: bool, limit: int, **filters: str | None) -> int:
    """Show the access log of reads and writes.

    The newest entry comes first: number, time, actor and session, operation, lines, result. Names of deleted files are
    shown as hashes. The setting plugins.audit.enabled turns the log on.

    Example: openclaw-memory audit --workspace notes --op search
    """
    from openclaw_memory_audit import AccessLog, AuditConfig

    with place.open() as memory:
        is_on = read_plugin_settings(memory.config, "audit", AuditConfig).enabled
        log = AccessLog(memory.workspace)
        if check:
            if not is_on:
                show_note("the settings do not turn the log on")
            return _print_verdict(place, log.verify())
        entries = list(islice(log.read_entries(**filters), limit))
    if place.as_json:
        show_json({"entries": entries})
        return 0
    for entry in entries:
        click.echo(_format_entry(entry))
    if not entries:
        how = "" if is_on else ": settings turn the log on, with [defaults.plugins.audit] enabled = true"
        click.echo(f"no entries{how}")
    return 0


def _format_entry(entry: Entry) -> str:
    more = len(entry.places) - _PLACES
    places = ", ".join(entry.places[:_PLACES]) + (f", and {more} more" if more > 0 else "")
    op = click.style(clean_line(entry.op).ljust(16), fg="cyan")
    result = "" if entry.result == "ok" else f"  {click.style(clean_line(entry.result), fg='yellow')}"
    who = clean_line(f"{entry.actor}@{entry.session}" if entry.session else entry.actor).ljust(28)
    return f"{entry.seq:>6}  {clean_line(entry.ts)}  {who}  {op}  {clean_line(places)}{result}".rstrip()


def _print_verdict(place: Place, verdict: Verdict) -> int:
    if place.as_json:
        show_json({"ok": verdict.ok, **{name: getattr(verdict, name) for name in verdict.__slots__}})
        return 0 if verdict.ok else NOT_WHOLE
    if (wrong := verdict.wrong) is not None:
        where = f"{wrong.file}, line {wrong.line}" if wrong.line else wrong.file
        click.echo(f"{click.style('wrong', fg='red')}  entry {wrong.seq} ({where}): {clean_line(wrong.reason)}")
        click.echo(f"{verdict.entries:,} entries before it are as they were written")
    else:
        click.echo(f"entries {verdict.first} to {verdict.last} are as written; note the last number elsewhere")
    for gap in verdict.gaps:
        show_note(f"entry {gap.seq} ({gap.ts}) replaces others: {gap.result}")
    return 0 if verdict.ok else NOT_WHOLE
