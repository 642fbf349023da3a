"""Define the command that a coding agent's hooks call: an event on stdin, the answer for the agent on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from openclaw_memory._acting import acting_as
from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Place, placed
from openclaw_memory.cli.output import say_json

HOSTS = ("claude-code", "opencode")

LOG = Path(".memory", "hooks.log")
_LOG_BYTES = 256 * 1024  # of a longer log, the older half goes


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("host", type=click.Choice(HOSTS))
@click.argument("event", default="")
@placed
def hook(place: Place, host: str, event: str) -> int:
    """Answer an event of a coding agent, given as JSON on stdin.

    HOST is the agent, which calls this by itself: at the start of a session, with each prompt, before a compaction and
    at the end. EVENT is its name where that is not part of the JSON. It never stops the agent: an error goes to
    .memory/hooks.log of the workspace, and the exit code is 0. In a folder without MEMORY.md and .memory nothing is
    done, unless --workspace or --agent names it.

    Example: openclaw-memory hook claude-code --workspace notes
    """
    try:
        if place.workspace is None and place.agent is None:
            place = replace(place, workspace=".")  # no workspace above, nor a default one, gets to read the session
            if not _is_workspace(place.folder):
                return 0
        # Of OpenCode's plugin, the lines after the first one answer what it is asked in between.
        stdin = sys.stdin.buffer
        written = b"" if sys.stdin.isatty() else stdin.readline() if host == "opencode" else stdin.read()
        if not written.strip():  # a person tries it out
            _say_where(place, host)
            return 0
        answer = _opencode if host == "opencode" else _claude_code
        given = json.loads(written)
        with acting_as(f"hook:{host}", session=_session_in(given)):
            said = answer(place, event, given)
        if said:
            click.echo(said)
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
        _log(place, host, error)
    return 0


def _session_in(event: Any) -> str | None:
    named = [event.get(name) for name in ("session_id", "sessionID")] if isinstance(event, Mapping) else []
    return next((one for one in named if isinstance(one, str)), None)


def _say_where(place: Place, host: str) -> None:
    said = {"systemMessage": f"The memory is {place.folder.resolve()}. Events come as JSON on stdin."}
    if host == "opencode":  # whose settings name the file
        from openclaw_memory_hooks.opencode import PLUGIN

        said["plugin"] = str(PLUGIN)
    say_json(said)


def _claude_code(place: Place, _name: str, event: Mapping[str, Any]) -> str:
    with place.open() as memory:
        from openclaw_memory_hooks import claude_code

        return claude_code.answer(event, memory)


def _opencode(place: Place, name: str, event: Mapping[str, Any]) -> str:
    from openclaw_memory_hooks import opencode

    with place.open(settings=opencode.settings(event.get("settings", {}))) as memory:
        said = opencode.answer(name, event, memory, _exchange)
    return json.dumps(said) if said else ""


def _exchange(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask the plugin of OpenCode in between, in ASCII: the encoding of its pipe is not known here."""
    click.echo(json.dumps(asked))
    answered = json.loads(sys.stdin.buffer.readline() or b"{}")
    return answered if isinstance(answered, Mapping) else {}


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
