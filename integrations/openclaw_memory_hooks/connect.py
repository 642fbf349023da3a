"""Print the settings for another program to start the memory."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from openclaw_memory.cli import Place, clean_line, show_json, show_note, with_place
from openclaw_memory.plugins import load_plugin

NAME = "openclaw-memory"


class Host(NamedTuple):
    """A program that starts servers: where its settings are, and the key there that holds the servers.

    `extra` is what an entry has besides its command; `is_list` says that the command is one list with its arguments.
    """

    settings: str
    key: str
    extra: Mapping[str, Any] = {}
    is_list: bool = False
    is_toml: bool = False


_STDIO: Mapping[str, Any] = {"type": "stdio"}
HOSTS = {
    "claude-desktop": Host("Claude Desktop's Settings, Developer, Edit Config", "mcpServers"),
    "claude-code": Host(".mcp.json of a project, or ~/.claude.json", "mcpServers", _STDIO),
    "codex": Host("~/.codex/config.toml", "mcp_servers", is_toml=True),
    "cursor": Host("~/.cursor/mcp.json, or .cursor/mcp.json of a project", "mcpServers", _STDIO),
    "gemini": Host("~/.gemini/settings.json, or .gemini/settings.json of a project", "mcpServers"),
    "opencode": Host(
        "~/.config/opencode/opencode.json, or opencode.json of a project",
        "mcp",
        {"type": "local", "enabled": True},
        is_list=True,
    ),
    "vscode": Host("MCP: Open User Configuration, or .vscode/mcp.json of a project", "servers", _STDIO),
    "zed": Host("~/.config/zed/settings.json, or .zed/settings.json of a project", "context_servers"),
}
# What a client begins with; the server leaves when its input ends, as it does here after one line.
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": NAME, "version": "0"}},
}
_START_SECONDS = 60


@click.command()
@click.argument("host", metavar="HOST", type=click.Choice([*HOSTS]))
@click.option("--plugin", is_flag=True, help="opencode, claude-code: the plugin, not the server.")
@with_place
def connect(place: Place, host: str, plugin: bool) -> int:
    """Print the settings for a program to start the memory.

    HOST is claude-desktop, claude-code, codex, cursor, gemini, opencode, vscode or zed. Add the printed lines to the
    program's own settings. The memory is named by its full path, as is this program. Without --json, the printed
    command is started once as the program will start it; exit code 1: it does not answer.

    Example: openclaw-memory connect cursor --workspace notes
    """
    if not place.folder.is_dir():
        begin = f"openclaw-memory init --workspace {shlex.quote(str(place.folder))}"
        raise click.UsageError(f"there is no folder {place.folder}: begin with `{begin}`")
    if not plugin:
        load_plugin("commands", "mcp")  # its error names what is to be installed
        command = [*_find_program(), *_build_arguments(place)]
        settings = {HOSTS[host].key: {NAME: _build_server(HOSTS[host], command)}}
    elif host == "opencode":
        settings = _build_opencode_plugin(place)
    elif host == "claude-code":
        return _print_claude_commands(place)
    else:
        raise click.UsageError(f"{host} has no plugin: leave --plugin out")
    if place.as_json:
        show_json({"host": host, "where": HOSTS[host].settings, "settings": settings})
    else:
        show_note(f"paste this into the settings ({HOSTS[host].settings})")
        click.echo(_write_toml(settings) if HOSTS[host].is_toml else json.dumps(settings, indent=2))
        return 0 if plugin else _check_start(command)
    return 0


def _build_server(host: Host, command: list[str]) -> dict[str, Any]:
    return {**host.extra, **({"command": command} if host.is_list else {"command": command[0], "args": command[1:]})}


def _write_toml(settings: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Write settings of two levels as TOML, which has the texts and lists of JSON."""
    lines: list[str] = []
    for table, entries in settings.items():
        for name, values in entries.items():
            lines.append(f"[{table}.{name}]")
            lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(lines)


def _check_start(command: list[str]) -> int:
    """Start the server as a program does, and see that it answers; return the exit code."""
    try:
        line = f"{json.dumps(_INITIALIZE)}\n"
        process = subprocess.run(  # noqa: S603 - this very program
            command, input=line, capture_output=True, text=True, timeout=_START_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    else:
        if '"serverInfo"' in process.stdout:
            show_note("that command was started, and answers")
            return 0
        reason = clean_line(process.stderr.strip()) or f"it ended with code {process.returncode}"
    show_note(f"that command was started, and does not answer: {reason}")
    return 1


def _build_arguments(place: Place) -> list[str]:
    arguments = ["mcp"]
    if place.workspace is not None or place.agent is None:
        arguments += ["--workspace", str(place.folder.resolve())]
    if place.agent is not None:
        arguments += ["--agent", place.agent]
    return [*arguments, *(["--config", str(Path(place.settings).resolve())] if place.settings else [])]


def _find_program() -> list[str]:
    """Return the command that starts this program by its full path: other programs may have another search path."""
    script = Path(sys.executable).parent / ("openclaw-memory.exe" if os.name == "nt" else "openclaw-memory")
    return [str(script)] if script.exists() else [sys.executable, "-m", "openclaw_memory"]


def _build_opencode_plugin(place: Place) -> dict[str, Any]:
    from openclaw_memory_hooks.opencode import PLUGIN

    options: dict[str, Any] = {"workspace": str(place.folder.resolve()), "command": _find_program()}
    if place.settings:
        options["config"] = str(Path(place.settings).resolve())
    return {"plugin": [[str(PLUGIN), options]]}


def _print_claude_commands(place: Place) -> int:
    """Print the commands that install the plugin of Claude Code."""
    from openclaw_memory_hooks.claude_code import PLUGIN

    commands = [
        f"claude plugin marketplace add {shlex.quote(str(PLUGIN))}",
        "claude plugin install openclaw-memory@openclaw-memory",
    ]
    if place.workspace is not None:
        commands[1] += f" --config workspace={shlex.quote(str(place.folder.resolve()))}"
    if place.as_json:
        show_json({"host": "claude-code", "commands": commands})
    else:
        click.echo("\n".join(commands))
    return 0
