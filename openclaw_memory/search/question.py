"""A question, taken apart once: its terms with their rarity, its words, names and dates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from openclaw_memory.search.dates import DateMention, mentioned_dates
from openclaw_memory.text import content_words, fold, query_terms, stem, terms

_NAME = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for. `weights` holds the rarity (inverse document frequency) of each of `terms`.

    `words` are the words as written, folded, for a model of word likeness; `pairs` are terms that stand side by side.
    """

    text: str
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    words: tuple[str, ...]
    word_weights: tuple[float, ...]
    pairs: frozenset[tuple[str, str]]
    identifiers: frozenset[str]
    names: frozenset[str]
    dates: tuple[DateMention, ...]


def asked(text: str, found: tuple[str, ...], frequencies: Mapping[str, int], chunk_count: int) -> Question:
    """The question `text` with its terms `found`, of which each occurs in so many of `chunk_count` chunks."""
    words = tuple(content_words(text))
    in_order = terms(text)
    return Question(
        text=text,
        terms=found,
        weights=tuple(rarity(frequencies.get(term, 0), chunk_count) for term in found),
        words=words,
        word_weights=tuple(rarity(frequencies.get(stem(fold(word)), 0), chunk_count) for word in words),
        pairs=frozenset(pair for pair in pairwise(in_order) if set(pair) & set(found)),
        identifiers=frozenset(term for term in found if _is_identifier(term)),
        names=frozenset(fold(word) for word in _NAME.findall(text) if word[0].isupper()),
        dates=mentioned_dates(text),
    )


def question_terms(text: str) -> tuple[str, ...]:
    """The terms that a question is looked up by."""
    return tuple(query_terms(text))


def terms_to_count(text: str, found: tuple[str, ...]) -> set[str]:
    """The terms whose frequency `asked` wants to know."""
    return {*found, *(stem(fold(word)) for word in content_words(text))}


def _is_identifier(term: str) -> bool:
    """Joined words, or letters and digits mixed: written so, it is meant as it is written."""
    return any(sign in term for sign in "-_.") or (term.isascii() and not term.isalpha() and not term.isdigit())


def rarity(frequency: int, count: int) -> float:
    """Inverse document frequency in Lucene's form of BM25, above zero: log(1 + (N - n + 0.5) / (n + 0.5))."""
    return math.log(1 + (max(count, frequency) - frequency + 0.5) / (frequency + 0.5))
