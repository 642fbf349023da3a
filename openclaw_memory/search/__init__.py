"""From a question to cited answers: both legs find chunks, the lines of the best chunks answer.

question -> candidates (keywords and vectors, fused) -> answers (lines, or chunks) -> decay, threshold, MMR -> results
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from openclaw_memory.config import Search
from openclaw_memory.errors import EmbedderError
from openclaw_memory.search.answers import ANSWERS, Asked
from openclaw_memory.search.candidates import Found, find, fuse
from openclaw_memory.search.lines import WordVectors
from openclaw_memory.search.question import Question, asked, question_terms, terms_to_count
from openclaw_memory.search.ranking import decayed, mmr
from openclaw_memory.search.results import SearchResults
from openclaw_memory.types import Embedder, SearchResult, Source, Store
from openclaw_memory.workspace.dates import is_evergreen, note_date
from openclaw_memory.workspace.paths import exact_path_tier

__all__ = ["SearchResults", "WordVectors", "search"]

# A pasted page is not a question: what stands beyond these many characters is not looked up.
MAX_QUESTION_CHARS = 2000
# MMR chooses among this many times the wanted results.
MMR_POOL = 4


def search(
    query: str,
    *,
    store: Store,
    embedder: Embedder | None,
    rules: Search,
    word_vectors: WordVectors | None = None,
    source: Source | None = None,
    today: date | None = None,
    explain: bool = False,
) -> SearchResults:
    """The answers to `query`, at most `rules.max_results`, best first; none for a blank query.

    `word_vectors` gives the vectors of words, by which lines are compared with the question; None compares words as
    they are written. An embedder that fails leaves the keywords, and `reason` says so. With `explain`, the `parts` of a
    result hold every feature of its best line.
    """
    reason = None
    question = _question(query[:MAX_QUESTION_CHARS], store)
    if not question.terms:
        found = Found({}, None, None)
    else:
        try:
            found = find(question, store, embedder, rules, source)
        except EmbedderError as error:
            reason = f"the embedder failed, so keywords alone were searched: {error}"
            found = find(question, store, None, rules, source)
    vectors = word_vectors if found.vector is not None else None
    candidates = fuse(question, found, store, rules)
    pool = rules.max_results * (MMR_POOL if rules.mmr is not None else 1)
    answers = ANSWERS[rules.answer](Asked(question, candidates, found, store, rules, vectors, explain), pool)
    ranked = _by_file_name(question, _aged(answers, rules, today or date.today()))
    kept = _above_threshold(ranked, rules)
    if rules.mmr is not None:
        kept = mmr(kept, rules.mmr, lambda result: result.score, lambda result: result.snippet)
    return SearchResults(
        results=tuple(kept[: rules.max_results]),
        query=query,
        mode="keyword" if found.vector is None else "hybrid" if rules.text_weight > 0 else "vector",
        provider=embedder.provider if embedder else "none",
        model=embedder.model if embedder else "",
        filtered=len(ranked) - len(kept),
        reason=reason,
    )


def _question(text: str, store: Store) -> Question:
    terms = question_terms(text)
    frequencies = store.document_frequencies(terms_to_count(text, terms))
    return asked(text, terms, frequencies, store.chunk_count())


def _aged(answers: Sequence[SearchResult], rules: Search, today: date) -> list[SearchResult]:
    """Answers from dated notes lose score with age, where that is wanted; best first."""
    if rules.half_life_days is None:
        return list(answers)
    aged = []
    for answer in answers:
        written = None if is_evergreen(answer.path) else note_date(answer.path)
        age = (today - written).days if written else 0
        aged.append(replace(answer, score=decayed(answer.score, age, rules.half_life_days)))
    return sorted(aged, key=lambda answer: -answer.score)


def _by_file_name(question: Question, answers: Sequence[SearchResult]) -> list[SearchResult]:
    """A question that is the name of a file is answered from that file first, with score 1."""
    tiers = {answer.path: exact_path_tier(question.text, answer.path) for answer in answers}
    named = [replace(answer, score=1.0) if tiers[answer.path] else answer for answer in answers]
    return sorted(named, key=lambda answer: (-tiers[answer.path], -answer.score))


def _above_threshold(answers: Sequence[SearchResult], rules: Search) -> list[SearchResult]:
    """Answers at or above the minimum score.

    Chunks scored by a weighted sum keep their keyword matches besides, in the places left over: a sum whose other
    half is missing could not reach the threshold however well the words match.
    """
    kept = [answer for answer in answers if answer.score >= rules.min_score]
    if rules.answer == "lines" or rules.fusion != "weighted" or len(kept) >= rules.max_results:
        return kept
    spare = [
        answer
        for answer in answers
        if answer.score < rules.min_score
        and answer.parts.get("keyword", 0.0) > 0
        and (not kept or answer.parts.get("vector", 0.0) == 0.0)
    ]
    return [*kept, *spare]
