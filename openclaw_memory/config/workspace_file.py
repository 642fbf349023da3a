"""Decide what a file inside a workspace may set: nothing that leads out of it, or to names that are not its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from openclaw_memory.config.sections import FilesConfig

# Of a part that is named here: the keys, or None for all of them.
WORKSPACE_SETTABLE: Mapping[str, frozenset[str] | None] = {
    "chunking": None,
    "files": frozenset({"include", "exclude", "extra_paths"}),
    "sync": frozenset({"debounce_seconds"}),
}
# What OpenClaw puts into the top of each workspace for the agent itself to read. A program that could have these
# indexed and changed as notes could give the agent other rules.
OF_THE_AGENT = frozenset(
    {"AGENTS.md", "BOOT.md", "BOOTSTRAP.md", "DREAMS.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md"}
)
_OF_THE_AGENT_FOLDED = frozenset(name.casefold() for name in OF_THE_AGENT)
_OF_PROGRAMS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
_CONTROL = re.compile(r"[\0-\x1f\x7f]")


def is_passed_over(folder: str) -> bool:
    """Whether folders of this name below an extra path are skipped: hidden ones, and those of installed programs.

    One that is named in `files.extra_paths` itself counts.
    """
    return folder.startswith(".") or folder in _OF_PROGRAMS


def may_be_of_the_agent(name: str) -> bool:
    """Whether a file of this name at the top of a workspace is the agent's own, on a disk that ignores case."""
    return name.casefold() in _OF_THE_AGENT_FOLDED


def settable(tables: Mapping[str, Any], files: FilesConfig) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return what a workspace may set of these tables, given its caller's `files`, and the names of what it may not."""
    allowed: dict[str, dict[str, Any]] = {}
    refused: list[str] = []
    for part, table in tables.items():
        if not isinstance(table, Mapping):
            refused.append(part)
            continue
        keys = WORKSPACE_SETTABLE.get(part, frozenset())
        allowed[part] = {key: value for key, value in table.items() if keys is None or key in keys}
        refused += [f"{part}.{key}" for key in table if key not in allowed[part]]
    if "files" in allowed:
        allowed["files"] = _beside(files, allowed["files"], refused)
    return {part: table for part, table in allowed.items() if table}, refused


def _beside(files: FilesConfig, table: dict[str, Any], refused: list[str]) -> dict[str, Any]:
    """Return the settings of `[files]` that add to the caller's; a value of another type is checked later."""
    given = dict(table)
    if isinstance(paths := given.get("extra_paths"), list):
        given["extra_paths"] = _added("extra_paths", files.extra_paths, paths, _lies_inside, refused)
    if isinstance(globs := given.get("exclude"), list):
        # A glob with `!` brings back what others leave out: it may do so with those of its own file.
        given["exclude"] = _added(
            "exclude", files.exclude, globs, lambda glob: not files.exclude or not glob.strip().startswith("!"), refused
        )
    # A file counts that matches any glob of `include`: each further one would let in more.
    if files.include and (globs := given.pop("include", None)) is not None and globs != list(files.include):
        refused.append("files.include next to the caller's own")
    return given


def _added(
    key: str, theirs: tuple[str, ...], wished: list[Any], may_be: Callable[[str], bool], refused: list[str]
) -> list[Any]:
    """Return the caller's values, and those of the new ones that are allowed."""
    new = [one for one in wished if one not in theirs]
    bad = [one for one in new if isinstance(one, str) and not may_be(one)]
    refused += [f"files.{key} {one!r}" for one in bad]
    return [*theirs, *(one for one in new if one not in bad)]


def _lies_inside(path: str) -> bool:
    """Whether a path is inside the workspace by its letters, and passes nothing that counts only if its owner says so.

    Readers do not follow links.
    """
    parts = path.strip().replace("\\", "/").split("/")
    names = [part for part in parts if part not in {"", "."}]
    if not parts[0] or parts[0][0] == "~" or ":" in parts[0] or _CONTROL.search(path):
        return False
    return not any(map(is_passed_over, names)) and not (len(names) == 1 and may_be_of_the_agent(names[0]))
