"""Define the commands: each opens a memory, asks it for one thing, and shows the answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory import __version__
from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.options import Place, list_waiting, show_progress, with_place
from openclaw_memory.cli.output import render, show_findings, show_json, show_note, show_results, show_status
from openclaw_memory.errors import ConfigError
from openclaw_memory.plugins import has_plugin, list_plugins, load_plugin
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.files import format_citation, parse_citation

if TYPE_CHECKING:
    from openclaw_memory.types import SyncReport

# The module of each command that is loaded when it is asked for.
_MODULES = {
    "search": "search_command", "init": "write_commands", "append": "write_commands", "inspect": "write_commands",
    "forget": "write_commands", "sign": "write_commands", "heartbeat": "upkeep_commands",
    "watch": "upkeep_commands", "config": "upkeep_commands",
}  # fmt: skip
QUESTIONS = (
    ("by meaning: the note says it in other words", "Which visitors do not eat meat?"),
    ("by an exact name", "What does E_CAL_DRIFT mean?"),
    ("without an answer in these notes: all is in other words", "How do I change the oil of a motorcycle?"),
)


def _replace_command(name: str, error: ConfigError) -> click.Command:
    """Stand in for a plug-in's command that cannot be loaded, so that `--help` lists all others."""

    def fail() -> None:
        raise error

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, settings, fail, help="Not available: the plug-in cannot be loaded.")


class _Commands(click.Group):
    """A group that loads commands when they are asked for, and plug-ins' commands too."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        return sorted({*self.commands, *_MODULES, *list_plugins("commands")})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _MODULES and cmd_name not in self.commands:
            self.add_command(getattr(import_module(f"openclaw_memory.cli.{_MODULES[cmd_name]}"), cmd_name))
        elif cmd_name not in self.commands and has_plugin("commands", cmd_name):
            try:
                self.add_command(load_plugin("commands", cmd_name))
            except ConfigError as error:  # not stored: its package may be installed by the next time
                return _replace_command(cmd_name, error)
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Explain where an option belongs that is written before the command."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = next((word for word in args if word in self.list_commands(ctx)), "search")
            remedy = f"{error.option_name} belongs behind a command: `openclaw-memory {name} {error.option_name} ...`"
            raise click.UsageError(remedy, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """End quietly when the reader (`| head`) has seen enough: click itself would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return 0


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="openclaw-memory")
def commands() -> None:
    """Search an agent's Markdown memory, and get cited lines back.

    The notes are the truth. The index, in your data folder, is made from them and may be deleted.

    First steps: `demo` shows it at work; `init` makes a workspace, or with --all-markdown one of a folder that is full
    of notes already; `search` answers; `doctor` finds problems.

    Example: openclaw-memory demo
    """


@commands.command()
def demo() -> int:
    """Index a small workspace that comes along; ask three things.

    Example: openclaw-memory demo
    """
    import tempfile

    from openclaw_memory.memory import Memory
    from openclaw_memory.testing.fakes import sample_workspace

    with (
        tempfile.TemporaryDirectory(prefix="openclaw-memory-demo-") as folder,
        Memory.open(sample_workspace(f"{folder}/notes")) as memory,
    ):
        report = memory.sync()
        answers = [(reason, question, memory.search(question, max_results=2)) for reason, question in QUESTIONS]
    first = answers[0][2]
    click.echo(render("openclaw-memory", bold=True) + "  Markdown in, cited lines out; nothing leaves this machine")
    counts = f"{len(report.added)} files of notes indexed in {report.seconds:.2f} s"
    click.echo(f"{counts}; {first.mode} search, {first.provider} {first.model}")
    for reason, question, results in answers:
        mark = click.style("?", fg="green", bold=True)
        click.echo(f"\n{mark} {render(question, bold=True)}  {render(reason, dim=True)}")
        show_results(results, query=question)
    click.echo('\nYour own notes:  openclaw-memory search --workspace PATH "a question"')
    return 0


@commands.command()
@click.option("--force", is_flag=True, help="Build the index again from the files.")
@with_place
def index(place: Place, force: bool) -> int:
    """Bring the index up to date with the files.

    Example: openclaw-memory index --workspace notes
    """
    with place.open() as memory:
        with show_progress(hidden=place.as_json, say_waiting=True) as progress:
            report = memory.sync(force=force, progress=progress)
        files = len(report.added) + len(report.changed) + report.unchanged
        if not place.as_json and (advice := memory.workspace.suggest_setup(files)):
            show_note(advice)
    (show_json if place.as_json else _show_report)(report)
    return 0 if report.ok else 1


@commands.command()
@click.argument("path")
@with_place
def get(place: Place, path: str) -> int:
    """Read a memory file, or some lines.

    PATH is that of the file, as seen from the workspace, or a citation as `search` prints it: PATH#L3-L4.

    Example: openclaw-memory get --workspace notes "MEMORY.md#L3-L4"
    """
    from openclaw_memory.text.redaction import explain_masks

    with place.open() as memory:
        excerpt = memory.get(path)
    if place.as_json:
        show_json(excerpt)
        return 0
    click.echo(clean(excerpt.text).removesuffix("\n"))
    if note := explain_masks(excerpt.text):
        show_note(note)
    if get_plain_name(excerpt.path).endswith(".jsonl") and not excerpt.text.strip():
        show_note(f"{excerpt.citation} holds nothing that is shown: a tool, a silent reply, or no JSON")
    if excerpt.next_start is not None and parse_citation(path) is None:
        following = (excerpt.next_start, excerpt.next_start + excerpt.end_line - excerpt.start_line)
        show_note(f"it goes on: {format_citation(excerpt.path, following)}")
    return 0


@commands.command()
@with_place
def status(place: Place) -> int:
    """Show the state of the index, and any shortcomings.

    Example: openclaw-memory status --workspace notes
    """
    with place.open() as memory:
        state = memory.status()
    if place.as_json:
        show_json(state)
    else:
        show_status(state, place.options)
    return 0


@commands.command()
@click.option("--prune", is_flag=True, help="Remove the data folders of workspaces that are gone.")
@with_place
def doctor(place: Place, prune: bool) -> int:
    """Check all that search needs; name remedies.

    Exit code 1: there are problems.

    Example: openclaw-memory doctor --workspace notes
    """
    import shutil

    from openclaw_memory.cli.doctor import check_memory
    from openclaw_memory.config.environment import list_orphans

    for folder, workspace in list_orphans() if prune else ():
        shutil.rmtree(folder)
        show_note(f"removed {folder}, of {clean_line(workspace)}")
    findings = check_memory(place.open, place.options)
    has_problems = any(finding.level == "problem" for finding in findings)
    if place.as_json:
        show_json({"ok": not has_problems, "findings": findings})
    else:
        show_findings(findings)
    return 1 if has_problems else 0


def _show_report(report: SyncReport) -> None:
    counts = f"{len(report.added)} added, {len(report.changed)} changed, {len(report.removed)} removed"
    click.echo(f"{counts}, {report.unchanged} unchanged in {report.seconds:.2f} s; {report.embedded} chunks embedded")
    if report.rebuilt:
        click.echo(f"built again: {clean(report.rebuilt)}")
    for file in report.skipped:
        click.echo(f"{click.style('skipped', fg='yellow')}  {clean_line(file.path)}: {clean(file.reason)}")
    for file in report.failed:
        click.echo(f"{click.style('failed', fg='red')}  {clean_line(file.path)}: {clean(file.reason)}")
    for line in list_waiting(report):
        click.echo(f"{click.style('waiting', fg='yellow')}  {clean(line)}")
