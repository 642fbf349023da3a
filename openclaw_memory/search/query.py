"""A parsed query: its terms, its words with their rarity, its names and dates; and checks of what a caller asks for."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import pairwise

from openclaw_memory.config import SearchConfig
from openclaw_memory.config.sections import PARTS, RANGES, checked, normalised_weights
from openclaw_memory.errors import ConfigError, QueryError, nearest
from openclaw_memory.search.query_dates import DateMention, mentioned_dates, text_of_dates
from openclaw_memory.text.terms import content_words, fold, query_terms, word_stem, words
from openclaw_memory.types import SOURCES, SearchRequest
from openclaw_memory.workspace.paths import date_term

MOST_RESULTS = int(RANGES["search.max_results"][1])
# A pasted page is not a query: characters beyond this number are not looked up.
MAX_QUESTION_CHARS = 2000
# Two thousand characters of prose are 350 words. So many characters of Chinese would be 4,000 terms, and 160 ms.
MAX_TERMS = 500
# Within a budget of characters, more and shorter results show more of the evidence (benchmarks/README.md).
BUDGET_PASSAGE_CHARS = 300
# Passages are shorter than they may be: so many more results than would fit at full length.
SPARE = 1.25
LONGEST_YEAR = 4  # digits: a number of more is no year but an identifier
# Settings of `search` that are no rules of one search: arguments have the first two, the memory is all searches'.
RULES_OF_A_SEARCH = frozenset(spec.name for spec in fields(SearchConfig)) - {"max_results", "min_score", "memory_mb"}
_ARGUMENTS = frozenset({"max_results", "max_chars", "min_score"})
_BUILT_WITH = ("chunking", "embedding")  # parts of the configuration
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
    by_date = (date_term(named.year, named.month, named.day) for named in dates if named.month is not None)
    content_terms = query_terms(text)[:MAX_TERMS]
    content = tuple(content_words(text)[:MAX_TERMS])
    stems = tuple(map(word_stem, content))
    return Query(
        text=whole,
        terms=tuple(dict.fromkeys([*content_terms, *by_date])),
        words=content,
        stems=stems,
        pairs=frozenset(pair for pair in pairwise(map(word_stem, words(text))) if set(pair) & set(stems)),
        identifiers=frozenset(filter(_is_identifier, content_terms)) - set(query_terms(date_text)),
        names=frozenset(fold(word) for word in _NAME.findall(whole) if word[0].isupper()),
        dates=dates,
        date_words=frozenset(words(date_text)),
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


def rules_of(request: SearchRequest, rules: SearchConfig) -> SearchConfig:
    """Return `rules` with what a request says in place of the configured values, and first with its own `rules`.

    A `min_score` of the request is a floor: nothing passes below it. For a budget of `max_chars` passages are shorter,
    and there are as many as fill it; whole chunks stay as they are.

    Raises:
        QueryError: An argument of the search is not valid; the message names it.
    """
    max_results, max_chars, min_score = request.max_results, request.max_chars, request.min_score
    _check_words(request)
    rules = _overridden(rules, request.rules)
    if max_chars is not None:
        if not isinstance(max_chars, int) or isinstance(max_chars, bool) or max_chars < 1:
            raise QueryError(f"max_chars must be a whole number of at least 1, not {max_chars!r}")
        if rules.answer == "lines":
            most = min(rules.snippet_chars, max_chars)
            length = min(rules.passage_chars or BUDGET_PASSAGE_CHARS, most)
            count = min(math.ceil(SPARE * max_chars / length), MOST_RESULTS)
            rules = replace(rules, snippet_chars=most, passage_chars=length, max_results=count)
    if max_results is not None:
        if not isinstance(max_results, int) or isinstance(max_results, bool) or max_results < 1:
            raise QueryError(f"max_results must be a whole number of at least 1, not {max_results!r}")
        rules = replace(rules, max_results=min(max_results, MOST_RESULTS))
    if min_score is not None:
        if not isinstance(min_score, int | float) or isinstance(min_score, bool) or not 0 <= min_score <= 1:
            raise QueryError(f"min_score must be a number from 0 to 1, not {min_score!r}")
        rules = replace(rules, min_score=float(min_score), keyword_fill=False)
    return rules


def _check_words(request: SearchRequest) -> None:
    if not isinstance(request.query, str):
        raise QueryError(f"query must be a string, not {type(request.query).__name__}")
    if request.source is not None and request.source not in SOURCES:
        known = ", ".join(map(repr, SOURCES))
        raise QueryError(f"source {request.source!r} is unknown; use {known}, or leave it out for all")
    if request.task is not None and not isinstance(request.task, str):
        raise QueryError(f"task must be a string or None, not {type(request.task).__name__}")


def _overridden(rules: SearchConfig, overrides: object) -> SearchConfig:
    """Return `rules` with other values, checked as those of a configuration are; none is clamped."""
    if overrides is None:
        return rules
    if not isinstance(overrides, Mapping):
        raise QueryError(f"rules must be a dict such as {{'mmr': 0.7}}, not a value of type {type(overrides).__name__}")
    for name in overrides:
        if name not in RULES_OF_A_SEARCH:
            raise QueryError(_why_no_rule(str(name)))
    notices: list[str] = []
    try:
        changed: SearchConfig = checked("search", replace(rules, **overrides), notices)
    except ConfigError as error:
        raise QueryError(f"rules of a search: {error}") from error
    if not notices and 0 < changed.vector_weight + changed.text_weight < math.inf:
        return normalised_weights(changed, [])
    wrong = notices[0].rpartition(": ")[0] if notices else "vector_weight and text_weight have no usable sum"
    raise QueryError(f"rules of a search: {wrong}")


def _why_no_rule(name: str) -> str:
    if name in _ARGUMENTS:
        return f"{name} is an argument of a search and none of its rules: search(query, {name}=...)"
    for part in _BUILT_WITH:
        if name in {spec.name for spec in fields(PARTS[part])}:
            return (
                f"{name} cannot differ for one search: the index is built with {part}.{name}. Open the memory with "
                "another config, and sync"
            )
    known = sorted(RULES_OF_A_SEARCH)
    return f"a search has no rule {name!r}: {nearest(name, known)}rules are {', '.join(known)}"


def with_time_zone(now: object) -> datetime | None:
    """Return a moment with a time zone: its own, or else that of the machine.

    Raises:
        QueryError: It is not a `datetime`, or is outside what the time zone of the machine covers.
    """
    if now is None:
        return None
    if not isinstance(now, datetime):
        raise QueryError(f"now must be a datetime, not {now!r}")
    try:
        return now if now.tzinfo else now.astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise QueryError(
            f"now cannot be {now!r} ({error}): give a moment with a time zone, such as datetime.now(UTC)"
        ) from error
