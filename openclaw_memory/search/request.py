"""Define the filter and the options of a search, and the request that a backend gets."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from openclaw_memory.config.sections import MAX_RESULTS, SearchConfig, check_section
from openclaw_memory.errors import ConfigError, QueryError, suggest
from openclaw_memory.search.filters import SearchFilter, check_share, make_chunk_filter, read_value

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.types.conditions import Where

# Within a budget of characters, more and shorter results show more of the evidence (benchmarks/README.md).
BUDGET_PASSAGE_CHARS = 300
# Of a list over several notes a small budget takes so many passages, each of so many characters at least.
LIST_PASSAGES, LIST_PASSAGE_CHARS = 14, 120
# Settings that one search may have otherwise: not those that are arguments, nor the memory that searches share.
SETTINGS_OF_A_SEARCH = frozenset(SearchConfig.__struct_fields__) - {"max_results", "min_score", "memory_mb"}
_OPTIONS = (
    ("explain", bool, "true or false"),
    ("task", str | None, "a string"),
    ("settings", Mapping | None, "a dict"),
)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Set options of one search.

    Attributes:
        explain: Keep the parts of scores for `SearchResults.explain()`.
        task: The work that the query is for, in a sentence or several: of results that answer about as well, those that
            have more to do with it come first . A blank one changes nothing.
        settings: Settings of `config.search` that this search has instead, as `{"mmr": 0.7, "half_life_days": 30}`;
            None turns either off. Not `max_results`, `min_score`, which are arguments, and `memory_mb`.

    Raises:
        QueryError: A value has a wrong type, or a search has no such setting.
    """

    explain: bool = False
    task: str | None = None
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check the values; those of the settings are checked with the others of a search."""
        for name, kind, words in _OPTIONS:
            if not isinstance(value := getattr(self, name), kind):
                raise QueryError(f"{name} must be {words}, not a value of type {type(value).__name__}")
        settings = dict(self.settings or {})
        if unknown := [name for name in settings if name not in SETTINGS_OF_A_SEARCH]:
            hint = suggest(str(unknown[0]), names := sorted(SETTINGS_OF_A_SEARCH))
            raise QueryError(f"a search has no setting '{unknown[0]}': {hint}settings are {', '.join(names)}")
        object.__setattr__(self, "settings", settings)

    @classmethod
    def read(cls, value: SearchOptions | Mapping[str, Any] | None) -> SearchOptions:
        """Return the options that a caller means.

        Args:
            value: Options, or some of them by their names; None for the usual ones.

        Raises:
            QueryError: It is something else, or a value is not valid.
        """
        return read_value(cls, value, "options")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The arguments of `Memory.search`, and the settings and tests that follow from them, for a `Backend`.

    Attributes:
        query: The question or keywords.
        max_results: The most results, as the caller wants it.
        max_chars: The most characters of all snippets.
        min_score: The least score, as the caller wants it.
        filter: Which lines count.
        options: How this search differs.
        now: The moment of the search.
        settings: The settings that apply, those of `options` and of the arguments among them; see `resolve_request`.
        where: A test of the path and metadata of each chunk.
        passes: A test of the path of each file; None if all pass.
    """

    query: str
    max_results: int | None = None
    max_chars: int | None = None
    min_score: float | None = None
    filter: SearchFilter = field(default_factory=SearchFilter)
    options: SearchOptions = field(default_factory=SearchOptions)
    now: datetime.datetime | None = None
    settings: SearchConfig = field(default_factory=SearchConfig)
    where: Where | None = None
    passes: Callable[[str], bool] | None = None

    @property
    def has_task(self) -> bool:
        """True if the likeness to a task counts."""
        return bool((self.options.task or "").strip())


def resolve_request(request: SearchRequest, config: MemoryConfig) -> SearchRequest:
    """Return a request with the settings and the test of chunks that follow from it.

    Raises:
        QueryError: An argument of the search is not valid; the message names it.
    """
    settings, only = apply_request(request, config.search), request.filter
    if only.phrases and request.min_score is None:
        settings = structs.replace(settings, min_score=0.0)  # whatever holds the phrase was asked for
    now, where = with_time_zone(request.now), request.where
    if only.asks_metadata:
        where = make_chunk_filter(only, now)
    return replace(request, settings=settings, where=where, now=now)


def apply_request(request: SearchRequest, settings: SearchConfig) -> SearchConfig:
    """Return the settings of a search: those of its options, its arguments, and else the configured ones.

    A `min_score` of the request is a floor: nothing passes below it. For a budget of `max_chars` passages are shorter,
    and there are as many as fill it; whole chunks stay as they are.

    Raises:
        QueryError: An argument of the search is not valid; the message names it.
    """
    if not isinstance(request.query, str):
        raise QueryError(f"query must be a string, not {type(request.query).__name__}")
    settings = _apply_settings(settings, request.options.settings)
    if request.max_chars is not None:
        max_chars = check_count("max_chars", request.max_chars)
        if settings.answer == "lines":
            most = min(settings.snippet_chars, max_chars)
            shortest = limit_passage(most, max_chars, is_list=True)
            count = min(math.ceil(1.25 * max_chars / shortest), MAX_RESULTS)
            settings = structs.replace(settings, snippet_chars=most, max_results=count)
    if request.max_results is not None:
        count = check_count("max_results", request.max_results)
        settings = structs.replace(settings, max_results=min(count, MAX_RESULTS))
    if request.min_score is not None:
        settings = structs.replace(settings, min_score=check_share("min_score", request.min_score))
    return settings


def limit_passage(snippet_chars: int, max_chars: int | None, *, is_list: bool) -> int:
    """Return the most characters that lines are joined to.

    Args:
        snippet_chars: The most characters of a snippet.
        max_chars: The most characters of all snippets; None for any number.
        is_list: Whether the answer is a list over several notes.
    """
    if max_chars is None:
        return snippet_chars
    length = max(LIST_PASSAGE_CHARS, max_chars // LIST_PASSAGES) if is_list else BUDGET_PASSAGE_CHARS
    return min(snippet_chars, BUDGET_PASSAGE_CHARS, length)


def with_time_zone(now: object) -> datetime.datetime | None:
    """Return a moment with a time zone: its own, or else that of the machine.

    Raises:
        QueryError: It is not a `datetime`.
    """
    if not isinstance(now, datetime.datetime | None):
        raise QueryError(f"now must be a datetime, not {now!r}")
    return now if now is None or now.tzinfo else now.astimezone()


def check_count(name: str, value: object) -> int:
    """Return a whole number of at least 1; raise QueryError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise QueryError(f"{name} must be a whole number of at least 1, not {value!r}")
    return value


def _apply_settings(settings: SearchConfig, overrides: Mapping[str, Any] | None) -> SearchConfig:
    """Return settings with other values, checked as those of a configuration are; none is clamped."""
    if not overrides:
        return settings
    notices: list[str] = []
    try:
        changed: SearchConfig = check_section("search", structs.replace(settings, **overrides), notices)
    except ConfigError as error:
        raise QueryError(f"settings of a search: {error}") from error
    if wrong := [notice for notice in notices if "were scaled" not in notice]:
        raise QueryError(f"settings of a search: {wrong[0].rpartition(': ')[0]}")
    return changed
