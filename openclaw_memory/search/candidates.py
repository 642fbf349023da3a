"""What a search asks of the store, and the fusion of what keyword and vector search found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from openclaw_memory.config import SearchConfig
from openclaw_memory.search.query import Query
from openclaw_memory.search.query_dates import day_of
from openclaw_memory.search.ranking import bm25_to_score, boosted_keyword_score, standardised, weighted_sum
from openclaw_memory.types import CandidateRequest, SearchResult, Source, SourceHits, StoredChunk
from openclaw_memory.workspace.paths import parse_note_date

if TYPE_CHECKING:
    from datetime import date

    from openclaw_memory.types import Vector
    from openclaw_memory.types.where import Where

# How many chunks keyword and vector search bring at least: more did not improve results, and each costs time.
TEXT_HITS = 60
VECTOR_HITS = 50
# Without vectors the order of the chunks is less sure, and their lines cost less to score: so many times as many count.
KEYWORD_FACTOR = 2
# The chunks before and after so many of the best are candidates too: the answer is often next to the words of the
# question, and in a large memory not among the best itself.
WITH_NEIGHBOURS = 25


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may hold the answer, with its fused score and those of keyword search and vector search."""

    stored: StoredChunk
    score: float
    text: float
    vector: float


# Returns the scores of the best chunks of one source, best first.
Fusion: TypeAlias = Callable[[SourceHits, Mapping[int, StoredChunk]], Mapping[int, float]]


def request_for(
    query: Query,
    vector: Vector | None,
    rules: SearchConfig,
    source: Source | None,
    fusion: Fusion,
    named: Callable[[str], bool] | None = None,
    passes: Callable[[str], bool] | None = None,
    where: Where | None = None,
    *,
    token_codes: bool = False,
    counted: Sequence[str] = (),
) -> CandidateRequest:
    """Return what to ask of the store for a query; without its `vector`, keywords alone.

    Args:
        query: The parsed query.
        vector: Its unit vector, or None.
        rules: Limits and the kind of fusion.
        source: The one source to search, or None for all.
        fusion: Picks the best chunks; see `fusion_of`.
        named: Returns whether the query names the file of a path.
        passes: Returns whether the file of a path counts; None if all do.
        where: A filter on the metadata of chunks.
        token_codes: Whether the codes of the tokens of the chunks are wanted.
        counted: Stems besides those of the query of which the document frequencies are wanted.
    """
    if rules.candidate_multiplier is None:
        wanted = max(rules.candidates, 4 * rules.max_results)
        text_hits, vector_hits = max(TEXT_HITS, wanted), max(VECTOR_HITS, wanted)
    else:
        text_hits = vector_hits = min(rules.candidates, rules.candidate_multiplier * rules.max_results)
    return CandidateRequest(
        terms=query.terms,
        vector=vector,
        text_hits=text_hits,
        vector_hits=vector_hits,
        match=rules.match,
        enough=rules.max_results,
        source=source,
        all_cosines=rules.fusion != "weighted",
        counted=(*query.stems, *counted),
        choose=lambda hits: [chunk_id for one in hits for chunk_id in _wanted(one, rules, fusion)],
        named=named,
        passes=passes,
        memory_bytes=rules.memory_mb << 20,
        where=where,
        token_codes=token_codes,
    )


def merged(hits: Iterable[SourceHits]) -> SourceHits:
    """Return the hits of several sources as one, without vector hits if no source was searched by vector."""
    text: dict[int, float] = {}
    cosines: dict[int, float] = {}
    vector: dict[int, float] | None = None
    for one in hits:
        text |= one.text
        cosines |= one.cosines
        if one.vector is not None:
            vector = (vector or {}) | dict(one.vector)
    return SourceHits(text, vector, cosines)


def days_of(candidates: Sequence[Candidate]) -> Callable[[SearchResult], date | None]:
    """Return a function that gives the day a result is from, or None where the day is unknown."""

    def day(result: SearchResult) -> date | None:
        if result.source == "memory":
            return parse_note_date(result.path)
        for stored in (candidate.stored for candidate in candidates):
            if stored.path == result.path and stored.chunk.start_line <= result.start_line <= stored.chunk.end_line:
                return day_of(stored.source, stored.path, stored.chunk.context)
        return None

    return day


def fusion_of(query: Query, rules: SearchConfig) -> Fusion:
    """Return the fusion that `rules` names, for one search. Scores that need no text are computed once for given hits.

    Args:
        query: The parsed query.
        rules: The kind of fusion, its weights, and how many chunks are kept.
    """
    known: list[tuple[SourceHits, dict[int, float]]] = []

    def fusion(hits: SourceHits, chunks: Mapping[int, StoredChunk]) -> dict[int, float]:
        for scored, scores in known:
            if scored is hits:
                return scores
        scores = _best(FUSIONS[rules.fusion](query, hits, chunks, rules), hits, rules)
        if rules.fusion != "weighted":
            known.append((hits, scores))
        return scores

    return fusion


def fuse(hits: SourceHits, chunks: Mapping[int, StoredChunk], fusion: Fusion) -> list[Candidate]:
    """Return the best chunks of one source, best first.

    Args:
        hits: What was found in the source.
        chunks: The stored chunks by id.
        fusion: The same as in `request_for`.
    """
    vector, scores = hits.vector or {}, fusion(hits, chunks)
    found = [
        Candidate(chunks[chunk_id], score, hits.text.get(chunk_id, 0.0), vector.get(chunk_id, 0.0))
        for chunk_id, score in scores.items()
        if chunk_id in chunks and (score > -math.inf or _is_next_to(chunk_id, scores, chunks))
    ]
    return sorted(found, key=lambda one: (-one.score, -one.text, one.stored.path, one.stored.id))


def _wanted(hits: SourceHits, rules: SearchConfig, fusion: Fusion) -> Iterable[int]:
    """Return the ids of the chunks that `fuse` needs: all hits where their text counts, else the best alone."""
    return {*hits.text, *(hits.vector or {})} if rules.fusion == "weighted" else fusion(hits, {})


def _best(scores: Mapping[int, float], hits: SourceHits, rules: SearchConfig) -> dict[int, float]:
    factor = KEYWORD_FACTOR if hits.vector is None else 1
    count = max(factor * rules.candidates, 2 * rules.max_results)
    order = sorted(scores, key=lambda at: (-scores[at], -hits.text.get(at, 0.0), at))
    best = {at: scores[at] for at in order[:count]}
    if rules.answer == "lines" and best:
        # The chunks of a file mostly have successive ids; `fuse` leaves out those that turn out to be of another one.
        near = (at + step for at in list(best)[:WITH_NEIGHBOURS] for step in (-1, 1))
        best |= dict.fromkeys((at for at in near if at not in best), -math.inf)
    return best


def _is_next_to(chunk_id: int, scores: Mapping[int, float], chunks: Mapping[int, StoredChunk]) -> bool:
    """Return whether a chunk is directly before or after a candidate in its file."""
    stored = chunks[chunk_id]
    return any(
        other.path == stored.path and abs(other.ordinal - stored.ordinal) == 1
        for at in (chunk_id - 1, chunk_id + 1)
        if scores.get(at, -math.inf) > -math.inf and (other := chunks.get(at)) is not None
    )


def _standardised(
    _query: Query, hits: SourceHits, _chunks: Mapping[int, StoredChunk], rules: SearchConfig
) -> dict[int, float]:
    """Return the weighted sums of z-scores, which need no common scale; an outlier of one search hides no other."""
    ids = sorted({*hits.text, *hits.cosines})
    by_text, by_vector = standardised(hits.text, ids), standardised(hits.cosines, ids)
    return {at: rules.text_weight * by_text[at] + rules.vector_weight * by_vector[at] for at in ids}


def _weighted(
    query: Query, hits: SourceHits, chunks: Mapping[int, StoredChunk], rules: SearchConfig
) -> dict[int, float]:
    """Return OpenClaw's sum of the cosine and the keyword score, boosted or not; what one search lacks counts 0."""
    vector = hits.vector or {}
    # Without a vector search the keyword score is the whole score.
    text_weight = rules.text_weight if hits.vector is not None else 1.0
    scores = {}
    for chunk_id in sorted({*hits.text, *vector} & chunks.keys()):
        keyword, stored = 0.0, chunks[chunk_id]
        if chunk_id in hits.text:
            keyword = bm25_to_score(-hits.text[chunk_id])  # OpenClaw's formula takes ranks below zero
            if rules.boosts:
                keyword = boosted_keyword_score(query.text, stored.path, stored.chunk.text, keyword)
        scores[chunk_id] = weighted_sum(vector.get(chunk_id, 0.0), keyword, rules.vector_weight, text_weight)
    return scores


FUSIONS: Mapping[str, Callable[[Query, SourceHits, Mapping[int, StoredChunk], SearchConfig], dict[int, float]]] = {
    "standardised": _standardised,
    "weighted": _weighted,
}
