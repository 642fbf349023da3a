"""Define the commands that make a workspace, and add a note to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._links import find_link
from openclaw_memory._safe import clean
from openclaw_memory.cli.options import INTERRUPTED, Followed, Place, TakesText, read_text, sync_index, with_place
from openclaw_memory.cli.output import render, show, show_json, show_note, to_plain
from openclaw_memory.errors import WorkspaceError, WriteError

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Excerpt
    from openclaw_memory.workspace import SafeFolder

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
@with_place
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
        advice = memory.workspace.suggest_setup(files)
    if place.as_json:
        show_json({"workspace": str(folder.absolute()), "created": made, "files": files})
        return 0
    for name in made:
        show(f"created {clean(str(folder / name))}")
    if not made:
        show(f"{clean(str(folder))} is a workspace already; nothing was changed")
    count = "1 file" if files == 1 else f"{files:,} files" if files else "no file yet"
    following = 'search{} "a question"' if files else 'append{} "a note"'
    show(f"{count} to search: openclaw-memory {following.format(place.options)}")
    if advice:
        show_note(advice)
    return 0


@click.command(cls=_TakesDashes)
@click.argument("text", nargs=-1, required=True)
@click.option("--date", metavar="YYYY-MM-DD", help="The day of the note. Default: today.")
@click.option("--title", metavar="TEXT", help="A heading for the note.")
@click.option("--quoted-from", metavar="SOURCE", help="Keep it as a quotation: a page or mail says it, not you.")
@with_place
def append(place: Place, text: tuple[str, ...], **how: Any) -> int:
    """Add a note to the day's file, and index it.

    TEXT is the note, in Markdown; several words are one text. `-` in its place reads it from standard input.

    A text that begins with a dash, but not with a dash and a space, is written last, after `--`.

    Example: openclaw-memory append --workspace notes "Anna moved the launch."
    """
    words = read_text(text)
    with place.open() as memory:
        written = memory.append(words, **how)
        return _show_and_index(place, memory, written)


def _show_and_index(place: Place, memory: Memory, written: Excerpt) -> int:
    """Print where a note was written, whatever happens next, and index it."""
    shown = to_plain(written)
    if not place.as_json:
        show(f"added {render(shown['citation'], fg='cyan', bold=True)}")
    code = 0
    try:
        followed = sync_index(memory, hidden=place.as_json)
    except KeyboardInterrupt:
        followed, code = Followed(trouble="interrupted: the file is written, and indexed by the next sync"), INTERRUPTED
    if place.as_json:
        report = followed.report
        unread = {file.path for file in (*report.failed, *report.skipped)} if report else {written.path}
        show_json({**shown, "indexed": written.path not in unread, "sync_error": followed.trouble})
    elif followed.trouble:
        show_note(followed.trouble)
    return code


def make_workspace(folder: Path) -> list[str]:
    """Create `MEMORY.md` and `memory/` in `folder`, and the folder too; return the names of what was missing.

    What exists is left as it is. Folders are for the owner alone (0700), files too (0600).

    Raises:
        WorkspaceError: The folder cannot be made or written, or a file is in its place.
    """
    from openclaw_memory.workspace import SafeFolder

    made: list[str] = []
    files = SafeFolder(folder, create=True)
    with _as_workspace_error(folder):
        files.make_folder()
        if _make_file(files, "MEMORY.md", _LONG_TERM):
            made.append("MEMORY.md")
        if not (folder / "memory").is_dir():
            files.make_folder("memory")
            made.append("memory")
    return made


def take_all_markdown(folder: Path) -> list[str]:
    """Let all Markdown below `folder` count as memory, from now on and for every program; return what was made.

    No note is made or changed.

    Raises:
        WorkspaceError: The folder is missing or cannot be written, or it has settings of its own that say otherwise.
    """
    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.workspace import SafeFolder, Workspace
    from openclaw_memory.workspace.settings import with_settings_inside

    Workspace.open(folder)  # a folder of notes is there: one that is not was misspelled
    settings = folder / SETTINGS
    if link := find_link(settings, folder):
        raise WorkspaceError(f"{link} and is not followed: put a folder or a file of its own there, or move it away")
    with _as_workspace_error(folder, 'name a file with [defaults] and files.extra_paths = ["."] as --config'):
        # What lies there is of this machine, as the index is.
        files = SafeFolder(folder)
        _make_file(files, ".memory/.gitignore", "*\n")
        if _make_file(files, SETTINGS, _ALL_MARKDOWN):
            return [SETTINGS]
    if "." not in with_settings_inside(folder, MemoryConfig()).files.extra_paths:
        raise WorkspaceError(f'{settings} is there already: add `extra_paths = ["."]` to its table [files]')
    return []


def _make_file(files: SafeFolder, path: str, text: str) -> bool:
    """Write a file; return False if it exists, which is left as it is."""
    folder, _, name = path.rpartition("/")
    if name in files.list_names(folder):
        return False
    files.replace(path, text.encode())
    return True


@contextmanager
def _as_workspace_error(folder: Path, otherwise: str = "choose a folder of your own") -> Iterator[None]:
    """Raise what the system refuses as a WorkspaceError; `otherwise` is what else can be done."""
    try:
        yield
    except (WorkspaceError, WriteError) as error:
        raise WorkspaceError(f"{folder} cannot be made a workspace: {error}, or {otherwise}") from error
