"""Define the commands: each opens a memory, asks it for one thing, and shows the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from openclaw_memory import __version__
from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli import write_commands
from openclaw_memory.cli.control_commands import export, forget, import_, inspect, snapshots
from openclaw_memory.cli.hook_command import hook
from openclaw_memory.cli.intent_command import intent
from openclaw_memory.cli.mcp_command import mcp
from openclaw_memory.cli.migrate_command import migrate
from openclaw_memory.cli.options import Followed, Place, placed, progress_bar, synced, waiting
from openclaw_memory.cli.output import (
    note,
    paint,
    say,
    say_findings,
    say_json,
    say_results,
    say_status,
)
from openclaw_memory.cli.upkeep_commands import heartbeat
from openclaw_memory.cli.watch import watch
from openclaw_memory.types.files import cited

if TYPE_CHECKING:
    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import SyncReport
    from openclaw_memory.types.records import RecordType

# What to look at in each answer, and the question.
QUESTIONS = (
    ("by meaning: the note says it in other words", "Which visitors do not eat meat?"),
    ("by an exact name", "What does E_CAL_DRIFT mean?"),
    ("without an answer in these notes", "How do I change the oil of a motorcycle?"),
)
SHOWN = 2  # results for each question: enough to see that the right one comes first


class _Commands(click.Group):
    """A group that ends quietly when its reader (`| head`) has seen enough: click itself would exit with 1.

    An option of a command that is written before the command gets an error that says where it belongs.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = args[0].partition("=")[0] if args else ""
        own = {name for option in self.get_params(ctx) for name in option.opts}
        taking = [name for name, one in self.commands.items() if any(given in option.opts for option in one.params)]
        if given.startswith("-") and taking and given not in own:
            typed = next((word for word in args[1:] if word in self.commands), "")
            name = next(name for name in (typed, "search", *taking) if name in taking)
            raise click.UsageError(f"{given} belongs behind a command: `openclaw-memory {name} {given} ...`", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return 0


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="openclaw-memory")
def commands() -> None:
    """Search an agent's Markdown memory, and get cited lines back.

    The notes are the truth; the index, WORKSPACE/.memory/index.*, is made from them and may be deleted.

    First steps: `demo` shows it at work; `init` makes a workspace, or with --all-markdown one of a folder that is full
    of notes already; `search` answers; `doctor` says what is wrong.

    Example: openclaw-memory demo
    """


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def demo(as_json: bool) -> int:
    """Index a small workspace that comes along, and ask three things.

    Example: openclaw-memory demo
    """
    import tempfile
    from pathlib import Path

    from openclaw_memory.memory import Memory
    from openclaw_memory.testing import sample_workspace

    with tempfile.TemporaryDirectory(prefix="openclaw-memory-demo-") as folder:
        workspace = Path(folder) / "notes"
        sample_workspace(workspace)
        with Memory.open(workspace) as memory:
            report = memory.sync()
            answers = [(why, question, memory.search(question, max_results=SHOWN)) for why, question in QUESTIONS]
    if as_json:
        shown = [{"query": question, "shows": why, "results": list(results)} for why, question, results in answers]
        say_json({"sync": report, "questions": shown})
    else:
        _say_demo(report, answers)
    return 0


@commands.command()
@click.option("--force", is_flag=True, help="Build the index again from the files.")
@placed
def index(place: Place, force: bool) -> int:
    """Bring the index up to date with the files.

    Example: openclaw-memory index --workspace notes
    """
    with place.open() as memory:
        with progress_bar(hidden=place.as_json, say_waiting=True) as progress:
            report = memory.sync(force=force, progress=progress)
        files = len(report.added) + len(report.changed) + report.unchanged
        if not place.as_json and (advice := memory.workspace.advice(files)):
            note(advice)
    if place.as_json:
        say_json(report)
    else:
        _say_report(report)
    return 0 if report.ok else 1


@commands.command()
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "--max-results", type=int, metavar="N", help="How many results at most. Default: 6.")
@click.option("--max-chars", type=int, metavar="N", help="As many shorter results as fit into N characters together.")
@click.option("--min-score", type=float, metavar="X", help="Leave out results below this score, 0 to 1.")
@click.option("--source", metavar="NAME", help="Search only `memory` (notes) or only `sessions` (transcripts).")
@click.option("--path", multiple=True, metavar="GLOB", help="Only files that match a .gitignore pattern. Repeatable.")
@click.option("--since", metavar="DAY", help="Only lines of this day or later: 2026-01-31.")
@click.option("--until", metavar="DAY", help="Only lines of this day or earlier.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only records of this type. Repeatable: any.")
@click.option("--key", multiple=True, metavar="GLOB", help="Only records whose key matches. Repeatable: any.")
@click.option("--user", multiple=True, metavar="ID", help="Only records of this user. Repeatable: any.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only files with this tag. Repeatable: all of them.")
@click.option("--min-confidence", type=float, metavar="X", help="Leave out records that are less sure, 0 to 1.")
@click.option("--task", metavar="TEXT", help="What you are at work on: what has to do with it comes first.")
@click.option("--rule", "rules", multiple=True, metavar="NAME=X", help="Rank otherwise: mmr=0.7. Repeatable.")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--no-sync", is_flag=True, help="Answer from the index as it is, though files may have changed.")
@placed
def search(
    place: Place,
    query: tuple[str, ...],
    max_results: int | None,
    max_chars: int | None,
    min_score: float | None,
    source: str | None,
    path: tuple[str, ...],
    since: str | None,
    until: str | None,
    types: tuple[RecordType, ...],
    key: tuple[str, ...],
    user: tuple[str, ...],
    tags: tuple[str, ...],
    min_confidence: float | None,
    task: str | None,
    rules: tuple[str, ...],
    explain: bool,
    no_sync: bool,
) -> int:
    """Ask a question; get the lines that answer it, each cited.

    QUERY is the question, or words to look for. The index first follows the files that changed. A rule is a setting of
    `search` that this search has instead; `off` turns it off. Exit code 1: nothing was found.

    Example: openclaw-memory search --workspace notes "Who has the spare key?"
    """
    question = " ".join(query)
    if not question.strip():
        raise click.UsageError("QUERY is empty: ask a question, or name words to look for")
    with place.open() as memory:
        report, trouble, error = Followed() if no_sync else synced(memory, hidden=place.as_json)
        results = memory.search(
            question,
            max_results=max_results,
            max_chars=max_chars,
            min_score=min_score,
            source=source,  # type: ignore[arg-type]  # checked by search, whose message names the choices
            explain=explain,
            path=path,
            since=since,
            until=until,
            type=types,
            key=key,
            user_id=user,
            tags=tags,
            min_confidence=min_confidence,
            task=task,
            rules=dict(map(_rule, rules)) or None,
        )
        if error is not None and not results and memory.status().last_sync is None:
            raise error  # there is no index to answer from, and none can be built
        stale = results.stale or trouble is not None or (no_sync and bool(memory.status().dirty))
        advice = "" if results or results.reason else memory.workspace.advice(len(memory.workspace.scan().files))
    if place.as_json:
        known = {name: getattr(results, name) for name in ("mode", "reason", "provider", "model", "filtered")}
        say_json({"query": question, **known, "stale": stale, "sync_error": trouble, "results": list(results)})
    else:
        if results:
            say_results(results, explain=explain)
            if results.all_weak:
                note("all results are weak: the notes may not answer this")
        else:
            hint = f"; {results.filtered} below the minimum score: --min-score 0 shows them" if results.filtered else ""
            click.echo(f"nothing found{hint}", err=True)
        if reason := results.reason or advice:
            note(reason)
        if stale and not (trouble and _explains(reason, report)):
            note(trouble or f"the index is behind the files: run `openclaw-memory index{place.options}`")
    return 0 if results else 1


def _rule(text: str) -> tuple[str, Any]:
    """Return the name and the value of `mmr=0.7`: TOML, or a bare word, of which `off` is None."""
    import tomllib

    name, is_given, value = text.partition("=")
    if not is_given:
        raise click.UsageError(f"--rule {text!r} has no value: write NAME=VALUE, as in mmr=0.7")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), None if value.strip() == "off" else value.strip()


@commands.command()
@click.argument("path")
@click.option("--start", type=int, metavar="LINE", help="First line, counted from 1.")
@click.option("--lines", type=int, metavar="N", help="How many lines.")
@placed
def get(place: Place, path: str, start: int | None, lines: int | None) -> int:
    """Read a memory file, or lines of it.

    PATH is that of the file, as seen from the workspace, or a citation as `search` prints it: PATH#L3-L4.

    Example: openclaw-memory get --workspace notes "MEMORY.md#L3-L4"
    """
    with place.open() as memory:
        excerpt = memory.get(path, start=start, lines=lines)
    if place.as_json:
        say_json(excerpt)
    else:
        say(clean(excerpt.text).removesuffix("\n"))
        if excerpt.path.endswith(".jsonl") and not excerpt.text.strip():
            note(f"{excerpt.citation} holds nothing that is shown: a tool, a silent reply, or no JSON")
        if excerpt.next_start is not None and cited(path) is None:
            click.echo(f"goes on: --start {excerpt.next_start}", err=True)
    return 0


@commands.command()
@click.option("--deep", is_flag=True, help="Also prove the index, by a real query on each path.")
@placed
def status(place: Place, deep: bool) -> int:
    """Say what is indexed, with what, and what could work better.

    Example: openclaw-memory status --workspace notes --deep
    """
    with place.open() as memory:
        state = memory.status(deep=deep)
    if place.as_json:
        say_json(state)
    else:
        say_status(state, place.options)
    return 0


@commands.command()
@placed
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
        say_findings(findings)
    return 1 if problems else 0


def _explains(reason: str, report: SyncReport | None) -> bool:
    """Whether a reason names all that a sync could not do: files that wait for vectors, and why."""
    return report is not None and not report.failed and all(file.reason in reason for file in report.waiting)


for command in (
    write_commands.init,
    write_commands.append,
    write_commands.edit,
    write_commands.delete,
    write_commands.promote,
    write_commands.bootstrap,
    inspect,
    forget,
    export,
    import_,
    snapshots,
    intent,
    migrate,
    heartbeat,
    hook,
    watch,
    mcp,
):
    commands.add_command(command)


def _say_report(report: SyncReport) -> None:
    done = f"{len(report.added)} added, {len(report.changed)} changed, {len(report.removed)} removed"
    say(f"{done}, {report.unchanged} unchanged in {report.seconds:.2f} s; {report.embedded} chunks embedded")
    if report.rebuilt:
        say(f"built again: {clean(report.rebuilt)}")
    for file in report.skipped:
        say(f"{click.style('skipped', fg='yellow')}  {clean_line(file.path)}: {clean(file.reason)}")
    for file in report.failed:
        say(f"{click.style('failed', fg='red')}  {clean_line(file.path)}: {clean(file.reason)}")
    for line in waiting(report):
        say(f"{click.style('waiting', fg='yellow')}  {clean(line)}")


def _say_demo(report: SyncReport, answers: list[tuple[str, str, SearchResults]]) -> None:
    results = answers[0][2]
    say(paint("openclaw-memory", bold=True) + "  Markdown in, cited lines out; nothing leaves this machine")
    say(
        f"{len(report.added)} files of notes indexed in {report.seconds:.2f} s; "
        f"{results.mode} search, {results.provider} {results.model}"
    )
    for why, question, found in answers:
        say()
        say(f"{click.style('?', fg='green', bold=True)} {paint(question, bold=True)}  {paint(why, dim=True)}")
        if found:
            say_results(found)
        else:
            say("    Nothing found: the notes do not say.")
    say()
    say('Your own notes:  openclaw-memory search --workspace PATH "a question"')
