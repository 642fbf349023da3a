"""Find the workspace of a command: by its name, the environment, the folders above, or the user's default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from openclaw_memory.config.config import parse_toml
from openclaw_memory.config.environment import locate_workspace_data, read_default_workspace
from openclaw_memory.errors import ConfigError, WorkspaceError, suggest

MARKS = ("MEMORY.md", "memory.md", ".memory/config.toml")
NOTES = "memory"
SETTINGS_NAME, INDEX_NAME = "config.toml", "index.sqlite"


class UserSettings(NamedTuple):
    """The workspaces in the user's own settings file: their folders by name, and the default one."""

    file: Path
    workspace: str | None = None
    workspaces: Mapping[str, str] = {}


class FoundWorkspace(NamedTuple):
    """A folder, and why it was chosen."""

    folder: Path
    reason: str


def locate_settings() -> Path:
    """Locate the user's settings file, which need not exist: `~/.config/openclaw-memory/config.toml` on Linux."""
    from platformdirs import user_config_path

    return user_config_path("openclaw-memory", appauthor=False) / SETTINGS_NAME


def read_user_settings() -> UserSettings:
    """Read the workspaces in the user's settings file.

    Raises:
        ConfigError: It cannot be read, or has a value of a wrong type.
    """
    file = locate_settings()
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return UserSettings(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"your settings in {file} cannot be read: {error}") from error
    document = parse_toml(text, str(file))
    default, names = document.get("workspace"), document.get("workspaces", {})
    if default is not None and not (isinstance(default, str) and default.strip()):
        raise ConfigError(f"{file}: workspace must be a name or a folder, not {default!r}")
    if not isinstance(names, dict) or not all(_is_entry(*item) for item in names.items()):
        raise ConfigError(f'{file}: [workspaces] must hold lines such as work = "~/work/notes", names without a slash')
    return UserSettings(file, workspace=default, workspaces=names)


def find_workspace(name: str | None, *, new: bool = False) -> FoundWorkspace:
    """Find the folder of notes that a command works on.

    In this order: the name in the command, OPENCLAW_MEMORY_WORKSPACE, the nearest workspace among the current folder
    and those above, the default one of the user's settings, the current folder. A name is one of the user's settings,
    or else the path of a folder.

    Args:
        name: The name in the command; None without one.
        new: Whether the folder is still to be made a workspace: then neither those above nor the default count.

    Raises:
        ConfigError: The user's settings cannot be read, or the name is empty.
        WorkspaceError: There is no such name, and no such folder.
    """
    if name is not None:
        if not name.strip():
            raise ConfigError("--workspace is empty: name a folder, or leave the option out for the current one")
        return _look_up(name, read_user_settings(), "--workspace")
    if variable := read_default_workspace():
        return _look_up(variable, read_user_settings(), "OPENCLAW_MEMORY_WORKSPACE")
    here = Path.cwd()
    above = None if new else find_workspace_above(here)
    if above is not None and above != here:
        return FoundWorkspace(above, "it is above the current folder")
    if above is None and not new and not (here / NOTES).is_dir():
        settings = read_user_settings()
        if settings.workspace:
            return _look_up(settings.workspace, settings, f"workspace in {settings.file}")
    return FoundWorkspace(Path(), "it is the current folder")


def find_workspace_above(start: Path) -> Path | None:
    """Find the nearest workspace among a folder and those above it; None if there is none of this user's own.

    A workspace has MEMORY.md, settings or an index. The search ends at a folder that another user owns.
    """
    for folder in (start, *start.parents):
        if not _is_own(folder):
            return None
        if _is_marked(folder) and not (folder.name == NOTES and _is_marked(folder.parent)):
            return folder
    return None


def _look_up(value: str, settings: UserSettings, origin: str) -> FoundWorkspace:
    name = value.strip()
    if name in settings.workspaces:
        return FoundWorkspace(Path(settings.workspaces[name]).expanduser(), f"{origin} names it {name!r}")
    folder = Path(value).expanduser()
    if settings.workspaces and not folder.exists() and _is_entry(name, "."):
        raise WorkspaceError(
            f"{origin} is {value!r}, which is not a folder and not a workspace of {settings.file}: "
            f"{suggest(name, settings.workspaces)}there are {', '.join(sorted(settings.workspaces))}"
        )
    return FoundWorkspace(folder, f"{origin} names it")


def _is_entry(name: str, folder: Any) -> bool:
    return bool(name.strip()) and not {"/", os.sep} & {*name} and isinstance(folder, str) and bool(folder.strip())


def _is_marked(folder: Path) -> bool:
    return any(_is_own(folder / name) for name in MARKS) or (locate_workspace_data(folder) / INDEX_NAME).is_file()


def _is_own(path: Path) -> bool:
    """Return whether a path exists and this user owns it; on Windows, whether it exists."""
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return False
    return not hasattr(os, "geteuid") or owner == os.geteuid()
