"""Exact wording in a search: phrases that a chunk must hold, and words that it must not.

Both confine the candidates of keyword and vector search alike, and are exact: the keyword index has every word of every
chunk, so that it names all chunks that may hold a phrase, and all that hold a word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from openclaw_memory.search.lines import lines_of
from openclaw_memory.text.terms import fold, split_terms
from openclaw_memory.types import SOURCES, CandidateRequest, Candidates, SearchResult, SourceHits, Store, StoredChunk

if TYPE_CHECKING:
    from openclaw_memory.search.request import SearchFilter

# Chunks with a phrase that are looked at, those with most of its words first. A phrase is asked for because it is rare.
MOST_CHUNKS = 2000
_BATCH = 200  # chunks read at once
_EVERY = 2**31 - 1  # hits: as many as there are

# Characters of scripts that part no words: a phrase in them may begin and end anywhere.
_UNPARTED = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_BETWEEN = r"[\W_]+"


@dataclass(frozen=True, slots=True)
class Wording:
    """What chunks must hold, and must not: the patterns of phrases, and the terms of each of these words."""

    phrases: tuple[re.Pattern[str], ...]
    phrase_terms: tuple[str, ...]
    without: tuple[tuple[str, ...], ...]

    def is_in(self, text: str) -> bool:
        """Return whether a text holds each phrase; case, accents, punctuation and line breaks do not count."""
        folded = fold(text)
        return all(pattern.search(folded) for pattern in self.phrases)


def wording_of(only: SearchFilter) -> Wording | None:
    """Return the wording that a filter asks for; None for none.

    Args:
        only: The filter.
    """
    if not (only.phrases or only.without):
        return None
    of_phrases = dict.fromkeys(term for phrase in only.phrases for term in split_terms(phrase))
    return Wording(
        tuple(map(_pattern, only.phrases)), tuple(of_phrases), tuple(tuple(split_terms(word)) for word in only.without)
    )


def candidates(store: Store, wording: Wording, request: CandidateRequest) -> Candidates:
    """Return what a store finds for a request, of the chunks that hold the phrases and none of the words.

    Args:
        store: The index.
        wording: The phrases and words.
        request: What is asked otherwise.
    """
    left_out = frozenset(
        hit.chunk_id
        for word in wording.without
        for hit in store.search_text(word, _EVERY, match="all", source=request.source, where=request.where)
    )
    if wording.phrases:
        return _with_phrases(store, wording, request, left_out)
    # So many more are asked for that as many are left as without the words.
    wider = replace(
        request,
        text_hits=request.text_hits + len(left_out),
        vector_hits=request.vector_hits + len(left_out),
        choose=lambda hits: request.choose([_lessened(one, left_out, request) for one in hits]),
    )
    found = store.candidates(wider)
    return replace(
        found,
        hits=[_lessened(one, left_out, request) for one in found.hits],
        chunks=[one for one in found.chunks if one.id not in left_out],
        named=[chunks for chunks in found.named if not any(one.id in left_out for one in chunks)],
    )


def with_phrases(answers: Sequence[SearchResult], found: Sequence[StoredChunk], wording: Wording) -> list[SearchResult]:
    """Return results that show the phrases: answers that do, and of other chunks the lines with the phrases.

    Args:
        answers: The results, best first.
        found: The chunks that they come from, each of which holds the phrases.
        wording: The phrases.
    """
    kept = [answer for answer in answers if wording.is_in(answer.snippet)]
    for stored in found:
        if any(_overlap(answer, stored) for answer in kept):
            continue
        best = max((one for one in answers if _overlap(one, stored)), key=lambda one: one.score, default=None)
        first, last, snippet = _shortest(stored, wording)
        score = best.score if best else min((one.score for one in answers), default=0.0)
        parts: Mapping[str, float] = best.parts if best else {}
        confidence = best.confidence if best else "weak"
        kept.append(SearchResult(stored.path, first, last, score, snippet, stored.source, parts, confidence=confidence))
    return sorted(kept, key=lambda one: -one.score)


def _with_phrases(store: Store, wording: Wording, request: CandidateRequest, left_out: Collection[int]) -> Candidates:
    asked = replace(request, text_hits=1, vector_hits=1, vector=None, all_cosines=False, named=None)
    found = store.candidates(replace(asked, choose=lambda _hits: (), token_codes=False))
    hits = store.search_text(wording.phrase_terms, _EVERY, match="all", source=request.source, where=request.where)
    chunks: list[StoredChunk] = []
    ids = [hit.chunk_id for hit in hits if hit.chunk_id not in left_out]
    for begin in range(0, len(ids), _BATCH):
        read = store.chunks(ids[begin : begin + _BATCH], token_codes=request.token_codes)
        chunks += [one for one in read if _counts(one, request) and wording.is_in(one.chunk.text)]
        if len(chunks) >= MOST_CHUNKS:
            break
    chunks.sort(key=lambda one: one.id)
    known = {one.id for one in chunks}
    every = store.search_text(request.terms, _EVERY, source=request.source, where=request.where) if known else []
    text = {hit.chunk_id: hit.score for hit in every if hit.chunk_id in known}
    cosines: dict[int, float] = {}
    if request.vector is not None and known:
        cosines = {at: float(vector @ request.vector) for at, vector in store.vectors(sorted(known)).items()}
    by_source = []
    for source in SOURCES:
        if own := [one.id for one in chunks if one.source == source]:
            near = _only(cosines, own)
            # A phrase of words that no query looks up, such as stop words, has been found all the same.
            by_source.append(
                SourceHits({at: text.get(at, 0.0) for at in own}, None if request.vector is None else near, near)
            )
    return replace(found, hits=by_source, chunks=chunks, named=())


def _counts(stored: StoredChunk, request: CandidateRequest) -> bool:
    return request.passes is None or request.passes(stored.path)


def _lessened(hits: SourceHits, left_out: Collection[int], request: CandidateRequest) -> SourceHits:
    text = _best(hits.text, left_out, request.text_hits)
    vector = None if hits.vector is None else _best(hits.vector, left_out, request.vector_hits)
    return SourceHits(text, vector, _only(hits.cosines, {*text, *(vector or {})}))


def _best(scores: Mapping[int, float], left_out: Collection[int], count: int) -> dict[int, float]:
    left = [at for at in scores if at not in left_out]
    return _only(scores, sorted(left, key=lambda at: (-scores[at], at))[:count])


def _only(scores: Mapping[int, float], ids: Iterable[int]) -> dict[int, float]:
    return {at: scores[at] for at in ids if at in scores}


def _overlap(answer: SearchResult, stored: StoredChunk) -> bool:
    chunk = stored.chunk
    return answer.path == stored.path and any(
        start <= chunk.end_line and chunk.start_line <= end for start, end in answer.spans
    )


def _shortest(stored: StoredChunk, wording: Wording) -> tuple[int, int, str]:
    """Return the fewest lines of a chunk, one after the other, that hold the phrases: first, last, and their text."""
    lines = lines_of([stored])
    for count in range(1, len(lines) + 1):
        for at in range(len(lines) - count + 1):
            text = "\n".join(line.text for line in lines[at : at + count])
            if wording.is_in(text):
                return lines[at].number, lines[at + count - 1].number, text
    return stored.chunk.start_line, stored.chunk.end_line, stored.chunk.text


def _pattern(phrase: str) -> re.Pattern[str]:
    found = re.findall(r"[^\W_]+", fold(phrase))
    begin = "" if _UNPARTED.match(found[0][0]) else r"(?<![^\W_])"
    end = "" if _UNPARTED.match(found[-1][-1]) else r"(?![^\W_])"
    return re.compile(begin + _BETWEEN.join(map(re.escape, found)) + end)
