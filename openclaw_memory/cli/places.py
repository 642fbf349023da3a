"""Find the workspace of a command: by its name, the environment, the folders above, or the user's default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from openclaw_memory.config.config import parse_toml
from openclaw_memory.config.data_folder import locate_workspace_data
from openclaw_memory.config.environment import read_default_workspace
from openclaw_memory.errors import ConfigError, WorkspaceError, nearest

MARKS = ("MEMORY.md", "memory.md", ".memory/config.toml")
NOTES = "memory"
SETTINGS_NAME, INDEX_NAME = "config.toml", "index.sqlite"


class UserSettings(NamedTuple):
    """What the user's own file says of workspaces: each name with its folder, and the one that is used by default."""

    file: Path
    workspace: str | None = None
    workspaces: Mapping[str, str] = {}


class Found(NamedTuple):
    """A folder, and what chose it, in words."""

    folder: Path
    by: str


def settings_file() -> Path:
    """Return the user's settings file, which need not exist: `~/.config/openclaw-memory/config.toml` on Linux."""
    from platformdirs import user_config_path

    return user_config_path("openclaw-memory", appauthor=False) / SETTINGS_NAME


def user_settings() -> UserSettings:
    """Read what the user's settings file says of workspaces.

    Raises:
        ConfigError: It cannot be read, or has a value of a wrong type.
    """
    file = settings_file()
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


def workspace_folder(given: str | None, *, new: bool = False) -> Found:
    """Return the folder of notes that a command works on.

    In this order: what the command names, what OPENCLAW_MEMORY_WORKSPACE names, the nearest workspace among the current
    folder and those above, the default one of the user's settings, the current folder. What is named is a name of
    the user's settings, or else the path of a folder.

    Args:
        given: What the command names; None for nothing.
        new: Whether the folder is still to be made a workspace: then neither those above nor the default count.

    Raises:
        ConfigError: The user's settings cannot be read.
        WorkspaceError: There is no such name, and no such folder.
    """
    if given is not None:
        return _named(given, user_settings(), "--workspace")
    if variable := read_default_workspace():
        return _named(variable, user_settings(), "OPENCLAW_MEMORY_WORKSPACE")
    here = Path.cwd()
    above = None if new else workspace_above(here)
    if above is not None and above != here:
        return Found(above, "it is above the current folder")
    if above is None and not new and not (here / NOTES).is_dir() and (settings := user_settings()).workspace:
        return _named(settings.workspace or "", settings, f"workspace in {settings.file}")
    return Found(Path(), "it is the current folder")


def workspace_above(start: Path) -> Path | None:
    """Return the nearest workspace among a folder and those above it; None where there is none of this user's own.

    A workspace has MEMORY.md, settings or an index; or one is in its `memory/`, with notes. The search ends at
    a folder that another user owns.
    """
    below = start
    for folder in (start, *start.parents):
        if not _is_ours(folder):
            return None
        is_left = below.name == NOTES and below != folder and _has_notes(below)
        inside_notes = folder.name == NOTES and _is_marked(folder.parent)
        if is_left or (_is_marked(folder) and not inside_notes):
            return folder
        below = folder
    return None


def _named(given: str, settings: UserSettings, by: str) -> Found:
    name = given.strip()
    if name in settings.workspaces:
        return Found(Path(settings.workspaces[name]).expanduser(), f"{by} names it {name!r}")
    folder = Path(given).expanduser()
    if settings.workspaces and not folder.exists() and _is_entry(name, "."):
        known = ", ".join(sorted(settings.workspaces))
        raise WorkspaceError(
            f"{by} is {given!r}, which is no folder and no workspace of {settings.file}: "
            f"{nearest(name, settings.workspaces)}there are {known}"
        )
    return Found(folder, f"{by} names it")


def _is_entry(name: str, folder: Any) -> bool:
    return bool(name.strip()) and not {"/", os.sep} & {*name} and isinstance(folder, str) and bool(folder.strip())


def _is_marked(folder: Path) -> bool:
    return any(_is_ours(folder / name) for name in MARKS) or (locate_workspace_data(folder) / INDEX_NAME).is_file()


def _is_ours(path: Path) -> bool:
    """Return whether a path exists and is this user's own; on Windows no more is asked than that it exists."""
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return False
    return not hasattr(os, "geteuid") or owner == os.geteuid()


def _has_notes(folder: Path) -> bool:
    try:
        return any(name.endswith(".md") for name in os.listdir(folder))
    except OSError:
        return False
