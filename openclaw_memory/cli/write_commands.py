"""Define the commands that make a workspace, and add a note to it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from openclaw_memory._safe import clean
from openclaw_memory.cli.options import (
    INTERRUPTED,
    Place,
    SyncOutcome,
    TextCommand,
    json_option,
    with_place,
    workspace_option,
)
from openclaw_memory.cli.output import render, show_json, show_note, to_plain
from openclaw_memory.errors import WorkspaceError

if TYPE_CHECKING:
    from openclaw_memory.backends.workspace_setup import Vault
    from openclaw_memory.workspace import SafeFolder

_SETTINGS = """\
# What is set here holds for this folder. It may name nothing outside of it.
[files]
extra_paths = ["."]  # all Markdown in this folder is memory, but for hidden folders and the like of node_modules
"""
_LONG_TERM = """\
# Long-term memory

What stays true for long: people, preferences, decisions. Notes of the day go to memory/YYYY-MM-DD.md.
"""

_MOST_NAMED = 10  # by `init`; `doctor` names all


@click.command()
@click.option(
    "--all-markdown/--new-notes",
    default=None,
    help="Have all Markdown in the folder searched, and make no notes; by default so in a vault.",
)
@workspace_option
@json_option
def init(workspace: str | None, all_markdown: bool | None, as_json: bool) -> int:
    """Make a workspace: MEMORY.md and memory/.

    Existing files are left as they are. A folder that is full of notes already becomes one with --all-markdown:
    wherever in it a Markdown file lies, it is searched, by every program. Left out are hidden folders and such as
    node_modules. So it is done in a vault of Obsidian, Logseq, Dendron or Foam: notes of days go to its journal, and
    its templates are left out. --new-notes makes MEMORY.md and memory/ there too.

    Example: openclaw-memory init --workspace notes
    """
    from openclaw_memory.backends.workspace_setup import find_vault
    from openclaw_memory.cli.find_workspace import find_workspace

    folder = find_workspace(workspace, new=True).folder
    vault = find_vault(folder)
    if all_markdown is None:
        all_markdown = vault is not None and not {"MEMORY.md", "memory"}.intersection(os.listdir(folder))
    created = take_all_markdown(folder, vault) if all_markdown else make_workspace(folder)
    place = Place(workspace)
    with Place(str(folder)).open() as memory:
        scan = memory.workspace.scan()
        count = len(scan.files)
        advice = memory.workspace.suggest_setup(count)
        journal, notices = memory.config.journal.pattern, memory.config.notices
    if as_json:
        facts = {"workspace": str(folder.absolute()), "created": created, "files": count, "journal": journal}
        show_json({**facts, "vault": vault and vault.program})
        return 0
    for name in created:
        click.echo(f"created {clean(str(folder / name))}")
    if not created:
        click.echo(f"{clean(str(folder))} is a workspace already; nothing was changed")
    if vault is not None:
        click.echo(f"a vault of {vault.program}: notes of days are {clean(journal)}")
    files = "1 file" if count == 1 else f"{count:,} files" if count else "no file yet"
    command = 'search{} "a question"' if count else 'append{} "a note"'
    click.echo(f"{files} to search: openclaw-memory {command.format(place.options)}")
    left_out = (f"{clean(file.path)} is left out: {file.reason}" for file in scan.skipped[:_MOST_NAMED])
    for note in (*notices, *left_out, *filter(None, [advice])):
        show_note(note)
    return 0


class _NoteCommand(TextCommand):
    """A command that takes an item of a list, `- like this`, as text."""

    text: ClassVar[re.Pattern[str]] = re.compile(r"-\s.*", re.DOTALL)


@click.command(cls=_NoteCommand)
@click.argument("text", nargs=-1, required=True)
@click.option("--date", metavar="YYYY-MM-DD", help="The day of the note. Default: today.")
@with_place
def append(place: Place, text: tuple[str, ...], date: str | None) -> int:
    """Add a note to the day's file, and index it.

    TEXT is the note, in Markdown; several words are one text. `-` in its place reads it from standard input.

    A text that begins with a dash, but not with a dash and a space, is written last, after `--`.

    Example: openclaw-memory append --workspace notes "Anna moved the launch."
    """
    note, code = place.get_text(text), 0
    with place.open() as memory:
        excerpt = memory.append(note, date=date)
        # Wherever the note was written is shown, whatever happens next.
        if not place.as_json:
            click.echo(f"added {render(excerpt.citation, fg='cyan', bold=True)}")
        try:
            outcome = place.sync(memory)
        except KeyboardInterrupt:
            outcome = SyncOutcome(trouble="interrupted: the file is written, and indexed by the next sync")
            code = INTERRUPTED
    if place.as_json:
        report = outcome.report
        unread = {file.path for file in (*report.failed, *report.skipped)} if report else {excerpt.path}
        facts = {"indexed": excerpt.path not in unread, "sync_error": outcome.trouble}
        show_json({**to_plain(excerpt), **facts})
    elif outcome.trouble:
        show_note(outcome.trouble)
    return code


def make_workspace(folder: Path) -> list[str]:
    """Create `MEMORY.md` and `memory/` in `folder`, and the folder too; return the names of the new files.

    Existing files are left as they are. Folders are for the owner alone (0700), files too (0600).

    Raises:
        WorkspaceError: The folder cannot be made or written, or a file is in its place.
    """
    from openclaw_memory.workspace import SafeFolder

    files = SafeFolder(folder, create=True)
    files.make_folder()
    created = ["MEMORY.md"] if _create_file(files, "MEMORY.md", _LONG_TERM) else []
    if not (folder / "memory").is_dir():
        files.make_folder("memory")
        created.append("memory")
    return created


def take_all_markdown(folder: Path, vault: Vault | None) -> list[str]:
    """Let all Markdown below `folder` count as memory, for every program; return the names of the new files.

    No note is made or changed. The journal of a vault is set, and its templates are left out.

    Raises:
        WorkspaceError: The folder is missing or cannot be written, or it has settings of its own that say otherwise.
    """
    from openclaw_memory.backends.workspace_setup import SETTINGS, with_settings_inside
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.workspace import SafeFolder, Workspace

    Workspace.open(folder)  # a folder of notes exists: one that does not was misspelled
    text = _SETTINGS
    if vault is not None:
        text += f"exclude = {json.dumps(vault.exclude, ensure_ascii=False)}\n" if vault.exclude else ""
        values = {"folder": vault.folder, "name": vault.name}
        lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
        text += "\n".join([f"\n[journal]  # where {vault.program} has the notes of days", *lines, ""])
    files = SafeFolder(folder)
    _create_file(files, ".memory/.gitignore", "*\n")
    if _create_file(files, SETTINGS, text):
        return [SETTINGS]
    if "." not in with_settings_inside(folder, MemoryConfig()).files.extra_paths:
        raise WorkspaceError(f'{folder / SETTINGS} is there already: add `extra_paths = ["."]` to its table [files]')
    return []


def _create_file(files: SafeFolder, path: str, text: str) -> bool:
    """Write a file; return False if it exists, which is left as it is."""
    folder, _, name = path.rpartition("/")
    if name in files.list_names(folder):
        return False
    files.replace(path, text.encode())
    return True
