"""Open the memory of a command, read its text, and sync its index."""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import click

from openclaw_memory.cli.output import list_waiting, show_note
from openclaw_memory.errors import OpenClawMemoryError, SyncBusyError
from openclaw_memory.events import acting_as

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Progress, SyncReport

INTERRUPTED = 130  # the exit code after Ctrl-C, as of shells: 128 + SIGINT
# A search or a write waits no longer than this while another process syncs.
WAIT_SECONDS = 1.0
FILE = click.Path(readable=False)  # a shell completes it; whether it can be read turns out where it is read


class SyncOutcome(NamedTuple):
    """The report of a sync, a sentence on files that are not indexed, and the error that ended it, if any."""

    report: SyncReport | None = None
    trouble: str | None = None
    error: OpenClawMemoryError | None = None


class Place(NamedTuple):
    """The memory that a command works on, and the form of its answer."""

    workspace: str | None = None
    agent: str | None = None
    settings: str | None = None
    as_json: bool = False

    @property
    def folder(self) -> Path:
        """The workspace's folder, as named, by the agent's layout, or as `find_workspace` finds it."""
        if self.workspace is None and self.agent is not None:
            from openclaw_memory.config.environment import locate_agent

            return locate_agent(self.agent).workspace
        from openclaw_memory.cli.find_workspace import find_workspace

        return find_workspace(self.workspace).folder

    @property
    def options(self) -> str:
        """The options that choose this memory, as they are typed: ` --workspace notes`; by default ""."""
        values = (("--workspace", self.workspace), ("--agent", self.agent), ("--config", self.settings))
        return "".join(f" {option} {shlex.quote(value)}" for option, value in values if value is not None)

    @property
    def settings_file(self) -> str | Path | None:
        """The file of settings: the named one, or else the user's own, if there is one."""
        from openclaw_memory.cli.find_workspace import locate_settings

        return self.settings or (file if os.path.isfile(file := locate_settings()) else None)

    def open(self, *, stays: bool = False, config: MemoryConfig | None = None) -> Memory:
        """Open the memory in `folder`; an agent's index is in its layout, unless a folder was named.

        Args:
            stays: Whether the command goes on until it is ended: then searches sync as the settings say.
            config: The settings, by default those of the settings file.
        """
        from openclaw_memory.config.config import MemoryConfig
        from openclaw_memory.memory import Memory

        file = self.settings_file
        config = config or (MemoryConfig.from_toml(file, agent=self.agent) if file else MemoryConfig())
        if not stays:  # a command syncs when it says so, and ends before anything in the background would
            by_command = {"before_search": False, "on_open": False, "on_search": False, "interval_seconds": 0.0}
            config = config.replace({"sync": by_command})
        if self.workspace is None and self.agent is not None:
            return Memory.for_agent(self.agent, config=config)
        return Memory.open(self.folder, config=config)

    @staticmethod
    def get_text(text: tuple[str, ...]) -> str:
        """Join the words of an argument; read standard input if it is `-` alone.

        Args:
            text: The words.

        Raises:
            click.UsageError: It is not UTF-8.
        """
        if text == ("-",):
            text = (sys.stdin.buffer.read().decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n"),)
        return join_words(text, "TEXT")

    def sync(self, memory: Memory) -> SyncOutcome:
        """Sync the index as far as possible, and wait up to `WAIT_SECONDS` for another sync."""
        try:
            with show_progress(hidden=self.as_json) as progress:
                report = memory.sync(progress=progress, wait=WAIT_SECONDS)
        except SyncBusyError:
            return SyncOutcome(None, "another process syncs this index, which may be behind until the next sync")
        except OpenClawMemoryError as error:
            return SyncOutcome(None, f"the index could not follow the files: {error}", error)
        if report.rebuilt and not self.as_json:
            show_note(f"built again: {report.rebuilt}")
        troubles = list_waiting(report)
        if report.failed:
            failed = ", ".join(f"{file.path} ({file.reason})" for file in report.failed)
            troubles.append(f"these files could not be indexed as they are now: {failed}")
        return SyncOutcome(report, "; ".join(troubles) or None)


workspace_option = click.option(
    "-w", "--workspace", metavar="PATH", type=FILE, help="The folder of the notes, or its name in your settings."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def with_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that all share, passed to it as one `Place`.

    Args:
        command: Takes the `Place`, then its own arguments, and returns the exit code.
    """

    @workspace_option
    @click.option("-a", "--agent", metavar="ID", help="An OpenClaw agent, whose workspace and settings to use.")
    @click.option(
        "-c", "--config", "settings", metavar="FILE", type=FILE, help="Settings in TOML: [defaults] and [agents.ID]."
    )
    @json_option
    @functools.wraps(command)
    def wrapper(
        *arguments: Any, workspace: str | None, agent: str | None, settings: str | None, as_json: bool, **options: Any
    ) -> Any:
        with acting_as(f"cli:{click.get_current_context().info_name}"):
            return command(Place(workspace, agent, settings, as_json), *arguments, **options)

    return wrapper


class TextCommand(click.Command):
    """A command that takes some arguments with a leading dash as text: `text` matches them."""

    text: ClassVar[re.Pattern[str]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse with the text behind `--`, where click expects no option."""
        end = args.index("--") if "--" in args else len(args)
        shorts = {option[1] for parameter in self.params for option in parameter.opts if len(option) == 2}
        texts = [word for word in args[:end] if self.text.fullmatch(word) and word[1] not in shorts]
        if texts:
            args = [*(word for word in args[:end] if word not in texts), "--", *texts, *args[end + 1 :]]
        return super().parse_args(ctx, args)


def join_words(words: tuple[str, ...], name: str) -> str:
    """Join the words of an argument.

    Raises:
        click.UsageError: The shell has passed bytes that are not UTF-8, which Python keeps as lone surrogates.
    """
    text = " ".join(words)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        remedy = "set the terminal to UTF-8, or pass the text through `iconv -f latin1 -t utf8`"
        raise click.UsageError(f"{name} is not UTF-8 at character {error.start + 1}: {remedy}") from error
    return text


@contextmanager
def show_progress(*, hidden: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on stderr from the first step on, and say once that another sync is waited for.

    Without a terminal there is no bar. With `hidden` nothing is shown, and the function is None.
    """
    if hidden:
        yield None
        return
    with ExitStack() as stack:
        bar: Any = None
        is_waiting = False

        def update(step: Progress) -> None:
            nonlocal bar, is_waiting
            if not step.total and not is_waiting:  # nothing is done yet: another sync is waited for
                is_waiting = True
                show_note(step.label)
            elif step.total and sys.stderr.isatty():
                bar = bar or stack.enter_context(click.progressbar(length=1, label="indexing", file=sys.stderr))
                speed = f"; {step.embedded:,} chunks, {step.rate:,.0f}/s, {step.tokens:,} tokens at most"
                bar.label, bar.length = step.label + (speed if step.embedded else ""), step.total
                bar.update(step.completed - bar.pos)

        yield update
