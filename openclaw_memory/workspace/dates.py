"""What a path says about time: the day that a note belongs to, and the terms by which a query may name it."""

from __future__ import annotations

import datetime
import re

# `2026-11-01.md` or `2026-11-01-any-slug.md`, at any depth below a `memory` folder: OpenClaw's dated notes.
_DATED = re.compile(r"(?:^|/)memory/(?:[^/]+/)*([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-[^/]+)?\.md")

_DATE_TITLE = re.compile(r"\s*#{1,6}\s+\d{4}-\d{2}-\d{2}\s*")

# OpenClaw reads years below 100 as 19xx and then finds that they do not fit: such names carry no date.
_FIRST_YEAR = 100


def is_date_title(text: str) -> bool:
    """Return whether a text is only a heading that is a date, which the path of a daily note says already."""
    return _DATE_TITLE.fullmatch(text) is not None


def date_term(year: int | None, month: int, day: int | None) -> str:
    """Return a date as one term of the keyword index, in ISO 8601 form: 2026-01-06, 2026-01, --01-06 or --01."""
    start = f"{year:04}" if year is not None else "-"
    return f"{start}-{month:02}" if day is None else f"{start}-{month:02}-{day:02}"


def date_terms(day: datetime.date) -> tuple[str, ...]:
    """Return all terms by which a query may mean this day; its year is a term of the file's name already."""
    year, month = day.year, day.month
    return tuple(date_term(y, month, d) for y in (year, None) for d in (day.day, None))


def note_date(path: str) -> datetime.date | None:
    """Return the day in the name of a dated note below `memory/`; None where the name holds no valid day."""
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
