"""Group lines that are nearly the same, by the words that they share (pure)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

LIKENESS = 0.8  # Jaccard of the words of two lines
MIN_WORDS = 6  # of a line: shorter ones are alike by chance
_WORD = re.compile(r"\w+")


class Line(NamedTuple):
    """A line of a note: its path, its number from 1, and its text."""

    path: str
    number: int
    text: str


def find_duplicates(lines: Iterable[Line], is_up: Callable[[], bool] = lambda: False) -> list[list[Line]] | None:
    """Return groups of lines that are alike, the largest first; None if the time is up before the end.

    Two lines with a Jaccard likeness of at least 0.8 share one of their rarest words: only those are compared
    (Bayardo, Ma, Srikant: Scaling Up All Pairs Similarity Search, WWW 2007).

    Args:
        lines: The lines.
        is_up: Returns whether the time is up.
    """
    by_words: defaultdict[frozenset[str], list[Line]] = defaultdict(list)
    for line in lines:
        words = frozenset(_WORD.findall(line.text.casefold()))
        if len(words) >= MIN_WORDS:
            by_words[words].append(line)
    sets = list(by_words)
    counts = Counter(word for words in sets for word in words)
    parents = list(range(len(sets)))
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(sets):
        if at % 256 == 0 and is_up():
            return None
        rarest = sorted(words, key=lambda word: (counts[word], word))
        prefix = rarest[: len(words) - math.ceil(LIKENESS * len(words)) + 1]
        for candidate in {place for word in prefix for place in places[word]}:
            if _find_root(parents, candidate) == _find_root(parents, at):
                continue
            shared = len(words & sets[candidate])
            if shared / (len(words) + len(sets[candidate]) - shared) >= LIKENESS:
                parents[_find_root(parents, candidate)] = _find_root(parents, at)
        for word in prefix:
            places[word].append(at)
    groups: defaultdict[int, list[Line]] = defaultdict(list)
    for at, words in enumerate(sets):
        groups[_find_root(parents, at)] += by_words[words]
    return sorted((group for group in groups.values() if len(group) > 1), key=len, reverse=True)


def _find_root(parents: list[int], at: int) -> int:
    while parents[at] != at:
        parents[at] = parents[parents[at]]
        at = parents[at]
    return at
