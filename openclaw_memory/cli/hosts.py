"""Say where programs look for servers of the Model Context Protocol, and how they write one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_memory.config.config import folder_of


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts servers: `servers` is the key that holds them in its settings.

    `files` are its settings for a user by `sys.platform`, "" for every other system, with variables of the environment;
    `project` those of a project, from its folder on, None where there are none.
    """

    title: str
    servers: str
    files: Mapping[str, str]
    project: str | None
    entry: Callable[[Sequence[str]], dict[str, Any]]
    next_step: str

    def file(self, project: Path | None = None) -> Path:
        """Return the file to write: that of a project, or of the user. Of two forms, the one that is there is it."""
        if project is not None and self.project is not None:
            path = project / self.project
        else:
            path = _expanded(self.files.get(sys.platform, self.files[""]))
        commented = path.with_suffix(".jsonc")
        return commented if self is HOSTS["opencode"] and commented.exists() and not path.exists() else path


def _expanded(path: str) -> Path:
    """Return a path with its variables, those that are not set as the systems have them by default."""
    home = Path.home()
    usual = {
        "APPDATA": home / "AppData" / "Roaming",
        "XDG_CONFIG_HOME": home / ".config",
        "CLAUDE_CONFIG_DIR": home,
        "HOME": home,
    }
    first, _, rest = path.partition("/")
    variable = first.strip("$")
    return folder_of(variable, usual[variable]) / rest


def _plain(command: Sequence[str]) -> dict[str, Any]:
    return {"command": command[0], "args": [*command[1:]]}


def _typed(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(command)}


def _local(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": [*command], "enabled": True}


_SUPPORT = "$HOME/Library/Application Support"
HOSTS: Mapping[str, Host] = {
    "claude-desktop": Host(
        "Claude Desktop",
        "mcpServers",
        {
            "darwin": f"{_SUPPORT}/Claude/claude_desktop_config.json",
            "win32": "$APPDATA/Claude/claude_desktop_config.json",
            "": "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
        },
        None,
        _plain,
        "Quit Claude Desktop and start it again",
    ),
    "claude-code": Host(
        "Claude Code", "mcpServers", {"": "$CLAUDE_CONFIG_DIR/.claude.json"}, ".mcp.json", _typed, "Start a new session"
    ),
    "cursor": Host(
        "Cursor",
        "mcpServers",
        {"": "$HOME/.cursor/mcp.json"},
        ".cursor/mcp.json",
        _typed,
        "Open Cursor's settings, MCP",
    ),
    "vscode": Host(
        "VS Code",
        "servers",
        {
            "darwin": f"{_SUPPORT}/Code/User/mcp.json",
            "win32": "$APPDATA/Code/User/mcp.json",
            "": "$XDG_CONFIG_HOME/Code/User/mcp.json",
        },
        ".vscode/mcp.json",
        _typed,
        "Run `MCP: List Servers` in VS Code, and start it",
    ),
    "zed": Host(
        "Zed",
        "context_servers",
        {
            "darwin": "$HOME/.config/zed/settings.json",
            "win32": "$APPDATA/Zed/settings.json",
            "": "$XDG_CONFIG_HOME/zed/settings.json",
        },
        ".zed/settings.json",
        _plain,
        "Open the settings of Zed's Agent Panel",
    ),
    "opencode": Host(
        "OpenCode",
        "mcp",
        {"": "$XDG_CONFIG_HOME/opencode/opencode.json"},
        "opencode.json",
        _local,
        "Start OpenCode again",
    ),
}
