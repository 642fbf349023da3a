"""Define the commands that write notes, each indexed at once, and the one that reads them for a session."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory.cli.options import INTERRUPTED, Followed, Place, placed, synced
from openclaw_memory.cli.output import note, paint, plain, say, say_json
from openclaw_memory.display import clean
from openclaw_memory.types.files import citation, cited

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Excerpt

_SEEN = "HASH of the lines as you saw them: `get --json` shows it; 12 digits do."


class _TakesDashes(click.Command):
    """A command that takes an argument with a leading dash and space as text, such as an item of a list."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse with the text after `--`, where click takes nothing for an option."""
        if any(_is_item(argument) for argument in args):
            args = self._text_last(args)
        return super().parse_args(ctx, args)

    def _text_last(self, args: list[str]) -> list[str]:
        valued = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        options: list[str] = []
        text: list[str] = []
        rest = iter(args)
        for argument in rest:
            if argument == "--":
                text += rest
            elif argument == "-" or not argument.startswith("-") or _is_item(argument):
                text.append(argument)
            else:
                options += [argument, *itertools.islice(rest, int(argument in valued))]
        return [*options, "--", *text]


def _is_item(argument: str) -> bool:
    return argument.startswith("-") and argument[1:2].isspace()


@click.command(cls=_TakesDashes)
@click.argument("text", nargs=-1, required=True)
@click.option("--date", metavar="YYYY-MM-DD", help="The day of the note. Default: today.")
@click.option("--title", metavar="TEXT", help="A heading for the note.")
@click.option("--skip-existing", is_flag=True, help="Add nothing that the day's file holds already.")
@placed
def append(place: Place, text: tuple[str, ...], date: str | None, title: str | None, skip_existing: bool) -> int:
    """Add a note to the day's file, and index it.

    TEXT is the note, in Markdown; several words are one text. `-` in its place reads it from standard input.

    A text that begins with a dash, but not with a dash and a space, is written last, after `--`.

    Example: openclaw-memory append --workspace notes "Anna moved the launch."
    """
    with place.open() as memory:
        written = memory.append(_given(text), date=date, title=title, skip_existing=skip_existing)
        return _done(place, memory, "added", written)


@click.command(cls=_TakesDashes)
@click.argument("lines", metavar="PATH#L3-L4")
@click.argument("text", nargs=-1, required=True)
@click.option("--seen", metavar="HASH", required=True, help=_SEEN)
@placed
def edit(place: Place, lines: str, text: tuple[str, ...], seen: str) -> int:
    """Replace lines of a note, if they still are what you saw.

    PATH#L3-L4 is a citation as `search` prints it, with the first and the last line; of one line it is PATH#L3. TEXT is
    the new text. `-` in its place reads it from standard input.

    A text that begins with a dash, but not with a dash and a space, is written last, after `--`.

    Example: openclaw-memory edit -w notes "MEMORY.md#L4" --seen 386669e86d26 "Eva has the spare key."
    """
    path, start, end = _lines(lines)
    with place.open() as memory:
        written = memory.edit(path, start, end, _given(text), seen=seen)
        return _done(place, memory, "changed", written)


@click.command()
@click.argument("lines", metavar="PATH#L3-L4")
@click.option("--seen", metavar="HASH", required=True, help=_SEEN)
@placed
def delete(place: Place, lines: str, seen: str) -> int:
    """Remove lines of a note, if they still are what you saw.

    PATH#L3-L4 is a citation as `search` prints it, with the first and the last line; of one line it is PATH#L3.

    Example: openclaw-memory delete --workspace notes "MEMORY.md#L3" --seen 3ec561970a7e
    """
    path, start, end = _lines(lines)
    with place.open() as memory:
        memory.delete(path, start, end, seen=seen)
        return _done(place, memory, "deleted", {"path": path, "citation": citation(path, start, end)})


@click.command()
@click.argument("lines", metavar="PATH#L3-L4")
@click.option("--section", metavar="TITLE", help="The heading of MEMORY.md to put them below; made if need be.")
@click.option("--seen", metavar="HASH", help=_SEEN)
@placed
def promote(place: Place, lines: str, section: str | None, seen: str | None) -> int:
    """Copy lines of a note to MEMORY.md, which keeps what stays true.

    PATH#L3-L4 is a citation as `search` prints it, with the first and the last line; of one line it is PATH#L3.

    Example: openclaw-memory promote -w notes "memory/2026-02-26.md#L3" --section Decisions
    """
    path, start, end = _lines(lines)
    with place.open() as memory:
        written = memory.promote(path, start, end, section=section, seen=seen)
        return _done(place, memory, "kept", written)


@click.command()
@click.option("--shared", is_flag=True, help="For a session that others read too: without MEMORY.md.")
@placed
def bootstrap(place: Place, shared: bool) -> int:
    """Show what an agent reads when a session starts.

    That is SOUL.md, MEMORY.md, and the notes of yesterday and today.

    Example: openclaw-memory bootstrap --workspace notes
    """
    with place.open() as memory:
        started = memory.bootstrap(private=not shared)
    if place.as_json:
        say_json(started)
        return 0
    for file in started.files:
        say(paint(file.path, fg="cyan", bold=True))
        say(clean(file.text))
        if file.note:
            note(f"{file.path}: {file.note}")
    return 0


def _given(text: tuple[str, ...]) -> str:
    return sys.stdin.read() if text == ("-",) else " ".join(text)


def _lines(given: str) -> tuple[str, int, int]:
    lines = cited(given)
    if lines is None:
        raise click.UsageError(
            f"{given!r} names no lines: write them as `search` does, MEMORY.md#L3 or MEMORY.md#L3-L4"
        )
    return lines


def _done(place: Place, memory: Memory, verb: str, written: Excerpt | dict[str, Any]) -> int:
    """Print what was written, whatever happens next, and index it."""
    shown = plain(written)
    if not place.as_json:
        say(f"{'already there:' if shown.get('existed') else verb} {paint(shown['citation'], fg='cyan', bold=True)}")
    code = 0
    try:
        followed = synced(memory, hidden=place.as_json)
    except KeyboardInterrupt:
        followed, code = Followed(trouble="interrupted: the file is written, and indexed by the next sync"), INTERRUPTED
    if place.as_json:
        say_json({**shown, "indexed": _is_indexed(followed, shown["path"]), "sync_error": followed.trouble})
    elif followed.trouble:
        note(followed.trouble)
    return code


def _is_indexed(followed: Followed, path: str) -> bool:
    """Whether a sync has read the file as it is now; where it lacks vectors, keywords find it."""
    report = followed.report
    return report is not None and path not in {file.path for file in (*report.failed, *report.skipped)}
