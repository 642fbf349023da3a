"""Apply settings that were found inside a workspace: whoever wrote them, they set little and cost little."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from openclaw_memory.config.config import MemoryConfig, is_passed_over, may_be_of_the_agent, parse_toml
from openclaw_memory.config.globs import read_globs
from openclaw_memory.config.sections import ChunkingConfig, FilesConfig
from openclaw_memory.errors import ConfigError

SETTABLE: Mapping[str, frozenset[str]] = {
    "chunking": frozenset(spec.name for spec in fields(ChunkingConfig)),
    "files": frozenset({"include", "exclude", "extra_paths"}),
    "sync": frozenset({"debounce_seconds"}),
    "encryption": frozenset({"enabled"}),
}
# What a stranger may ask for. The 64 slowest globs of 128 characters that were found take 123 ms for a path of 4,095
# characters, the longest of Linux, and 2 ms for one of 60.
MOST_ENTRIES = 64
MOST_CHARS = 128
# With these the index holds a line of a note four times at most, and a note is cut into pieces of two lines or more.
BOUNDS: Mapping[str, tuple[int, int]] = {
    "max_chars": (150, 10_000),
    "overlap_lines": (0, 3),
    "tokens": (40, 2_500),
}

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
    """Return the settings with those of a workspace: chunking, globs, extra paths, debounce, encryption on.

    Nothing else. Extra paths are added if they are inside, are not the agent's own rules, and do not lead into skipped
    folders. `exclude` adds to what there is, and brings back nothing; `include` counts if there is none. What is wrong,
    is too much or may not be set is left as it was and named in `notices`: whoever opens a workspace need not have
    written it.

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
    said: list[str] = []
    asked: set[str] = set()
    for part, key, value in _allowed(tables, config.files, said):
        try:
            config = config.updated({part: {key: value}})
        except ConfigError as error:
            said.append(f"{error}; it was ignored")
        else:
            asked |= {key} if part == "chunking" else set()
    config = replace(config, chunking=_bounded(config.chunking, asked, said))
    if rest := len(said[_MOST_NAMED:]):
        said = [*said[:_MOST_NAMED], f"{rest:,} more settings were ignored"]
    return config.noting(*(f"{origin}: {words}" for words in said))


def _check_keys(text: str, origin: str) -> None:
    unspelled = _SPELLED.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(unspelled.split("\n"), start=1):
        if line.count(".") >= _MOST_PARTS:
            raise ConfigError(f"{origin} has a key of too many parts in line {number}: no setting has more than two")


def _allowed(tables: Mapping[str, Any], files: FilesConfig, said: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield part, key and value of what a workspace may set; what it may not is added to `said`."""
    for part, table in tables.items():
        if not isinstance(table, Mapping):
            said.append(f"{_cut(part)} {_MAY_NOT}")
            continue
        for key, value in table.items():
            if key not in SETTABLE.get(part, ()):
                said.append(f"{_cut(f'{part}.{key}')} {_MAY_NOT}")
            elif part == "encryption" and value is False:
                said.append(f"encryption.enabled = false {_MAY_NOT}")
            elif part != "files":
                yield part, key, value
            elif key == "include" and files.include:
                # A file counts that matches any glob of `include`: each further one would let in more.
                if value != list(files.include):
                    said.append(f"files.include next to the caller's own {_MAY_NOT}")
            else:
                yield part, key, _added(key, files, value, said)


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


def _bounded(chunking: ChunkingConfig, asked: set[str], said: list[str]) -> ChunkingConfig:
    """Return chunking with what the workspace asked for cut to the bounds; the caller's own values stay."""
    changes = {
        name: min(max(getattr(chunking, name), low), high) for name, (low, high) in BOUNDS.items() if name in asked
    }
    if asked & {"tokens", "overlap_tokens"}:
        changes["overlap_tokens"] = min(chunking.overlap_tokens, changes.get("tokens", chunking.tokens) // 2)
    for name, value in changes.items():
        if value != (wished := getattr(chunking, name)):
            said.append(f"chunking.{name} = {wished} is more than a workspace may ask for: {value} is used")
    return replace(chunking, **changes)


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
