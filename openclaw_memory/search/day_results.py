"""Answer a query for days with the notes of these days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby, islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from openclaw_memory.search.candidates import EVERY, find_excluded
from openclaw_memory.search.passages import show_beginning
from openclaw_memory.text.days import DayRange, find_dates, get_chunk_day, get_path_day
from openclaw_memory.types import SearchResult

if TYPE_CHECKING:
    from openclaw_memory.search.query import Query
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.types import Store, StoredChunk

LEAST_SCORE, STEP = 0.5, 0.01  # of what there is of a day: what is older ranks behind


def list_days(store: Store, query: Query, request: SearchRequest) -> list[SearchResult]:
    """List the notes of the days in a query: the newest day first, notes before transcripts.

    Args:
        store: The index.
        query: The query, which is about days.
        request: The search.
    """
    only, passes, excluded = request.filter, request.passes or bool, find_excluded(store, request, query.languages)
    terms = [term for mention in query.dates for term in mention.list_terms()]
    hits = store.search_text(terms, EVERY, source=only.source, where=request.where)
    days: dict[int, date] = {}
    chunks: list[StoredChunk] = []
    for stored in store.get_chunks([hit.chunk_id for hit in hits if hit.chunk_id not in excluded]):
        day = get_chunk_day(stored.path, stored.chunk.metadata)
        if day is not None and passes(stored.path) and any(mention.has_day(day) for mention in query.dates):
            days[stored.id] = day
            chunks.append(stored)

    def rank(stored: StoredChunk) -> tuple[int, str, str]:
        return -days[stored.id].toordinal(), stored.source, stored.path

    chunks.sort(key=lambda stored: (rank(stored), stored.chunk.start_char))
    files = islice(groupby(chunks, key=rank), request.settings.max_results)
    results = [show_beginning(list(own), request.settings.snippet_chars) for _, own in files]
    return [replace(result, score=max(LEAST_SCORE, 1 - STEP * at)) for at, result in enumerate(results)]


def keep_mentions(results: Sequence[SearchResult], query: Query, today: date) -> list[SearchResult]:
    """Return the results that name one of the days, months or years that a query means.

    Args:
        results: The results.
        query: The query, which is about days.
        today: The day of the search.
    """
    return [result for result in results if _has_mention(result.snippet, query, today)]


def explain_missing_day(store: Store, query: Query, chunks: Iterable[StoredChunk], today: date) -> str | None:
    """Return that no chunk is of the days that a query means, and the nearest days of notes; None if one is.

    Files are not named: not everybody who asks may see them.

    Args:
        store: The index.
        query: The query.
        chunks: The chunks that it found.
        today: The day of the search.
    """
    mention = query.dates[0]
    day = mention.find_single_day(today)
    own_days = [get_chunk_day(stored.path, stored.chunk.metadata) for stored in chunks]
    is_known = any(own and mention.has_day(own) for own in own_days)
    if len(query.dates) > 1 or is_known or (day is None and not isinstance(mention, DayRange)):
        return None
    if day is None and isinstance(mention, DayRange):
        return f"no note is of a day from {mention.first} to {mention.last}" if query.is_about_days else None
    days = {own for path, file in store.get_files().items() if file.source == "memory" and (own := get_path_day(path))}
    if day is None or day in days:
        return None
    near = sorted(sorted(days, key=lambda own: (abs((own - day).days), own))[:2])
    return f"no note is of {day}" + (f"; the nearest are of {' and '.join(map(str, near))}" if near else "")


def _has_mention(text: str, query: Query, today: date) -> bool:
    """Return whether a text names one of the days, months or years that a query means."""
    dates = find_dates(text)
    days = [day for mention in dates if (day := mention.find_single_day(today))]
    return any(mention in dates or any(map(mention.has_day, days)) for mention in query.dates)
