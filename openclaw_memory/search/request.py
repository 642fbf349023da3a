"""Define the filter and the options of a search, and the request that a backend gets."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from openclaw_memory.config.sections import MAX_RESULTS, SECTIONS, SearchConfig, check_section
from openclaw_memory.errors import ConfigError, QueryError, suggest
from openclaw_memory.search.filters import SearchFilter, check_share, make_chunk_filter, read_value

if TYPE_CHECKING:
    from openclaw_memory.config.config import MemoryConfig
    from openclaw_memory.types.conditions import Where

# Within a budget of characters, more and shorter results show more of the evidence (benchmarks/README.md).
BUDGET_PASSAGE_CHARS = 300
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
            raise QueryError(_explain_refusal(str(unknown[0])))
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


class BudgetSettings(SearchConfig, frozen=True):
    """Settings of a search with a budget: lines are joined to shorter passages than a snippet may be."""

    passage_chars: int = BUDGET_PASSAGE_CHARS  # a property of all others


def resolve_request(request: SearchRequest, config: MemoryConfig) -> SearchRequest:
    """Return a request with the settings and the test of chunks that follow from it.

    Args:
        request: The arguments of a search.
        config: The settings of the memory.

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

    Args:
        request: The arguments of a search.
        settings: The configured settings.

    Raises:
        QueryError: An argument of the search is not valid; the message names it.
    """
    if not isinstance(request.query, str):
        raise QueryError(f"query must be a string, not {type(request.query).__name__}")
    settings = _apply_settings(settings, request.options.settings)
    if request.max_chars is not None:
        max_chars = _check_count("max_chars", request.max_chars)
        if settings.answer == "lines":
            most = min(settings.snippet_chars, max_chars)
            length = min(BUDGET_PASSAGE_CHARS, most)
            count = min(math.ceil(1.25 * max_chars / length), MAX_RESULTS)  # passages are shorter than they may be
            values: dict[str, Any] = structs.asdict(settings) | {"snippet_chars": most, "max_results": count}
            settings = BudgetSettings(**values, passage_chars=length)
    if request.max_results is not None:
        settings = structs.replace(
            settings, max_results=min(_check_count("max_results", request.max_results), MAX_RESULTS)
        )
    if request.min_score is not None:
        settings = structs.replace(settings, min_score=check_share("min_score", request.min_score))
    return settings


def with_time_zone(now: object) -> datetime.datetime | None:
    """Return a moment with a time zone: its own, or else that of the machine.

    Raises:
        QueryError: It is not a `datetime`.
    """
    if not isinstance(now, datetime.datetime | None):
        raise QueryError(f"now must be a datetime, not {now!r}")
    return now if now is None or now.tzinfo else now.astimezone()


def _check_count(name: str, value: object) -> int:
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


def _explain_refusal(name: str) -> str:
    if name in {"max_results", "max_chars", "min_score"}:
        return f"{name} is an argument of a search and none of its settings: search(query, {name}=...)"
    for part in ("chunking", "embedding"):  # an index is built with these parts of the configuration
        if name in SECTIONS[part].__struct_fields__:
            return f"{name} cannot differ for one search: set {part}.{name} in another config, and sync"
    names = sorted(SETTINGS_OF_A_SEARCH)
    return f"a search has no setting {name!r}: {suggest(name, names)}settings are {', '.join(names)}"
