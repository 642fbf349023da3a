"""Define the commands that make a workspace and write its notes, each indexed at once, and the one that reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._links import link_to
from openclaw_memory._safe import clean
from openclaw_memory.cli.options import INTERRUPTED, Followed, Place, TakesText, given, placed, synced
from openclaw_memory.cli.output import note, paint, plain, say, say_json
from openclaw_memory.errors import WorkspaceError, remedy
from openclaw_memory.types.files import backwards, citation, cited

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Excerpt

_SEEN = "HASH of the lines as you saw them: `get --json` shows it; 12 digits do."
SETTINGS = ".memory/config.toml"
_ALL_MARKDOWN = """\
# What is set here holds for this folder. It may name nothing outside of it.
[files]
extra_paths = ["."]  # all Markdown in this folder is memory, but for hidden folders and the like of node_modules
"""
_LONG_TERM = """\
# Long-term memory

What stays true for long: people, preferences, decisions. Notes of the day go to memory/YYYY-MM-DD.md.
"""


class _TakesDashes(TakesText):
    """A command that takes an argument with a leading dash and space as text, such as an item of a list."""

    def is_text(self, argument: str) -> bool:
        return argument.startswith("-") and argument[1:2].isspace()


@click.command()
@click.option("--all-markdown", is_flag=True, help="Have all Markdown in the folder searched; make no notes.")
@placed
def init(place: Place, all_markdown: bool) -> int:
    """Make a workspace: MEMORY.md and memory/; keep what is there.

    A folder that is full of notes already, such as a vault of Obsidian, becomes one with --all-markdown: wherever in
    it a Markdown file lies, it is searched, by every program. Left out are hidden folders and such as node_modules.

    Example: openclaw-memory init --workspace notes
    """
    folder = place.new_folder
    made = (take_all_markdown if all_markdown else make_workspace)(folder)
    with (place if place.agent else replace(place, workspace=str(folder))).open() as memory:
        files = len(memory.workspace.scan().files)
        advice = memory.workspace.advice(files)
    if place.as_json:
        say_json({"workspace": str(folder.absolute()), "created": made, "files": files})
        return 0
    for name in made:
        say(f"created {clean(str(folder / name))}")
    if not made:
        say(f"{clean(str(folder))} is a workspace already; nothing was changed")
    count = "1 file" if files == 1 else f"{files:,} files" if files else "no file yet"
    following = 'search{} "a question"' if files else 'append{} "a note"'
    say(f"{count} to search: openclaw-memory {following.format(place.options)}")
    if advice:
        note(advice)
    return 0


@click.command(cls=_TakesDashes)
@click.argument("text", nargs=-1)
@click.option("--edit", "in_editor", is_flag=True, help="Write the note in your editor, which begins with TEXT.")
@click.option("--date", metavar="YYYY-MM-DD", help="The day of the note. Default: today.")
@click.option("--title", metavar="TEXT", help="A heading for the note.")
@click.option("--skip-existing", is_flag=True, help="Add nothing that the day's file holds already.")
@click.option("--quoted-from", metavar="SOURCE", help="Keep it as a quotation: a page or mail says it, not you.")
@placed
def append(place: Place, text: tuple[str, ...], in_editor: bool, **how: Any) -> int:
    """Add a note to the day's file, and index it.

    TEXT is the note, in Markdown; several words are one text. `-` in its place reads it from standard input.

    A text that begins with a dash, but not with a dash and a space, is written last, after `--`.

    Example: openclaw-memory append --workspace notes "Anna moved the launch."
    """
    if not text and not in_editor:
        raise click.UsageError("TEXT is missing: write it here, `-` for standard input, or --edit for your editor")
    words = given(text)
    with place.open() as memory:
        written = memory.append(_edited(words) if in_editor else words, **how)
        return _done(place, memory, "added", written)


@click.command(cls=_TakesDashes)
@click.argument("lines", metavar="PATH#L3-L4")
@click.argument("text", nargs=-1)
@click.option("--seen", metavar="HASH", help=_SEEN)
@placed
def edit(place: Place, lines: str, text: tuple[str, ...], seen: str | None) -> int:
    """Replace lines of a note, if they still are what you saw.

    PATH#L3-L4 is a citation as `search` prints it, with the first and the last line; of one line it is PATH#L3. TEXT is
    the new text. `-` in its place reads it from standard input. At a terminal, a question takes the place of --seen,
    and your editor that of TEXT.

    A text that begins with a dash, but not with a dash and a space, is written last, after `--`.

    Example: openclaw-memory edit -w notes "MEMORY.md#L4" --seen 386669e86d26 "Eva has the spare key."
    """
    path, start, end = _lines(lines)
    with place.open() as memory:
        shown = None if seen is not None else _to_change(place, memory, path, start, end)
        words = given(text) if text else _edited(_whole_text(shown))
        written = memory.edit(path, start, end, words, seen=seen or _agreed(shown, words))
        return _done(place, memory, "changed", written)


@click.command()
@click.argument("lines", metavar="PATH#L3-L4")
@click.option("--seen", metavar="HASH", help=_SEEN)
@placed
def delete(place: Place, lines: str, seen: str | None) -> int:
    """Remove lines of a note, if they still are what you saw.

    PATH#L3-L4 is a citation as `search` prints it, with the first and the last line; of one line it is PATH#L3. At
    a terminal, a question takes the place of --seen.

    Example: openclaw-memory delete --workspace notes "MEMORY.md#L3" --seen 3ec561970a7e
    """
    path, start, end = _lines(lines)
    with place.open() as memory:
        shown = None if seen is not None else _to_change(place, memory, path, start, end)
        memory.delete(path, start, end, seen=seen or _agreed(shown, None))
        return _done(place, memory, "deleted", {"path": path, "citation": citation(path, (start, end))})


@click.command()
@click.argument("lines", metavar="PATH#L3-L4")
@click.option("--section", metavar="TITLE", help="The heading of MEMORY.md to put them below; made if need be.")
@click.option("--seen", metavar="HASH", help=_SEEN)
@placed
def promote(place: Place, lines: str, section: str | None, seen: str | None) -> int:
    """Copy lines of a note to MEMORY.md, for what stays true.

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


def _to_change(place: Place, memory: Memory, path: str, start: int, end: int) -> Excerpt:
    from openclaw_memory.cli.asking import lines_to_change

    return lines_to_change(memory, path, start, end, as_json=place.as_json)


def _agreed(shown: Excerpt | None, words: str | None) -> str:
    """Return the hash of what a person was shown, and has agreed to change; "" where no one was asked."""
    from openclaw_memory.cli.asking import confirm

    if shown is None:
        return ""
    confirm(shown, words)
    return shown.hash


def _edited(words: str) -> str:
    from openclaw_memory.cli.asking import edited

    return edited(words)


def _whole_text(shown: Excerpt | None) -> str:
    from openclaw_memory.cli.asking import whole_text

    return whole_text(shown)


def _lines(given: str) -> tuple[str, int, int]:
    if right := backwards(given):
        raise click.UsageError(f"{given!r} ends before it begins: write {right}")
    path, spans = cited(given) or (given, ())
    if len(spans) != 1:
        why = "leaves lines out between others" if spans else "names no lines"
        raise click.UsageError(f"{given!r} {why}: write them as `search` does, MEMORY.md#L3 or MEMORY.md#L3-L4")
    return path, *spans[0]


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


def make_workspace(folder: Path) -> list[str]:
    """Create `MEMORY.md` and `memory/` in `folder`, and the folder too; return the names of what was missing.

    What exists is left as it is. Folders are for the owner alone (0700), files too (0600).

    Raises:
        WorkspaceError: The folder cannot be made or written, or a file is in its place.
    """
    made: list[str] = []
    with _as_workspace_error(folder):
        _make_folder(folder)
        if not (folder / "memory").is_dir():
            (folder / "memory").mkdir(mode=0o700)
            made.append("memory")
        return [*(["MEMORY.md"] if _make_file(folder / "MEMORY.md", _LONG_TERM) else []), *made]


def take_all_markdown(folder: Path) -> list[str]:
    """Let all Markdown below `folder` count as memory, from now on and for every program; return what was made.

    No note is made or changed.

    Raises:
        WorkspaceError: The folder is missing or cannot be written, or it has settings of its own that say otherwise.
    """
    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.settings import with_settings_inside

    Workspace.open(folder)  # a folder of notes is there: one that is not was misspelled
    settings = folder / SETTINGS
    if link := link_to(settings, folder, hard=False):
        raise WorkspaceError(f"{link} and is not followed: put a folder or a file of its own there, or move it away")
    with _as_workspace_error(folder, 'name a file with [defaults] and files.extra_paths = ["."] as --config'):
        _make_folder(settings.parent)
        # What lies there is of this machine, as the index is.
        _make_file(settings.with_name(".gitignore"), "*\n")
        if _make_file(settings, _ALL_MARKDOWN):
            return [SETTINGS]
    if "." not in with_settings_inside(folder, MemoryConfig()).files.extra_paths:
        raise WorkspaceError(f'{settings} is there already: add `extra_paths = ["."]` to its table [files]')
    return []


def _make_folder(folder: Path) -> None:
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _make_file(path: Path, text: str) -> bool:
    """Write a file for its owner alone; return False if it exists, which is left as it is."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(file, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
    return True


@contextmanager
def _as_workspace_error(folder: Path, otherwise: str = "choose a folder of your own") -> Iterator[None]:
    """Raise what the system refuses as a WorkspaceError; `otherwise` is what else can be done."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"{folder} cannot be made a workspace: {error.strerror}: {error.filename}; {remedy(error)}, or {otherwise}"
        ) from error
