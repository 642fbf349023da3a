"""Both legs of the search, and the chunks that they find together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openclaw_memory.config import SearchConfig
from openclaw_memory.search.query import Query
from openclaw_memory.search.query_dates import day_of
from openclaw_memory.search.ranking import bm25_to_score, boosted_keyword_score, standardised, weighted_sum
from openclaw_memory.types import SearchResult, Source, Store, StoredChunk
from openclaw_memory.workspace.dates import note_date

if TYPE_CHECKING:
    from datetime import date

    from openclaw_memory.types import Vector

# How many chunks each leg brings at least: more were never better, and cost time by their number.
TEXT_HITS = 60
VECTOR_HITS = 50
# Without vectors the order of the chunks is less sure, and their lines cost less to score: so many times as many count.
KEYWORD_FACTOR = 2


@dataclass(frozen=True, slots=True)
class Found:
    """What the legs found, by id: BM25 in `text`, cosine in `vector` (None: there is no vector leg).

    `cosines` are those of what either leg found, as far as they were looked up.
    """

    text: Mapping[int, float]
    vector: Mapping[int, float] | None
    cosines: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may hold the answer. `score` is the fused one; `text` and `vector` are what each leg said."""

    stored: StoredChunk
    score: float
    text: float
    vector: float


def find(query: Query, store: Store, vector: Vector | None, rules: SearchConfig, source: Source | None) -> Found:
    """Ask both legs; the keywords alone without the `vector` of the question.

    Raises:
        EmbedderError: the vector does not fit the index.
    """
    wanted = max(rules.candidates, 4 * rules.max_results)
    text = _by_keywords(query, store, max(TEXT_HITS, wanted), rules, source)
    if vector is None:
        return Found(text, None)
    hits = store.search_vector(vector, max(VECTOR_HITS, wanted), source=source)
    if text and not hits:  # no chunk has a vector yet, or the question has none
        return Found(text, None)
    near = {hit.chunk_id: hit.score for hit in hits}
    if rules.fusion == "weighted":
        return Found(text, near, near)
    # A chunk that only the keywords found has a cosine too: it is looked up, and not taken for nothing.
    others = store.similarities(vector, [at for at in text if at not in near])
    return Found(text, near, near | dict(others))


def together(found: Sequence[Found]) -> Found:
    """What was found in each source as one."""
    text: dict[int, float] = {}
    cosines: dict[int, float] = {}
    vector: dict[int, float] | None = None
    for one in found:
        text |= one.text
        cosines |= one.cosines
        if one.vector is not None:
            vector = (vector or {}) | dict(one.vector)
    return Found(text, vector, cosines)


def days_of(candidates: Sequence[Candidate]) -> Callable[[SearchResult], date | None]:
    """A function that says which day an answer is from, None where nobody knows."""

    def day(answer: SearchResult) -> date | None:
        if answer.source == "memory":
            return note_date(answer.path)
        for stored in (candidate.stored for candidate in candidates):
            if stored.path == answer.path and stored.chunk.start_line <= answer.start_line <= stored.chunk.end_line:
                return day_of(stored.source, stored.path, stored.chunk.context)
        return None

    return day


def _by_keywords(
    query: Query, store: Store, count: int, rules: SearchConfig, source: Source | None
) -> Mapping[int, float]:
    """BM25 of the chunks with all terms, filled up with those that have any; or of those with any straight away."""
    hits = store.search_text(query.terms, count, match=rules.match, source=source)
    if rules.match == "all" and len(hits) < rules.max_results:
        hits = [*store.search_text(query.terms, count, match="any", source=source), *hits]
    return {hit.chunk_id: hit.score for hit in hits}


def fuse(query: Query, found: Found, store: Store, rules: SearchConfig) -> list[Candidate]:
    """The best `rules.candidates` chunks, best first, by the fusion that `rules` names."""
    scores = FUSIONS[rules.fusion](query, found, store, rules)
    factor = KEYWORD_FACTOR if found.vector is None else 1
    count = max(factor * rules.candidates, 2 * rules.max_results)
    best = sorted(scores, key=lambda at: (-scores[at], -found.text.get(at, 0.0), at))[:count]
    vector = found.vector or {}
    return sorted(
        (
            Candidate(stored, scores[stored.id], found.text.get(stored.id, 0.0), vector.get(stored.id, 0.0))
            for stored in store.chunks(best)
        ),
        key=lambda candidate: (-candidate.score, -candidate.text, candidate.stored.path, candidate.stored.id),
    )


def _standardised(_query: Query, found: Found, _store: Store, rules: SearchConfig) -> dict[int, float]:
    """Weighted sum of z-scores: it needs no common scale, and one leg's outlier cannot hide the other leg."""
    ids = sorted({*found.text, *found.cosines})
    by_text, by_vector = standardised(found.text, ids), standardised(found.cosines, ids)
    return {at: rules.text_weight * by_text[at] + rules.vector_weight * by_vector[at] for at in ids}


def _weighted(query: Query, found: Found, store: Store, rules: SearchConfig) -> dict[int, float]:
    """OpenClaw's sum of the cosine and the boosted keyword score; what a leg did not find counts 0 there."""
    vector = found.vector or {}
    ids = sorted({*found.text, *vector})
    # Without a vector leg the keyword score stands alone: weighing it down would say nothing.
    text_weight = rules.text_weight if found.vector is not None else 1.0
    scores = {}
    for stored in store.chunks(ids):
        at, keyword = stored.id, 0.0
        if at in found.text:
            base = bm25_to_score(-found.text[at])
            keyword = boosted_keyword_score(query.text, stored.path, stored.chunk.text, base)
        scores[at] = weighted_sum(vector.get(at, 0.0), keyword, rules.vector_weight, text_weight)
    return scores


FUSIONS: Mapping[str, Callable[[Query, Found, Store, SearchConfig], dict[int, float]]] = {
    "standardised": _standardised,
    "weighted": _weighted,
}
