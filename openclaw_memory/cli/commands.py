"""Define the commands: each opens a memory, asks it for one thing, and shows the answer."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from openclaw_memory import __version__
from openclaw_memory._safe import clean, clean_line
from openclaw_memory.cli.options import Place, show_progress, with_place
from openclaw_memory.cli.output import (
    open_editor,
    render,
    show_findings,
    show_items,
    show_json,
    show_note,
    show_results,
    show_status,
    show_sync,
)
from openclaw_memory.errors import ConfigError, InvalidInputError, suggest
from openclaw_memory.plugins import has_plugin, list_plugins, load_plugin
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.files import format_citation, parse_citation

# The module of each command that is loaded when it is asked for.
_MODULES = {
    "search": "search_command", "init": "write_commands", "add": "write_commands",
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the command that a misspelt one was meant to be."""
        if self.get_command(ctx, args[0]) is None:
            raise click.UsageError(
                f"no command {args[0]!r}: {suggest(args[0], self.list_commands(ctx))}".rstrip(": "), ctx
            )
        return super().resolve_command(ctx, args)

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


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="openclaw-memory")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Search an agent's Markdown memory, and get cited lines back.

    Without a command, it says what is in the current folder and what to do next. The index lies in your data folder; it
    is built from your notes and may be deleted at any time.

    Example: openclaw-memory demo
    """
    if ctx.invoked_subcommand is None:
        _show_folder()


def _show_folder() -> None:
    """Count the notes of the current folder, and suggest the next command."""
    from openclaw_memory.cli.find_workspace import find_workspace

    folder, reason = find_workspace(None)
    with Place().open() as memory:
        count = len(memory.workspace.scan().files)
        advice = memory.workspace.suggest_setup(count)
    click.echo(f"{render(str(folder.absolute()), bold=True)} ({reason}): {count:,} {'note' if count == 1 else 'notes'}")
    if advice:
        show_note(advice)
    click.echo("Next:          openclaw-memory " + ('search "a question"' if count else "demo"))
    click.echo("All commands:  openclaw-memory --help")


@commands.command()
def demo() -> int:
    """Index a small example workspace, and ask three questions.

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
        show_results(results, {}, query=question)
    click.echo("\nYour own notes:  openclaw-memory init --all-markdown --workspace PATH")
    click.echo('                 openclaw-memory search --workspace PATH "a question"')
    return 0


@commands.command()
@click.option("--force", is_flag=True, help="Rebuild the index from the files.")
@with_place
def index(place: Place, force: bool) -> int:
    """Update the index from the files.

    Example: openclaw-memory index --workspace notes
    """
    with place.open() as memory:
        with show_progress(hidden=place.as_json) as progress:
            report = memory.sync(force=force, progress=progress)
        files = len(report.added) + len(report.changed) + report.unchanged
        if not place.as_json and (advice := memory.workspace.suggest_setup(files)):
            show_note(advice)
    (show_json if place.as_json else show_sync)(report)
    return 0 if report.ok else 1


@commands.command()
@click.argument("path")
@with_place
def show(place: Place, path: str) -> int:
    """Show a note, or some of its lines.

    PATH is a file in the workspace, or a citation as `search` prints it: PATH#L3-L4.

    Example: openclaw-memory show --workspace notes "MEMORY.md#L3-L4"
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
@click.option("--deep", is_flag=True, help="Also try both kinds of search, and check the whole index.")
@click.option("--files", "with_files", is_flag=True, help="List each remembered file instead: day, kind, lines, bytes.")
@with_place
def status(place: Place, deep: bool, with_files: bool) -> int:
    """Show the state of the index, and its shortcomings.

    Example: openclaw-memory status --workspace notes
    """
    with place.open() as memory:
        state = memory.status(deep=deep) if not with_files else None
        items = memory.control.inspect() if with_files else []
    if place.as_json:
        show_json(state or {"items": items})
    elif state:
        show_status(state, place.options)
    else:
        show_items(items)
    return 0


@commands.command()
@click.argument("path")
@with_place
def edit(place: Place, path: str) -> int:
    """Open a note in your editor, at the cited line, and index the change.

    PATH is a file in the workspace, or a citation as `search` prints it. VISUAL or EDITOR names the editor.

    Example: openclaw-memory edit --workspace notes "MEMORY.md#L3"
    """
    with place.open() as memory:
        excerpt = memory.get(path)
        file = memory.workspace.locate(excerpt.path)
        if get_plain_name(excerpt.path) != excerpt.path:
            raise InvalidInputError(f"{excerpt.path} is encrypted: decrypt it first, or use the tools that edit")
        open_editor(Path(file.base, *file.parts), excerpt.start_line)
        outcome = place.sync(memory)
    if place.as_json:
        show_json({"path": excerpt.path, "sync_error": outcome.trouble})
    elif outcome.report:
        show_sync(outcome.report)
    return 0


@commands.command()
@click.option("--prune", is_flag=True, help="Delete the index folders of workspaces that no longer exist.")
@with_place
def doctor(place: Place, prune: bool) -> int:
    """Find problems, and say how to fix them.

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
