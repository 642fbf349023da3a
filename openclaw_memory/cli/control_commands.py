"""Define the commands by which a person sees everything that is remembered, and has it forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Place, with_place
from openclaw_memory.cli.output import render, show, show_json, show_note
from openclaw_memory.errors import NotFoundError
from openclaw_memory.types.control import Kind
from openclaw_memory.types.records import make_sentence

if TYPE_CHECKING:
    from openclaw_memory.types.control import ForgetReceipt

NOT_ALL = 1  # the exit code where something could not be forgotten
_VERBS = {"remove": "the file goes", "lines": "these lines go", "messages": "these messages go"}


@click.command()
@click.option("--kind", type=click.Choice(get_args(Kind)), help="Only these.")
@click.option("--since", metavar="YYYY-MM-DD", help="Only what is of this day or later.")
@click.option("--until", metavar="YYYY-MM-DD", help="Only what is of this day or earlier.")
@with_place
def inspect(place: Place, **wanted: Any) -> int:
    """List everything that is remembered.

    Notes, records, documents, transcripts and snapshots. Of each: its day, what it is, its size in bytes and lines.
    What it says is not shown: `get` does that.

    Example: openclaw-memory inspect --workspace notes --kind day
    """
    with place.open() as memory:
        items = memory.control.inspect(**wanted)
    if place.as_json:
        show_json({"items": items})
        return 0 if items else NOT_ALL
    for item in items:
        day = "no day    " if item.last_date is None else str(item.last_date)
        about = ", ".join(filter(None, (item.type, item.source, item.sensitivity)))
        numbers = f"{item.lines:,} lines, {item.size:,} bytes"
        show(f"{day}  {item.kind:<10}  {render(clean_line(item.path), fg='cyan')}  {numbers}  {clean_line(about)}")
        if item.problem is not None:
            show_note(clean_line(item.problem))
    show(f"{len(items):,} files, {sum(item.size for item in items):,} bytes")
    return 0 if items else NOT_ALL


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH")
@click.option("--last-days", type=int, metavar="N", help="What is of the last N days; today is the first.")
@click.option("--since", metavar="YYYY-MM-DD", help="What is of this day or later.")
@click.option("--query", metavar="WORDS", help="What says these words, in this order.")
@click.option("--key", metavar="GLOB", help="Records with such a key, as in 'editor.*'.")
@click.option("--session", metavar="ID", help="A session: its transcript, and its entry in sessions.json.")
@click.option("--yes", is_flag=True, help="Do it. Without this, only the plan is shown.")
@click.option("--seen", metavar="HASH", help="Do it only if it is the plan of this hash; 12 digits do.")
@with_place
def forget(place: Place, paths: tuple[str, ...], yes: bool, seen: str | None, **wanted: Any) -> int:
    """Forget days, words or files, in every byte of the index.

    What is of some days, says some words, or is named goes, in the files and in the index. Without --yes, it shows
    what would go, and changes nothing. Notes that are of no day, such as MEMORY.md, are listed for you to look at;
    they are touched where you name them. PATH is such a file, or lines of it: MEMORY.md#L3-L4. The exit code is 1
    where something could not go.

    Example: openclaw-memory forget --workspace notes --last-days 7
    """
    with place.open() as memory:
        receipt = memory.control.forget(**wanted, paths=list(paths) or None, dry_run=not yes, seen=seen)
    if place.as_json:
        show_json(receipt)
    elif receipt.is_dry_run:
        _say_plan(receipt)
    else:
        _say_receipt(receipt)
    return NOT_ALL if not (receipt.is_dry_run or receipt.is_erased) or receipt.remaining else 0


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH")
@click.option("--yes", is_flag=True, help="Sign them. Without this, they are only shown.")
@click.option("--seen", metavar="DIGEST", help="Sign the one PATH only if it is still what was shown with this digest.")
@with_place
def sign(place: Place, paths: tuple[str, ...], yes: bool, seen: str | None) -> int:
    """Vouch for records that have changed by hand.

    A record of high sensitivity is signed, and shown nowhere once something else than this library has written it.
    Without --yes, what such records say now is shown, and why they are not trusted: look at it. With --yes they are
    signed as they are, those at PATH or all. PATH is the file of a record. The exit code is 1 where some are left
    unsigned.

    Example: openclaw-memory sign --workspace notes --yes
    """
    if seen is not None and len(paths) != 1:
        raise click.UsageError("--seen is the digest of one record: name its PATH")
    with place.open() as memory:
        there = memory.records.list_unsigned()
        chosen = [one for one in there if not paths or one.path in paths]
        if missing := sorted({*paths} - {one.path for one in chosen}):
            raise NotFoundError(f"{missing[0]} waits for no signature: `openclaw-memory sign` lists what does")
        signed = [memory.records.sign(one.path, expected=seen or one) for one in chosen] if yes else []
    if place.as_json:
        show_json({"unsigned": [] if yes else chosen, "signed": [one.path for one in signed]})
    for one in () if place.as_json else chosen:
        show(render(clean_line(one.path), fg="cyan"))
        sentence = make_sentence(one.key, one.value)
        show(clean_line(f"  {sentence}  ({one.sensitivity}, version {one.version}, {one.digest})"))
        show("  signed" if yes else f"  {clean_line(str(one.problem))}")
    if not chosen and not place.as_json:
        show("no record waits for a signature")
    return NOT_ALL if chosen and not yes else 0


def _say_plan(receipt: ForgetReceipt) -> None:
    plan = receipt.plan
    for step in plan.steps:
        where = render(clean_line(step.citation), fg="cyan", bold=True)
        show(f"{where}  {_VERBS[step.action]}: {clean_line(step.reason)}")
    for key in plan.sessions:
        show(f"{render('sessions/sessions.json', fg='cyan', bold=True)}  the entry {clean_line(repr(key))} goes")
    for one in plan.review:
        show(f"{click.style('look at', fg='yellow')}  {clean_line(one.where)}: {clean_line(one.reason)}")
    if plan:
        show(f"nothing was changed; to do it, add: --yes --seen {plan.hash[:12]}")
    else:
        show("there is nothing to forget")


def _say_receipt(receipt: ForgetReceipt) -> None:
    for where in receipt.forgotten:
        show(f"forgotten {render(clean_line(where), fg='cyan', bold=True)}")
    if not receipt.forgotten:
        show("there was nothing to forget")
    for one in receipt.remaining:
        show_note(f"{one.path}: {one.reason}")
    for review in receipt.plan.review:
        show_note(f"look at {review.where}: {review.reason}")
