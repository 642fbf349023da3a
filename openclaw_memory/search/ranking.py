"""Formulas of fusion and decay, and the order and selection of results.

The formulas are OpenClaw's (2026.9) if it has one; deliberate differences are listed in
`docs/explanation/differences.md`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import TypeVar

from openclaw_memory.text.utf16 import measure_utf16
from openclaw_memory.types import SearchResult
from openclaw_memory.workspace.paths import rank_path_match

# OpenClaw's lexical boosts: whole-word coverage, density, words in the path, and length.
COVERAGE_BOOST = 0.45
DENSITY_BOOST = 0.2
PATH_BOOST = 0.18
LENGTH_BOOST = 0.18
FULL_LENGTH_CHARS = 160
UNRANKED_SCORE = 0.001

# Names in `SearchResult.parts` of the scores of keyword and vector search; results made of lines have neither.
TEXT_SCORE, VECTOR_SCORE = "text_score", "vector_score"
# Names there of the share of a score, 0..1, that comes from vectors, and of the factor that age has left of it.
VECTOR_SHARE, DECAY = "vector_share", "decay"
# Name there of what the likeness to a task has brought to a score, before age.
TASK = "task"

SECONDS_A_DAY = 86_400

_WORD = re.compile(r"\w+")


def bm25_to_score(rank: float) -> float:
    """Return SQLite's bm25(), which is negative for a match and lower for a better one, as a score in (0, 1).

    The score is r/(1+r) with r = -rank, OpenClaw's 1/(1+rank) for other ranks, and 0.001 for infinities and NaN.
    """
    if not math.isfinite(rank):
        return UNRANKED_SCORE
    return -rank / (1 - rank) if rank < 0 else 1 / (1 + rank)


def boosted_keyword_score(query: str, path: str, text: str, score: float) -> float:
    """Return a keyword score with OpenClaw's boosts for whole words, their density, path and length; 0..1."""
    asked = list(dict.fromkeys(_folded_words(query)))
    if not asked:
        return score
    words = set(_folded_words(text))
    present = sum(word in words for word in asked)
    place = unicodedata.normalize("NFC", path).lower()
    boost = COVERAGE_BOOST * present / len(asked) + (DENSITY_BOOST * present / len(words) if words else 0.0)
    boost += PATH_BOOST * sum(word in place for word in asked)
    boost += min(measure_utf16(text) / FULL_LENGTH_CHARS, LENGTH_BOOST)
    return min(1.0, score + boost)


def standardised(values: Mapping[int, float], ids: Sequence[int]) -> dict[int, float]:
    """Return the z-scores of `values` over `ids`; a missing value counts as the smallest of them and 0."""
    if not ids:
        return {}
    floor = min([0.0, *values.values()])
    filled = [values.get(at, floor) for at in ids]
    mean = math.fsum(filled) / len(filled)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in filled) / len(filled))
    return {at: (value - mean) / deviation if deviation > 1e-12 else 0.0 for at, value in zip(ids, filled, strict=True)}


def weighted_sum(vector: float, keyword: float, vector_weight: float, text_weight: float) -> float:
    """Return the weighted sum of two scores; a search that did not find the chunk counts 0."""
    return vector_weight * vector + text_weight * keyword


def share_of(vector: float, keyword: float) -> float:
    """Return the share of `vector` in `vector + keyword`, 0..1; negative parts count as 0, and the share in 0 is 0."""
    gained = max(vector, 0.0) + max(keyword, 0.0)
    return max(vector, 0.0) / gained if gained > 0 else 0.0


def decayed(score: float, age_days: float, half_life_days: float) -> float:
    """Return `score` halved for every half-life of age, unchanged if age or half-life is not finite and positive."""
    if not math.isfinite(age_days) or not math.isfinite(half_life_days) or half_life_days <= 0:
        return score
    return score * math.exp(-math.log(2) / half_life_days * max(0.0, age_days))


def ranked(
    answers: Iterable[SearchResult],
    query: str,
    *,
    half_life_days: float | None,
    mmr_lambda: float | None,
    now: datetime,
    day_of: Callable[[SearchResult], date | None],
) -> list[SearchResult]:
    """Return results in their final order: by score, or by MMR if `mmr_lambda` is given.

    If the query is the name of a file, results from that file come first, with score 1.

    Args:
        answers: The results.
        query: The query.
        half_life_days: The age at which a result has lost half of its score; None for no decay.
        mmr_lambda: The weight of relevance against diversity, 0..1, or None.
        now: The moment from which age is counted.
        day_of: Returns the day of a result, or None; without a day it does not decay.
    """
    aged = answers
    if half_life_days is not None:
        aged = [_aged(answer, day_of(answer), half_life_days, now) for answer in answers]
    ordered = sorted(aged, key=_place_in_order)
    tiers = {answer.path: _tier(query, answer) for answer in ordered}
    exact = [answer for answer in ordered if tiers[answer.path]]
    named = [replace(answer, score=1.0, confidence="strong", parts={**answer.parts, DECAY: 1.0}) for answer in exact]
    others = [answer for answer in ordered if not tiers[answer.path]]
    if mmr_lambda is not None:
        others = mmr(others, mmr_lambda, lambda answer: answer.score, lambda answer: answer.snippet)
    return sorted(named, key=lambda answer: -tiers[answer.path]) + others


def selected(
    answers: Sequence[SearchResult], min_score: float, limit: int, max_share: float = 1.0, *, fill: bool = True
) -> list[SearchResult]:
    """Return the results at or above the threshold; with `fill`, free places go to chunks that keyword search found.

    These are the ones that keyword search alone found, or all where nothing reaches the threshold. A threshold for a
    sum of two scores would drop every chunk that only one search found, however well it matches.

    Args:
        answers: The results, best first.
        min_score: The threshold.
        limit: How many results at most.
        max_share: The share of transcripts, 0..1, unless notes leave places free.
        fill: Whether results below the threshold may fill places.
    """
    strict = [answer for answer in answers if answer.score >= min_score]
    if not fill:
        return _shared_out(strict, limit, max_share)
    matched = [answer for answer in answers if answer.parts.get(TEXT_SCORE, 0.0) > 0 and answer.score >= 0]
    if not strict:
        return _shared_out(matched, limit, max_share)
    spare = [answer for answer in matched if answer.score < min_score and answer.parts.get(VECTOR_SCORE) == 0]
    return (_shared_out(strict, limit, max_share) + spare)[:limit]


def _shared_out(answers: Sequence[SearchResult], limit: int, max_share: float) -> list[SearchResult]:
    """Return the first `limit` results, with at most the share of transcripts and the places that notes leave free."""
    notes = sum(answer.source == "memory" for answer in answers)
    share = max(math.floor(limit * max_share), math.ceil(max_share))
    room = {"memory": limit, "sessions": max(share, limit - notes)}
    chosen: list[SearchResult] = []
    for answer in answers:
        if room[answer.source] > 0 and len(chosen) < limit:
            room[answer.source] -= 1
            chosen.append(answer)
    return chosen


def _place_in_order(answer: SearchResult) -> tuple[float, float, str, int, int]:
    return (-answer.score, -answer.parts.get(TEXT_SCORE, 0.0), answer.path, answer.start_line, answer.end_line)


def _tier(query: str, answer: SearchResult) -> int:
    """Return how exactly the query names the file; a single word that is the id of a session names no transcript."""
    tier = rank_path_match(query, answer.path)
    return tier if answer.source == "memory" or tier > 1 else 0


def _aged(answer: SearchResult, written: date | None, half_life_days: float, now: datetime) -> SearchResult:
    if written is None:
        return answer
    midnight = datetime(written.year, written.month, written.day, tzinfo=UTC)
    age = (now - midnight).total_seconds() / SECONDS_A_DAY
    left = decayed(1.0, age, half_life_days)
    return replace(answer, score=answer.score * left, parts={**answer.parts, DECAY: left})


def _folded_words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


Item = TypeVar("Item")

_MMR_WORD = re.compile(r"[a-z0-9_]+")
_CJK = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u1100-\u11ff]"


def mmr(
    items: Sequence[Item], relevance: float, score: Callable[[Item], float], text: Callable[[Item], str]
) -> list[Item]:
    """Return items by maximal marginal relevance: relevance * score - (1 - relevance) * similarity to earlier ones.

    Carbonell & Goldstein (1998), with scores scaled to 0..1 and Jaccard similarity of words.

    Args:
        items: The items.
        relevance: The weight of the score, clamped to 0..1; 1 sorts by score.
        score: Returns the score of an item; infinities and NaN rank last.
        text: Returns the text of an item.
    """
    weight = min(1.0, max(0.0, relevance))
    raw = [value if math.isfinite(value) else -math.inf for value in map(score, items)]
    ranked = sorted(range(len(items)), key=lambda at: -raw[at])
    if weight == 1.0 or len(items) < 2:
        return [items[at] for at in ranked]
    finite = [value for value in raw if value > -math.inf] or [0.0]
    low, spread = min(finite), max(finite) - min(finite)
    scaled = [0.0 if value == -math.inf else (value - low) / spread if spread else 1.0 for value in raw]
    likeness = Likeness([text(item) for item in items])
    closest = [0.0] * len(items)  # likeness to the one of the chosen that is most alike
    order: list[int] = []
    while ranked:
        best = max(ranked, key=lambda at: (weight * scaled[at] - (1 - weight) * closest[at], raw[at]))
        order.append(best)
        ranked.remove(best)
        for at in ranked:
            closest[at] = max(closest[at], likeness.between(at, best))
    return [items[at] for at in order]


class Likeness:
    """Jaccard similarity between texts, each of which is split once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [_normal(text) for text in texts]
        self.words = [mmr_words(text) for text in texts]

    def between(self, one: int, other: int) -> float:
        """Return the similarity of two of the texts, 0..1; texts without words are similar only if they are equal."""
        first, second = self.words[one], self.words[other]
        if not first and not second:
            return float(self.texts[one] == self.texts[other])
        return len(first & second) / len(first | second)


def mmr_words(text: str) -> frozenset[str]:
    """Return the ASCII words of a text, and its Chinese, Japanese and Korean characters and pairs of characters."""
    low = _normal(text)
    found = list(re.finditer(_CJK, low))
    characters = [match.group() for match in found]
    at = [match.start() for match in found]
    pairs = [low[a : b + 1] for a, b in pairwise(at) if b == a + 1]
    return frozenset(_MMR_WORD.findall(low)) | frozenset(characters) | frozenset(pairs)


def _normal(text: str) -> str:
    return text.lower().strip()
