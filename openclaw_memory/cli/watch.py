"""Watch the files until Ctrl-C: a line for each sync."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from openclaw_memory._safe import clean
from openclaw_memory.cli.options import Place, list_waiting, show_progress, with_place
from openclaw_memory.cli.output import render, show, show_json, show_note
from openclaw_memory.errors import OpenClawMemoryError

if TYPE_CHECKING:
    from openclaw_memory.indexing.watcher import Watcher
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Skipped, SyncReport

_LOOK_SECONDS = 0.2


@click.command()
@click.option("--for", "seconds", type=float, metavar="SECONDS", help="End after so long, once all is indexed.")
@with_place
def watch(place: Place, seconds: float | None) -> int:
    """Index whatever changes, as it changes, until Ctrl-C.

    With --json there is one object a line, for each sync.

    Example: openclaw-memory watch --workspace notes --for 0.5
    """
    if seconds is not None and not seconds > 0:
        raise click.BadParameter(f"{seconds:g} is no time to watch: give seconds above 0", param_hint="--for")
    show = partial(show_json, indent=None) if place.as_json else _say_in_a_line
    with place.open() as memory:
        try:
            is_shown = _catch_up(memory, show, hidden=place.as_json)
            with memory.watch() as watcher:
                try:
                    _follow(watcher, seconds, show, is_shown=is_shown)
                except KeyboardInterrupt:
                    if watcher.is_behind and watcher.last_error is None:
                        show_note("ending after the step under way; what is not indexed yet is left to the next sync")
        except KeyboardInterrupt:
            show_note("ended at once: the next sync goes on from there")
    return 0


def _catch_up(memory: Memory, show: Callable[[SyncReport], None], *, hidden: bool) -> bool:
    """Sync with a bar, as the first index may take long; return whether its report was shown."""
    try:
        with show_progress(hidden=hidden, say_waiting=True) as progress:
            show(memory.sync(progress=progress))
    except OpenClawMemoryError:  # the watcher meets it too, reports it, and tries again
        return False
    return True


def _follow(watcher: Watcher, seconds: float | None, show: Callable[[SyncReport], None], *, is_shown: bool) -> None:
    """Show each sync on stdout, and what the watcher does and why it cannot on stderr."""
    until = float("inf") if seconds is None else time.monotonic() + seconds
    syncs, state, error = 0, "starting", None
    skipped: tuple[Skipped, ...] = ()
    while True:
        is_waiting = watcher.is_behind and watcher.last_error is None
        is_over = watcher.state == "stopped" or (time.monotonic() >= until and not is_waiting)
        if watcher.state != state and not is_over:
            state = watcher.state
            show_note(state)
        if watcher.syncs != syncs and watcher.last is not None:
            syncs = watcher.syncs
            last = watcher.last
            did_something = last.added or last.changed or last.removed or last.rebuilt or not last.ok
            if not is_shown or did_something or last.skipped != skipped:
                show(watcher.last)
                is_shown = True
            skipped = watcher.last.skipped
        if watcher.last_error != error:
            error = watcher.last_error
            show_note(error or "all is well again")
        if is_over:
            return
        time.sleep(_LOOK_SECONDS)


def _say_in_a_line(report: SyncReport) -> None:
    from openclaw_memory.types.results import first_of

    paths = [*report.added, *report.changed, *report.removed]
    done = f"{len(report.added)} added, {len(report.changed)} changed, {len(report.removed)} removed"
    words = [
        f"{done} in {report.seconds:.2f} s" + (f": {', '.join(first_of(paths))}" if paths else ""),
        *([f"built again: {report.rebuilt}"] if report.rebuilt else []),
        *(f"failed: {file.path}: {file.reason}" for file in report.failed),
        *list_waiting(report),
        *(f"skipped: {line}" for line in first_of([f"{file.path}: {file.reason}" for file in report.skipped])),
    ]
    show(f"{render(time.strftime('%H:%M:%S'), dim=True)}  {clean('; '.join(words))}")
