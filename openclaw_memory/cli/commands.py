"""The commands themselves: each opens a memory, asks it for one thing, and shows the answer."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory import __version__
from openclaw_memory.cli.show import (
    behind,
    clean,
    first_of,
    in_use,
    note,
    paint,
    plain,
    say,
    say_json,
    say_results,
    say_table,
)
from openclaw_memory.errors import OpenClawMemoryError

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.types import Progress, Status, SyncReport

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
            from openclaw_memory.config.places import agent_folders

            return agent_folders(self.agent)[0]
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

        config = MemoryConfig.from_toml(self.settings, agent=self.agent) if self.settings else None
        if self.workspace is None and self.agent is not None:
            return Memory.for_agent(self.agent, config=config)
        return Memory.open(self.folder, config=config)


def _placed(command: Callable[..., Any]) -> Callable[..., Any]:
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


class _Commands(click.Group):
    """A group that ends quietly when its reader (`| head`) has seen enough: click itself would exit with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return 0


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="openclaw-memory")
def commands() -> None:
    """Search an agent's Markdown memory, and get cited lines back.

    The notes are the truth; the index in WORKSPACE/.memory is made from them and may be deleted.

    Example: openclaw-memory demo
    """


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def demo(as_json: bool) -> int:
    """Index a small workspace that ships with it, and ask three things.

    Example: openclaw-memory demo
    """
    from openclaw_memory.cli.demo import run_demo

    return run_demo(as_json=as_json)


@commands.command()
@_placed
def init(place: Place) -> int:
    """Make a workspace: MEMORY.md and memory/; keep what is there.

    Example: openclaw-memory init --workspace notes
    """
    from openclaw_memory.cli.init import make_workspace

    made = make_workspace(place.folder)
    if place.as_json:
        say_json({"workspace": str(place.folder.absolute()), "created": made})
    else:
        for name in made:
            say(f"created {clean(str(place.folder / name))}")
        if not made:
            say(f"{clean(str(place.folder))} is a workspace already; nothing was changed")
    return 0


@commands.command()
@click.option("--force", is_flag=True, help="Build the index again from the files.")
@_placed
def index(place: Place, force: bool) -> int:
    """Bring the index up to date with the files.

    Example: openclaw-memory index --workspace notes
    """
    with place.open() as memory, _progress_bar(hidden=place.as_json) as progress:
        report = memory.sync(force=force, progress=progress)
    if place.as_json:
        say_json(report)
    else:
        _say_report(report)
    return 0 if report.ok else 1


@commands.command()
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "--max-results", type=int, metavar="N", help="How many results at most. Default: 6.")
@click.option("--min-score", type=float, metavar="X", help="Leave out results below this score, 0 to 1.")
@click.option("--source", metavar="NAME", help="Search only `memory` (notes) or only `sessions` (transcripts).")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--no-sync", is_flag=True, help="Answer from the index as it is, though files may have changed.")
@_placed
def search(
    place: Place,
    query: tuple[str, ...],
    max_results: int | None,
    min_score: float | None,
    source: str | None,
    explain: bool,
    no_sync: bool,
) -> int:
    """Ask a question; get the lines that answer it, with their places.

    The index first follows the files that changed. Exit code 1: nothing was found.

    Example: openclaw-memory search --workspace notes "Who has the spare key?"
    """
    question = " ".join(query)
    if not question.strip():
        raise click.UsageError("QUERY is empty: ask a question, or name words to look for")
    with place.open() as memory:
        trouble = None if no_sync else _synced(memory, hidden=place.as_json)
        results = memory.search(
            question,
            max_results=max_results,
            min_score=min_score,
            source=source,  # type: ignore[arg-type]  # checked by search, whose message names the choices
            explain=explain,
        )
        stale = results.stale or trouble is not None or (no_sync and bool(memory.status().dirty))
    if place.as_json:
        known = {name: getattr(results, name) for name in ("mode", "reason", "provider", "model", "filtered")}
        say_json({"query": question, **known, "stale": stale, "sync_error": trouble, "results": list(results)})
    else:
        if results:
            say_results(results, explain=explain)
        else:
            hint = f"; {results.filtered} were below the minimum score" if results.filtered else ""
            click.echo(f"nothing found{hint}", err=True)
        if results.reason:
            note(results.reason)
        if stale:
            note(trouble or f"the index is behind the files: run `openclaw-memory index{place.options}`")
    return 0 if results else 1


@commands.command()
@click.argument("path")
@click.option("--start", type=int, metavar="LINE", help="First line, counted from 1.")
@click.option("--lines", type=int, metavar="N", help="How many lines.")
@_placed
def get(place: Place, path: str, start: int | None, lines: int | None) -> int:
    """Read a memory file, or lines of it. PATH may be a citation as `search` prints it.

    Example: openclaw-memory get --workspace notes "MEMORY.md#L3-L4"
    """
    if (cited := _CITATION.match(path)) and start is None and lines is None:
        path, start = cited["path"], int(cited["start"])
        lines = int(cited["end"] or start) - start + 1
    with place.open() as memory:
        excerpt = memory.get(path, start=start, lines=lines)
    if place.as_json:
        say_json(excerpt)
    else:
        say(clean(excerpt.text).removesuffix("\n"))
        if excerpt.next_start is not None and cited is None:
            click.echo(f"goes on: --start {excerpt.next_start}", err=True)
    return 0


@commands.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--date", metavar="YYYY-MM-DD", help="The day of the note. Default: today.")
@click.option("--title", metavar="TEXT", help="A heading for the note.")
@_placed
def append(place: Place, text: tuple[str, ...], date: str | None, title: str | None) -> int:
    """Add a note to the day's file, and index it; `-` reads it from standard input.

    Example: openclaw-memory append --workspace notes "Anna moved the launch."
    """
    written = sys.stdin.read() if text == ("-",) else " ".join(text)
    with place.open() as memory:
        excerpt = memory.append(written, date=date, title=title)
        trouble = _synced(memory, hidden=place.as_json)
    if place.as_json:
        say_json({**plain(excerpt), "sync_error": trouble})
    else:
        say(f"added {paint(excerpt.citation, fg='cyan', bold=True)}")
        if trouble:
            note(trouble)
    return 0


@commands.command()
@click.option("--deep", is_flag=True, help="Also prove the index, by a real query on each path.")
@_placed
def status(place: Place, deep: bool) -> int:
    """Say what is indexed, with what, and what could work better.

    Example: openclaw-memory status --workspace notes --deep
    """
    with place.open() as memory:
        state = memory.status(deep=deep)
    if place.as_json:
        say_json(state)
    else:
        _say_status(state, place.options)
    return 0


@commands.command()
@_placed
def doctor(place: Place) -> int:
    """Check what search needs, and say what to do about each finding.

    Exit code 1: there are problems.

    Example: openclaw-memory doctor --workspace notes
    """
    from openclaw_memory.cli.doctor import examine

    findings = examine(place.open, place.options)
    problems = sum(finding.level == "problem" for finding in findings)
    if place.as_json:
        say_json({"ok": problems == 0, "findings": findings})
    else:
        marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "red")}
        for finding in findings:
            word, colour = marks[finding.level]
            say(f"{click.style(word.ljust(7), fg=colour)}  {clean(finding.check)}: {clean(finding.detail)}")
            if finding.remedy:
                say(f"         {clean(finding.remedy)}")
    return 1 if problems else 0


def _synced(memory: Memory, *, hidden: bool) -> str | None:
    """Let the index follow the files; why it could not, where that is no reason to give up, or None."""
    try:
        with _progress_bar(hidden=hidden) as progress:
            report = memory.sync(progress=progress)
    except OpenClawMemoryError as error:
        return f"the index could not follow the files: {error}"
    troubles = _waiting(report)
    if report.failed:
        failed = ", ".join(f"{file.path} ({file.reason})" for file in report.failed)
        troubles.append(f"these files could not be indexed as they are now: {failed}")
    return "; ".join(troubles) or None


def _waiting(report: SyncReport) -> list[str]:
    from openclaw_memory.sync.status import told_of_lacking

    return told_of_lacking(Counter(file.reason for file in report.waiting))


@contextmanager
def _progress_bar(*, hidden: bool) -> Iterator[Callable[[Progress], None] | None]:
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


def _say_report(report: SyncReport) -> None:
    done = f"{len(report.added)} added, {len(report.changed)} changed, {len(report.removed)} removed"
    say(f"{done}, {report.unchanged} unchanged in {report.seconds:.2f} s; {report.embedded} chunks embedded")
    if report.rebuilt:
        say(f"built again: {clean(report.rebuilt)}")
    for file in report.skipped:
        say(f"{click.style('skipped', fg='yellow')}  {clean(file.path)}: {clean(file.reason)}")
    for file in report.failed:
        say(f"{click.style('failed', fg='red')}  {clean(file.path)}: {clean(file.reason)}")
    for line in _waiting(report):
        say(f"{click.style('waiting', fg='yellow')}  {clean(line)}")


def _say_status(state: Status, options: str) -> None:
    sources = ", ".join(f"{name} {files} files, {chunks} chunks" for name, (files, chunks) in state.sources.items())
    say_table(
        [
            ("workspace", state.workspace),
            ("index", f"{state.index_path} ({state.index_bytes / 1e6:.1f} MB)"),
            ("search", f"{state.mode}, {in_use(state)}"),
            *((f"not {provider}", reason) for provider, reason in state.passed_over.items()),
            ("holds", f"{state.files} files, {state.chunks} chunks" + (f" ({sources})" if sources else "")),
            *((name, _inline(table)) for name, table in (("vector", state.vector), ("keyword", state.fts))),
            ("cache", _inline(state.cache)),
            ("engine", _inline(state.engine)),
        ]
    )
    for name in first_of(behind(state)):
        say(f"{click.style('dirty', fg='yellow')}    {clean(name)}: run `openclaw-memory index{clean(options)}`")
    for file in state.skipped:
        say(f"{click.style('skipped', fg='yellow')}  {clean(file.path)}: {clean(file.reason)}")
    for notice in state.notices:
        say(f"{click.style('note', fg='yellow')}     {clean(notice)}")


def _inline(table: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in table.items() if value is not None)
