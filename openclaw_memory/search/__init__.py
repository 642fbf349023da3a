"""From a query to cited results: candidates, fusion, passages, ranking."""

from openclaw_memory.search.results import SearchResults
from openclaw_memory.search.syntax import read_query

__all__ = [
    "SearchResults",
    "read_query",
]
