"""Define the commands that make a workspace, add a note to it, and forget and sign memories."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli import options
from openclaw_memory.cli.output import render, show_json, show_note, to_plain
from openclaw_memory.errors import NotFoundError, WorkspaceError
from openclaw_memory.types.records import make_sentence

if TYPE_CHECKING:
    from openclaw_memory.backends.workspace_setup import Vault
    from openclaw_memory.types.results import ForgetReceipt
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

INCOMPLETE = 1  # the exit code where something is left, or nothing is there
_ACTIONS = {"remove": "the file goes", "lines": "these lines go", "messages": "these messages go"}
_MOST_NAMED = 10  # by `init`; `doctor` names all


@click.command()
@click.option(
    "--all-markdown/--new-notes",
    default=None,
    help="Search all Markdown in the folder (the default in a vault), or create notes in a vault too.",
)
@options.workspace_option
@options.json_option
def init(workspace: str | None, all_markdown: bool | None, as_json: bool) -> int:
    """Create a workspace: MEMORY.md and memory/.

    Existing files are not changed. With --all-markdown, every Markdown file in the folder is searched, except in hidden
    folders, node_modules and the like. A vault of Obsidian, Logseq, Dendron or Foam is recognised: its journal holds
    the notes of days, and its templates are left out.

    Example: openclaw-memory init --workspace notes
    """
    from openclaw_memory.backends.workspace_setup import find_vault
    from openclaw_memory.cli.find_workspace import find_workspace

    folder = find_workspace(workspace, new=True).folder
    vault = find_vault(folder)
    if all_markdown is None:
        all_markdown = vault is not None and not {"MEMORY.md", "memory"}.intersection(os.listdir(folder))
    created = take_all_markdown(folder, vault) if all_markdown else make_workspace(folder)
    place = options.Place(workspace)
    with options.Place(str(folder)).open() as memory:
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
    command = 'search{} "a question"' if count else 'add{} "a note"'
    click.echo(f"{files} to search: openclaw-memory {command.format(place.options)}")
    left_out = (f"{clean(file.path)} is left out: {file.reason}" for file in scan.skipped[:_MOST_NAMED])
    for note in (*notices, *left_out, *filter(None, [advice])):
        show_note(note)
    return 0


class _NoteCommand(options.TextCommand):
    """A command that takes an item of a list, `- like this`, as text."""

    text: ClassVar[re.Pattern[str]] = re.compile(r"-\s.*", re.DOTALL)


@click.command(cls=_NoteCommand)
@click.argument("text", nargs=-1, required=True)
@click.option("--date", metavar="YYYY-MM-DD", help="The day of the note. Default: today.")
@options.with_place
def add(place: options.Place, text: tuple[str, ...], date: str | None) -> int:
    """Add a note to the file of a day, and index it.

    TEXT is the note, in Markdown; several words are joined. `-` reads it from standard input. Put a text that begins
    with a dash and no space last, after `--`.

    Example: openclaw-memory add --workspace notes "Anna moved the launch."
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
            outcome = options.SyncOutcome(trouble="interrupted: the file is written, and indexed by the next sync")
            code = options.INTERRUPTED
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


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH")
@click.option("--last-days", type=int, metavar="N", help="Forget the last N days, today included.")
@click.option("--query", metavar="WORDS", help="Forget lines with these words, in this order.")
@click.option("--session", metavar="ID", help="Forget a session: its transcript and its entry in sessions.json.")
@click.option("--yes", is_flag=True, help="Forget it. Without this, only the plan is shown.")
@click.option("--seen", "expected", metavar="HASH", help="Forget only if the plan has this hash (its first 12 digits).")
@options.with_place
def forget(place: options.Place, paths: tuple[str, ...], yes: bool, **criteria: Any) -> int:
    """Forget days, words or files, and erase them from the index.

    Without --yes, it shows the plan and changes nothing. Lines of notes without a day, such as MEMORY.md, are listed
    for you to look at; forget them by name. PATH is a file, or lines of it: MEMORY.md#L3-L4. Exit code 1: something
    could not be removed, or is left for you to look at.

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
@options.with_place
def sign(place: options.Place, paths: tuple[str, ...], yes: bool) -> int:
    """Sign records that were changed by hand.

    Records of high sensitivity are signed. One that another program has written is hidden until you sign it. Without
    --yes, the unsigned records are shown, with the reason; with --yes they are signed, all or those at PATH. PATH is
    the file of a record. Exit code 1: some are left unsigned.

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
