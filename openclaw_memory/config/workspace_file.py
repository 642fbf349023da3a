"""Apply the settings of a workspace's own file: whoever wrote them, they set little and cost little."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_memory.config.agent_files import is_inside
from openclaw_memory.config.config import MemoryConfig, parse_toml
from openclaw_memory.config.globs import read_globs
from openclaw_memory.config.sections import FilesConfig, JournalConfig
from openclaw_memory.errors import ConfigError

SETTABLE = ("files.include", "files.exclude", "files.extra_paths", "journal.folder", "journal.name")
# Limits of a stranger. The 64 slowest globs of 128 characters take 123 ms for a path of 4,095 characters, the longest
# of Linux, and 2 ms for one of 60. tomllib takes the square of the parts of a key in time and memory: 30 MB for 4 KiB.
MAX_BYTES = 4 * 1024
MAX_ENTRIES = 64
MAX_CHARS = 128

_MAX_NOTICES = 10  # for settings that are ignored; one more counts the others
_MAX_SHOWN = 60
_REFUSAL = "may not be set from inside a workspace and was ignored"


def apply_workspace_file(config: MemoryConfig, text: str, origin: str) -> MemoryConfig:
    """Return the settings with those of a workspace: globs, extra paths and the journal, and nothing else.

    Extra paths are added if they are inside, are not the agent's own rules, and do not lead into skipped folders.
    `exclude` adds to the caller's, and brings back nothing; `include` and the journal count if the caller has none.
    Anything that is
    wrong, too much or may not be set is ignored with a notice: whoever opens a workspace need not have written it.

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
