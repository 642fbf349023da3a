"""Cut results to a budget of characters, and to those that are strong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from openclaw_memory.search.lines import find_open_code
from openclaw_memory.types import SearchResult
from openclaw_memory.types.files import LEFT_OUT

if TYPE_CHECKING:
    from openclaw_memory.search.results import SearchResults

MOST_WEAK = 3


def keep_strong_results(results: SearchResults, max_results: int | None) -> SearchResults:
    """Return the strong results, or three where all are weak, unless the caller has asked for `max_results`.

    A search has no minimum score, and weak results would fill a prompt or a screen otherwise.
    """
    if max_results is not None:
        return results
    strong = tuple(result for result in results if result.confidence == "strong")
    few = strong or results.results[:MOST_WEAK]
    return replace(results, results=few, omitted=results.omitted + len(results) - len(few))


def fit_results(results: Sequence[SearchResult], max_chars: int) -> tuple[tuple[SearchResult, ...], int]:
    """Return the first results that fit into `max_chars` characters of snippets, and the number of results left out.

    The last snippet that fits in part is cut at the end of a line, before code that does not fit, and its `spans` with
    it. The first one is cut anywhere if nothing could be shown otherwise.
    """
    fitting: list[SearchResult] = []
    room = max_chars
    for result in results:
        if len(result.snippet) <= room:
            fitting.append(result)
            room -= len(result.snippet)
            continue
        # The newline that ends the last line may be the first character over the budget.
        end = result.snippet.rfind("\n", 0, room + 1)
        lines = result.snippet[: max(end, 0)].split("\n")
        stop = len("\n".join(lines[: find_open_code(lines)]))
        if stop > 0 or not fitting:
            fitting.append(_cut(result, stop or (end if end > 0 else room)))
        break
    return tuple(fitting), len(results) - len(fitting)


def _cut(result: SearchResult, stop: int) -> SearchResult:
    runs, parts = result.snippet.split(LEFT_OUT), result.snippet[:stop].removesuffix(LEFT_OUT.rstrip()).split(LEFT_OUT)
    if len(runs) != len(result.spans):  # pieces of a long line, or lines that read as what is left out
        return structs.replace(result, snippet=LEFT_OUT.join(parts))
    *spans, (first, last) = result.spans[: len(parts)]
    # Of a transcript the snippet has not every line: its end stays where it was.
    if last - first == runs[len(parts) - 1].count("\n"):
        last = first + parts[-1].count("\n")
    return structs.replace(result, snippet=LEFT_OUT.join(parts), end_line=last, spans=(*spans, (first, last)))
