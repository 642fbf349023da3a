"""Define the command `search`."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Place, SyncOutcome, TextCommand, join_words, with_place
from openclaw_memory.cli.output import show_json, show_note, show_results
from openclaw_memory.config.sections import MAX_RESULTS
from openclaw_memory.errors import suggest

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.workspace import Workspace

# Of --filter: the field of `SearchFilter`.
FILTERS = {
    "tag": "tags", "type": "type", "key": "key", "user": "user_id", "min-confidence": "min_confidence",
    "source": "source",
}  # fmt: skip
CONVERSIONS: dict[str, type[str | float]] = {"source": str, "min-confidence": float}  # of those given once


class _QueryCommand(TextCommand):
    """A command that takes words to leave out: `key -boat`."""

    text: ClassVar[re.Pattern[str]] = re.compile(r"-[^\W\d_][\w-]*[^\W_]")


@click.command(cls=_QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n", "--max-results", type=click.IntRange(1, MAX_RESULTS), metavar="N", help="How many results. Default: 6."
)
@click.option("--min-score", type=click.FloatRange(0, 1), metavar="X", help="Leave out scores below, 0 to 1.")
@click.option("--path", multiple=True, metavar="GLOB", help="Only files that match a .gitignore pattern. Repeatable.")
@click.option("--since", metavar="DAY", help="Only lines of this day or later: 2026-01-31.")
@click.option("--until", metavar="DAY", help="Only lines of this day or earlier.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=X",
    help="Only source=memory (notes) or source=sessions (transcripts); only files with a tag=X; only records with a "
    "type=X, key=GLOB, user=X, min-confidence=0.5. Repeatable.",
)
@click.option("-l", "--files-only", is_flag=True, help="Print the files of the results alone, each once.")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--no-sync", is_flag=True, help="Answer from the index as it is, though files may have changed.")
@with_place
def search(
    place: Place,
    query: tuple[str, ...],
    max_results: int | None,
    min_score: float | None,
    filters: tuple[str, ...],
    files_only: bool,
    explain: bool,
    no_sync: bool,
    **days_and_path: Any,
) -> int:
    """Ask a question; get the lines that answer it, each cited.

    QUERY is the question, or words to look for. Words between quotation marks must occur as they are ('"spare key"',
    quoted for the shell too), and a word after a minus must not (-boat). The index first follows the files that
    changed. Shown are the strong results, or three where all say it in other words; --max-results shows more. Exit code
    1: nothing was found.

    Example: openclaw-memory search --workspace notes "Who has the spare key?"
    """
    from openclaw_memory.search.query import read_query
    from openclaw_memory.search.results import keep_strong_results

    question = join_words(query, "QUERY")
    asked_query = read_query(question)
    if not asked_query.text.strip():
        raise click.UsageError("QUERY has nothing to look for: ask a question")
    with place.open() as memory:
        is_bare = _is_bare(memory)
        outcome = SyncOutcome() if no_sync or is_bare else place.sync(memory)
        results = memory.search(
            asked_query.text,
            max_results=max_results,
            min_score=min_score,
            filter={**days_and_path, **_read_filters(filters), **asked_query.filter},
            options={"explain": explain},
        )
        results = results if asked_query.phrases else keep_strong_results(results, max_results)
        state = memory.status() if (outcome.error and not results) or no_sync else None
        if outcome.error is not None and state is not None and state.last_sync is None:
            raise outcome.error  # there is no index to answer from, and none can be built
        if is_bare:
            results = replace(results, stale=False, reason=None)
        is_stale = results.stale or outcome.trouble is not None or bool(no_sync and state and state.dirty)
        reason = results.reason or ""
        if not results and not reason:
            reason = memory.workspace.suggest_setup(len(memory.workspace.scan().files))
        files = _list_files(results, memory.workspace) if files_only else None
    if place.as_json:
        facts = {name: getattr(results, name) for name in ("mode", "provider", "model", "filtered")}
        facts |= {"reason": reason or None, "stale": is_stale, "sync_error": outcome.trouble}
        show_json({"query": question, **facts, "results": list(results)})
        return 0 if results else 1
    _show_answer(results, asked_query.text, reason, files=files, explain=explain)
    if is_stale and not is_explained(reason, outcome):
        show_note(outcome.trouble or f"the index is behind the files: run `openclaw-memory index{place.options}`")
    return 0 if results else 1


def _show_answer(results: SearchResults, query: str, reason: str, *, files: list[str] | None, explain: bool) -> None:
    from openclaw_memory.text.redaction import explain_masks

    if results and files is not None:
        click.echo("\n".join(map(clean_line, files)))
    elif results:
        show_results(results, query=query, explain=explain)
        if note := explain_masks(*(hit.snippet for hit in results)):
            show_note(note)
    else:
        hint = f"; {results.filtered} below the minimum score: --min-score 0 shows them" if results.filtered else ""
        click.echo(f"nothing found{hint}", err=True)
    if results.all_weak:
        show_note("all results say it in other words: the notes may not answer this")
    if results.omitted:
        show_note(f"{results.omitted} more in other words: --max-results shows them")
    if reason:
        show_note(reason)


def _list_files(results: SearchResults, workspace: Workspace) -> list[str]:
    """List the files of results, each once, as they can be opened from the current folder."""
    places = (workspace.locate(result.path) for result in results)
    files = dict.fromkeys(os.path.join(place.base, *place.parts) for place in places)
    with suppress(ValueError):  # on another drive
        return [min(file, os.path.relpath(file), key=len) for file in files]
    return list(files)


def _read_filters(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read `tag=boat` and the like into fields of `SearchFilter`."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in FILTERS or not value:
            raise click.UsageError(
                f"--filter {pair!r} is not NAME=VALUE: {suggest(name, FILTERS)}the names are {', '.join(FILTERS)}"
            )
        try:
            if name in CONVERSIONS:
                arguments[FILTERS[name]] = CONVERSIONS[name](value)
            else:
                arguments.setdefault(FILTERS[name], []).append(value)
        except ValueError:
            raise click.UsageError(f"--filter {pair!r} needs a number from 0 to 1") from None
    return arguments


def _is_bare(memory: Memory) -> bool:
    """Return whether there is no index and nothing to index: such a folder is left as it is."""
    index = memory.index_path
    return index is not None and not os.path.lexists(index) and not memory.workspace.scan().files


def is_explained(reason: str, outcome: SyncOutcome) -> bool:
    """Return whether a reason names every file that waits for vectors, with its reason."""
    report = outcome.report
    if report is None or not outcome.trouble or report.failed:
        return False
    return all(file.reason in reason for file in report.waiting)
