"""Answer a query for days with the notes of these days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING

from openclaw_memory.search.candidates import find_excluded
from openclaw_memory.search.lines import get_day
from openclaw_memory.search.passages import show_beginning
from openclaw_memory.search.results import SearchResults
from openclaw_memory.text.days import DateMention, find_dates, get_path_day
from openclaw_memory.types import SearchResult

if TYPE_CHECKING:
    from openclaw_memory.search.query import Query
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.types import Store, StoredChunk

MAX_CHUNKS = 500  # of a long time the first so many count


def answer_days(store: Store, query: Query, request: SearchRequest, today: date) -> SearchResults | None:
    """Return the notes of the days in a query; None if there are none, and a text that names the day may answer.

    Args:
        store: The index.
        query: The query, which is about days.
        request: The search.
        today: The day of the search.
    """
    results = _list_days(store, query, request)[: request.settings.max_results]
    if not results and any(isinstance(mention, DateMention) for mention in query.dates):
        return None
    reason = None if results else _explain_missing_day(store, query, (), today)
    return SearchResults(tuple(results), request.query, "keyword", "none", "", reason=reason)


def check_days(
    store: Store, query: Query, results: Sequence[SearchResult], chunks: Iterable[StoredChunk], today: date
) -> tuple[Sequence[SearchResult], str | None]:
    """Return the results of a query with dates, and that there is no note of its day.

    Of a query that is about a day, only the results that name it remain.

    Args:
        store: The index.
        query: The query.
        results: The results.
        chunks: The chunks that they come from.
        today: The day of the search.
    """
    if query.is_about_days:
        results = [result for result in results if _has_mention(result.snippet, query, today)]
    return results, _explain_missing_day(store, query, chunks, today)


def _has_mention(text: str, query: Query, today: date) -> bool:
    """Return whether a text names one of the days, months or years that a query means."""
    dates = find_dates(text)
    days = [day for mention in dates if (day := mention.find_single_day(today))]
    return any(mention in dates or any(map(mention.has_day, days)) for mention in query.dates)


def _list_days(store: Store, query: Query, request: SearchRequest) -> list[SearchResult]:
    """List the notes of the days in a query: the newest day first, notes before transcripts."""
    only, passes, excluded = request.filter, request.passes or bool, find_excluded(store, request, query.languages)
    terms = [term for mention in query.dates for term in mention.list_terms()]
    hits = store.search_text(terms, MAX_CHUNKS, source=only.source, where=request.where)
    days: dict[int, date] = {}
    chunks: list[StoredChunk] = []
    for stored in store.get_chunks([hit.chunk_id for hit in hits if hit.chunk_id not in excluded]):
        day = get_day(stored)
        if day is not None and passes(stored.path) and any(mention.has_day(day) for mention in query.dates):
            days[stored.id] = day
            chunks.append(stored)

    def rank(stored: StoredChunk) -> tuple[int, str, str]:
        return -days[stored.id].toordinal(), stored.source, stored.path

    chunks.sort(key=lambda stored: (rank(stored), stored.chunk.start_char))
    return [show_beginning(list(own), request.settings.snippet_chars) for _, own in groupby(chunks, key=rank)]


def _explain_missing_day(store: Store, query: Query, chunks: Iterable[StoredChunk], today: date) -> str | None:
    """Return that no chunk is of the one day that a query means, and the nearest notes; None if one is."""
    day = query.dates[0].find_single_day(today) if len(query.dates) == 1 else None
    if day is None or any(own and query.dates[0].has_day(own) for own in map(get_day, chunks)):
        return None
    paths = {own: path for path in store.get_files() if (own := get_path_day(path))}
    near = sorted(paths, key=lambda own: (abs((own - day).days), own))[:2]
    if not near or near[0] == day:
        return None
    return f"no note is of {day}; the nearest are {' and '.join(paths[own] for own in sorted(near))}"
