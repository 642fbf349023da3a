"""Open a file in the user's editor, at a line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from openclaw_memory.config.terminal import editor
from openclaw_memory.errors import ConfigError

# How editors are told the line, by the name of their program.
_PLUS = frozenset({"vi", "vim", "nvim", "view", "gvim", "nano", "pico", "emacs", "emacsclient", "micro", "joe", "kak"})
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON = frozenset({"subl", "hx", "helix", "zed", "atom"})
_USUAL = ("sensible-editor", "nano", "vim", "vi")


def open_at(file: Path, line: int) -> None:
    """Open a file in the editor that VISUAL or EDITOR names, at a line where it is known how; wait until it ends.

    Raises:
        ConfigError: There is no editor, or it cannot be started.
    """
    command = editor() or next(([name] for name in _USUAL if shutil.which(name)), None)
    if command is None:
        raise ConfigError("no editor was found: set EDITOR to the name of yours")
    try:
        subprocess.run([*command, *_place(Path(command[0]).stem, file, line)], check=False)  # noqa: S603
    except OSError as error:
        raise ConfigError(f"the editor {command[0]!r} cannot be started ({error.strerror}): correct EDITOR") from error


def _place(name: str, file: Path, line: int) -> list[str]:
    if name in _PLUS:
        return [f"+{line}", str(file)]
    if name in _GOTO:
        return ["--goto", f"{file}:{line}"]
    return [f"{file}:{line}"] if name in _COLON else [str(file)]
