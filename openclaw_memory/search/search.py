"""Answer a search from one state of the index.

query -> candidates (keyword and vector search, fused) -> passages (lines or chunks) -> age, MMR, threshold -> results
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from openclaw_memory.embeddings.reranking import rerank_results
from openclaw_memory.embeddings.selection import embed_query
from openclaw_memory.errors import EmbedderError
from openclaw_memory.search.candidates import EVERY, Candidates, find_candidates, find_excluded
from openclaw_memory.search.features import weigh_tokens
from openclaw_memory.search.line_index import LineIndex
from openclaw_memory.search.lines import Outline
from openclaw_memory.search.misspelling import replace_misspelt
from openclaw_memory.search.passages import list_chunks, rank_lines, show_beginning
from openclaw_memory.search.query import Query, match_file_name, parse_query
from openclaw_memory.search.ranking import apply_age, apply_task, has_common_line, order_results, select_results
from openclaw_memory.search.results import SearchResults, show_phrases
from openclaw_memory.text.days import DayRange, find_dates, get_chunk_day, get_path_day
from openclaw_memory.text.front_matter import fold_name, split_link
from openclaw_memory.text.languages import DEFAULT_LANGUAGE
from openclaw_memory.text.terms import split_words, stem_word
from openclaw_memory.types import SearchResult
from openclaw_memory.types.conditions import NAMES

if TYPE_CHECKING:
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.types import Embedder, Store, StoredChunk, Vector
    from openclaw_memory.types.index import TokenVectors

LEAST_SCORE, STEP = 0.5, 0.01  # of what there is of a day: what is older ranks behind


class IndexView(Struct, frozen=True, kw_only=True):
    """One state of an index, with the parts that search it.

    Attributes:
        store: The index, read-only.
        embedder: The embedder of its vectors; None to search by keywords alone.
        lines: Keeps the lines of chunks from search to search.
        today: The day of the search where the journal is kept, to which "yesterday" relates; None for today in UTC.
        languages: The languages of the notes, by which words are stemmed; see `list_languages`.
        has_chunk_vectors: Whether vectors of chunks tell more than the sum of those of their words.
        max_transcript_share: The share of results, 0..1, that transcripts have at most (one where it comes to less),
            unless notes leave places over.
        read_outline: Returns the outline of a note by its path, if there is one.
        allow_remote: Whether a reranker may send text to another machine.
    """

    store: Store
    embedder: Embedder | None
    lines: LineIndex
    today: date | None = None
    languages: tuple[str, ...] = (DEFAULT_LANGUAGE,)
    has_chunk_vectors: bool = False
    max_transcript_share: float = 1.0
    read_outline: Callable[[str], Outline | None] = lambda _path: None
    allow_remote: bool = True


def search(index: IndexView, request: SearchRequest) -> SearchResults:
    """Return the results of a request, best first; none for a blank query.

    An embedder that fails leaves the keywords, and `reason` says so.

    Args:
        index: The index.
        request: The search, with its settings; see `resolve_request`.
    """
    settings, embedder = request.settings, index.embedder
    today = index.today or datetime.now(UTC).date()
    query = parse_query(request.query, index.languages, today)
    query, reading = replace_misspelt(index.store, query, today)
    is_about_days = query.is_about_days and not request.filter.phrases
    days = _list_days(index.store, query, request) if is_about_days else []
    task = parse_query(request.options.task or "", index.languages) if request.has_task else None
    counted, reason = [*chain(*task.stems)] if task else (), None
    try:
        vector, tokens = _embed(query, embedder)
        tokens = tokens if settings.answer == "lines" else None
        has_codes = tokens is not None
        candidates = find_candidates(index.store, query, vector, request, counted=counted, token_codes=has_codes)
    except EmbedderError as error:
        reason = f"the embedder failed, so keywords alone were searched: {error}"
        candidates, tokens = find_candidates(index.store, query, None, request, counted=counted), None
    query = query.weigh(candidates.frequencies, candidates.chunk_count)
    by_vector = candidates.has_vectors or (embedder is not None and not query.terms)
    results: Sequence[SearchResult] = []
    if candidates.items and settings.answer == "chunks":
        results = list_chunks(candidates, request)
    elif candidates.items:
        # One without a vector, as of a title alone, needs no codes.
        lacking = [own for own in candidates.chunks if own.id in candidates.cosines and not own.token_codes]
        if tokens is not None and lacking:
            reason = f"lines were compared by words: {len(lacking)} of {len(candidates.items)} chunks have no tokens"
        query_tokens = weigh_tokens(query, tokens) if tokens is not None and by_vector and not lacking else None
        results = rank_lines(
            query,
            candidates,
            request,
            index.lines,
            query_tokens,
            has_chunk_vectors=index.has_chunk_vectors,
            read_outline=index.read_outline,
        )
    if request.filter.phrases:
        results = show_phrases(results, candidates.chunks, request.filter.phrases)
    results, rerank_failure = rerank_results(results, query.text, query.words, settings.rerank, index.allow_remote)
    if task is not None and results:
        task = task.weigh(candidates.frequencies, candidates.chunk_count)
        similarities, task_failure = _compare_task(task, candidates, index)
        results, reason = apply_task(results, candidates.chunks, similarities), task_failure or reason
    beginnings = _show_named(index, query, request, candidates)
    results = [*beginnings, *(own for own in results if not any(has_common_line(own, first) for first in beginnings))]
    if settings.half_life_days is not None:
        results = apply_age(results, candidates.chunks, settings.half_life_days, request.now or datetime.now(UTC))
    if is_about_days:
        mentions = [own for own in results if _has_mention(own.snippet, query, today)]
        results = [*days, *(own for own in mentions if not any(has_common_line(own, first) for first in days))]
    if query.dates and not days:
        reason = _explain_missing_day(index.store, query, candidates.chunks, today) or reason
    ordered = order_results(results, query.text, settings.mmr)
    selected = select_results(ordered, settings, index.max_transcript_share, fill=request.min_score is None)
    filtered = min(len(ordered), settings.max_results) - len(selected)
    below = [own for own in ordered if own.score < settings.min_score and own not in selected]
    return SearchResults(
        results=tuple(selected),
        query=request.query,
        mode="keyword" if not by_vector else "hybrid" if settings.text_weight > 0 else "vector",
        provider=embedder.provider if embedder else "none",
        model=embedder.model if embedder else "",
        filtered=filtered,
        reason="; ".join(filter(None, (reading, reason, rerank_failure))) or None,
        min_score=settings.min_score,
        rejected=tuple(below[:filtered]) if request.options.explain else (),
    )


def _embed(query: Query, embedder: Embedder | None) -> tuple[Vector | None, TokenVectors | None]:
    """Return the vector of a query, and the vectors of its tokens if the embedder gives tokens."""
    if embedder is None or not query.terms:
        return None, None
    vector, tokens = embed_query(embedder, query.text)
    if vector is None:
        name = f"{embedder.provider} {embedder.model}"
        raise EmbedderError(f"{name} returned None instead of a vector for the query")
    return vector, tokens


def _compare_task(task: Query, candidates: Candidates, index: IndexView) -> tuple[Mapping[int, float], str | None]:
    """Return by chunk id how near each candidate is to the task, 0..1, and why it has no vector if the embedder failed.

    Without a vector it is compared by its words.
    """
    failure = None
    try:
        vector, _ = _embed(task, index.embedder if candidates.has_vectors else None)
        if vector is not None:
            vectors = index.store.get_vectors(sorted(stored.id for stored in candidates.chunks))
            return {at: min(1.0, max(0.0, float(own @ vector))) for at, own in vectors.items()}, None
    except EmbedderError as error:
        failure = f"the embedder failed, so the task was compared by keywords: {error}"
    return _share_words(task, candidates), failure


def _share_words(task: Query, candidates: Candidates) -> dict[int, float]:
    """Return by chunk id the share of a task's words that each chunk holds, weighted by rarity; 0..1."""
    weights, shares = dict(zip(task.stems, task.weights, strict=True)), {}
    for stored in candidates.chunks if weights else ():
        own = {stem_word(word, name) for word in split_words(stored.chunk.text) for name in task.languages}
        present = sum(weight for stems, weight in weights.items() if not own.isdisjoint(stems))
        shares[stored.id] = present / sum(weights.values())
    return shares


def _show_named(index: IndexView, query: Query, request: SearchRequest, candidates: Candidates) -> list[SearchResult]:
    """Return the beginnings of the files that the query names, if all of their chunks pass the filter."""
    select_named, only, results = match_file_name(query.text), request.filter, list[SearchResult]()
    if select_named is None or only.phrases:
        return results
    test, passes = request.where or (lambda *_: True), request.passes or bool
    excluded = find_excluded(index.store, request, index.languages)
    names = {*map(fold_name, split_link(query.text))}
    paths = {own.path for own in candidates.chunks if names & {*str(own.chunk.metadata.get(NAMES) or "").split("\n")}}
    for path in filter(passes, sorted(paths.union(select_named(index.store.get_files())))):
        chunks = index.store.get_file_chunks(path)
        is_allowed = all(test(stored.path, stored.chunk.metadata) and stored.id not in excluded for stored in chunks)
        if chunks and is_allowed and only.source in (None, chunks[0].source):
            results.append(show_beginning(chunks, request.settings.snippet_chars))
    return results


def _list_days(store: Store, query: Query, request: SearchRequest) -> list[SearchResult]:
    """List the notes of the days in a query: the newest day first, notes before transcripts."""
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


def _explain_missing_day(store: Store, query: Query, chunks: Iterable[StoredChunk], today: date) -> str | None:
    """Return that no chunk is of the days that a query means, and the nearest days of notes; None if one is.

    Files are not named: not everybody who asks may see them.
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
