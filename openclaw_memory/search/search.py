"""Hybrid search: keywords and vectors find chunks, and the best lines of these chunks are the results.

query -> candidates (keyword and vector search, fused) -> passages (lines or chunks) -> decay, MMR, threshold -> results
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from openclaw_memory.config import SearchConfig
from openclaw_memory.embeddings.selection import embed_query
from openclaw_memory.errors import EmbedderError
from openclaw_memory.search.candidates import Fusion, days_of, fuse, fusion_of, merged, request_for
from openclaw_memory.search.late_interaction import query_tokens
from openclaw_memory.search.passages import ANSWERS, RerankInput, beginning, file_matcher
from openclaw_memory.search.prepared import Lexicon
from openclaw_memory.search.query import Query, parse_query, weighed
from openclaw_memory.search.ranking import ranked, selected
from openclaw_memory.search.request import SearchRequest
from openclaw_memory.search.results import SearchResults
from openclaw_memory.search.task import Task, with_task
from openclaw_memory.search.wording import candidates as candidates_of_wording
from openclaw_memory.search.wording import with_phrases, wording_of
from openclaw_memory.types import (
    CandidateRequest,
    Candidates,
    Embedder,
    SearchResult,
    Source,
    Store,
    Vector,
)
from openclaw_memory.types.index import TokenVectors
from openclaw_memory.types.where import Where


def search(
    request: SearchRequest,
    *,
    store: Store,
    embedder: Embedder | None,
    rules: SearchConfig,
    lexicon: Lexicon | None = None,
    use_chunk_scores: bool = False,
    max_share: float = 1.0,
    passes: Callable[[str], bool] | None = None,
    where: Where | None = None,
) -> SearchResults:
    """Return the results for a request, best first; none for a blank query.

    Args:
        request: What is looked for; the first 2,000 characters of the query and of the task count. `rules` and `where`
            hold its limits and the filters of chunks by their metadata.
        store: The index. It is asked once, by `Store.candidates`.
        embedder: Makes the vector of the query. One that fails leaves the keywords, and `reason` says so.
        rules: Limits, weights and the threshold.
        lexicon: What is known of words, and of lines from searches before. Lines are compared with the query by its
            vectors of words; without any, as they are written.
        use_chunk_scores: Whether the score of a line also counts how near its chunk is to the query.
        max_share: The share of results, 0..1, that transcripts have at most (one where it comes to less), unless notes
            leave places over.
        passes: Returns whether the file of a path counts; None if all do.
        where: A filter on the metadata of chunks.

    Returns:
        At most `rules.max_results` results.
    """
    task, wording, source = request.options.task, wording_of(request.filter), request.filter.source
    parsed = parse_query(request.query)
    fusion = fusion_of(parsed, rules)
    at_work = parse_query(task) if task and task.strip() and rules.task_weight > 0 else None
    counted = at_work.stems if at_work else ()
    ask = store.candidates if wording is None else partial(candidates_of_wording, store, wording)
    found, tokens, reason = _candidates(parsed, ask, embedder, rules, source, fusion, passes, where, counted)
    parsed = weighed(parsed, found.frequencies, found.chunk_count)
    chunks = {stored.id: stored for stored in found.chunks}
    candidates = [candidate for hits in found.hits for candidate in fuse(hits, chunks, fusion)]
    hits = merged(found.hits)
    by_vector = embedder is not None and (hits.vector is not None or not parsed.terms)
    answers: list[SearchResult] = []
    if candidates:
        lexicon = lexicon or Lexicon()
        has_vectors = by_vector and lexicon.word_vectors is not None and _has_word_vectors(parsed, lexicon)
        given = RerankInput(
            parsed,
            candidates,
            hits,
            rules,
            lexicon,
            has_vectors,
            request.options.explain,
            use_chunk_scores,
            reranked=at_work is not None,
        )
        if by_vector and tokens is not None:
            # A chunk without a vector, such as one of a title alone, is not expected to have tokens.
            stored_chunks = [candidate.stored for candidate in candidates]
            if without := sum(one.id in hits.cosines and not one.token_codes for one in stored_chunks):
                reason = f"lines were compared by words: {without} of {len(candidates)} chunks found have no tokens"
            else:
                given = replace(given, tokens=query_tokens(parsed, tokens))
        answers = ANSWERS[rules.answer](given)
        if wording is not None and wording.phrases:
            answers = with_phrases(answers, [one.stored for one in candidates], wording)
        if at_work is not None:
            at_work = weighed(at_work, found.frequencies, found.chunk_count)
            near_to, failed = _task(at_work, embedder if by_vector else None)
            reason = failed or reason
            found_in = [one.stored for one in candidates]
            answers = with_task(answers, near_to, rules.task_weight, found_in, store, lexicon)
    named = [
        beginning(file_chunks, rules.snippet_chars)
        for file_chunks in found.named
        if file_chunks and source in (None, file_chunks[0].source)
    ]
    order = ranked(
        [*named, *(answer for answer in answers if not any(_share_a_line(answer, other) for other in named))],
        parsed.text,
        half_life_days=rules.half_life_days,
        mmr_lambda=rules.mmr,
        now=request.now or datetime.now(UTC),
        day_of=days_of(candidates),
    )
    kept = selected(order, rules.min_score, rules.max_results, max_share, fill=rules.keyword_fill)
    filtered = min(len(order), rules.max_results) - len(kept)
    below: list[SearchResult] = []
    if request.options.explain:
        below = [answer for answer in order if answer.score < rules.min_score and answer not in kept]
    return SearchResults(
        results=tuple(kept),
        query=request.query,
        mode="keyword" if not by_vector else "hybrid" if rules.text_weight > 0 else "vector",
        provider=embedder.provider if embedder else "none",
        model=embedder.model if embedder else "",
        filtered=filtered,
        reason=reason,
        min_score=rules.min_score,
        rejected=tuple(below[:filtered]),
    )


def _has_word_vectors(query: Query, lexicon: Lexicon) -> bool:
    """Return whether words with at least half of the query's weight have a vector.

    Marks and digits do not count: of a word in a script that the model lacks, it may know these.
    """
    letters = ["".join(filter(str.isalpha, word)) for word in query.words]
    numbers = lexicon.numbered(letters).tolist()
    weights = [
        (weight, lexicon.vectors[at].any())
        for weight, at, own in zip(query.weights, numbers, letters, strict=True)
        if own
    ]
    return 2 * sum(weight for weight, has_vector in weights if has_vector) >= sum(weight for weight, _ in weights)


def _share_a_line(one: SearchResult, other: SearchResult) -> bool:
    return one.path == other.path and any(
        start <= end_of_other and start_of_other <= end
        for start, end in one.spans
        for start_of_other, end_of_other in other.spans
    )


def _candidates(
    query: Query,
    ask: Callable[[CandidateRequest], Candidates],
    embedder: Embedder | None,
    rules: SearchConfig,
    source: Source | None,
    fusion: Fusion,
    passes: Callable[[str], bool] | None,
    where: Where | None,
    counted: Sequence[str],
) -> tuple[Candidates, TokenVectors | None, str | None]:
    """Return what the store found, the tokens of the query, and why keywords alone were searched if they were."""
    named = file_matcher(query.text)
    request = partial(
        request_for,
        query,
        rules=rules,
        source=source,
        fusion=fusion,
        named=named,
        passes=passes,
        where=where,
        counted=counted,
    )
    try:
        vector = tokens = None
        if query.terms and embedder is not None:
            vector, tokens = _embedded(query, embedder)
        if rules.answer != "lines":
            tokens = None
        return ask(request(vector=vector, token_codes=tokens is not None)), tokens, None
    except EmbedderError as error:
        found = ask(request(vector=None))
        return found, None, f"the embedder failed, so keywords alone were searched: {error}"


def _embedded(query: Query, embedder: Embedder) -> tuple[Vector, TokenVectors | None]:
    vector, tokens = embed_query(embedder, query.text)
    if vector is None:
        name = f"{embedder.provider} {embedder.model}"
        raise EmbedderError(f"{name} returned None instead of a vector for the query")
    return vector, tokens


def _task(query: Query, embedder: Embedder | None) -> tuple[Task, str | None]:
    """Return the task, and why it has no vector if the embedder failed."""
    if embedder is None or not query.terms:
        return Task(query, None), None
    try:
        return Task(query, _embedded(query, embedder)[0]), None
    except EmbedderError as error:
        return Task(query, None), f"the embedder failed, so the task was compared by keywords: {error}"
