"""A parsed query: its terms, its words with their rarity, its names and dates."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from openclaw_memory.search.query_dates import DateMention, mentioned_dates, text_of_dates
from openclaw_memory.text.terms import fold, select_content_words, split_query, split_words, stem_word
from openclaw_memory.workspace.paths import format_date_term

# A pasted page is not a query: characters beyond this number are not looked up.
MAX_QUESTION_CHARS = 2000
# Two thousand characters of prose are 350 words. So many characters of Chinese would be 4,000 terms, and 160 ms.
MAX_TERMS = 500
LONGEST_YEAR = 4  # digits: a number of more is no year but an identifier
_NAME = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query: `terms` are looked up in the keyword index, `words` in the lines of the chunks that are found.

    `words` are lower case, without stop words; `stems` are what they are compared by, `weights` how rare they are
    (inverse document frequency). `pairs` are the stems of adjacent words, stop words included. `date_words` are the
    words of `dates`, folded.
    """

    text: str
    terms: tuple[str, ...]
    words: tuple[str, ...]
    stems: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    identifiers: frozenset[str]
    names: frozenset[str]
    dates: tuple[DateMention, ...]
    date_words: frozenset[str]
    weights: tuple[float, ...] = ()


def parse_query(text: str) -> Query:
    """Return the query in `text`, without `weights`: `weighed` adds them once term frequencies are known.

    The first 2,000 characters count, and the first 500 terms.
    """
    text = text[:MAX_QUESTION_CHARS]
    whole, text = text, unicodedata.normalize("NFKC", text)[:MAX_QUESTION_CHARS]  # one character may become eighteen
    dates = mentioned_dates(text)
    date_text = text_of_dates(text)
    by_date = (format_date_term(named.year, named.month, named.day) for named in dates if named.month is not None)
    content_terms = split_query(text)[:MAX_TERMS]
    content = tuple(select_content_words(text)[:MAX_TERMS])
    stems = tuple(map(stem_word, content))
    return Query(
        text=whole,
        terms=tuple(dict.fromkeys([*content_terms, *by_date])),
        words=content,
        stems=stems,
        pairs=frozenset(pair for pair in pairwise(map(stem_word, split_words(text))) if set(pair) & set(stems)),
        identifiers=frozenset(filter(_is_identifier, content_terms)) - set(split_query(date_text)),
        names=frozenset(fold(word) for word in _NAME.findall(whole) if word[0].isupper()),
        dates=dates,
        date_words=frozenset(split_words(date_text)),
    )


def weighed(query: Query, frequencies: Mapping[str, int], chunk_count: int) -> Query:
    """Return the query with the rarity of each word; `frequencies` holds in how many of the chunks each stem occurs."""
    return replace(query, weights=tuple(rarity(frequencies.get(term, 0), chunk_count) for term in query.stems))


def _is_identifier(term: str) -> bool:
    """Return whether a term is an identifier: joined words, a long number, or letters mixed with digits."""
    if term.isdigit():
        return len(term) > LONGEST_YEAR
    return any(sign in term for sign in "-_.") or (term.isascii() and not term.isalpha())


def is_code(identifier: str) -> bool:
    """Return whether an identifier names one thing (`GEO-1000`, `retry_limit`), unlike joined words (`follow-up`)."""
    return "_" in identifier or any(sign.isdigit() for sign in identifier)


def rarity(frequency: int, count: int) -> float:
    """Return the inverse document frequency in Lucene's form, above zero: log(1 + (N - n + 0.5) / (n + 0.5))."""
    return math.log(1 + (max(count, frequency) - frequency + 0.5) / (frequency + 0.5))
