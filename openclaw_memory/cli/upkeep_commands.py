"""Define the commands that look after a memory: heartbeat, watch, and config, which shows its settings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.options import Place, show_progress, with_place
from openclaw_memory.cli.output import render, show_json, show_note, show_sync, to_plain
from openclaw_memory.errors import OpenClawMemoryError

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.types import SyncReport
    from openclaw_memory.types.results import HeartbeatReport

_POLL_SECONDS = 0.2


@click.command()
@with_place
def heartbeat(place: Place) -> int:
    """Find expired, overdue, duplicate and stale memories.

    Expired records are deleted; notes are only reported. It ends at once if nothing has changed, so run it from cron.

    Example: openclaw-memory heartbeat --workspace notes --json
    """
    with place.open() as memory:
        report = memory.heartbeat()
    (show_json if place.as_json else _show_heartbeat)(report)
    return 0


def _show_heartbeat(report: HeartbeatReport) -> None:
    if report.is_busy:
        show_note("another heartbeat is under way, and nothing was done: it does the work")
    elif report.is_quiet:
        click.echo("quiet: nothing has changed, and nothing is due")
    else:
        for task in report.tasks:
            counts = f"{len(task.findings)} found, {len(task.changed)} changed, {task.seconds:.2f} s"
            click.echo(f"{render(task.name, bold=True)}  {counts}")
            for finding in task.findings:
                click.echo(f"    {clean_line(finding.where)}: {clean_line(finding.words)}")
        if report.left:
            show_note(f"no time was left for {', '.join(report.left)}: the next heartbeat begins with these")


@click.command()
@click.option("--for", "seconds", type=float, metavar="SECONDS", help="Stop after this time, once all is indexed.")
@with_place
def watch(place: Place, seconds: float | None) -> int:
    """Index files as they change, until Ctrl-C.

    With --json, each sync prints one line of JSON.

    Example: openclaw-memory watch --workspace notes --for 0.5
    """
    if seconds is not None and not seconds > 0:
        raise click.BadParameter(f"must be greater than 0, got {seconds:g}", param_hint="--for")
    show_report = partial(show_json, indent=None) if place.as_json else show_sync
    with place.open() as memory:
        try:
            is_shown = True
            try:  # with a bar, as the first index may take long
                with show_progress(hidden=place.as_json) as progress:
                    show_report(memory.sync(progress=progress))
            except OpenClawMemoryError:  # the watcher meets it too, reports it, and tries again
                is_shown = False
            with memory.watch() as watcher:
                try:
                    _follow(watcher, seconds, show_report, is_shown=is_shown)
                except KeyboardInterrupt:
                    if watcher.is_behind and watcher.last_error is None:
                        show_note("ending after the step under way; what is not indexed yet is left to the next sync")
        except KeyboardInterrupt:
            show_note("ended at once: the next sync goes on from there")
    return 0


def _follow(
    watcher: Watcher, seconds: float | None, show_report: Callable[[SyncReport], None], *, is_shown: bool
) -> None:
    """Show each sync with news on stdout, and the watcher's state and errors on stderr."""
    until = float("inf") if seconds is None else time.monotonic() + seconds
    last, state, error = watcher.last, "starting", None
    while watcher.state != "stopped":
        if watcher.state != state:
            show_note(state := watcher.state)
        if watcher.last is not last and (last := watcher.last) is not None:
            if not is_shown or last.added or last.changed or last.removed or last.rebuilt or not last.ok:
                show_report(last)
            is_shown = True
        if watcher.last_error != error:
            error = watcher.last_error
            show_note(error or "all is well again")
        if time.monotonic() >= until and (error is not None or not watcher.is_behind):
            return
        time.sleep(_POLL_SECONDS)


@click.command()
@with_place
def config(place: Place) -> int:
    """Show the settings in use.

    It shows the workspace and why it was chosen, the settings file, and every value that is not the default.

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
