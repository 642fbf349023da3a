"""What a path says about time: the day that a note belongs to, and whether it never grows old."""

from __future__ import annotations

import datetime
import re

# `2026-11-01.md` or `2026-11-01-any-slug.md`, at any depth below a `memory` folder: OpenClaw's dated notes.
_DATED = re.compile(r"(?:^|/)memory/(?:[^/]+/)*([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-[^/]+)?\.md")

# OpenClaw reads years below 100 as 19xx and then finds that they do not fit: such names carry no date.
_FIRST_YEAR = 100

_EVERGREEN_ROOT_NOTES = frozenset({"MEMORY.md", "USER.md", "memory.md"})


def note_date(path: str) -> datetime.date | None:
    """The day in the name of a dated note below `memory/`; None when the name has none, or no day of the calendar."""
    match = _DATED.search(_normalised(path))
    if match is None or match.end() != len(match.string):
        return None
    year, month, day = (int(group) for group in match.groups())
    if year < _FIRST_YEAR:
        return None
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def is_evergreen(path: str) -> bool:
    """Whether a file never decays: the root notes, and whatever in `memory/` is not named after a day.

    A name of the dated form whose day does not exist (`2026-13-01.md`) is not evergreen either.
    """
    normalised = _normalised(path)
    if normalised in _EVERGREEN_ROOT_NOTES:
        return True
    return normalised.startswith("memory/") and _DATED.fullmatch(normalised) is None


def _normalised(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")
