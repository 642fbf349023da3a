"""Print the settings for another program to start the memory."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from openclaw_memory.cli import Place, show_json, show_note, with_place
from openclaw_memory.plugins import load_plugin

NAME = "openclaw-memory"


class Host(NamedTuple):
    """A program that starts servers: where its settings are, and the key there that holds the servers."""

    settings: str
    key: str
    extra: dict[str, Any]


HOSTS = {
    "claude-desktop": Host("Claude Desktop's Settings, Developer, Edit Config", "mcpServers", {}),
    "claude-code": Host(".mcp.json of a project, or ~/.claude.json", "mcpServers", {"type": "stdio"}),
    "cursor": Host("~/.cursor/mcp.json, or .cursor/mcp.json of a project", "mcpServers", {"type": "stdio"}),
    "vscode": Host("MCP: Open User Configuration, or .vscode/mcp.json of a project", "servers", {"type": "stdio"}),
    "zed": Host("~/.config/zed/settings.json, or .zed/settings.json of a project", "context_servers", {}),
    "opencode": Host(
        "~/.config/opencode/opencode.json, or opencode.json of a project", "mcp", {"type": "local", "enabled": True}
    ),
}


@click.command()
@click.argument("host", metavar="HOST", type=click.Choice([*HOSTS]))
@click.option("--plugin", is_flag=True, help="opencode, claude-code: the plugin, not the server.")
@with_place
def connect(place: Place, host: str, plugin: bool) -> int:
    """Print the settings for a program to start the memory.

    HOST is claude-desktop, claude-code, cursor, vscode, zed or opencode. Add the printed lines to the program's own
    settings. The memory is named by its full path, as is this program.

    Example: openclaw-memory connect cursor --workspace notes
    """
    if not place.folder.is_dir():
        begin = f"openclaw-memory init --workspace {shlex.quote(str(place.folder))}"
        raise click.UsageError(f"there is no folder {place.folder}: begin with `{begin}`")
    if not plugin:
        load_plugin("commands", "mcp")  # its error names what is to be installed
        settings = {HOSTS[host].key: {NAME: _build_server(host, place)}}
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
        click.echo(json.dumps(settings, indent=2))
    return 0


def _build_server(host: str, place: Place) -> dict[str, Any]:
    command = [*_find_program(), *_build_arguments(place)]
    if host == "opencode":
        return {"command": command, **HOSTS[host].extra}
    return {**HOSTS[host].extra, "command": command[0], "args": command[1:]}


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
