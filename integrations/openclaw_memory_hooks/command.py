"""Define the command that a coding agent's hooks call: an event on stdin, the answer for the agent on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import Lock
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
    hooks.log in the user's data folder, and the exit code is 0; without input, the command says where that is. OpenCode
    gives no EVENT: it sends many, a line each, to one process. In a folder without MEMORY.md and .memory nothing is
    done, unless --workspace or --agent names it.

    Example: openclaw-memory hook claude-code --workspace notes
    """
    try:
        if place.workspace is None and place.agent is None:
            place = place._replace(workspace=".")  # no workspace above, nor a default one, gets to read the session
            if not is_workspace(place.folder):
                return 0
        # Of OpenCode's plugin, the lines after the first one answer what it is asked in between.
        stdin = sys.stdin.buffer
        written = b"" if sys.stdin.isatty() else stdin.readline() if host == "opencode" else stdin.read()
        if not written.strip():  # a person tries it out
            _print_places(place, host)
        elif host == "opencode" and not event:
            _serve_opencode(place, chain([written], stdin))
        elif reply := answer_event(place, host, event, written):
            click.echo(reply)
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
        _log(place, host, error)
    return 0


def answer_event(place: Place, host: str, event: str, written: bytes) -> str:
    """Answer an event as the host wrote it; an error is written to the log, and leaves the host without an answer."""
    answer = _answer_opencode if host == "opencode" else _answer_claude_code
    try:
        if not isinstance(event_data := json.loads(written), dict):
            raise InvalidInputError(f"an event is a JSON object, not {written[:80]!r}")
        with acting_as(f"hook:{host}", session=_find_session(event_data)):
            return answer(place, event, event_data)
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
        _log(place, host, error)
        return ""


def _serve_opencode(place: Place, lines: Iterable[bytes]) -> None:
    """Answer the plugin's events until it ends, with memories that stay open; other settings open another one."""
    from openclaw_memory_hooks import opencode
    from openclaw_memory_hooks.events import Exchange, serve

    opened: dict[object, Memory] = {}
    opening = Lock()

    def open_memory(block: Any) -> Memory:
        with opening:
            if (key := (json.dumps(block), *_stamp_settings(place))) not in opened:
                opened[key] = memories.enter_context(_open_for_opencode(place, block))
            return opened[key]

    def answer(event: Mapping[str, Any], exchange: Exchange) -> Mapping[str, Any]:
        try:
            with acting_as("hook:opencode", session=_find_session(event)):
                return opencode.answer(str(event.get("event")), event, open_memory(event.get("settings", {})), exchange)
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            _log(place, "opencode", error)
            return {}

    with ExitStack() as memories:
        serve(lines, _write, answer)


def _stamp_settings(place: Place) -> list[int]:
    """Return the modification times of the settings files, to notice a change."""
    files = (place.settings_file, place.folder / ".memory" / "config.toml")
    return [os.stat(file).st_mtime_ns for file in files if file and os.path.exists(file)]


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


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
    if str(event.get("prompt", "")).startswith(("/", "!", "#")):  # a command to the host
        return ""
    with place.open() as memory:
        from openclaw_memory_hooks import claude_code

        _ignore_transcripts(memory)
        return claude_code.answer(event, memory)


def _answer_opencode(place: Place, name: str, event: Mapping[str, Any]) -> str:
    from openclaw_memory_hooks import opencode

    with _open_for_opencode(place, event.get("settings", {})) as memory:
        # Who calls for one event at a time need not know that a model is asked, except to flush.
        reply = opencode.answer(name, event, memory, _ask_plugin if name == "session.compacting" else None)
    return json.dumps(reply) if reply else ""


def _open_for_opencode(place: Place, block: Any) -> Memory:
    from openclaw_memory import MemoryConfig
    from openclaw_memory_hooks import opencode

    file, base = place.settings_file, opencode.choose_base(block)
    config = MemoryConfig.from_toml(file, agent=place.agent, base=base) if file else base
    memory = place.open(config=config.replace(opencode.read_settings(block)))
    _ignore_transcripts(memory)
    return memory


def _ask_plugin(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send the plugin of OpenCode a request and read its reply, both in ASCII: the encoding of its pipe is unknown."""
    click.echo(json.dumps(request))
    answered = json.loads(sys.stdin.buffer.readline() or b"{}")
    return answered if isinstance(answered, Mapping) else {}


def is_workspace(folder: Path) -> bool:
    """Return whether a folder is marked as a workspace: all others are left alone."""
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
