"""Define the command that looks after a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Place, with_place
from openclaw_memory.cli.output import render, show, show_json, show_note

if TYPE_CHECKING:
    from openclaw_memory.types.results import HeartbeatReport


@click.command()
@with_place
def heartbeat(place: Place) -> int:
    """Look for what has expired, is overdue, double or stale.

    It changes records alone (expired ones go, confidence falls); of notes it reports. Where nothing has changed, it is
    over at once: run it from cron.

    Example: openclaw-memory heartbeat --workspace notes --json
    """
    with place.open() as memory:
        report = memory.heartbeat()
    if place.as_json:
        show_json(report)
    else:
        _say_heartbeat(report)
    return 0


def _say_heartbeat(report: HeartbeatReport) -> None:
    if report.is_busy:
        show_note("another heartbeat is under way, and nothing was done: it does the work")
        return
    if report.is_quiet:
        show("quiet: nothing has changed, and nothing is due")
        return
    for task in report.tasks:
        counts = f"{len(task.findings)} found, {len(task.changed)} changed, {task.seconds:.2f} s"
        show(f"{render(task.name, bold=True)}  {counts}")
        for finding in task.findings:
            show(f"    {clean_line(finding.where)}: {clean_line(finding.words)}")
    if report.left:
        show_note(f"no time was left for {', '.join(report.left)}: the next heartbeat begins with these")
