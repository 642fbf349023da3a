"""Define the command that a coding agent's hooks call: an event on stdin, the answer for the agent on stdout."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Place, placed
from openclaw_memory.cli.output import say_json

HOSTS = ("claude-code",)

LOG = Path(".memory", "hooks.log")
_LOG_BYTES = 256 * 1024  # of a longer log, the older half goes


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("host", type=click.Choice(HOSTS))
@placed
def hook(place: Place, host: str) -> int:
    """Answer an event of a coding agent, given as JSON on stdin.

    HOST is the agent, which calls this by itself: at the start of a session, with each prompt, before a compaction and
    at the end. It never stops the agent: an error goes to .memory/hooks.log of the workspace, and the exit code is 0.
    In a folder without MEMORY.md and .memory nothing is done, unless --workspace or --agent names it.

    Example: openclaw-memory hook claude-code --workspace notes
    """
    try:
        if place.workspace is None and place.agent is None and not _is_workspace(place.folder):
            return 0
        written = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
        if not written.strip():  # a person tries it out
            say_json({"systemMessage": f"The memory is {place.folder.resolve()}. Events come as JSON on stdin."})
            return 0
        event = json.loads(written)
        with place.open() as memory:
            from openclaw_memory_hooks import claude_code

            said = claude_code.answer(event, memory)
        if said:
            click.echo(said)
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
        _log(place, host, error)
    return 0


def _is_workspace(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("MEMORY.md", ".memory", ".memory.toml"))


def _log(place: Place, host: str, error: Exception) -> None:
    """Write an error to the log of the workspace; to stderr where that cannot be written."""
    line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {host}: {clean_line(f'{type(error).__name__}: {error}')}\n"
    try:
        file = place.folder / LOG
        file.parent.mkdir(exist_ok=True)
        if file.exists() and file.stat().st_size > _LOG_BYTES:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
            file.write_text("".join(lines[len(lines) // 2 :]), encoding="utf-8")
        with file.open("a", encoding="utf-8") as log:
            log.write(line)
    except Exception:  # noqa: BLE001 - no workspace, or none that may be written to
        sys.stderr.write(line)
