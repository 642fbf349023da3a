"""Scores into an order: fusion of both legs, temporal decay, the threshold rule and MMR (pure).

The formulas are OpenClaw's (2026.9); where this file differs, `docs/differences.md` says why.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

Item = TypeVar("Item")

# OpenClaw's lexical boosts: whole-word coverage, density, words in the path, and length.
COVERAGE_BOOST = 0.45
DENSITY_BOOST = 0.2
PATH_BOOST = 0.18
LENGTH_BOOST = 0.18
FULL_LENGTH_CHARS = 160
UNRANKED_SCORE = 0.001

_WORD = re.compile(r"\w+")
_MMR_WORD = re.compile(r"[a-z0-9_]+")
_MMR_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u1100-\u11ff]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk or a window on its way to an answer. `keyword` is the keyword score that is fused, `text` the raw one."""

    path: str
    start_line: int
    end_line: int
    snippet: str
    vector: float = 0.0
    text: float = 0.0
    keyword: float = 0.0
    score: float = 0.0
    exact_path: int = 0


def bm25_to_score(rank: float) -> float:
    """SQLite's bm25() as a score in (0, 1): it is negative where a row matches, and the more so the better.

    r/(1+r) with r = -rank; OpenClaw's 1/(1+rank) for ranks that are not negative, 0.001 for what is not finite.
    """
    if not math.isfinite(rank):
        return UNRANKED_SCORE
    return -rank / (1 - rank) if rank < 0 else 1 / (1 + rank)


def boosted_keyword_score(question: str, path: str, text: str, score: float) -> float:
    """A keyword score with OpenClaw's boosts for words that stand in the text whole, for density, path and length; 0..1."""
    asked = list(dict.fromkeys(_folded_words(question)))
    if not asked:
        return score
    words = set(_folded_words(text))
    present = sum(word in words for word in asked)
    place = unicodedata.normalize("NFC", path).lower()
    boost = COVERAGE_BOOST * present / len(asked) + (DENSITY_BOOST * present / len(words) if words else 0.0)
    boost += PATH_BOOST * sum(word in place for word in asked)
    boost += min(len(text.encode("utf-16-le", "surrogatepass")) // 2 / FULL_LENGTH_CHARS, LENGTH_BOOST)
    return min(1.0, score + boost)


def standardised(values: Mapping[int, float], ids: Sequence[int]) -> dict[int, float]:
    """z-scores of `values` over `ids`, where an id without a value counts as the smallest value or 0, if that is less."""
    if not ids:
        return {}
    floor = min([0.0, *values.values()])
    filled = [values.get(at, floor) for at in ids]
    mean = math.fsum(filled) / len(filled)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in filled) / len(filled))
    return {at: (value - mean) / deviation if deviation > 1e-12 else 0.0 for at, value in zip(ids, filled, strict=True)}


def weighted(candidates: Iterable[Candidate], vector_weight: float, text_weight: float) -> list[Candidate]:
    """Each candidate with score = vector_weight * vector + text_weight * keyword."""
    return [replace(found, score=vector_weight * found.vector + text_weight * found.keyword) for found in candidates]


def decayed(score: float, age_days: float, half_life_days: float) -> float:
    """`score` halved for every half-life of age; unchanged where age or half-life is not a finite number above zero."""
    if not math.isfinite(age_days) or not math.isfinite(half_life_days) or half_life_days <= 0:
        return score
    return score * math.exp(-math.log(2) / half_life_days * max(0.0, age_days))


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """By exact path first, then score, keyword score, path and line."""
    return sorted(candidates, key=lambda c: (-c.exact_path, -c.score, -c.text, c.path, c.start_line, c.end_line))


def selected(candidates: Sequence[Candidate], min_score: float, limit: int) -> list[Candidate]:
    """Candidates at or above the threshold; places left over go to keyword matches that no vector speaks for.

    A threshold set for fused scores would otherwise drop every hit that only the keyword leg found.
    """
    strict = [found for found in candidates if found.score >= min_score]
    by_keyword = [found for found in candidates if found.text > 0 and found.score >= 0]
    if not strict:
        return by_keyword[:limit]
    spare = [found for found in by_keyword if found.score < min_score and found.vector == 0]
    return (strict + spare)[:limit]


def mmr(
    items: Sequence[Item], relevance: float, score: Callable[[Item], float], text: Callable[[Item], str]
) -> list[Item]:
    """Order by maximal marginal relevance: relevance * score - (1 - relevance) * likeness to what already stands.

    Carbonell & Goldstein (1998), with scores scaled to 0..1 and Jaccard likeness of words. `relevance` is clamped to
    0..1; 1 sorts by score. Scores that are not numbers rank last instead of emptying the answer.
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
    order: list[int] = []
    while ranked:
        best = max(ranked, key=lambda at: (weight * scaled[at] - (1 - weight) * likeness.nearest(at, order), raw[at]))
        order.append(best)
        ranked.remove(best)
    return [items[at] for at in order]


class Likeness:
    """Jaccard likeness between texts, each taken apart once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [_normal(text) for text in texts]
        self.words = [mmr_words(text) for text in texts]

    def nearest(self, at: int, others: Iterable[int]) -> float:
        """The largest likeness of text `at` to the others; 0 when there are none."""
        return max((self.between(at, other) for other in others), default=0.0)

    def between(self, one: int, other: int) -> float:
        """0..1; texts without words are alike only where they are the same."""
        first, second = self.words[one], self.words[other]
        if not first and not second:
            return float(self.texts[one] == self.texts[other])
        return len(first & second) / len(first | second)


def text_similarity(one: str, other: str) -> float:
    """Jaccard likeness of two texts, 0..1."""
    return Likeness([one, other]).between(0, 1)


def mmr_words(text: str) -> frozenset[str]:
    """ASCII words, and characters and pairs of characters of Chinese, Japanese and Korean."""
    low = _normal(text)
    characters = [match.group() for match in _MMR_CJK.finditer(low)]
    at = [match.start() for match in _MMR_CJK.finditer(low)]
    pairs = [low[a : b + 1] for a, b in zip(at, at[1:], strict=False) if b == a + 1]
    return frozenset(_MMR_WORD.findall(low)) | frozenset(characters) | frozenset(pairs)


def _normal(text: str) -> str:
    return text.lower().strip()


def _folded_words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())
