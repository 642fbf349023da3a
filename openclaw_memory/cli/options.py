"""Choose the memory that a command works on, and sync its index; what the commands share."""

from __future__ import annotations

import functools
import itertools
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec import structs

from openclaw_memory.cli.output import show_note
from openclaw_memory.errors import OpenClawMemoryError, SyncBusyError
from openclaw_memory.events import acting_as

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Progress, SyncReport

INTERRUPTED = 130  # the exit code of what Ctrl-C has ended, as shells have it: 128 + SIGINT
# A search or a write waits no longer than this while another process syncs.
WAIT_SECONDS = 1.0
FILE = click.Path(readable=False)  # a shell completes it; whether it can be read is found out where it is read


@dataclass(frozen=True, slots=True)
class Place:
    """Which memory a command works on, and how it answers."""

    workspace: str | None
    agent: str | None
    settings: str | None
    as_json: bool

    @property
    def folder(self) -> Path:
        """Return the workspace's folder, as given, by the agent's layout, or as `places` finds it."""
        return self._found(new=False)

    @property
    def new_folder(self) -> Path:
        """Return the folder to make a workspace: where none is given the current one, whatever lies above it."""
        return self._found(new=True)

    def _found(self, *, new: bool) -> Path:
        if self.workspace is None and self.agent is not None:
            from openclaw_memory.config.environment import locate_agent

            return locate_agent(self.agent).workspace
        if self.workspace is not None and not self.workspace.strip():
            raise click.UsageError("--workspace is empty: name a folder, or leave the option out for the current one")
        from openclaw_memory.cli.places import workspace_folder

        return workspace_folder(self.workspace, new=new).folder

    @property
    def options(self) -> str:
        """Return the options that choose this memory, as they are typed: ` --workspace notes`; by default ""."""
        given = (("--workspace", self.workspace), ("--agent", self.agent), ("--config", self.settings))
        return "".join(f" {option} {shlex.quote(value)}" for option, value in given if value is not None)

    @property
    def settings_file(self) -> str | Path | None:
        """Return the file of settings: the one given, or else the user's own, if there is one."""
        from openclaw_memory.cli.places import settings_file

        return self.settings or (file if os.path.isfile(file := settings_file()) else None)

    def open(self, *, stays: bool = False, settings: Mapping[str, Any] | None = None) -> Memory:
        """Open the memory in `folder`; an agent's index is where its layout says, unless the folder was given.

        Args:
            stays: Whether the command goes on until it is ended: then searches sync as the settings say.
            settings: Values that go before those of the settings file, `{part: {key: value}}`.
        """
        from openclaw_memory.config import MemoryConfig
        from openclaw_memory.memory import Memory

        file = self.settings_file
        config = MemoryConfig.from_toml(file, agent=self.agent) if file else MemoryConfig()
        config = config.replace(settings or {})
        # A command syncs when it says so, and ends before anything in the background would.
        by_command = structs.replace(
            config.sync, before_search=False, on_open=False, on_search=False, interval_seconds=0.0
        )
        config = config if stays else structs.replace(config, sync=by_command)
        if self.workspace is None and self.agent is not None:
            return Memory.for_agent(self.agent, config=config)
        return Memory.open(self.folder, config=config)


def with_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that all share, passed to it as one `Place`.

    Args:
        command: Takes the `Place`, then its own arguments, and returns the exit code.
    """

    @click.option(
        "-w",
        "--workspace",
        metavar="PATH",
        type=FILE,
        help="The notes: a folder, or a name of your settings.",
    )
    @click.option("-a", "--agent", metavar="ID", help="An OpenClaw agent: its workspace, and its settings.")
    @click.option(
        "-c",
        "--config",
        "settings",
        metavar="FILE",
        type=FILE,
        help="Settings in TOML: [defaults] and [agents.ID].",
    )
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @functools.wraps(command)
    def wrapper(
        *arguments: Any, workspace: str | None, agent: str | None, settings: str | None, as_json: bool, **options: Any
    ) -> Any:
        with acting_as(f"cli:{click.get_current_context().info_name}"):
            return command(Place(workspace, agent, settings, as_json), *arguments, **options)

    return wrapper


class TakesText(click.Command):
    """A command that takes some arguments with a leading dash as text."""

    def is_text(self, argument: str) -> bool:  # noqa: ARG002 - each command says which
        """Return whether an argument with a leading dash is text, and no option."""
        return False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse with the text after `--`, where click takes nothing for an option."""
        options: list[str] = []
        text: list[str] = []
        rest, found = iter(args), False
        valued = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        for argument in rest:
            if argument == "--":
                text += rest
            elif argument == "-" or not argument.startswith("-"):
                text.append(argument)
            elif argument in valued:
                options += [argument, *itertools.islice(rest, 1)]
            elif self.is_text(argument):
                found = True
                text.append(argument)
            else:
                options.append(argument)
        return super().parse_args(ctx, [*options, "--", *text] if found else args)


def read_text(text: tuple[str, ...]) -> str:
    """Join the words of an argument; read standard input if it is `-` alone.

    Args:
        text: The words.

    Raises:
        click.UsageError: It is not UTF-8.
    """
    return _from_stdin() if text == ("-",) else join_words(text, "TEXT")


def join_words(words: Sequence[str], name: str) -> str:
    """Return the words of an argument as one text.

    Raises:
        click.UsageError: The shell has passed bytes that are not UTF-8, which Python keeps as lone surrogates.
    """
    text = " ".join(words)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise click.UsageError(
            f"{name} is not UTF-8 at character {error.start + 1}: set the terminal to UTF-8, or pass the text "
            "through iconv -f latin1 -t utf8"
        ) from error
    return text


def _from_stdin() -> str:
    raw = getattr(sys.stdin, "buffer", None)
    if raw is None:  # a stream of text, as of a program that runs the command in its own process
        return sys.stdin.read()
    data: bytes = raw.read()
    try:
        return "\n".join(data.decode("utf-8-sig").split("\r\n"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise click.UsageError(
            f"standard input is not UTF-8: byte {data[error.start]:#04x} in line {line}; if it is Latin-1, pass it "
            "through iconv -f latin1 -t utf8"
        ) from error


class Followed(NamedTuple):
    """The outcome of a sync: its report, what it could not do, in words, and the error that ended it, if any."""

    report: SyncReport | None = None
    trouble: str | None = None
    error: OpenClawMemoryError | None = None


def sync_index(memory: Memory, *, hidden: bool) -> Followed:
    """Sync the index as far as possible, and wait up to `WAIT_SECONDS` for another sync.

    Args:
        memory: The memory.
        hidden: Show no progress.
    """
    try:
        with show_progress(hidden=hidden) as progress:
            report = memory.sync(progress=progress, wait=WAIT_SECONDS)
    except SyncBusyError:
        return Followed(None, "another process syncs this index, which may be behind the files until the next sync")
    except OpenClawMemoryError as error:
        return Followed(None, f"the index could not follow the files: {error}", error)
    if report.rebuilt and not hidden:
        show_note(f"built again: {report.rebuilt}")
    troubles = list_waiting(report)
    if report.failed:
        failed = ", ".join(f"{file.path} ({file.reason})" for file in report.failed)
        troubles.append(f"these files could not be indexed as they are now: {failed}")
    return Followed(report, "; ".join(troubles) or None)


def list_waiting(report: SyncReport) -> list[str]:
    """Return why files lack vectors, each reason on a line."""
    from openclaw_memory.indexing.changes import explain_missing_vectors

    return explain_missing_vectors(Counter(file.reason for file in report.waiting))


@contextmanager
def show_progress(*, hidden: bool, say_waiting: bool = False) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on stderr from the first step on, only on a terminal; None if there is nothing to show.

    With `say_waiting`, a note says once that another sync is waited for, also if stderr is not a terminal.
    """
    with_bar = sys.stderr.isatty()
    if hidden or not (with_bar or say_waiting):
        yield None
        return
    with ExitStack() as shown:
        bar: Any = None
        is_said = not say_waiting

        def show(step: Progress) -> None:
            nonlocal bar, is_said
            if not step.total:  # nothing is done yet: another sync is waited for
                if not is_said:
                    show_note(step.label)
                is_said = True
            elif with_bar:
                bar = bar or shown.enter_context(click.progressbar(length=1, label="indexing", file=sys.stderr))
                bar.label, bar.length = _label(step), step.total
                bar.update(step.completed - bar.pos)

        yield show


def _label(step: Progress) -> str:
    if not step.embedded:
        return step.label
    return f"{step.label}; {step.embedded:,} chunks, {step.rate:,.0f}/s, {step.tokens:,} tokens at most"
