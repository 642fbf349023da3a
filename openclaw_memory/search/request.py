"""Define the filter and the options of a search, and the request that a backend gets."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, get_args
from unicodedata import normalize

from openclaw_memory.config import SearchConfig
from openclaw_memory.config.globs import read_paths
from openclaw_memory.config.sections import PARTS, RANGES, checked, normalised_weights
from openclaw_memory.errors import ConfigError, QueryError, nearest
from openclaw_memory.types.files import SOURCES, Source
from openclaw_memory.types.records import RecordType
from openclaw_memory.workspace.days import parse_day

MAX_RESULTS = int(RANGES["search.max_results"][1])
# Within a budget of characters, more and shorter results show more of the evidence (benchmarks/README.md).
BUDGET_PASSAGE_CHARS = 300
# Settings that one search may have otherwise: not those that are arguments, nor the memory that searches share.
SETTINGS_OF_A_SEARCH = frozenset(spec.name for spec in fields(SearchConfig)) - {"max_results", "min_score", "memory_mb"}
_OPTIONS = (
    ("explain", bool, "true or false"),
    ("task", str | None, "a string"),
    ("settings", Mapping | None, "a dict"),
)
_TEXTS = ("path", "type", "key", "user_id", "tags", "phrases", "without")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Confine a search to lines that pass each of these values.

    Each but `source`, `since`, `until` and `min_confidence` is a text or several.

    Attributes:
        path: Globs as in a `.gitignore`, of which the file matches one: `memory/2026-*`, `projects/`.
        source: "memory" for notes, "sessions" for transcripts.
        since: The first day: a date, or its text in ISO 8601. The day of a line is the one in a note's name, of a
            message in a transcript, of the field `date` above a text, when a record was last updated; without any of
            these, that of the file's last change. A message without a time has no day.
        until: The last day, included.
        type: Lines of a record of one of these types: preference, fact, decision, entity, reminder, other.
        key: Lines of a record whose key matches one of these globs: `editor.*`. `*` matches a `.` too; case counts.
        user_id: Lines of a record of one of these users.
        tags: The front matter of the file has each of these; `#` and case do not count.
        min_confidence: Records that are less sure at the time of the search, 0..1, to the hour, do not count.
        phrases: The chunk that holds the line has each of these, word after word. A search returns all such chunks,
            unless it has a `min_score`.
        without: It has none of these words, in its text, its headings or its path.

    Raises:
        QueryError: A value has a wrong type, or cannot be.
    """

    path: Sequence[str] = ()
    source: Source | None = None
    since: datetime.date | str | None = None
    until: datetime.date | str | None = None
    type: Sequence[str] = ()
    key: Sequence[str] = ()
    user_id: Sequence[str] = ()
    tags: Sequence[str] = ()
    min_confidence: float | None = None
    phrases: Sequence[str] = ()
    without: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the values, and make tuples of texts."""
        texts = {name: _texts(name, getattr(self, name)) for name in _TEXTS}
        if self.source is not None and self.source not in SOURCES:
            known = ", ".join(map(repr, SOURCES))
            raise QueryError(f"source {self.source!r} is unknown; use {known}, or leave it out for all")
        _check_texts(texts)
        for name in ("key", "user_id"):  # as records write them
            texts[name] = tuple(normalize("NFC", text) for text in texts[name])
        texts["tags"] = tuple(dict.fromkeys(map(fold_tag, texts["tags"])))
        for name, value in texts.items():
            object.__setattr__(self, name, value)
        if self.min_confidence is not None:
            object.__setattr__(self, "min_confidence", _share("min_confidence", self.min_confidence))
        for name in ("since", "until"):
            parse_day(getattr(self, name), name, None, error=QueryError)

    @classmethod
    def read(cls, value: SearchFilter | Mapping[str, Any] | None) -> SearchFilter:
        """Return the filter that a caller means.

        Args:
            value: A filter, its fields by their names, or None for one that all lines pass.

        Raises:
            QueryError: It is something else, or a value is not valid.
        """
        return _read(cls, value, "filter")

    @property
    def asks_metadata(self) -> bool:
        """Return whether the metadata of chunks decide, and not their source or their words alone."""
        limits = (self.since, self.until, self.min_confidence)
        return any((self.path, self.type, self.key, self.user_id, self.tags)) or any(
            limit is not None for limit in limits
        )

    def resolve_days(self, timezone: str | None) -> SearchFilter:
        """Return the filter with days in place of moments.

        Args:
            timezone: Where moments have their day: an IANA time zone, or this machine's where None.

        Raises:
            QueryError: The first day is later than the last.
        """
        if self.since is None and self.until is None:
            return self
        since, until = (parse_day(getattr(self, name), name, timezone, error=QueryError) for name in ("since", "until"))
        if since and until and since > until:
            raise QueryError(f"since ({since}) is later than until ({until}): exchange them")
        return replace(self, since=since, until=until)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Set options of one search.

    Attributes:
        explain: Keep what `SearchResults.explain()` shows.
        task: What the asker is at work on, in a sentence or several: of results that answer about as well, those that
            have more to do with it come first (`config.search.task_weight`). A blank one changes nothing.
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
        return _read(cls, value, "options")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search as a `Backend` is asked it: the arguments of `Memory.search`, which says what each of them means."""

    query: str
    max_results: int | None = None
    max_chars: int | None = None
    min_score: float | None = None
    filter: SearchFilter = field(default_factory=SearchFilter)
    options: SearchOptions = field(default_factory=SearchOptions)
    now: datetime.datetime | None = None


def apply_request(request: SearchRequest, rules: SearchConfig) -> SearchConfig:
    """Return the settings of a search: those of its options, its arguments, and else the configured ones.

    A `min_score` of the request is a floor: nothing passes below it. For a budget of `max_chars` passages are shorter,
    and there are as many as fill it; whole chunks stay as they are.

    Raises:
        QueryError: An argument of the search is not valid; the message names it.
    """
    if not isinstance(request.query, str):
        raise QueryError(f"query must be a string, not {type(request.query).__name__}")
    rules = _apply_settings(rules, request.options.settings)
    if request.max_chars is not None:
        max_chars = _count("max_chars", request.max_chars)
        if rules.answer == "lines":
            most = min(rules.snippet_chars, max_chars)
            length = min(rules.passage_chars or BUDGET_PASSAGE_CHARS, most)
            count = min(math.ceil(1.25 * max_chars / length), MAX_RESULTS)  # passages are shorter than they may be
            rules = replace(rules, snippet_chars=most, passage_chars=length, max_results=count)
    if request.max_results is not None:
        rules = replace(rules, max_results=min(_count("max_results", request.max_results), MAX_RESULTS))
    if request.min_score is not None:
        rules = replace(rules, min_score=_share("min_score", request.min_score), keyword_fill=False)
    return rules


def with_time_zone(now: object) -> datetime.datetime | None:
    """Return a moment with a time zone: its own, or else that of the machine.

    Raises:
        QueryError: It is not a `datetime`, or is outside what the time zone of the machine covers.
    """
    if now is None:
        return None
    if not isinstance(now, datetime.datetime):
        raise QueryError(f"now must be a datetime, not {now!r}")
    try:
        return now if now.tzinfo else now.astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise QueryError(
            f"now cannot be {now!r} ({error}): give a moment with a time zone, such as datetime.now(UTC)"
        ) from error


def fold_tag(tag: str) -> str:
    """Return a tag as tags are compared: `#Work` is `work`."""
    return tag.strip().removeprefix("#").strip().lower()


def _read(model: type[T], value: object, name: str) -> T:
    if value is None or isinstance(value, model):
        return value or model()
    names = [spec.name for spec in fields(model)]  # type: ignore[arg-type]  # a dataclass
    if not isinstance(value, Mapping):
        kind = f"a {model.__name__}, or a dict with some of {', '.join(names)}"
        raise QueryError(f"{name} must be {kind}, not {value!r:.80}")
    if unknown := [str(key) for key in value if key not in names]:
        raise QueryError(f"{name} has no {unknown[0]!r}: {nearest(unknown[0], names)}there are {', '.join(names)}")
    return model(**value)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    several = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple | set) else value
    if several is None:
        return ()
    if not isinstance(several, tuple) or not all(isinstance(one, str) and one.strip() for one in several):
        raise QueryError(f"{name} is {value!r}: give a text, or a list of texts")
    return several


def _check_texts(texts: Mapping[str, tuple[str, ...]]) -> None:
    path = texts["path"]
    try:
        if path and not read_paths(path):
            raise QueryError(f"path is {path!r}, which names no file: give globs such as 'memory/2026-*'")
    except ConfigError as error:
        raise QueryError(f"path is {path!r}, which cannot be read as a glob of a .gitignore: correct it") from error
    if unknown := [one for one in texts["type"] if one not in get_args(RecordType)]:
        raise QueryError(f"type is {unknown[0]!r}, not one of {', '.join(get_args(RecordType))}")
    for name in ("phrases", "without", "tags"):
        if empty := [one for one in texts[name] if not any(map(str.isalnum, one))]:
            raise QueryError(f"{name} is {empty[0]!r}, which holds no word: leave it out")


def _share(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise QueryError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise QueryError(f"{name} must be a whole number of at least 1, not {value!r}")
    return value


def _apply_settings(rules: SearchConfig, settings: Mapping[str, Any] | None) -> SearchConfig:
    """Return settings with other values, checked as those of a configuration are; none is clamped."""
    if not settings:
        return rules
    notices: list[str] = []
    try:
        changed: SearchConfig = checked("search", replace(rules, **settings), notices)
    except ConfigError as error:
        raise QueryError(f"settings of a search: {error}") from error
    if not notices and 0 < changed.vector_weight + changed.text_weight < math.inf:
        return normalised_weights(changed, [])
    wrong = notices[0].rpartition(": ")[0] if notices else "vector_weight and text_weight have no usable sum"
    raise QueryError(f"settings of a search: {wrong}")


def _explain_refusal(name: str) -> str:
    if name in {"max_results", "max_chars", "min_score"}:
        return f"{name} is an argument of a search and none of its settings: search(query, {name}=...)"
    for part in ("chunking", "embedding"):  # an index is built with these parts of the configuration
        if name in {spec.name for spec in fields(PARTS[part])}:
            return (
                f"{name} cannot differ for one search: the index is built with {part}.{name}. Open the memory with "
                "another config, and sync"
            )
    names = sorted(SETTINGS_OF_A_SEARCH)
    return f"a search has no setting {name!r}: {nearest(name, names)}settings are {', '.join(names)}"
