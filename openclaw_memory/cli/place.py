"""Which memory a command works on, and how its index follows the files; what the commands share."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory.cli.show import note
from openclaw_memory.errors import OpenClawMemoryError

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Progress, SyncReport

_CITATION = re.compile(r"^(?P<path>.+)#L(?P<start>\d+)(?:-L(?P<end>\d+))?$")


@dataclass(frozen=True, slots=True)
class Place:
    """Which memory a command works on, and how it answers."""

    workspace: str | None
    agent: str | None
    settings: str | None
    as_json: bool

    @property
    def folder(self) -> Path:
        """The workspace's folder, as given or as the agent's layout says; the current folder when neither is given."""
        if self.workspace is None and self.agent is not None:
            from openclaw_memory.config.places import agent_places

            return agent_places(self.agent).workspace
        return Path(self.workspace or ".").expanduser()

    @property
    def options(self) -> str:
        """The options that choose this memory, as they are typed: ` --workspace notes`; empty when there are none."""
        given = (("--workspace", self.workspace), ("--agent", self.agent), ("--config", self.settings))
        return "".join(f" {option} {shlex.quote(value)}" for option, value in given if value is not None)

    def open(self) -> Memory:
        """The memory in `folder`; an agent's index lies where its layout says, unless the folder was given."""
        from openclaw_memory.config import MemoryConfig
        from openclaw_memory.memory import Memory

        config = MemoryConfig.from_toml(self.settings, agent=self.agent) if self.settings else MemoryConfig()
        # A command syncs when it says so, and ends before anything in the background would.
        config = replace(config, sync=replace(config.sync, on_open=False, on_search=False, interval_seconds=0.0))
        if self.workspace is None and self.agent is not None:
            return Memory.for_agent(self.agent, config=config)
        return Memory.open(self.folder, config=config)


def placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that all share, handed to it as one `Place`."""

    @click.option("-w", "--workspace", metavar="PATH", help="The folder of notes. Default: the current folder.")
    @click.option("-a", "--agent", metavar="ID", help="An OpenClaw agent: its workspace, and its settings.")
    @click.option("-c", "--config", "settings", metavar="FILE", help="Settings in TOML: [defaults] and [agents.ID].")
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @functools.wraps(command)
    def wrapper(
        *arguments: Any, workspace: str | None, agent: str | None, settings: str | None, as_json: bool, **options: Any
    ) -> Any:
        return command(Place(workspace, agent, settings, as_json), *arguments, **options)

    return wrapper


def cited(path: str) -> tuple[str, int, int] | None:
    """Path, first and last line out of a citation such as `MEMORY.md#L3-L4`; None where it names no lines."""
    match = _CITATION.match(path)
    return match and (match["path"], int(match["start"]), int(match["end"] or match["start"]))


def synced(memory: Memory, *, hidden: bool) -> str | None:
    """Let the index follow the files; why it could not, where that is no reason to give up, or None."""
    try:
        with progress_bar(hidden=hidden) as progress:
            report = memory.sync(progress=progress)
    except OpenClawMemoryError as error:
        return f"the index could not follow the files: {error}"
    if report.rebuilt and not hidden:
        note(f"built again: {report.rebuilt}")
    troubles = waiting(report)
    if report.failed:
        failed = ", ".join(f"{file.path} ({file.reason})" for file in report.failed)
        troubles.append(f"these files could not be indexed as they are now: {failed}")
    return "; ".join(troubles) or None


def waiting(report: SyncReport) -> list[str]:
    """Why files lack vectors, each reason in a line."""
    from openclaw_memory.sync.status import told_of_lacking

    return told_of_lacking(Counter(file.reason for file in report.waiting))


@contextmanager
def progress_bar(*, hidden: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A bar on stderr that appears at the first step, or None where nobody looks at one."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as shown:
        bar: Any = None

        def show(step: Progress) -> None:
            nonlocal bar
            bar = bar or shown.enter_context(click.progressbar(length=1, label="indexing", file=sys.stderr))
            bar.label, bar.length = _label(step), max(step.total, 1)
            bar.update(step.completed - bar.pos)

        yield show


def _label(step: Progress) -> str:
    if not step.embedded:
        return step.label
    return f"{step.label}; {step.embedded:,} chunks, {step.rate:,.0f}/s, {step.tokens:,} tokens at most"
