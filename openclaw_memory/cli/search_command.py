"""Define the command `search`."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from openclaw_memory.cli.options import Place, SyncOutcome, TextCommand, join_words, with_place
from openclaw_memory.cli.output import show_json, show_note, show_results
from openclaw_memory.config.sections import MAX_RESULTS

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.search.results import SearchResults

# The fields of `SearchFilter` that --filter gives once.
_ONCE: dict[str, type[str | float]] = {"source": str, "min_confidence": float}


class _QueryCommand(TextCommand):
    """A command that takes words to leave out: `key -boat`."""

    text: ClassVar[re.Pattern[str]] = re.compile(r"-[^\W\d_][\w-]*[^\W_]")


@click.command(cls=_QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n", "--max-results", type=click.IntRange(1, MAX_RESULTS), metavar="N", help="How many results. Default: 6."
)
@click.option("--min-score", type=click.FloatRange(0, 1), metavar="X", help="Leave out results that score less.")
@click.option("--since", metavar="DAY", help="Only lines of this day or later: 2026-01-31.")
@click.option("--until", metavar="DAY", help="Only lines of this day or earlier.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=X",
    help="Only path=GLOB (as in .gitignore), source=memory (notes) or sessions (transcripts), files with tags=X, "
    "records with type=X, key=GLOB, user_id=X or min_confidence=0.5. Repeatable.",
)
@click.option("--explain", is_flag=True, help="Show the parts of each score.")
@click.option("--no-sync", is_flag=True, help="Search the index as it is, without looking for changed files.")
@with_place
def search(
    place: Place,
    query: tuple[str, ...],
    max_results: int | None,
    min_score: float | None,
    filters: tuple[str, ...],
    explain: bool,
    no_sync: bool,
    **days: Any,
) -> int:
    """Search the notes, and cite the lines that answer.

    QUERY is a question or some words. Quoted words must occur as they are ('"spare key"', quoted for the shell too),
    and a word after a minus must not occur (-boat). Files that changed are indexed first. Weak results are shown only
    if there is no strong one; --max-results shows more. Exit code 1: nothing was found.

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
            filter={**days, **_read_filters(filters), **asked_query.filter},
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
        places = {result.path: memory.workspace.locate(result.path) for result in results}
        files = {path: Path(place.base, *place.parts) for path, place in places.items()}
    if place.as_json:
        facts = {name: getattr(results, name) for name in ("mode", "provider", "model", "filtered")}
        facts |= {"reason": reason or None, "stale": is_stale, "sync_error": outcome.trouble}
        show_json({"query": question, **facts, "results": list(results)})
        return 0 if results else 1
    if results:
        show_results(results, files, query=asked_query.text, explain=explain)
    _show_remarks(results, reason)
    is_told = reason and outcome.report and outcome.report.waiting and not outcome.report.failed
    if is_stale and not is_told:
        show_note(outcome.trouble or f"the index is behind the files: run `openclaw-memory index{place.options}`")
    return 0 if results else 1


def _show_remarks(results: SearchResults, reason: str) -> None:
    from openclaw_memory.text.redaction import explain_masks

    if not results:
        hint = f"; {results.filtered} below the minimum score: --min-score 0 shows them" if results.filtered else ""
        click.echo(f"nothing found{hint}", err=True)
    masks = explain_masks(*(hit.snippet for hit in results))
    weak = "all results say it in other words: the notes may not answer this" if results.all_weak else ""
    more = f"{results.omitted} more in other words: --max-results shows them" if results.omitted else ""
    for note in filter(None, (masks, weak, more, reason)):
        show_note(note)


def _read_filters(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read `tags=boat` and the like into fields of `SearchFilter`."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            values[name] = _ONCE[name](value) if name in _ONCE else [*values.get(name, ()), value]
        except ValueError:
            raise click.UsageError(f"--filter {pair!r} needs a number from 0 to 1") from None
    return values


def _is_bare(memory: Memory) -> bool:
    """Return whether there is no index and nothing to index: such a folder is left as it is."""
    index = memory.index_path
    return index is not None and not os.path.lexists(index) and not memory.workspace.scan().files
