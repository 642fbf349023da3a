"""Set up a workspace: its own settings, its codec, the user's policies for its files; and recognise vaults."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from openclaw_memory.config.config import MemoryConfig, parse_toml
from openclaw_memory.config.workspace_file import MAX_BYTES, apply_workspace_file
from openclaw_memory.errors import ConfigError, NotFoundError, OpenClawMemoryError, StoreError
from openclaw_memory.plugins import load_plugin, select_plugins
from openclaw_memory.text.policies import Policies
from openclaw_memory.types.codec import PLAIN_TEXT, FileCodec
from openclaw_memory.workspace.atomic import read_whole
from openclaw_memory.workspace.safe_folder import SafeFolder

if TYPE_CHECKING:
    from openclaw_memory.types import Store
    from openclaw_memory.types.files import SharedFiles
    from openclaw_memory.workspace import Workspace


def guard_workspace(workspace: Workspace, store: Store | Callable[[], Store] | None, config: MemoryConfig) -> Workspace:
    """Add the user's policies, and the shared files of a store, to a workspace.

    Args:
        workspace: The files.
        store: The store of the index, or a function that makes it; None where another engine answers.
        config: The settings.
    """
    share: Callable[[Path], SharedFiles | None] | None = getattr(store, "open_shared_files", None)
    shared = None if share is None else share(workspace.root)
    files = structs.replace(workspace.files, policies=Policies(config.policies), shared=shared)
    return replace(workspace, files=files)


RECORD = "codec.json"  # {"codec": name of the plug-in, and what it keeps besides}


def load_codec(root: Path, config: MemoryConfig) -> FileCodec:
    """Load the codec of a workspace; `PLAIN_TEXT` where nothing asks for another one.

    Args:
        root: The workspace.
        config: The settings.

    Raises:
        ConfigError: It is not installed, or its settings are wrong.
        StoreError: The record is damaged.
    """
    name = _read_name(root) or next(iter(select_plugins("codecs", config.plugins)), None)
    if name is None:
        return PLAIN_TEXT
    codec: FileCodec = load_plugin("codecs", name)(root, config)
    return codec


def _read_name(root: Path) -> str | None:
    try:
        folder = SafeFolder.locate_data(root)
        return str(json.loads(folder.read(RECORD))["codec"])
    except (NotFoundError, ConfigError):  # a user without a home folder has no record
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder.base / RECORD} is damaged: restore it, or delete it and the index") from error


# --- settings inside ---------------------------------------------------------------------------------------------

SETTINGS = ".memory/config.toml"


def with_settings_inside(root: Path, config: MemoryConfig) -> MemoryConfig:
    """Return the settings with those that the workspace in `root` has of its own, as far as they may be set there.

    A file that cannot be read changes nothing but `notices`.

    Args:
        root: The folder of the workspace.
        config: The settings of whoever opens it.
    """
    origin = str(root / SETTINGS)
    try:
        return apply_workspace_file(config, _read_settings(root, origin), origin)
    except NotFoundError:
        return config
    except OpenClawMemoryError as error:
        return config.with_notices(f"{error}; until then its settings are ignored")


def _read_settings(root: Path, origin: str) -> str:
    """Return the text of the file.

    Raises:
        ConfigError: It is not a small text file.
        OpenClawMemoryError: It cannot be opened, or passes a symlink.
    """
    with SafeFolder(root).open(SETTINGS) as descriptor:
        data = read_whole(descriptor, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{origin} has more than {MAX_BYTES:,} bytes: shorten it")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{origin} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


# --- vaults of note programs, which `vaults.toml` lists -------------------------------------------------------

_ENDINGS = {"template": ".md", "templates": "/"}


class Vault(NamedTuple):
    """A vault: its program, the folder and the name of its notes of days, and globs of files that are not memory."""

    program: str
    folder: str
    name: str
    exclude: list[str]


def find_vault(root: Path) -> Vault | None:
    """Return the vault that a folder is; None for any other folder.

    Args:
        root: The folder.
    """
    folder, programs = SafeFolder(root), Path(__file__).with_name("vaults.toml")
    for program, table in parse_toml(programs.read_text("utf-8"), programs.name).items():
        if any((root / mark).exists() for mark in table["marks"]):
            values = [
                (name, match[1].strip("/").removesuffix(".md"))
                for path, patterns in table["settings"].items()
                for name, pattern in patterns.items()
                if (match := re.search(pattern, _read_vault_file(folder, path), re.MULTILINE))
            ]
            own = {**table, **dict(reversed(values))}
            # Other programs than Obsidian write the day in small letters.
            day = re.sub(r"(?<![A-Za-z])(yyyy|mm|dd)(?![A-Za-z])", lambda part: part[0].upper(), own["name"])
            templates = (f"/{value}{_ENDINGS[name]}" for name, value in values if name in _ENDINGS)
            return Vault(program, own["folder"], day, [*table["exclude"], *templates])
    return None


def _read_vault_file(folder: SafeFolder, path: str) -> str:
    with suppress(OpenClawMemoryError):
        return folder.read(path).decode("utf-8", "replace")
    return ""
