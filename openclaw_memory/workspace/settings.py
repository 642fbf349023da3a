"""Read the settings that lie inside a workspace: a small regular file, never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from shlex import quote

from openclaw_memory._links import find_link
from openclaw_memory.config import MemoryConfig
from openclaw_memory.config.inside import with_settings
from openclaw_memory.errors import ConfigError, OpenClawMemoryError, WorkspaceError
from openclaw_memory.workspace.safe_read import open_at, to_read_error

PLACE = (".memory", "config.toml")
# A page of globs and folders. What may be set is a few hundred characters; tomllib takes 30 ms at most for so much.
MOST_BYTES = 16 * 1024


def with_settings_inside(root: Path, config: MemoryConfig) -> MemoryConfig:
    """Return the settings with those that the workspace in `root` has of its own, as far as they may be set there.

    A file that cannot be read changes nothing but `notices`.

    Args:
        root: The folder of the workspace.
        config: The settings of whoever opens it.

    Raises:
        WorkspaceError: The folder of the file cannot be accessed.
    """
    path = root.joinpath(*PLACE)
    origin = str(path)
    try:
        path.is_file()
    except OSError as error:  # where the folder cannot be entered, no index can be either
        raise WorkspaceError(
            f"{path} cannot be looked at: {error.strerror}; give yourself the right to, "
            f"as with `chmod u+rwx {quote(str(path.parent))}`"
        ) from error
    try:
        text = _text(root, origin)
    except OpenClawMemoryError as error:
        return config.noting(f"{error}; until then its settings are ignored")
    return config if text is None else with_settings(config, text, origin)


def _text(root: Path, origin: str) -> str | None:
    """Return what the file holds; None where there is none.

    Raises:
        ConfigError: It is no small text file.
        OpenClawMemoryError: It cannot be opened, or passes a symlink.
    """
    try:
        descriptor = open_at(str(root), PLACE, os.O_RDONLY)
        try:
            info = os.fstat(descriptor)
            is_file = stat.S_ISREG(info.st_mode)
            data = os.read(descriptor, MOST_BYTES + 1) if is_file and info.st_size <= MOST_BYTES else b""
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if link := find_link(root.joinpath(*PLACE), root):
            raise ConfigError(f"{link} and is not followed: put a folder with the file itself there") from error
        raise to_read_error(error, origin) from error
    if not is_file:
        raise ConfigError(f"{origin} is not a regular file: settings are a file of TOML")
    if max(info.st_size, len(data)) > MOST_BYTES:
        raise ConfigError(f"{origin} has more than {MOST_BYTES:,} bytes: shorten it")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{origin} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
