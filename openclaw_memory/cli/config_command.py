"""Define the command that shows which settings hold, and begins a file of the user's own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean
from openclaw_memory.cli.options import Place, placed
from openclaw_memory.cli.output import note, paint, plain, say, say_json
from openclaw_memory.errors import ConfigError, remedy

if TYPE_CHECKING:
    from pathlib import Path

    from openclaw_memory.config import MemoryConfig

_BEGUN = """\
# Settings of openclaw-memory for this user. `openclaw-memory config` shows which hold.

# The workspace of a command that is in none: a name below, or a folder.
{default}

[workspaces]
{names}

[defaults]
# search.max_results = 6
"""
_HIDDEN = "***"


@click.command()
@click.argument("action", type=click.Choice(["show", "init"]), default="show")
@click.option("--all", "every", is_flag=True, help="Show the defaults too.")
@placed
def config(place: Place, action: str, every: bool) -> int:
    """Show which settings hold, or begin a file of your own.

    ACTION is `show`, which is the default: the workspace and what chose it, the file of settings, and what differs from
    the defaults. Or it is `init`: a commented file of your own, with --workspace as the default workspace; one that is
    there stays as it is.

    Example: openclaw-memory config show --workspace notes
    """
    if action == "init":
        return _begin(place)
    from openclaw_memory.cli.places import user_settings, workspace_folder

    settings = user_settings()
    by_agent = place.workspace is None and place.agent is not None
    by = f"it is that of the agent {place.agent}" if by_agent else workspace_folder(place.workspace).by
    with place.open(stays=True) as memory:  # what the settings say, not what a command needs
        root, used = memory.workspace.root, memory.config
    file = place.settings_file
    tables = _tables(used, every=every)
    if place.as_json:
        say_json(
            {
                "workspace": str(root),
                "chosen": by,
                "file": None if file is None else str(file),
                "workspaces": dict(settings.workspaces),
                "settings": tables,
                "notices": list(used.notices),
            }
        )
        return 0
    say(f"{paint('workspace', dim=True)}  {clean(str(root))} ({clean(by)})")
    say(f"{paint('settings', dim=True)}   {clean(str(file)) if file else f'{settings.file} (not there)'}")
    for name, folder in settings.workspaces.items():
        say(f"{paint('named', dim=True)}      {clean(name)} = {clean(folder)}")
    for part, table in tables.items():
        say(f"\n[{part}]")
        for key, value in table.items():
            say(f"{key} = {clean(_toml(value))}")
    for notice in used.notices:
        note(notice)
    return 0


def _begin(place: Place) -> int:
    from openclaw_memory.cli.places import settings_file

    file = settings_file()
    made = _written(file, place)
    if place.as_json:
        say_json({"file": str(file), "created": made})
    else:
        say(f"created {clean(str(file))}" if made else f"{clean(str(file))} is there already; nothing was changed")
    return 0


def _written(file: Path, place: Place) -> bool:
    default, names = '# workspace = "notes"', '# notes = "~/notes"'
    if place.workspace is not None:
        folder = place.folder.absolute()
        default, names = f"workspace = {_toml(folder.name)}", f"{_toml(folder.name)} = {_toml(str(folder))}"
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if file.exists():
            return False
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigError(f"{file} cannot be made: {error.strerror}; {remedy(error)}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(_BEGUN.format(default=default, names=names))
    return True


def _tables(config: MemoryConfig, *, every: bool) -> dict[str, dict[str, Any]]:
    """Return the settings by part; those that differ from the defaults, or all. Values that may be keys are hidden."""
    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.config.sections import PARTS

    usual, tables = MemoryConfig(), {}
    for part in PARTS:
        own, default = getattr(config, part), getattr(usual, part)
        names = [spec.name for spec in fields(own)]
        table = {
            name: _shown(part, name, getattr(own, name))
            for name in names
            if every or getattr(own, name) != getattr(default, name)
        }
        if table:
            tables[part] = table
    return tables


def _shown(part: str, name: str, value: Any) -> Any:
    if part == "embedding" and name == "providers":
        return {provider: dict.fromkeys(options, _HIDDEN) for provider, options in value.items()}
    return plain(value)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return "(not set)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
