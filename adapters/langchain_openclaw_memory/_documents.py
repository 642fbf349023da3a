"""Convert search results to LangChain documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.documents import Document

if TYPE_CHECKING:
    from openclaw_memory import SearchResults


def documents_of(found: SearchResults) -> list[Document]:
    """Return one document per result, best first: its text is the snippet, its id the citation.

    The metadata are plain JSON: `path`, `start_line` and `end_line` (from 1), `score` (0..1), `source`, `citation`, the
    `mode` of the search and whether the index was `stale`; and a `reason` if the search was by keywords alone.
    """
    of_the_search = {"mode": found.mode, "stale": found.stale} | ({"reason": found.reason} if found.reason else {})
    return [
        Document(
            id=result.citation,
            page_content=result.snippet,
            metadata={
                "path": result.path,
                "start_line": result.start_line,
                "end_line": result.end_line,
                "score": result.score,
                "source": result.source,
                "citation": result.citation,
                **of_the_search,
            },
        )
        for result in found
    ]
