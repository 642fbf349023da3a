"""Set up a workspace: its own settings, its codec, the user's policies for its files; and recognise vaults."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from openclaw_memory.config.config import MemoryConfig, parse_toml
from openclaw_memory.config.path_rules import is_inside, read_globs
from openclaw_memory.config.sections import FilesConfig, JournalConfig
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
SETTABLE = ("files.include", "files.exclude", "files.extra_paths", "journal.folder", "journal.name")
# Limits of a stranger. The 64 slowest globs of 128 characters take 123 ms for a path of 4,095 characters, the longest
# of Linux, and 2 ms for one of 60. tomllib takes the square of the parts of a key in time and memory: 9 MB for 3 KiB.
MAX_BYTES = 3 * 1024
MAX_ENTRIES = 64
MAX_CHARS = 128

_MAX_NOTICES = 10  # for settings that are ignored; one more counts the others
_MAX_SHOWN = 60
_REFUSAL = "may not be set from inside a workspace and was ignored"


def with_settings_inside(root: Path, config: MemoryConfig) -> MemoryConfig:
    """Return the settings with those that the workspace in `root` has of its own, as far as they may be set there.

    A file that cannot be read changes nothing but `notices`.
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


def apply_workspace_file(config: MemoryConfig, text: str, origin: str) -> MemoryConfig:
    """Return the settings with those of a workspace: globs, extra paths and the journal, and nothing else.

    Extra paths are added if they are inside, are not the agent's own rules, and do not lead into skipped folders.
    `exclude` adds to the caller's, and brings back nothing; `include` and the journal count if the caller has none.
    Anything that is wrong, too much or may not be set is ignored with a notice: whoever opens a workspace need not have
    written it.

    Args:
        config: The settings of whoever opens the workspace.
        text: The content of the file, in TOML.
        origin: The file, for the notices.
    """
    try:
        tables = parse_toml(text, origin)
    except ConfigError as error:
        return config.with_notices(f"{error}; until then its settings are ignored")
    notices, callers = list[str](), config.journal
    for name, value in _list_settings(tables):
        section, _, key = name.partition(".")
        if name not in SETTABLE:
            notices.append(f"{_shorten(name)} {_REFUSAL}")
        elif (key == "include" and config.files.include) or (section == "journal" and callers != JournalConfig()):
            # A file counts that matches any glob of `include`: each further one would let in more.
            if value not in (list(config.files.include), getattr(callers, key, None)):
                notices.append(f"{name} next to the caller's own {_REFUSAL}")
        else:
            try:
                own = value if section == "journal" else _extend(key, config.files, value, notices)
                config = config.replace({section: {key: own}})
            except ConfigError as error:
                notices.append(f"{error}; it was ignored")
    if more := len(notices[_MAX_NOTICES:]):
        notices = [*notices[:_MAX_NOTICES], f"{more:,} more settings were ignored"]
    return config.with_notices(*(f"{origin}: {notice}" for notice in notices))


def _list_settings(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for section, table in tables.items():
        if isinstance(table, Mapping):
            yield from ((f"{section}.{key}", value) for key, value in table.items())
        else:
            yield section, table


def _extend(key: str, files: FilesConfig, entries: Any, notices: list[str]) -> Any:
    """Return the caller's entries and those that a workspace may add; any other type than strings is checked later."""
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        return entries
    callers: tuple[str, ...] = getattr(files, key)
    if key == "extra_paths":  # each is walked: one folder under many names, only once
        entries = list({posixpath.normpath(entry.strip()): entry for entry in reversed(entries)}.values())[::-1]
    added = []
    for entry in entries:
        if entry in callers:
            continue
        # A glob with `!` brings back files that others leave out: it may do so with those of its own file.
        brings_back = key == "exclude" and bool(files.exclude) and entry.strip().startswith("!")
        if len(entry) > MAX_CHARS or brings_back or (key == "extra_paths" and not is_inside(entry)):
            notices.append(f"files.{key} {_shorten(repr(entry))} {_REFUSAL}")
            continue
        try:
            if key != "extra_paths":
                read_globs(f"files.{key}", (entry,))
            added.append(entry)
        except ConfigError as error:
            notices.append(f"{error}; it was ignored")
    if more := len(added[MAX_ENTRIES:]):
        notices.append(f"files.{key} has {more:,} entries beyond the {MAX_ENTRIES} that count, which were ignored")
    return [*callers, *added[:MAX_ENTRIES]]


def _shorten(name: str) -> str:
    return name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}..."


# --- vaults of note programs, which `vaults.toml` lists -------------------------------------------------------

_ENDINGS = {"template": ".md", "templates": "/"}


class Vault(NamedTuple):
    """A vault: its program, the folder and the name of its notes of days, and globs of files that are not memory."""

    program: str
    folder: str
    name: str
    exclude: list[str]


def find_vault(root: Path) -> Vault | None:
    """Return the vault that a folder is; None for any other folder."""
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
