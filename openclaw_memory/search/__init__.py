"""From a query to cited results: candidates, fusion, passages, ranking."""

from openclaw_memory.search.line_features import WordVectors
from openclaw_memory.search.results import SearchResults
from openclaw_memory.search.search import search

__all__ = ["SearchResults", "WordVectors", "search"]
