"""From a query to cited results: candidates, fusion, passages, ranking."""

from openclaw_memory.search.results import SearchResults

__all__ = [
    "SearchResults",
]
