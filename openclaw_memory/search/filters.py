"""Make a `SearchFilter` a test that the index asks of chunks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from openclaw_memory.config.globs import read_paths
from openclaw_memory.search.request import SearchFilter
from openclaw_memory.types.where import CONFIDENCE, DAY, KEY, SURE_AT, TAGS, TYPE, USER, FileRange, Metadata
from openclaw_memory.workspace.paths import parse_note_date

SECONDS_OF_DAY, SECONDS_OF_HOUR = 86_400, 3_600


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
        if since is None and until is None:
            return True
        day = metadata.get(DAY) or parse_note_date(path)
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
    only = replace(only, source=None, phrases=(), without=())  # of which a chunk's metadata know nothing
    if only.min_confidence is None:  # the same at any time
        return ChunkFilter(only)
    moment = int((now or datetime.now(UTC)).timestamp())
    return ChunkFilter(only, tuple(decaying), half_life_days, moment - moment % SECONDS_OF_HOUR)
