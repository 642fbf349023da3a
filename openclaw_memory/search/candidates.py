"""Find the chunks that may answer a query: keywords and vectors, fused, within the filter of the search."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from openclaw_memory.search.query import compile_phrase, has_phrases
from openclaw_memory.search.ranking import boost_keyword_score, merge_scores, scale_bm25, to_z_scores
from openclaw_memory.text.languages import DEFAULT_LANGUAGE, MARKS
from openclaw_memory.text.terms import split_terms
from openclaw_memory.types import HitRequest, Hits, SourceHits, StoredChunk
from openclaw_memory.types.files import SOURCES

if TYPE_CHECKING:
    from openclaw_memory.config.sections import SearchConfig
    from openclaw_memory.search.query import Query
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.types import Store, Vector

# How many chunks keyword and vector search bring at least: more did not improve results, and each costs time.
TEXT_HITS, VECTOR_HITS = 60, 50
# Without vectors the order of the chunks is less sure, and their lines cost less to score: so many times as many count.
KEYWORD_FACTOR = 2
# The chunks before and after so many of the best are candidates too: the answer is often next to the words of the
# question, and in a large memory not among the best itself.
WITH_NEIGHBOURS = 25
# Where not all files pass, so many times as many chunks are looked at. Of each further chunk keyword search needs to
# read little, vector search several kB.
WIDER_TEXT, WIDER_VECTOR = 6, 3
# Chunks with the words of a phrase that are read, the best first. A phrase is asked for because it is rare.
MAX_PHRASE_CHUNKS = 5000
EVERY = 2**31 - 1  # hits: as many as there are


class Candidate(Struct, frozen=True):
    """A chunk that may hold the answer, with its fused score and those of keyword search and vector search."""

    stored: StoredChunk
    score: float
    text_score: float
    vector_score: float


class Candidates(Struct, frozen=True, dict=True):
    """The chunks that may hold the answer, best first in each source, and the scores of all that were found."""

    items: Sequence[Candidate]
    text_scores: Mapping[int, float]
    cosines: Mapping[int, float]
    has_vectors: bool
    frequencies: Mapping[str, int]
    chunk_count: int

    @cached_property
    def chunks(self) -> list[StoredChunk]:
        """The chunks of the candidates."""
        return [candidate.stored for candidate in self.items]


def list_languages(store: Store) -> tuple[str, ...]:
    """Return the languages of the notes of an index, English first."""
    frequencies = store.find_hits(HitRequest(terms=(), counted=tuple(MARKS.values()))).frequencies
    return (DEFAULT_LANGUAGE, *(name for name, mark in MARKS.items() if frequencies[mark]))


def find_candidates(
    store: Store,
    query: Query,
    vector: Vector | None,
    request: SearchRequest,
    *,
    counted: Sequence[str] = (),
    token_codes: bool = False,
) -> Candidates:
    """Return the chunks that may answer a query.

    Args:
        store: The index, in one state.
        query: The parsed query.
        vector: Its unit vector, or None to search by keywords alone.
        request: The search, with its settings and filters.
        counted: Stems besides those of the query of which the document frequencies are returned.
        token_codes: Whether chunks bring the codes of their tokens.

    Raises:
        EmbedderError: The vector does not fit the index.
    """
    settings = request.settings
    hit_request = _make_hit_request(query, vector, request, counted)
    excluded = find_excluded(store, request, query.languages)
    if request.filter.phrases:
        hits, chunks = _find_phrases(store, hit_request, request, excluded, query.languages, token_codes=token_codes)
    elif request.filter.without or request.passes is not None:
        hits, chunks = _find_allowed(store, hit_request, request, excluded), None
    else:
        hits, chunks = store.find_hits(hit_request), None
    if settings.fusion != "standardised":  # scores depend on the texts of all
        ids = {at for own in hits.by_source for at in (*own.text, *(own.vector or {}))}
        chunks = _read(store, ids, request, excluded, token_codes=token_codes) if chunks is None else chunks
        scores = [_score_weighted(query, own, chunks, settings) for own in hits.by_source]
    else:
        scores = [_score_standardised(own, settings) for own in hits.by_source]
    best = [_choose_best(own, by_source, settings) for own, by_source in zip(scores, hits.by_source, strict=True)]
    if chunks is None:
        chunks = _read(store, [at for own in best for at in own], request, excluded, token_codes=token_codes)
    pairs = zip(best, hits.by_source, strict=True)
    items = [item for own_best, own in pairs for item in _as_candidates(own_best, own, chunks)]
    text = {at: score for own in hits.by_source for at, score in own.text.items()}
    cosines = {at: cosine for own in hits.by_source for at, cosine in own.cosines.items()}
    ran = any(own.vector is not None for own in hits.by_source)
    return Candidates(items, text, cosines, ran, hits.frequencies, hits.chunk_count)


def _make_hit_request(
    query: Query, vector: Vector | None, request: SearchRequest, counted: Sequence[str]
) -> HitRequest:
    settings = request.settings
    if settings.candidate_multiplier is None:
        limit = max(settings.candidates, 4 * settings.max_results)
        text_hits, vector_hits = max(TEXT_HITS, limit), max(VECTOR_HITS, limit)
    else:
        text_hits = vector_hits = min(settings.candidates, settings.candidate_multiplier * settings.max_results)
    return HitRequest(
        terms=query.terms,
        vector=vector,
        text_hits=text_hits,
        vector_hits=vector_hits,
        match=settings.match,
        enough=settings.max_results,
        source=request.filter.source,
        all_cosines=settings.fusion == "standardised",
        counted=(*chain(*query.stems), *counted),
        where=request.where,
        memory_bytes=settings.memory_mb << 20,
    )


def _read(
    store: Store, ids: Iterable[int], request: SearchRequest, excluded: Collection[int], *, token_codes: bool
) -> dict[int, StoredChunk]:
    """Return those of these chunks that pass the filter of the search: one may be asked for as a neighbour."""
    chunks = store.get_chunks(ids, token_codes=True) if token_codes else store.get_chunks(ids)
    if (test := request.where) is not None:
        chunks = [stored for stored in chunks if test(stored.path, stored.chunk.metadata)]
    return {stored.id: stored for stored in chunks if stored.id not in excluded}


# --- filters that the store does not know ------------------------------------------------------------------------


def find_excluded(store: Store, request: SearchRequest, languages: Sequence[str]) -> frozenset[int]:
    """Return the ids of the chunks that hold one of the words that a search leaves out."""
    hits = (_find_all_words(store, word, request, languages) for word in request.filter.without)
    return frozenset(chain.from_iterable(hits))


def _find_all_words(store: Store, text: str, request: SearchRequest, languages: Sequence[str]) -> dict[int, None]:
    """Return the ids of the chunks that hold all words of a text, in any form, best first by language."""
    source, where = request.filter.source, request.where
    terms = dict.fromkeys(tuple(dict.fromkeys(split_terms(text, name))) for name in languages)
    hits = (store.search_text(own, EVERY, match="all", source=source, where=where) for own in terms)
    return dict.fromkeys(hit.chunk_id for own in hits for hit in own)


def _find_allowed(store: Store, hit_request: HitRequest, request: SearchRequest, excluded: frozenset[int]) -> Hits:
    """Find as many hits as are asked for without the chunks of words left out, and of files that do not pass."""
    from msgspec.structs import replace

    text_factor, vector_factor = (1, 1) if request.passes is None else (WIDER_TEXT, WIDER_VECTOR)
    wider = replace(
        hit_request,
        text_hits=text_factor * hit_request.text_hits + len(excluded),
        vector_hits=vector_factor * hit_request.vector_hits + len(excluded),
    )
    hits = store.find_hits(wider)
    if request.passes is not None:
        ids = {at for own in hits.by_source for at in own.cosines.keys() | own.text.keys()}
        excluded |= {stored.id for stored in store.get_chunks(ids - excluded) if not request.passes(stored.path)}
    by_source = []
    for own in hits.by_source:
        text = _keep_best(own.text, excluded, hit_request.text_hits)
        vector = None if own.vector is None else _keep_best(own.vector, excluded, hit_request.vector_hits)
        if text and not vector and request.passes is not None:  # no file that passes has a vector
            vector = None
        near = {at: own.cosines[at] for at in {**text, **(vector or {})} if at in own.cosines}
        by_source.append(SourceHits(text, vector, near))
    return replace(hits, by_source=by_source)


def _keep_best(scores: Mapping[int, float], excluded: Collection[int], count: int) -> dict[int, float]:
    allowed = [at for at in scores if at not in excluded]
    return {at: scores[at] for at in sorted(allowed, key=lambda at: (-scores[at], at))[:count]}


def _find_phrases(
    store: Store,
    hit_request: HitRequest,
    request: SearchRequest,
    excluded: Collection[int],
    languages: Sequence[str],
    *,
    token_codes: bool,
) -> tuple[Hits, dict[int, StoredChunk]]:
    """Return every chunk that holds the phrases, and how well it matches the query."""
    from msgspec.structs import replace

    only, where, vector = request.filter, request.where, hit_request.vector
    statistics = store.find_hits(replace(hit_request, vector=None, text_hits=1))
    likely = _find_all_words(store, " ".join(only.phrases), request, languages)
    patterns = tuple(map(compile_phrase, only.phrases))
    ids = [at for at in likely if at not in excluded][:MAX_PHRASE_CHUNKS]
    chunks = {
        stored.id: stored
        for stored in store.get_chunks(ids, token_codes=token_codes)
        if (request.passes or bool)(stored.path) and has_phrases(stored.chunk.text, patterns)
    }
    text: dict[int, float] = {}
    cosines: dict[int, float] = {}
    if chunks:
        hits = store.search_text(hit_request.terms, EVERY, source=only.source, where=where)
        text = {hit.chunk_id: hit.score for hit in hits if hit.chunk_id in chunks}
    if vector is not None and chunks:
        cosines = {at: float(own @ vector) for at, own in store.get_vectors(sorted(chunks)).items()}
    by_source = []
    for source in SOURCES:
        if own := sorted(at for at, stored in chunks.items() if stored.source == source):
            near = {at: cosines[at] for at in own if at in cosines}
            # A phrase of words that no query looks up, such as stop words, is a match all the same.
            scores = {at: text.get(at, 0.0) for at in own}
            by_source.append(SourceHits(scores, None if vector is None else near, near))
    return replace(statistics, by_source=by_source), chunks


# --- fusion ------------------------------------------------------------------------------------------------------


def _score_standardised(hits: SourceHits, settings: SearchConfig) -> dict[int, float]:
    """Return the weighted sums of z-scores, which need no common scale; an outlier of one search hides no other."""
    ids = sorted({*hits.text, *hits.cosines})
    by_text, by_vector = to_z_scores(hits.text, ids), to_z_scores(hits.cosines, ids)
    scores = (settings.text_weight * a + settings.vector_weight * b for a, b in zip(by_text, by_vector, strict=True))
    return dict(zip(ids, scores, strict=True))


def _score_weighted(
    query: Query, hits: SourceHits, chunks: Mapping[int, StoredChunk], settings: SearchConfig
) -> dict[int, float]:
    """Return OpenClaw's sum of the cosine and the keyword score, boosted or not; a missing score counts 0."""
    # OpenClaw's formula takes ranks below zero.
    keyword = {at: scale_bm25(-score) for at, score in hits.text.items() if at in chunks}
    if settings.fusion == "boosted":
        for at, score in keyword.items():
            keyword[at] = boost_keyword_score(query.text, chunks[at].path, chunks[at].chunk.text, score)
    if hits.vector is None:  # the keyword score is the whole score
        return keyword
    vector = {at: score for at, score in hits.vector.items() if at in chunks}
    return merge_scores(vector, keyword, settings.vector_weight, settings.text_weight)


def _choose_best(scores: Mapping[int, float], hits: SourceHits, settings: SearchConfig) -> dict[int, float]:
    """Return the best chunks with their scores, and -inf for those that may be next to them in a file."""
    factor = KEYWORD_FACTOR if hits.vector is None else 1
    count = max(factor * settings.candidates, 2 * settings.max_results)
    text = hits.text
    order = sorted(scores, key=lambda at: (-scores[at], -text.get(at, 0.0), at))[:count]
    best = {at: scores[at] for at in order}
    if settings.answer == "lines":
        near = (at + step for at in order[:WITH_NEIGHBOURS] for step in (-1, 1))
        best |= dict.fromkeys((at for at in near if at not in best), -math.inf)
    return best


def _as_candidates(best: Mapping[int, float], hits: SourceHits, chunks: Mapping[int, StoredChunk]) -> list[Candidate]:
    vector = hits.vector or {}
    items = [
        Candidate(chunks[at], score, hits.text.get(at, 0.0), vector.get(at, 0.0))
        for at, score in best.items()
        if at in chunks and (score > -math.inf or _is_adjacent(chunks[at], best, chunks))
    ]
    return sorted(items, key=lambda item: (-item.score, -item.text_score, item.stored.path, item.stored.id))


def _is_adjacent(stored: StoredChunk, best: Mapping[int, float], chunks: Mapping[int, StoredChunk]) -> bool:
    """Return whether a chunk is directly before or after one of the best in its file."""
    return any(
        near.path == stored.path and abs(near.ordinal - stored.ordinal) == 1
        for at in (stored.id - 1, stored.id + 1)
        if best.get(at, -math.inf) > -math.inf and (near := chunks.get(at)) is not None
    )
