"""Maximal marginal relevance: answers in an order that does not say the same thing twice (pure)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")

_WORD = re.compile(r"[a-z0-9_]+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u1100-\u11ff]")


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
    """Jaccard likeness between texts, each taken apart once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [_normal(text) for text in texts]
        self.words = [mmr_words(text) for text in texts]

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
    characters = [match.group() for match in _CJK.finditer(low)]
    at = [match.start() for match in _CJK.finditer(low)]
    pairs = [low[a : b + 1] for a, b in pairwise(at) if b == a + 1]
    return frozenset(_WORD.findall(low)) | frozenset(characters) | frozenset(pairs)


def _normal(text: str) -> str:
    return text.lower().strip()
