"""Define the command that shows which settings hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean
from openclaw_memory.cli.options import Place, with_place
from openclaw_memory.cli.output import render, show, show_json, show_note, to_plain

if TYPE_CHECKING:
    from openclaw_memory.config import MemoryConfig

_HIDDEN = "***"


@click.command()
@with_place
def config(place: Place) -> int:
    """Show which settings hold.

    That is the workspace and what chose it, the file of settings, and what differs from the defaults.

    Example: openclaw-memory config --workspace notes
    """
    from openclaw_memory.cli.places import user_settings, workspace_folder
    from openclaw_memory.config.unread import find_unread_settings

    settings = user_settings()
    by_agent = place.workspace is None and place.agent is not None
    by = f"it is that of the agent {place.agent}" if by_agent else workspace_folder(place.workspace).by
    with place.open(stays=True) as memory:  # what the settings say, not what a command needs
        root, used = memory.workspace.root, memory.config
    file, notices = place.settings_file, [*used.notices, *find_unread_settings(used)]
    tables = _tables(used)
    if place.as_json:
        show_json(
            {
                "workspace": str(root),
                "chosen": by,
                "file": None if file is None else str(file),
                "workspaces": dict(settings.workspaces),
                "settings": tables,
                "notices": notices,
            }
        )
        return 0
    show(f"{render('workspace', dim=True)}  {clean(str(root))} ({clean(by)})")
    show(f"{render('settings', dim=True)}   {clean(str(file)) if file else f'{settings.file} (not there)'}")
    for name, folder in settings.workspaces.items():
        show(f"{render('named', dim=True)}      {clean(name)} = {clean(folder)}")
    for part, table in tables.items():
        show(f"\n[{part}]")
        for key, value in table.items():
            show(f"{key} = {clean(_toml(value))}")
    for notice in notices:
        show_note(notice)
    return 0


def _tables(config: MemoryConfig) -> dict[str, dict[str, Any]]:
    """Return the settings by part; those that differ from the defaults. Values that may be keys are hidden."""
    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.config.sections import SECTIONS

    usual, tables = MemoryConfig(), {}
    for part in SECTIONS:
        own, default = getattr(config, part), getattr(usual, part)
        names = own.__struct_fields__
        table = {
            name: _shown(part, name, getattr(own, name))
            for name in names
            if getattr(own, name) != getattr(default, name)
        }
        if table:
            tables[part] = table
    return tables


def _shown(part: str, name: str, value: Any) -> Any:
    if part == "embedding" and name == "providers":
        return {provider: dict.fromkeys(options, _HIDDEN) for provider, options in value.items()}
    return to_plain(value)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return "(not set)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
