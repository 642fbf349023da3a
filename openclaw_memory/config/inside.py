"""Apply settings that were found inside a workspace: whoever wrote them, they set little and cost little."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from openclaw_memory.config.config import MemoryConfig, is_passed_over, may_be_of_the_agent, parse_toml
from openclaw_memory.config.globs import read_globs
from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import ConfigError

SETTABLE = ("include", "exclude", "extra_paths")  # of `files`
# What a stranger may ask for. The 64 slowest globs of 128 characters that were found take 123 ms for a path of 4,095
# characters, the longest of Linux, and 2 ms for one of 60.
MOST_ENTRIES = 64
MOST_CHARS = 128

# tomllib takes the square of the number of parts of a key in time and memory: 1.5 GB for 20,000. No setting has ten.
_MOST_PARTS = 10
_SPELLED = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?!")|\'\'\'.*?\'\'\'(?!\')|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*',
    re.DOTALL,
)
_MAY_NOT = "may not be set from inside a workspace and was ignored"
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_MOST_NAMED = 10  # settings that are ignored: a notice each, and one for the rest
_MOST_SHOWN = 60


def with_settings(config: MemoryConfig, text: str, origin: str) -> MemoryConfig:
    """Return the settings with those of a workspace: globs and extra paths, and nothing else.

    Extra paths are added if they are inside, are not the agent's own rules, and do not lead into skipped folders.
    `exclude` adds to what there is, and brings back nothing; `include` counts if there is none. What is wrong, is too
    much or may not be set is left as it was and named in `notices`: whoever opens a workspace need not have written it.

    Args:
        config: The settings of whoever opens the workspace.
        text: What was found, in TOML.
        origin: Where it was found, for the notices.
    """
    try:
        _check_keys(text, origin)
        tables = parse_toml(text, origin)
    except ConfigError as error:
        return config.noting(f"{error}; until then its settings are ignored")
    notices: list[str] = []
    files = config.files
    for part, table in tables.items():
        for key, value in table.items() if isinstance(table, Mapping) else [("", table)]:
            name = f"{part}.{key}" if key else part
            if part != "files" or key not in SETTABLE:
                notices.append(f"{_cut(name)} {_MAY_NOT}")
            elif key == "include" and files.include:
                # A file counts that matches any glob of `include`: each further one would let in more.
                if value != list(files.include):
                    notices.append(f"files.include next to the caller's own {_MAY_NOT}")
            else:
                try:
                    config = config.updated({"files": {key: _added(key, files, value, notices)}})
                except ConfigError as error:
                    notices.append(f"{error}; it was ignored")
    if rest := len(notices[_MOST_NAMED:]):
        notices = [*notices[:_MOST_NAMED], f"{rest:,} more settings were ignored"]
    return config.noting(*(f"{origin}: {notice}" for notice in notices))


def _check_keys(text: str, origin: str) -> None:
    unspelled = _SPELLED.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(unspelled.split("\n"), start=1):
        if line.count(".") >= _MOST_PARTS:
            raise ConfigError(f"{origin} has a key of too many parts in line {number}: no setting has more than two")


def _added(key: str, files: FilesConfig, wished: Any, said: list[str]) -> Any:
    """Return the caller's values and what a workspace may add to them; what is no list of strings is checked later."""
    if not isinstance(wished, list) or not all(isinstance(one, str) for one in wished):
        return wished
    theirs: tuple[str, ...] = getattr(files, key)
    if key == "extra_paths":  # each is walked: one folder under many names, only once
        wished = {posixpath.normpath(one.strip()): one for one in reversed(wished)}.values()
        wished = reversed(wished)
    kept = []
    for one in wished:
        if one in theirs:
            continue
        if len(one) > MOST_CHARS or not (_lies_inside(one) if key == "extra_paths" else _may_be_glob(one, key, files)):
            said.append(f"files.{key} {_cut(repr(one))} {_MAY_NOT}")
        elif key == "extra_paths" or _is_glob(one, key, said):
            kept.append(one)
    if rest := len(kept[MOST_ENTRIES:]):
        said.append(f"files.{key} has {rest:,} entries beyond the {MOST_ENTRIES} that count, which were ignored")
    return [*theirs, *kept[:MOST_ENTRIES]]


def _may_be_glob(glob: str, key: str, files: FilesConfig) -> bool:
    # A glob with `!` brings back what others leave out: it may do so with those of its own file.
    return key == "include" or not files.exclude or not glob.strip().startswith("!")


def _is_glob(glob: str, key: str, said: list[str]) -> bool:
    try:
        read_globs(f"files.{key}", (glob,))
    except ConfigError as error:
        said.append(f"{error}; it was ignored")
        return False
    return True


def _lies_inside(path: str) -> bool:
    """Whether a path is inside the workspace by its letters, and passes nothing that counts only if its owner says so.

    Readers do not follow links.
    """
    parts = path.strip().replace("\\", "/").split("/")
    names = [part for part in parts if part not in {"", "."}]
    if not parts[0] or parts[0][0] == "~" or ":" in parts[0] or _CONTROL.search(path):
        return False
    return not any(map(is_passed_over, names)) and not (len(names) == 1 and may_be_of_the_agent(names[0]))


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}..."
