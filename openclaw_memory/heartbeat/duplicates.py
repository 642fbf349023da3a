"""Lines that say nearly the same, by the words that they share (pure)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

LIKENESS = 0.8  # Jaccard of the words of two lines
FEWEST_WORDS = 6  # of a line: shorter ones are alike by chance
_WORD = re.compile(r"\w+")


class Line(NamedTuple):
    """A line of a note: its path, its number from 1, and its text."""

    path: str
    number: int
    text: str


def near_duplicates(lines: Iterable[Line], is_up: Callable[[], bool] = lambda: False) -> list[list[Line]] | None:
    """Return groups of lines that are alike, the largest first; None where `is_up` says so before the end.

    Two lines of a Jaccard likeness of at least 0.8 share one of their rarest words: only those that do are compared
    (Bayardo, Ma, Srikant: Scaling Up All Pairs Similarity Search, WWW 2007).
    """
    same: defaultdict[frozenset[str], list[Line]] = defaultdict(list)
    for line in lines:
        words = frozenset(_WORD.findall(line.text.casefold()))
        if len(words) >= FEWEST_WORDS:
            same[words].append(line)
    known = list(same)
    counts = Counter(word for words in known for word in words)
    parent = list(range(len(known)))
    by_word: defaultdict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(known):
        if at % 256 == 0 and is_up():
            return None
        rarest = sorted(words, key=lambda word: (counts[word], word))
        prefix = rarest[: len(words) - math.ceil(LIKENESS * len(words)) + 1]
        for other in {other for word in prefix for other in by_word[word]}:
            if _root(parent, other) != _root(parent, at) and _likeness(words, known[other]) >= LIKENESS:
                parent[_root(parent, other)] = _root(parent, at)
        for word in prefix:
            by_word[word].append(at)
    groups: defaultdict[int, list[Line]] = defaultdict(list)
    for at, words in enumerate(known):
        groups[_root(parent, at)] += same[words]
    return sorted((group for group in groups.values() if len(group) > 1), key=len, reverse=True)


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _root(parent: list[int], at: int) -> int:
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = parent[at]
    return at


def merged_words(group: Sequence[Line]) -> str:
    """Return in words what a group of lines is, with the longest of them."""
    longest = max(group, key=lambda line: len(line.text))
    places = ", ".join(f"{line.path}#L{line.number}" for line in group[:5])
    more = f" and {len(group) - 5} more" if len(group) > 5 else ""
    return f"{len(group)} lines say nearly the same ({places}{more}): keep one, such as: {longest.text.strip()}"
