"""Define the command that a coding agent's hooks call: an event on stdin, the answer for the agent on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory.cli import Place, clean_line, show_json, with_place
from openclaw_memory.errors import InvalidInputError, NotFoundError, OpenClawMemoryError
from openclaw_memory.events import acting_as

if TYPE_CHECKING:
    from openclaw_memory import Memory
    from openclaw_memory.workspace import SafeFolder

HOSTS = ("claude-code", "opencode")

LOG = "hooks.log"
_LOG_BYTES = 256 * 1024  # of a longer log, half of that stays


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("host", type=click.Choice(HOSTS))
@click.argument("event", default="")
@with_place
def hook(place: Place, host: str, event: str) -> int:
    """Answer an event of a coding agent, given as JSON on stdin.

    HOST is the agent, which calls this by itself: at the start of a session, with each prompt, before a compaction and
    at the end. EVENT is its name where that is not part of the JSON. It never stops the agent: an error goes to
    hooks.log in the user's data folder, and the exit code is 0; without an event, the command says where that is. In a
    folder without MEMORY.md and .memory nothing is done, unless --workspace or --agent names it.

    Example: openclaw-memory hook claude-code --workspace notes
    """
    try:
        if place.workspace is None and place.agent is None:
            place = place._replace(workspace=".")  # no workspace above, nor a default one, gets to read the session
            if not _is_workspace(place.folder):
                return 0
        # Of OpenCode's plugin, the lines after the first one answer what it is asked in between.
        stdin = sys.stdin.buffer
        written = b"" if sys.stdin.isatty() else stdin.readline() if host == "opencode" else stdin.read()
        if not written.strip():  # a person tries it out
            _print_places(place, host)
            return 0
        answer = _answer_opencode if host == "opencode" else _answer_claude_code
        if not isinstance(event_data := json.loads(written), dict):
            raise InvalidInputError(f"an event is a JSON object, not {written[:80]!r}")
        with acting_as(f"hook:{host}", session=_find_session(event_data)):
            reply = answer(place, event, event_data)
        if reply:
            click.echo(reply)
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
        _log(place, host, error)
    return 0


def _find_session(event: Mapping[str, Any]) -> str | None:
    names = (event.get(key) for key in ("session_id", "sessionID"))
    return next((name for name in names if isinstance(name, str)), None)


def _print_places(place: Place, host: str) -> None:
    from openclaw_memory.workspace import SafeFolder

    log = SafeFolder.locate_data(place.folder).base / LOG
    words = f"The memory is {place.folder.resolve()}. Errors are in {log}. Events come as JSON on stdin."
    reply = {"systemMessage": words}
    if host == "opencode":  # whose settings name the file
        from openclaw_memory_hooks.opencode import PLUGIN

        reply["plugin"] = str(PLUGIN)
    show_json(reply)


def _answer_claude_code(place: Place, _name: str, event: Mapping[str, Any]) -> str:
    with place.open() as memory:
        from openclaw_memory_hooks import claude_code

        _ignore_transcripts(memory)
        return claude_code.answer(event, memory)


def _answer_opencode(place: Place, name: str, event: Mapping[str, Any]) -> str:
    from openclaw_memory_hooks import opencode

    with place.open(settings=opencode.read_settings(event.get("settings", {}))) as memory:
        _ignore_transcripts(memory)
        reply = opencode.answer(name, event, memory, _ask_plugin)
    return json.dumps(reply) if reply else ""


def _ask_plugin(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send the plugin of OpenCode a request and read its reply, both in ASCII: the encoding of its pipe is unknown."""
    click.echo(json.dumps(request))
    answered = json.loads(sys.stdin.buffer.readline() or b"{}")
    return answered if isinstance(answered, Mapping) else {}


def _is_workspace(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("MEMORY.md", ".memory", ".memory.toml"))


def _ignore_transcripts(memory: Memory) -> None:
    """Keep a new folder of transcripts out of Git: the folder that an agent opens may be a repository."""
    from openclaw_memory.workspace import SafeFolder

    place = memory.sessions.log("any").folder
    folder, path = SafeFolder(Path(place.base)), "/".join(place.parts)
    with suppress(OpenClawMemoryError):  # the first transcript says why it cannot be written
        if not folder.list_names(path):
            with folder.lock(f"{path}/.lock"):
                folder.replace(f"{path}/.gitignore", b"*\n")


def _log(place: Place, host: str, error: Exception) -> None:
    """Write an error to the log; to stderr where that cannot be written."""
    from openclaw_memory.workspace import SafeFolder

    line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {host}: {clean_line(f'{type(error).__name__}: {error}')}\n"
    with suppress(Exception):  # no workspace, or no data folder that may be written to
        if place.folder.is_dir():
            _append_to_log(SafeFolder.locate_data(place.folder), line.encode())
            return
    sys.stderr.write(line)


def _append_to_log(folder: SafeFolder, line: bytes) -> None:
    text = b""
    with folder.lock():
        with suppress(NotFoundError):
            text = folder.read(LOG)
        if len(text) > _LOG_BYTES:
            folder.replace(LOG, text[-_LOG_BYTES // 2 :].partition(b"\n")[2])
        folder.append(LOG, line)
