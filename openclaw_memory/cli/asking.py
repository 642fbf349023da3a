"""Ask a person at a terminal: to confirm a change, and to write a text in an editor."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from openclaw_memory._safe import clean

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Excerpt


def lines_to_change(memory: Memory, path: str, start: int, end: int, *, as_json: bool) -> Excerpt:
    """Return the lines that a person is asked about.

    Raises:
        click.UsageError: No person is asked: a program has to say what it has seen.
    """
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("Missing option '--seen': only at a terminal a question takes its place")
    return memory.get(path, start=start, lines=end - start + 1)


def confirm(shown: Excerpt, words: str | None) -> None:
    """Show what goes and what comes (None: nothing), and ask.

    Raises:
        click.ClickException: The answer is no.
    """
    for line in clean(shown.text).split("\n"):
        click.secho(f"- {line}", fg="red")
    for line in [] if words is None else clean(words).split("\n"):
        click.secho(f"+ {line}", fg="green")
    if not click.confirm(clean(f"{'Delete' if words is None else 'Change'} {shown.citation}?")):
        raise click.ClickException("nothing was changed")


def whole_text(shown: Excerpt | None) -> str:
    """Return lines as an editor may begin with them: all that the file has there.

    Raises:
        click.UsageError: There are none, parts of them are masked, or they are of an encrypted file.
    """
    if shown is None:
        raise click.UsageError("TEXT is missing: write the new text, or `-` for standard input")
    from openclaw_memory.types.files import ENCRYPTED
    from openclaw_memory.workspace.safe_read import hash_of

    if shown.path.endswith(ENCRYPTED):
        raise click.UsageError(
            f"{shown.path} is encrypted, and an editor would be given its lines in the open, in a temporary file: "
            "write the new text, or `-` for standard input"
        )
    if hash_of(shown.text) != shown.hash:
        raise click.UsageError(f"{shown.citation} has parts that are masked here: change them in the file itself")
    return shown.text


def edited(text: str) -> str:
    """Return a text as the user's editor leaves it.

    Raises:
        click.UsageError: There is no terminal.
        click.ClickException: Nothing was saved.
    """
    if not sys.stdin.isatty():
        raise click.UsageError("an editor needs a terminal: write the text, or `-` for standard input")
    changed = click.edit(text, extension=".md")
    if changed is None or not changed.strip():
        raise click.ClickException("nothing was saved in the editor, and nothing was changed")
    return changed.removesuffix("\n")
