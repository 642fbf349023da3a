"""Define the filter of a search, and make it a test of chunks, which the index asks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar, get_args
from unicodedata import normalize

from msgspec import Struct

from openclaw_memory.config.path_rules import read_paths
from openclaw_memory.errors import ConfigError, QueryError, suggest
from openclaw_memory.text.days import get_chunk_day, is_within
from openclaw_memory.types.conditions import CONFIDENCE, KEY, SURE_AT, TAGS, TYPE, USER, FileRange, Metadata
from openclaw_memory.types.files import SOURCES, Source
from openclaw_memory.types.records import DECAYING, HALF_LIFE_DAYS, RecordType
from openclaw_memory.workspace.time_zone import to_day

SECONDS_OF_DAY, SECONDS_OF_HOUR = 86_400, 3_600
_TEXTS = ("path", "type", "key", "user_id", "tags", "phrases", "without")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Confine a search to lines that pass each of these values.

    Each but `source`, `since`, `until` and `min_confidence` is a text or several.

    Attributes:
        path: Globs as in a `.gitignore`, of which the file matches one: `memory/2026-*`, `projects/`.
        source: "memory" for notes, "sessions" for transcripts.
        since: The first day: a date, or its text in ISO 8601. The day of a line is that of the nearest
            dated heading, the one in a note's name or folders, of a message in a transcript, of the field `date` or
            `created` above a text, or when a record was last updated. Lines without any of these have no day.
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
        texts = {name: _read_texts(name, getattr(self, name)) for name in _TEXTS}
        if self.source is not None and self.source not in SOURCES:
            sources = ", ".join(map(repr, SOURCES))
            raise QueryError(f"source {self.source!r} is unknown; use {sources}, or leave it out for all")
        _check_texts(texts)
        for name in ("key", "user_id"):  # as records write them
            texts[name] = tuple(normalize("NFC", text) for text in texts[name])
        texts["tags"] = tuple(dict.fromkeys(map(fold_tag, texts["tags"])))
        for name, value in texts.items():
            object.__setattr__(self, name, value)
        if self.min_confidence is not None:
            object.__setattr__(self, "min_confidence", check_share("min_confidence", self.min_confidence))
        for name in ("since", "until"):
            to_day(getattr(self, name), name, None, error=QueryError)

    @classmethod
    def read(cls, value: SearchFilter | Mapping[str, Any] | None) -> SearchFilter:
        """Return the filter that a caller means.

        Args:
            value: A filter, its fields by their names, or None for one that all lines pass.

        Raises:
            QueryError: It is something else, or a value is not valid.
        """
        return read_value(cls, value, "filter")

    @property
    def asks_metadata(self) -> bool:
        """Return whether the metadata of chunks decide, and not their source or their words alone."""
        limits = (self.since, self.until, self.min_confidence)
        return any((self.path, self.type, self.key, self.user_id, self.tags)) or {*limits} != {None}

    def resolve_days(self, timezone: str | None) -> SearchFilter:
        """Return the filter with days in place of moments.

        Args:
            timezone: Where moments have their day: an IANA time zone, or this machine's where None.

        Raises:
            QueryError: The first day is later than the last.
        """
        if self.since is None and self.until is None:
            return self
        since, until = (to_day(getattr(self, name), name, timezone, error=QueryError) for name in ("since", "until"))
        if since and until and since > until:
            raise QueryError(f"since ({since}) is later than until ({until}): exchange them")
        return replace(self, since=since, until=until)


class ChunkFilter(Struct, frozen=True):
    """A filter as a function of a chunk, equal for equal ones: the index finds out once which chunks pass.

    `since` and `until` of it are days. `now` is the moment to which the confidence of decaying
    records has fallen, in seconds: the beginning of an hour, so that the answer holds for the searches of that hour.
    """

    only: SearchFilter
    now: int = 0

    def __call__(self, path: str, metadata: Metadata) -> bool:
        only = self.only
        if only.path and not read_paths(tuple(only.path)).match(path):
            return False
        kind = metadata.get(TYPE)
        if only.type and kind not in only.type:
            return False
        key = metadata.get(KEY)
        if only.key and (key is None or not any(fnmatchcase(str(key), glob) for glob in only.key)):
            return False
        if only.user_id and metadata.get(USER) not in only.user_id:
            return False
        if only.tags and not set(only.tags) <= set(str(metadata.get(TAGS) or "").split("\n")):
            return False
        return self._is_in_time(path, metadata) and (kind is None or self._is_sure(metadata))

    @property
    def files(self) -> tuple[FileRange, ...]:
        """The ranges that hold all files which pass."""
        return read_paths(tuple(self.only.path)).ranges if self.only.path else ()

    def _is_in_time(self, path: str, metadata: Metadata) -> bool:
        since, until = self.only.since, self.only.until
        return since is until is None or is_within(get_chunk_day(path, metadata), since, until)  # type: ignore[arg-type]

    def _is_sure(self, metadata: Metadata) -> bool:
        least, confidence, at = self.only.min_confidence, metadata.get(CONFIDENCE), metadata.get(SURE_AT)
        if least is None or not isinstance(confidence, int | float):
            return True
        if metadata.get(TYPE) in DECAYING and isinstance(at, int | float):
            days = max(0.0, (self.now - at) / SECONDS_OF_DAY)
            confidence = confidence * 2 ** (-days / HALF_LIFE_DAYS)
        return confidence >= least


def make_chunk_filter(only: SearchFilter, now: datetime.datetime | None) -> ChunkFilter:
    """Make a filter a function of a chunk.

    Args:
        only: The filter.
        now: The moment of the search, with a time zone; this one where None.
    """
    only = replace(only, source=None, phrases=(), without=())  # of which a chunk's metadata know nothing
    if only.min_confidence is None:  # the same at any time
        return ChunkFilter(only)
    moment = int((now or datetime.datetime.now(datetime.UTC)).timestamp())
    hour = moment - moment % SECONDS_OF_HOUR
    return ChunkFilter(only, hour)


def fold_tag(tag: str) -> str:
    """Return a tag as tags are compared: `#Work` is `work`."""
    return tag.strip().removeprefix("#").strip().lower()


def read_value(model: type[T], value: object, name: str) -> T:
    """Return the value that a caller means: one of the model, or its fields by their names.

    Args:
        model: Its class.
        value: The value; None for the default one.
        name: The name of the argument.

    Raises:
        QueryError: It is something else, or a field is not valid.
    """
    if value is None or isinstance(value, model):
        return value or model()
    names = [spec.name for spec in fields(model)]  # type: ignore[arg-type]  # a dataclass
    if not isinstance(value, Mapping):
        kind = f"a {model.__name__}, or a dict with some of {', '.join(names)}"
        raise QueryError(f"{name} must be {kind}, not {value!r:.80}")
    if unknown := [str(key) for key in value if key not in names]:
        raise QueryError(f"{name} has no {unknown[0]!r}: {suggest(unknown[0], names)}there are {', '.join(names)}")
    return model(**value)


def check_share(name: str, value: object) -> float:
    """Return a number from 0 to 1; raise QueryError for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise QueryError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


def _read_texts(name: str, value: Any) -> tuple[str, ...]:
    several = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple | set) else value
    if several is None:
        return ()
    if not isinstance(several, tuple) or not all(isinstance(text, str) and text.strip() for text in several):
        raise QueryError(f"{name} is {value!r}: give a text, or a list of texts")
    return several


def _check_texts(texts: Mapping[str, tuple[str, ...]]) -> None:
    path = texts["path"]
    try:
        if path and not read_paths(path):
            raise QueryError(f"path is {path!r}, which names no file: give globs such as 'memory/2026-*'")
    except ConfigError as error:
        raise QueryError(f"path is {path!r}, which cannot be read as a glob of a .gitignore: correct it") from error
    if unknown := [kind for kind in texts["type"] if kind not in get_args(RecordType)]:
        raise QueryError(f"type is {unknown[0]!r}, not one of {', '.join(get_args(RecordType))}")
    for name in ("phrases", "without", "tags"):
        if empty := [text for text in texts[name] if not any(map(str.isalnum, text))]:
            raise QueryError(f"{name} is {empty[0]!r}, which holds no word: leave it out")
