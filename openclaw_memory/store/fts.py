"""Keyword search: BM25 over segmented terms in FTS5."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal

from openclaw_memory.store.connection import fetch
from openclaw_memory.text.terms import MAX_TERM_CHARS
from openclaw_memory.types import Hit, Source

if TYPE_CHECKING:
    import apsw

MAX_TERMS = 64  # a question has fewer; a pasted page must not become a query of ten thousand terms
CONTEXT_WEIGHT = 0.5  # a word of the heading says less about a chunk than a word of its text
# FTS5's inverse document frequency, log((N - n + 0.5) / (n + 0.5)), is nothing from here on: such a term ranks nothing.
COMMON_SHARE = 0.5
LARGE_INDEX = 4096  # chunks: in a smaller index even the commonest term costs less than asking how common it is

# Ordering by bm25() lets SQLite keep k rows while it scores; ORDER BY rank sorts every match first (measured 1.5x).
RANKED = f"""
SELECT chunk_terms.rowid, -bm25(chunk_terms, 1.0, {CONTEXT_WEIGHT}) AS score FROM chunk_terms {{join}}
WHERE chunk_terms MATCH ? ORDER BY score DESC, chunk_terms.rowid LIMIT ?
"""
OF_SOURCE = """
CROSS JOIN chunks ON chunks.id = chunk_terms.rowid CROSS JOIN files ON files.id = chunks.file_id AND files.source = ?
"""

# For each term one seek: the cross join keeps SQLite from reading all terms instead.
DOCUMENT_FREQUENCIES = """
SELECT term_counts.term, term_counts.doc FROM json_each(?) AS wanted
CROSS JOIN term_counts ON term_counts.term = wanted.value
"""

FOLD_ASCII = str.maketrans(ascii_uppercase, ascii_lowercase)  # as FTS5's own ascii tokenizer does


def search(
    db: apsw.Connection,
    terms: Sequence[str],
    k: int,
    match: Literal["any", "all"],
    source: Source | None,
    passing: frozenset[int] | None = None,
    resident: Any = None,
) -> list[Hit]:
    """Return the k best chunks, of those `passing` a filter if there is one; best first, equal scores by id.

    A `Resident`, the index in memory, answers if any of the terms is enough.
    """
    usable = clean_terms(terms)
    if not usable or k < 1:
        return []
    if match == "all":
        return _rank(db, " AND ".join(map(quote, usable)), k, source, passing)

    rare = _select_rare(db, usable, resident)
    hits: list[Hit] = []
    for some in (rare, usable):
        if some and len(hits) < k and (some is rare or len(rare) < len(usable)):
            if resident is None:
                hits = _rank(db, " OR ".join(map(quote, some)), k, source, passing)
            else:
                hits = resident.rank(db, some, k, source, passing)
    return hits


def count_documents(db: apsw.Connection, terms: Iterable[str]) -> dict[str, int]:
    """Count the chunks that hold each term, in text or context."""
    usable = {term: next(iter(clean_terms([term])), "") for term in terms}
    counts = dict(fetch(db, DOCUMENT_FREQUENCIES, (json.dumps(list(usable.values())),)))
    return {term: int(counts.get(key, 0)) for term, key in usable.items()}


# Merge the whole keyword index into one segment, unless it is one: only so the terms of removed rows are gone. The
# option `secure-delete` of FTS5 needs a copy of all terms. It was measured at 1 ms a removed chunk, a merge of 3,000
# chunks at 11 ms.
MERGE = "INSERT INTO chunk_terms (chunk_terms) VALUES ('optimize')"


def _rank(
    db: apsw.Connection, expression: str, k: int, source: Source | None, passing: frozenset[int] | None
) -> list[Hit]:
    join, values = ("", ()) if source is None else (OF_SOURCE, (source,))
    # With a filter all matches are ranked: those that pass may come late.
    rows = fetch(db, RANKED.format(join=join), (*values, expression, k if passing is None else -1))
    return [Hit(*row) for row in islice((row for row in rows if passing is None or row[0] in passing), k)]


def _select_rare(db: apsw.Connection, terms: Sequence[str], resident: Any) -> list[str]:
    """Return, in a large index, the terms that occur in less than half of the chunks: others rank nothing."""
    total = resident.chunk_count if resident else fetch(db, "SELECT count(*) FROM chunks")[0][0]
    if total < LARGE_INDEX:
        return list(terms)
    counts = resident.count_documents(db, terms) if resident else count_documents(db, terms)
    return [term for term in terms if 0 < counts[term] < COMMON_SHARE * total]


def clean_terms(terms: Iterable[str]) -> list[str]:
    """Return the first 64 terms as an index holds them: valid UTF-8 without NUL, ASCII in lower case, once each.

    Args:
        terms: The terms of a query, as `text` makes them.
    """
    cut = (term[:MAX_TERM_CHARS].replace("\0", "").translate(FOLD_ASCII) for term in terms)
    valid = (term.encode("utf-8", "replace").decode("utf-8") for term in cut)
    return list(dict.fromkeys(term for term in valid if term))[:MAX_TERMS]


def quote(term: str) -> str:
    """Return a term as FTS5 reads it in a query."""
    return '"' + term.replace('"', '""') + '"'
