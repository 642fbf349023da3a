"""Read the settings that lie inside a workspace: a small regular file, never through a link."""

from __future__ import annotations

from pathlib import Path

from openclaw_memory.config.config import MemoryConfig
from openclaw_memory.config.workspace_file import MAX_BYTES, apply_workspace_file
from openclaw_memory.errors import ConfigError, NotFoundError, OpenClawMemoryError
from openclaw_memory.workspace.atomic import read_whole
from openclaw_memory.workspace.safe_folder import SafeFolder

PLACE = ".memory/config.toml"


def with_settings_inside(root: Path, config: MemoryConfig) -> MemoryConfig:
    """Return the settings with those that the workspace in `root` has of its own, as far as they may be set there.

    A file that cannot be read changes nothing but `notices`.

    Args:
        root: The folder of the workspace.
        config: The settings of whoever opens it.
    """
    origin = str(root / PLACE)
    try:
        return apply_workspace_file(config, _read_text(root, origin), origin)
    except NotFoundError:
        return config
    except OpenClawMemoryError as error:
        return config.with_notices(f"{error}; until then its settings are ignored")


def _read_text(root: Path, origin: str) -> str:
    """Return the text of the file.

    Raises:
        ConfigError: It is not a small text file.
        OpenClawMemoryError: It cannot be opened, or passes a symlink.
    """
    with SafeFolder(root).open(PLACE) as descriptor:
        data = read_whole(descriptor, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{origin} has more than {MAX_BYTES:,} bytes: shorten it")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{origin} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
