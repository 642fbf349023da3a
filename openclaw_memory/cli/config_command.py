"""Define the command `config`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean
from openclaw_memory.cli.options import Place, with_place
from openclaw_memory.cli.output import render, show_json, show_note, to_plain

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig


@click.command()
@with_place
def config(place: Place) -> int:
    """Show the settings in use.

    That is the workspace and why it was chosen, the file of settings, and the differences from the defaults.

    Example: openclaw-memory config --workspace notes
    """
    from openclaw_memory.cli.find_workspace import find_workspace, read_user_settings

    user = read_user_settings()
    is_agents = place.workspace is None and place.agent is not None
    reason = f"it is that of the agent {place.agent}" if is_agents else find_workspace(place.workspace).reason
    with place.open(stays=True) as memory:  # the settings as they are written, not as a command needs them
        root, settings = str(memory.workspace.root), memory.config
    file, notices = place.settings_file, [*settings.notices, *settings.find_unread_settings()]
    tables = _find_changes(settings)
    if place.as_json:
        facts = {"workspace": root, "chosen": reason, "file": None if file is None else str(file)}
        show_json({**facts, "workspaces": dict(user.workspaces), "settings": tables, "notices": notices})
        return 0
    click.echo(f"{render('workspace', dim=True)}  {clean(root)} ({clean(reason)})")
    click.echo(f"{render('settings', dim=True)}   {clean(str(file)) if file else f'{user.file} (not there)'}")
    for name, folder in user.workspaces.items():
        click.echo(f"{render('named', dim=True)}      {clean(name)} = {clean(folder)}")
    for section, table in tables.items():
        click.echo(f"\n[{section}]")
        for key, value in table.items():
            click.echo(f"{key} = {clean(_format_toml(value))}")
    for notice in notices:
        show_note(notice)
    return 0


def _find_changes(config: MemoryConfig) -> dict[str, dict[str, Any]]:
    """Find the settings that differ from the defaults, by section. Values that may be keys are hidden."""
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.config.sections import SECTIONS

    usual, tables = MemoryConfig(), dict[str, dict[str, Any]]()
    for section in SECTIONS:
        own, default = getattr(config, section), getattr(usual, section)
        values = {name: getattr(own, name) for name in own.__struct_fields__}
        table = {name: to_plain(value) for name, value in values.items() if value != getattr(default, name)}
        if section == "embedding" and "providers" in table:
            table["providers"] = {name: dict.fromkeys(options, "***") for name, options in table["providers"].items()}
        if table:
            tables[section] = table
    return tables


def _format_toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_format_toml(item)}" for key, item in value.items()) + " }"
    return "(not set)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
