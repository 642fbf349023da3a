"""Define the command that brings another memory into this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from openclaw_memory.cli import Place, clean_line, show_json, show_note, with_place
from openclaw_memory_migrate.types import Format

if TYPE_CHECKING:
    from openclaw_memory_migrate.types import MigrationReport

NOT_ALL = 1  # the exit code where something is not in the new layout
_SHOWN = 20  # files, and lines of what was left out; --json has all


@click.command()
@click.option(
    "--from",
    "source",
    metavar="FILE",
    type=click.Path(readable=False),
    help="The file or folder to import. Default: .memory.md of the workspace.",
)
@click.option("--format", "file_format", type=click.Choice(get_args(Format)), help="Default: recognised from the file.")
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be written.")
@with_place
def migrate(place: Place, source: str | None, file_format: str | None, dry_run: bool) -> int:
    """Import .memory.md, mem0, or chats of ChatGPT and Claude.

    Markdown becomes notes by the days in its headings, mem0's memories become documents, and chats become transcripts.
    The source is copied first and never changed. Nothing is imported twice, so run it again after an interruption. Exit
    code 1: something was left out.

    Example: openclaw-memory migrate --workspace notes --dry-run
    """
    from openclaw_memory_migrate import migrate as migrate_memory

    with place.open() as memory:
        report = migrate_memory(memory, source, file_format=file_format, dry_run=dry_run)
        trouble = None if dry_run else place.sync(memory).trouble
    if place.as_json:
        show_json({"added": report.added, "existed": report.existed, "report": report, "sync_error": trouble})
    else:
        _print_report(report)
        if trouble:
            show_note(trouble)
    return NOT_ALL if report.left_out and not dry_run else 0


def _print_report(report: MigrationReport) -> None:
    will = "would be added" if report.is_dry_run else "added"
    for copy in report.backups:
        click.echo(f"backup  {click.style(clean_line(copy), fg='cyan')}")
    for file in report.files[:_SHOWN]:
        path = click.style(clean_line(file.path), fg="cyan", bold=True)
        click.echo(f"{path}  {file.added:,} {will}, {file.existed:,} there already")
    if len(report.files) > _SHOWN:
        show_note(f"{len(report.files) - _SHOWN:,} more files: --json lists them")
    for item in report.left_out[:_SHOWN]:
        click.echo(f"{click.style('left out', fg='yellow')}  {clean_line(item.place)}: {clean_line(item.reason)}")
    if len(report.left_out) > _SHOWN:
        show_note(f"{len(report.left_out) - _SHOWN:,} more were left out: --json lists them")
    for notice in report.notices:
        show_note(notice)
    click.echo(
        f"{report.format}: {report.added:,} {will}, {report.existed:,} there already, "
        f"{len(report.left_out):,} left out{'; nothing was written' if report.is_dry_run else ''}"
    )
