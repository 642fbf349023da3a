"""Write what has systemd or launchd keep a watch running."""

from __future__ import annotations

import os
import plistlib
import sys
from pathlib import Path
from typing import NamedTuple

SYSTEMS = ("systemd", "launchd")
_SERVICE = """\
[Unit]
Description=openclaw-memory follows {folder}

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=30
Nice=10

[Install]
WantedBy=default.target
"""


class Unit(NamedTuple):
    """A unit: the text of its file, where the file belongs, and the command that starts it now and at each login."""

    text: str
    file: str
    start: str


def program() -> list[str]:
    """Return the command that starts this program with its full path: services have another search path than shells."""
    script = Path(sys.executable).parent / ("openclaw-memory.exe" if os.name == "nt" else "openclaw-memory")
    return [str(script)] if script.exists() else [sys.executable, "-m", "openclaw_memory"]


def usual_system() -> str:
    """Return which of the two this machine has."""
    return "launchd" if sys.platform == "darwin" else "systemd"


def unit(system: str, folder: Path, options: list[str]) -> Unit:
    """Return the unit that watches a workspace.

    Args:
        system: "systemd" or "launchd".
        folder: The workspace, by its full path.
        options: Those of `watch` that choose the memory.
    """
    command = [*program(), "watch", *options]
    name = f"openclaw-memory-{''.join(sign if sign.isalnum() else '-' for sign in folder.name) or 'root'}"
    if system == "systemd":
        text = _SERVICE.format(folder=_escaped(str(folder)), command=" ".join(map(_quoted, command)))
        return Unit(text, f"~/.config/systemd/user/{name}.service", f"systemctl --user enable --now {name}")
    plist = {
        "Label": name,
        "ProgramArguments": command,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ProcessType": "Background",
    }
    file = f"~/Library/LaunchAgents/{name}.plist"
    return Unit(plistlib.dumps(plist, sort_keys=False).decode(), file, f"launchctl bootstrap gui/$(id -u) {file}")


def _escaped(text: str) -> str:
    return text.replace("%", "%%").replace("\n", " ")


def _quoted(word: str) -> str:
    """Return a word as systemd reads it in a command line (systemd.service(5), systemd.syntax(7))."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
