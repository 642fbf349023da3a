"""What a search is asked, and what it is confined to, each as one value."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openclaw_memory.types.files import Source
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


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search as a `Backend` is asked it: the arguments of `Memory.search`, which says what each of them means.

    Attributes:
        only: The filters, from `path` to `without`, checked; None where none is given. All else is as the caller gave
            it, and `openclaw_memory.search.query.rules_of` checks it.
    """

    query: str
    max_results: int | None = None
    max_chars: int | None = None
    min_score: float | None = None
    source: Source | None = None
    explain: bool = False
    now: datetime.datetime | None = None
    only: SearchFilter | None = None
    task: str | None = None
    rules: Mapping[str, Any] | None = None
