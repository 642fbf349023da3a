"""From a question to cited answers: both legs find chunks, the lines of the best chunks answer.

question -> candidates (keywords and vectors, fused) -> answers (lines, or chunks) -> decay, MMR, threshold -> results
"""

from __future__ import annotations

from datetime import UTC, datetime

from openclaw_memory.config import SearchConfig
from openclaw_memory.errors import EmbedderError
from openclaw_memory.search.candidates import Candidate, Found, days_of, find, fuse, together
from openclaw_memory.search.line_features import WordVectors
from openclaw_memory.search.passages import ANSWERS, RerankInput, named_files
from openclaw_memory.search.query import Query, parse_query
from openclaw_memory.search.ranking import ranked, selected
from openclaw_memory.search.results import SearchResults
from openclaw_memory.types import SOURCES, Embedder, SearchResult, Source, Store

# A pasted page is not a question: what stands beyond these many characters is not looked up.
MAX_QUESTION_CHARS = 2000


def search(
    query: str,
    *,
    store: Store,
    embedder: Embedder | None,
    rules: SearchConfig,
    word_vectors: WordVectors | None = None,
    use_chunk_scores: bool = False,
    source: Source | None = None,
    max_share: float = 1.0,
    now: datetime | None = None,
    explain: bool = False,
) -> SearchResults:
    """The answers to `query`, at most `rules.max_results`, best first; none for a blank query.

    `word_vectors` gives the vectors of words, by which lines are compared with the question; None compares words as
    they are written. With `use_chunk_scores` the score of a line also counts how near its chunk is. An embedder that
    fails leaves the keywords, and `reason` says so. `now` (with a time zone) is what the age of a note is counted from.
    With `explain`, the `parts` of a result hold every feature of its best line.

    Without a `source`, notes and transcripts bring candidates each on their own. At most `max_share` of the results,
    0..1, are then from transcripts (one where it comes to less), unless notes leave places over.
    """
    parsed = parse_query(query[:MAX_QUESTION_CHARS], store.document_frequencies, store.chunk_count())
    candidates, found, reason = _candidates(parsed, store, embedder, rules, source)
    answers: list[SearchResult] = []
    if candidates:
        vectors = word_vectors if found.vector is not None else None
        answers = ANSWERS[rules.answer](
            RerankInput(parsed, candidates, found, rules, vectors, explain, use_chunk_scores)
        )
    named = named_files(parsed.text, store, rules.snippet_chars, source)
    order = ranked(
        [*named, *(answer for answer in answers if not any(_share_a_line(answer, other) for other in named))],
        parsed.text,
        half_life_days=rules.half_life_days,
        mmr_lambda=rules.mmr,
        now=now or datetime.now(UTC),
        day_of=days_of(candidates),
    )
    kept = selected(order, rules.min_score, rules.max_results, max_share)
    filtered = min(len(order), rules.max_results) - len(kept)
    below = [answer for answer in order if answer.score < rules.min_score and answer not in kept] if explain else []
    return SearchResults(
        results=tuple(kept),
        query=query,
        mode="keyword" if found.vector is None else "hybrid" if rules.text_weight > 0 else "vector",
        provider=embedder.provider if embedder else "none",
        model=embedder.model if embedder else "",
        filtered=filtered,
        reason=reason,
        min_score=rules.min_score,
        rejected=tuple(below[:filtered]),
    )


def _share_a_line(one: SearchResult, other: SearchResult) -> bool:
    return one.path == other.path and one.start_line <= other.end_line and other.start_line <= one.end_line


def _candidates(
    query: Query, store: Store, embedder: Embedder | None, rules: SearchConfig, source: Source | None
) -> tuple[list[Candidate], Found, str | None]:
    """The best chunks of each source, what both legs found, and why the keywords were left alone, if they were."""
    if not query.terms:
        return [], Found({}, None if embedder is None else {}), None
    vector = reason = None
    sources: tuple[Source | None, ...] = (source,)
    if source is None and store.holds("sessions") and store.holds("memory"):
        sources = SOURCES
    try:
        if embedder is not None and (vector := embedder.embed_query(query.text)) is None:
            raise EmbedderError(f"{embedder.provider} {embedder.model} gave None for a question, and no vector")
        found = [find(query, store, vector, rules, one) for one in sources]
    except EmbedderError as error:
        reason = f"the embedder failed, so keywords alone were searched: {error}"
        found = [find(query, store, None, rules, one) for one in sources]
    candidates = [candidate for one in found for candidate in fuse(query, one, store, rules)]
    return candidates, together(found), reason
