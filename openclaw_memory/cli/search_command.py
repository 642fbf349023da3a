"""Define the command that searches, and shows what it has found."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from openclaw_memory._safe import clean_line
from openclaw_memory.cli.options import Followed, Place, TakesText, join_words, sync_index, with_place
from openclaw_memory.cli.output import show, show_json, show_note
from openclaw_memory.cli.results import list_files, show_results
from openclaw_memory.config.sections import MAX_RESULTS
from openclaw_memory.errors import nearest
from openclaw_memory.types.files import SOURCES, Source

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.search import SearchResults
    from openclaw_memory.search.syntax import Asked
    from openclaw_memory.types import SyncReport

_COUNT = click.IntRange(1, MAX_RESULTS)
_SHARE = click.FloatRange(0, 1)
# Of --filter: the field of `SearchFilter`.
FILTERS = {"tag": "tags", "type": "type", "key": "key", "user": "user_id", "min-confidence": "min_confidence"}
_LEFT_OUT = re.compile(r"-[^\W\d_][\w-]*[^\W_]")


class _Query(TakesText):
    """A command whose query may have words with a minus before them: `key -boat`."""

    def is_text(self, argument: str) -> bool:
        if not _LEFT_OUT.fullmatch(argument) or argument.startswith("--"):
            return False
        short = argument[:2]
        if any(short in option.opts for option in self.params):
            raise click.UsageError(
                f"{argument} could mean {short} {argument[2:]} too: write {short} and its value apart, or the whole "
                f'query in quotes, as in "key {argument}"'
            )
        return True


@click.command(cls=_Query)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n",
    "--max-results",
    type=_COUNT,
    metavar="N",
    help="How many results. Default: 6.",
)
@click.option("--min-score", type=_SHARE, metavar="X", help="Leave out scores below, 0 to 1.")
@click.option("--source", type=click.Choice(SOURCES), help="Only notes, or only transcripts (sessions).")
@click.option("--path", multiple=True, metavar="GLOB", help="Only files that match a .gitignore pattern. Repeatable.")
@click.option("--since", metavar="DAY", help="Only lines of this day or later: 2026-01-31.")
@click.option("--until", metavar="DAY", help="Only lines of this day or earlier.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=X",
    help="Only files with a tag=X; only records with a type=X, key=GLOB, user=X, min-confidence=0.5. Repeatable.",
)
@click.option("--task", metavar="TEXT", help="What you are at work on: what has to do with it comes first.")
@click.option("--set", "changes", multiple=True, metavar="NAME=X", help="Rank otherwise: mmr=0.7. Repeatable.")
@click.option("-l", "--files-only", is_flag=True, help="Print the files of the results alone, each once.")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--no-sync", is_flag=True, help="Answer from the index as it is, though files may have changed.")
@with_place
def search(
    place: Place,
    query: tuple[str, ...],
    max_results: int | None,
    min_score: float | None,
    source: Source | None,
    path: tuple[str, ...],
    since: str | None,
    until: str | None,
    filters: tuple[str, ...],
    task: str | None,
    changes: tuple[str, ...],
    files_only: bool,
    explain: bool,
    no_sync: bool,
) -> int:
    """Ask a question; get the lines that answer it, each cited.

    QUERY is the question, or words to look for. What is between quotation marks must occur as it is ('"spare key"',
    quoted for the shell too), and a word after a minus must not (-boat). The index first follows the files that
    changed. Where all results are weak, three are shown, or as many as --max-results asks for. --set gives a setting of
    `search` that this search has instead; `off` turns it off. Exit code 1: nothing was found.

    Example: openclaw-memory search --workspace notes "Who has the spare key?"
    """
    from openclaw_memory.search.budget import limit_weak

    question, asked = _asked(query)
    with place.open() as memory:
        is_bare = _is_bare(memory)
        report, trouble, error = Followed() if no_sync or is_bare else sync_index(memory, hidden=place.as_json)
        results = memory.search(
            asked.text,
            max_results=max_results,
            min_score=min_score,
            filter={
                "source": source,
                "path": path,
                "since": since,
                "until": until,
                **_read_filters(filters),
                **asked.filter,
            },
            options={"explain": explain, "task": task, "settings": dict(map(_parse_setting, changes))},
        )
        results = limit_weak(results, max_results)
        if error is not None and not results and memory.status().last_sync is None:
            raise error  # there is no index to answer from, and none can be built
        if is_bare:
            results = replace(results, stale=False, reason=None)
        stale = results.stale or trouble is not None or (no_sync and bool(memory.status().dirty))
        advice = "" if results or results.reason else memory.workspace.suggest_setup(len(memory.workspace.scan().files))
        if results and not place.as_json and files_only:
            show("\n".join(map(clean_line, list_files(results, memory.workspace))))
        elif results and not place.as_json:
            show_results(results, query=asked.text, explain=explain)
    if place.as_json:
        known = {name: getattr(results, name) for name in ("mode", "reason", "provider", "model", "filtered")}
        known["reason"] = results.reason or advice or None
        show_json({"query": question, **known, "stale": stale, "sync_error": trouble, "results": list(results)})
        return 0 if results else 1
    _say_limits(results, advice)
    if stale and not _explains(results.reason or advice, trouble, report):
        show_note(trouble or f"the index is behind the files: run `openclaw-memory index{place.options}`")
    return 0 if results else 1


def _asked(query: tuple[str, ...]) -> tuple[str, Asked]:
    from openclaw_memory.search.syntax import read_query

    question = join_words(query, "QUERY")
    if not question.strip():
        raise click.UsageError("QUERY is empty: ask a question, or name words to look for")
    asked = read_query(question)
    if not asked.text.strip():
        raise click.UsageError("QUERY only leaves words out: name what to look for, too")
    return question, asked


def _say_limits(results: SearchResults, advice: str) -> None:
    if results.all_weak:
        show_note("all results are weak: the notes may not answer this")
    if not results:
        hint = f"; {results.filtered} below the minimum score: --min-score 0 shows them" if results.filtered else ""
        click.echo(f"nothing found{hint}", err=True)
    if reason := results.reason or advice:
        show_note(reason)


def _read_filters(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read `tag=boat` and the like into fields of `SearchFilter`."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in FILTERS or not value:
            raise click.UsageError(
                f"--filter {pair!r} is not NAME=VALUE: {nearest(name, FILTERS)}the names are {', '.join(FILTERS)}"
            )
        if name != "min-confidence":
            arguments.setdefault(FILTERS[name], []).append(value)
            continue
        try:
            arguments["min_confidence"] = float(value)
        except ValueError:
            raise click.UsageError(f"--filter {pair!r} needs a number from 0 to 1") from None
    return arguments


def _parse_setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of `mmr=0.7`: TOML, or a bare word, of which `off` is None."""
    import tomllib

    name, is_given, value = text.partition("=")
    if not is_given:
        raise click.UsageError(f"--set {text!r} has no value: write NAME=VALUE, as in mmr=0.7")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), None if value.strip() == "off" else value.strip()


def _is_bare(memory: Memory) -> bool:
    """Whether there is nothing to index, and no index: a folder that is no workspace is left as it is."""
    index = memory.index_path
    return index is not None and not os.path.lexists(index) and not memory.workspace.scan().files


def _explains(reason: str, trouble: str | None, report: SyncReport | None) -> bool:
    """Return whether a reason names every file that waits for vectors, with its reason."""
    return (
        bool(trouble)
        and report is not None
        and not report.failed
        and all(one.reason in reason for one in report.waiting)
    )
