"""What a path says about time: the day that a note belongs to, and the terms by which it is asked for."""

from __future__ import annotations

import datetime
import re

# `2026-11-01.md` or `2026-11-01-any-slug.md`, at any depth below a `memory` folder: OpenClaw's dated notes.
_DATED = re.compile(r"(?:^|/)memory/(?:[^/]+/)*([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-[^/]+)?\.md")

_DATE_TITLE = re.compile(r"\s*#{1,6}\s+\d{4}-\d{2}-\d{2}\s*")

# OpenClaw reads years below 100 as 19xx and then finds that they do not fit: such names carry no date.
_FIRST_YEAR = 100


def is_date_title(text: str) -> bool:
    """Whether a text is nothing but a heading that is a date: the path of a daily note says that already."""
    return _DATE_TITLE.fullmatch(text) is not None


def date_term(year: int | None, month: int, day: int | None) -> str:
    """A date as one term of the keyword index, in the forms of ISO 8601: 2026-01-06, 2026-01, --01-06 or --01."""
    start = f"{year:04}" if year is not None else "-"
    return f"{start}-{month:02}" if day is None else f"{start}-{month:02}-{day:02}"


def date_terms(day: datetime.date) -> tuple[str, ...]:
    """All terms by which a question may mean this day; its year is a term of the file's name already."""
    year, month = day.year, day.month
    return tuple(date_term(y, month, d) for y in (year, None) for d in (day.day, None))


def note_date(path: str) -> datetime.date | None:
    """The day in the name of a dated note below `memory/`; None when the name has none, or no day of the calendar."""
    match = _DATED.search(path.replace("\\", "/"))
    if match is None or match.end() != len(match.string):
        return None
    year, month, day = (int(group) for group in match.groups())
    if year < _FIRST_YEAR:
        return None
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None
