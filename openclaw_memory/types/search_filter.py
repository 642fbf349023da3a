"""What a search is confined to, as one value."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from openclaw_memory.types.records import RecordType


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which lines count in a search: those that pass each of these that is given. See `Memory.search`.

    Attributes:
        path: Globs as in a `.gitignore`; the file matches one of them.
        since: The first day.
        until: The last day, included.
        type: Lines of a record, which is of one of these types.
        key: Lines of a record, whose key matches one of these globs; `*` matches a `.` too.
        user_id: Lines of a record, which is of one of these users.
        tags: The front matter of the file has each of these, in lower case.
        min_confidence: Records that are less sure at the time of the search, 0..1, do not count.
        phrases: The chunk that holds the line has each of these, word after word.
        without: It has none of these words, in its text, its headings or its path.
    """

    path: tuple[str, ...] = ()
    since: datetime.date | None = None
    until: datetime.date | None = None
    type: tuple[RecordType, ...] = ()
    key: tuple[str, ...] = ()
    user_id: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    min_confidence: float | None = None
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
