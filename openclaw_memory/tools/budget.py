"""Choose what is shown of the results of a search: redacted, for the audience, and within a budget of characters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from openclaw_memory.text.redaction import redact
from openclaw_memory.tools.visibility import Audience, is_private
from openclaw_memory.types import SearchResult, Source
from openclaw_memory.workspace.transcript_records import LABELS, said

if TYPE_CHECKING:
    from openclaw_memory.conversation.messages import Message
    from openclaw_memory.memory import Memory
    from openclaw_memory.search import SearchResults

# So many more answers are asked for where some of the first must not be shown: a long-term memory of 2,000 words, as
# OpenClaw advises, may take that many places before it is left out, and so may a conversation that is in view.
_MORE_ANSWERS = 60
_SPEAKERS = tuple(f"{label}: " for label in LABELS.values())


def found(
    memory: Memory,
    query: str,
    audience: Audience,
    max_results: int | None,
    min_score: float | None,
    in_view: Iterable[Message] = (),
) -> SearchResults:
    """Return the results that this audience may see, without those from transcripts that are in the messages `in_view`.

    Raises:
        QueryError: As `Memory.search`.
    """
    from openclaw_memory.search.query import validate_request

    in_words = cache(lambda: _as_transcript(in_view))

    def may_be_shown(hit: SearchResult) -> bool:
        if not audience.private and is_private(hit.path):
            return False
        return hit.source != "sessions" or not all(_stands_in(in_words(), line) for line in hit.snippet.splitlines())

    source: Source | None = audience.source if audience.private else audience.source or "memory"
    wanted = validate_request(memory.config.search, query, max_results, min_score, None).max_results
    for more in (0, _MORE_ANSWERS):
        results = memory.search(query, max_results=wanted + more, min_score=min_score, source=source)
        shown = [hit for hit in results if may_be_shown(hit)]
        if len(shown) == len(results):
            break
    filtered = results.filtered if audience.private else 0  # it would count what is private too
    return replace(results, results=tuple(shown[:wanted]), filtered=filtered)


def _as_transcript(messages: Iterable[Message]) -> str:
    """Return the messages as transcripts are searched and shown, each line between two newlines."""
    lines = (said({"type": "message", "message": message}, muted=False)[0] for message in messages)
    return "\n".join(("", *lines, ""))


def _stands_in(transcript: str, line: str) -> bool:
    # A long line is found in pieces, of which only the first one says who spoke.
    line = line.strip()
    return (f"\n{line}" if line.startswith(_SPEAKERS) else line) in transcript


def within(results: Iterable[SearchResult], max_chars: int) -> tuple[tuple[SearchResult, ...], int]:
    """Return the first results whose snippets hold at most `max_chars` characters together, and how many were left out.

    Secrets are masked. The last snippet that fits in part is cut at the end of a line, and its `end_line` with it. The
    first one is cut anywhere if nothing could be shown otherwise.
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
    # Of a transcript lines may be left out in between: its end stays where it was.
    is_true = lines == result.end_line - result.start_line + 1
    end = result.start_line + snippet.count("\n") if is_true else result.end_line
    return replace(result, snippet=snippet, end_line=end)
