"""Define the command that shows the access log, and proves it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.options import Place, placed
from openclaw_memory.cli.output import note, paint, say, say_json

if TYPE_CHECKING:
    from openclaw_memory.audit import Entry
    from openclaw_memory.audit.reading import Verdict

NOT_WHOLE = 1  # the exit code where entries are wrong or missing
SHOWN = 50
_PLACES = 3  # of an entry, on its line


@click.command()
@click.option(
    "--verify", "prove", is_flag=True, help="Check every entry, and the end of the log. Exit code 1: not whole."
)
@click.option("--op", metavar="NAME", help="Only this operation, such as search, get, append or forget.")
@click.option("--path", metavar="TEXT", help="Only what touched a path with this text in it.")
@click.option("--actor", metavar="TEXT", help="Only who has this text in its name, such as mcp or tool:memory_get.")
@click.option("--since", metavar="YYYY-MM-DD", help="Only what is of this day (UTC) or later.")
@click.option(
    "-n", "most", type=click.IntRange(1), default=SHOWN, show_default=True, help="At most so many, the newest."
)
@placed
def audit(
    place: Place, prove: bool, op: str | None, path: str | None, actor: str | None, since: str | None, most: int
) -> int:
    """Show the access log: who has read and written what.

    The newest entry comes first: its number, when, who (the doors that it came through, and the session), what was
    done, to which lines, and what came of it. Settings turn the log on: audit.enabled = true.

    Example: openclaw-memory audit --workspace notes --verify
    """
    from openclaw_memory.audit import entries, verify

    with place.open() as memory:
        root, rules = memory.workspace.root, memory.config.audit
    if prove:
        return _prove(place, verify(root, rules))
    found = list(islice(entries(root, rules, op=op, path=path, since=since, actor=actor), most))
    if place.as_json:
        say_json({"entries": found})
        return 0
    for one in found:
        say(_line(one))
    if not found:
        say(
            "no entries"
            if rules.enabled
            else "no entries: settings turn the log on, with [defaults] audit.enabled = true"
        )
    return 0


def _line(one: Entry) -> str:
    shown = ", ".join(one.places[:_PLACES]) + (
        f", and {len(one.places) - _PLACES} more" if len(one.places) > _PLACES else ""
    )
    what = paint(clean_line(one.op).ljust(16), fg="cyan")
    came_of_it = "" if one.result == "ok" else f"  {paint(clean_line(one.result), fg='yellow')}"
    who = clean_line(one.actor).ljust(28)
    return f"{one.seq:>6}  {clean_line(one.ts)}  {who}  {what}  {clean_line(shown)}{came_of_it}".rstrip()


def _prove(place: Place, verdict: Verdict) -> int:
    if place.as_json:
        say_json({"ok": verdict.ok, **{name: getattr(verdict, name) for name in verdict.__slots__}})
        return 0 if verdict.ok else NOT_WHOLE
    kept = f"entries {verdict.first} to {verdict.last}" if verdict.entries else "no entries"
    if verdict.wrong is not None:
        wrong = verdict.wrong
        where = f"{wrong.file}, line {wrong.line}" if wrong.line else wrong.file
        say(f"{paint('wrong', fg='red')}  entry {wrong.seq} ({where}): {clean(wrong.reason)}")
        say(f"{verdict.entries:,} entries before it are as they were written")
    else:
        say(f"{kept} are as they were written" if verdict.entries else f"{kept} in {clean(verdict.folder)}")
    for lost in verdict.lost:
        say(f"{paint('missing', fg='red')}  {lost}: a power cut has taken them, or somebody has cut them off")
    for gap in verdict.gaps:
        note(f"entry {gap.seq} ({gap.ts}) stands for others: {gap.result}")
    if verdict.unfinished:
        note("the log ends with part of an entry, as a process leaves it that was killed")
    return 0 if verdict.ok else NOT_WHOLE
