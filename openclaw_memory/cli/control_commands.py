"""Define the commands that list, forget and sign memories."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Place, with_place
from openclaw_memory.cli.output import render, show_json, show_note
from openclaw_memory.errors import NotFoundError
from openclaw_memory.types.records import make_sentence

if TYPE_CHECKING:
    from openclaw_memory.types.control import ForgetReceipt

INCOMPLETE = 1  # the exit code where something is left, or nothing is there
_ACTIONS = {"remove": "the file goes", "lines": "these lines go", "messages": "these messages go"}


@click.command()
@with_place
def inspect(place: Place) -> int:
    """List everything that is remembered.

    Notes, records, documents, transcripts and snapshots. Of each: its day, its kind, its size in bytes and lines.
    `get` shows the text.

    Example: openclaw-memory inspect --workspace notes
    """
    with place.open() as memory:
        items = memory.control.inspect()
    if place.as_json:
        show_json({"items": items})
        return 0 if items else INCOMPLETE
    for item in items:
        day = "no day    " if item.last_date is None else str(item.last_date)
        about = ", ".join(filter(None, (item.type, item.source, item.sensitivity)))
        numbers = f"{item.lines:,} lines, {item.size:,} bytes"
        click.echo(
            f"{day}  {item.kind:<10}  {render(clean_line(item.path), fg='cyan')}  {numbers}  {clean_line(about)}"
        )
        if item.problem is not None:
            show_note(clean_line(item.problem))
    click.echo(f"{len(items):,} files, {sum(item.size for item in items):,} bytes")
    return 0 if items else INCOMPLETE


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH")
@click.option("--last-days", type=int, metavar="N", help="What is of the last N days; today is the first.")
@click.option("--query", metavar="WORDS", help="What says these words, in this order.")
@click.option("--session", metavar="ID", help="A session: its transcript, and its entry in sessions.json.")
@click.option("--yes", is_flag=True, help="Do it. Without this, only the plan is shown.")
@click.option("--seen", "expected", metavar="HASH", help="Do it only if it is the plan of this hash; 12 digits do.")
@with_place
def forget(place: Place, paths: tuple[str, ...], yes: bool, **criteria: Any) -> int:
    """Forget days, words or files, in every byte of the index.

    What is of some days, says some words, or is named goes, in the files and in the index. Without --yes, it shows
    what would go, and changes nothing. Notes that are of no day, such as MEMORY.md, are listed for you to look at;
    they are touched where you name them, as the command says that is shown. PATH is such a file, or lines of it:
    MEMORY.md#L3-L4. The exit code is 1 where something could not go, or is left for you to look at.

    Example: openclaw-memory forget --workspace notes --last-days 7
    """
    with place.open() as memory:
        receipt = memory.control.forget(paths=list(paths) or None, dry_run=not yes, **criteria)
    if place.as_json:
        show_json(receipt)
    elif receipt.is_dry_run:
        _show_plan(receipt)
    else:
        _show_receipt(receipt)
    lines = [quote(item.where) for item in receipt.plan.review if "#L" in item.where]
    if lines and not place.as_json:
        click.echo(f"to forget these lines too: openclaw-memory forget{place.options} {' '.join(lines)}")
    is_incomplete = receipt.remaining or receipt.plan.review or not (receipt.is_dry_run or receipt.is_erased)
    return INCOMPLETE if is_incomplete else 0


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH")
@click.option("--yes", is_flag=True, help="Sign them. Without this, they are only shown.")
@with_place
def sign(place: Place, paths: tuple[str, ...], yes: bool) -> int:
    """Vouch for records that have changed by hand.

    A record of high sensitivity is signed, and shown nowhere once something else than this library has written it.
    Without --yes, such records are shown as they are now, and why they are not trusted: look at them. With --yes they
    are signed, those at PATH or all. PATH is the file of a record. The exit code is 1 where some are left unsigned.

    Example: openclaw-memory sign --workspace notes --yes
    """
    with place.open() as memory:
        records = [record for record in memory.records.list_unsigned() if not paths or record.path in paths]
        if missing := sorted({*paths} - {record.path for record in records}):
            raise NotFoundError(f"{missing[0]} waits for no signature: `openclaw-memory sign` lists what does")
        for record in records if yes else ():
            memory.records.sign(record.path, expected=record)
    if place.as_json:
        signed = [record.path for record in records if yes]
        show_json({"unsigned": [] if yes else records, "signed": signed})
        return INCOMPLETE if records and not yes else 0
    for record in records:
        click.echo(render(clean_line(record.path), fg="cyan"))
        facts = f"{record.sensitivity}, version {record.version}, {record.digest}"
        click.echo(clean_line(f"  {make_sentence(record.key, record.value)}  ({facts})"))
        click.echo("  signed" if yes else f"  {clean_line(str(record.problem))}")
    if not records:
        click.echo("no record waits for a signature")
    return INCOMPLETE if records and not yes else 0


def _show_plan(receipt: ForgetReceipt) -> None:
    plan = receipt.plan
    for step in plan.steps:
        where = render(clean_line(step.citation), fg="cyan", bold=True)
        click.echo(f"{where}  {_ACTIONS[step.action]}: {clean_line(step.reason)}")
    for key in plan.sessions:
        click.echo(f"{render('sessions/sessions.json', fg='cyan', bold=True)}  the entry {clean_line(repr(key))} goes")
    for item in plan.review:
        click.echo(f"{click.style('look at', fg='yellow')}  {clean_line(item.where)}: {clean_line(item.reason)}")
    if plan:
        click.echo(f"nothing was changed; to do it, add: --yes --seen {plan.hash[:12]}")
    else:
        click.echo("there is nothing to forget")


def _show_receipt(receipt: ForgetReceipt) -> None:
    for where in receipt.forgotten:
        click.echo(f"forgotten {render(clean_line(where), fg='cyan', bold=True)}")
    if not receipt.forgotten:
        click.echo("there was nothing to forget")
    for file in receipt.remaining:
        show_note(f"{file.path}: {file.reason}")
    for item in receipt.plan.review:
        show_note(f"look at {item.where}: {item.reason}")
