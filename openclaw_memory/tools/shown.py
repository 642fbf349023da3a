"""What is shown of the answers of a search: redacted, for the audience, and within a budget of characters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from openclaw_memory.redaction import redact
from openclaw_memory.tools.audience import Audience, is_private
from openclaw_memory.types import SearchResult

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.search import SearchResults

# Where others read along, and something private was found, so many more answers are asked for: a long-term memory of
# 2,000 words, as OpenClaw advises, may take that many places before it is left out.
_PRIVATE_ANSWERS = 60


def found(
    memory: Memory, query: str, audience: Audience, max_results: int | None, min_score: float | None
) -> SearchResults:
    """The answers that this audience may see.

    Raises:
        QueryError: as `Memory.search`.
    """
    if audience.private:
        return memory.search(query, max_results=max_results, min_score=min_score)
    from openclaw_memory.search.wishes import rules_for_one

    wanted = rules_for_one(memory.config.search, query, max_results, min_score, None).max_results
    for more in (0, _PRIVATE_ANSWERS):
        results = memory.search(query, max_results=wanted + more, min_score=min_score, source="memory")
        public = [result for result in results if not is_private(result.path)]
        if len(public) == len(results):
            break
    return replace(results, results=tuple(public[:wanted]), filtered=0)  # it would count what is private too


def within(results: Iterable[SearchResult], max_chars: int) -> tuple[tuple[SearchResult, ...], int]:
    """The first results, whose snippets hold at most `max_chars` characters together; and how many were left out.

    Secrets are masked. The last snippet that fits in part is cut at the end of a line, and its `end_line` with it; the
    first one is cut anywhere, rather than that nothing is shown.
    """
    every = [replace(result, snippet=redact(result.snippet)) for result in results]
    shown: list[SearchResult] = []
    room = max_chars
    for result in every:
        if len(result.snippet) <= room:
            shown.append(result)
            room -= len(result.snippet)
            continue
        # The newline that ends the last line may be the first character over the budget.
        stop = result.snippet.rfind("\n", 0, room + 1)
        if stop > 0 or not shown:
            shown.append(_cut(result, stop if stop > 0 else room))
        break
    return tuple(shown), len(every) - len(shown)


def _cut(result: SearchResult, stop: int) -> SearchResult:
    lines = result.snippet.count("\n") + 1
    snippet = result.snippet[:stop]
    # Of a transcript lines may be left out in between: its end is where it was, since nobody knows better.
    is_true = lines == result.end_line - result.start_line + 1
    end = result.start_line + snippet.count("\n") if is_true else result.end_line
    return replace(result, snippet=snippet, end_line=end)
