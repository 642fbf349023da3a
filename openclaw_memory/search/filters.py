"""What a search is confined to: its arguments are checked, and become a test that the index asks of chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from posixpath import commonprefix
from typing import Any, get_args
from unicodedata import normalize

from openclaw_memory.config.globs import Glob, is_matched, read_globs
from openclaw_memory.errors import ConfigError, QueryError
from openclaw_memory.types.records import RecordType
from openclaw_memory.types.search_request import SearchFilter
from openclaw_memory.types.where import CONFIDENCE, DAY, KEY, SURE_AT, TAGS, TYPE, USER, FileRange, Metadata
from openclaw_memory.workspace.days import day_of
from openclaw_memory.workspace.paths import note_date

TYPES: tuple[str, ...] = get_args(RecordType)
MOST_RANGES = 20  # of one search; of more paths, what all of them begin with is one range
_PLAIN_PATH = re.compile(r"[^\s!#/*?\[\]\\][^*?\[\]\\\n]*/[^*?\[\]\\\n]*[^\s/*?\[\]\\]")
_PLAIN_HEAD = re.compile(r"[^*?\[\\]*")
_SLASH = re.compile("/")
SECONDS_OF_DAY, SECONDS_OF_HOUR = 86_400, 3_600


def filter_of(
    path: str | Sequence[str] | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    type: str | Sequence[str] | None = None,  # noqa: A002 - the name of the argument of `Memory.search`
    key: str | Sequence[str] | None = None,
    user_id: str | Sequence[str] | None = None,
    tags: str | Sequence[str] | None = None,
    min_confidence: float | None = None,
    phrases: str | Sequence[str] | None = None,
    without: str | Sequence[str] | None = None,
    timezone: str | None = None,
) -> SearchFilter | None:
    """Return what the arguments of a search confine it to; None where they say nothing.

    Raises:
        QueryError: An argument is not valid; the message names it.
    """
    globs = _texts("path", path)
    try:
        if globs and not _read_paths(globs):
            raise QueryError(f"path is {path!r}, which names no file: give globs such as 'memory/2026-*'")
    except ConfigError as error:
        raise QueryError(f"path is {path!r}, which cannot be read as a glob of a .gitignore: correct it") from error
    types = _texts("type", type)
    if unknown := [one for one in types if one not in TYPES]:
        raise QueryError(f"type is {unknown[0]!r}, not one of {', '.join(TYPES)}")
    if min_confidence is not None and (
        isinstance(min_confidence, bool) or not isinstance(min_confidence, int | float) or not 0 <= min_confidence <= 1
    ):
        raise QueryError(f"min_confidence must be a number from 0 to 1, not {min_confidence!r}")
    first = day_of(since, "since", timezone, error=QueryError)
    last = day_of(until, "until", timezone, error=QueryError)
    if first and last and first > last:
        raise QueryError(f"since ({first}) is later than until ({last}): exchange them")
    wanted = tuple(dict.fromkeys(filter(None, map(tag, _texts("tags", tags)))))
    found = SearchFilter(
        path=globs,
        since=first,
        until=last,
        type=types,  # type: ignore[arg-type]  # checked above
        key=tuple(normalize("NFC", one) for one in _texts("key", key)),  # as records write them
        user_id=tuple(normalize("NFC", one) for one in _texts("user_id", user_id)),
        tags=wanted,
        min_confidence=None if min_confidence is None else float(min_confidence),
        phrases=_worded("phrases", phrases),
        without=_worded("without", without),
    )
    return None if found == SearchFilter() else found


def tag(written: str) -> str:
    """Return a tag as tags are compared: `#Work` is `work`."""
    return written.strip().removeprefix("#").strip().lower()


@dataclass(frozen=True, slots=True)
class ChunkFilter:
    """A filter as a function of a chunk, equal for equal ones: the index finds out once which chunks pass.

    `half_life_days` is that of the confidence of records of the `decaying` types, and `now` the moment to which it has
    fallen, in seconds: the beginning of an hour, so that the answer holds for the searches of that hour.
    """

    only: SearchFilter
    decaying: tuple[str, ...] = ()
    half_life_days: float = 1.0
    now: int = 0

    def __call__(self, path: str, metadata: Metadata) -> bool:
        only = self.only
        if only.path and not _read_paths(only.path).match(path):
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
        return _read_paths(self.only.path).ranges if self.only.path else ()

    def _is_in_time(self, path: str, metadata: Metadata) -> bool:
        since, until = self.only.since, self.only.until
        if since is None and until is None:
            return True
        day = metadata.get(DAY) or note_date(path)
        if day is None:
            return False
        return (since is None or str(since) <= str(day)) and (until is None or str(day) <= str(until))

    def _is_sure(self, metadata: Metadata) -> bool:
        least, confidence, at = self.only.min_confidence, metadata.get(CONFIDENCE), metadata.get(SURE_AT)
        if least is None or not isinstance(confidence, int | float):
            return True
        if metadata.get(TYPE) in self.decaying and isinstance(at, int | float):
            days = max(0.0, (self.now - at) / SECONDS_OF_DAY)
            confidence = confidence * 2 ** (-days / self.half_life_days)
        return confidence >= least


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Paths, and globs as in a .gitignore file.

    Attributes:
        paths: Paths without a wildcard: they and what is in folders of that name pass.
        globs: The others.
        ranges: What holds all files that pass; () if that is unknown.
    """

    paths: frozenset[str]
    globs: tuple[Glob, ...]
    ranges: tuple[FileRange, ...]

    def __bool__(self) -> bool:
        return bool(self.paths or self.globs)

    def match(self, path: str) -> bool:
        """Return whether a path passes.

        Args:
            path: The path.
        """
        if self.paths and (path in self.paths or any(path[: at.start()] in self.paths for at in _SLASH.finditer(path))):
            return True
        return bool(self.globs) and is_matched(self.globs, path)


@lru_cache(maxsize=64)
def _read_paths(lines: tuple[str, ...]) -> PathFilter:
    """Return the filter that lines stand for.

    Raises:
        ConfigError: A glob cannot be read.
    """
    takes_back = any(line.startswith("!") for line in lines)  # then their order counts
    paths = frozenset() if takes_back else frozenset(line for line in lines if _PLAIN_PATH.fullmatch(line))
    globs = tuple(line for line in lines if line not in paths)
    heads = {*paths, *(_find_head(line) for line in globs if line.strip() and line[0] not in "!#")}
    if len(heads) > MOST_RANGES:
        heads = {commonprefix(sorted(heads))}
    ranges = () if "" in heads else tuple(FileRange("path", head, is_prefix=True) for head in sorted(heads))
    return PathFilter(paths, read_globs("path", globs), ranges)


def _find_head(line: str) -> str:
    """Return the common beginning of the paths that a glob matches, or ""."""
    text = line.rstrip()
    folder = text.rstrip("/")
    is_anywhere = "/" not in folder.removeprefix("/") and not text.startswith("/")
    return "" if is_anywhere else _PLAIN_HEAD.match(folder.removeprefix("/"))[0]  # type: ignore[index]  # may be empty


def chunk_filter(
    only: SearchFilter, decaying: Iterable[str], half_life_days: float, now: datetime | None
) -> ChunkFilter:
    """Return a filter as a function of a chunk.

    Args:
        only: The filter.
        decaying: The types of records whose confidence falls.
        half_life_days: After how many days it is half.
        now: The moment of the search, with a time zone; this one where None.
    """
    only = replace(only, phrases=(), without=())  # of which a chunk's metadata know nothing
    if only.min_confidence is None:  # the same at any time
        return ChunkFilter(only)
    moment = int((now or datetime.now(UTC)).timestamp())
    return ChunkFilter(only, tuple(decaying), half_life_days, moment - moment % SECONDS_OF_HOUR)


def _worded(name: str, value: Any) -> tuple[str, ...]:
    found = _texts(name, value)
    if empty := [one for one in found if not any(map(str.isalnum, one))]:
        raise QueryError(f"{name} is {empty[0]!r}, which holds no word: leave it out")
    return found


def _texts(name: str, value: Any) -> tuple[str, ...]:
    several = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple | set) else value
    if several is None:
        return ()
    if not isinstance(several, tuple) or not all(isinstance(one, str) and one.strip() for one in several):
        raise QueryError(f"{name} is {value!r}: give a text, or a list of texts")
    return several
