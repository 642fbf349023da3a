"""Dates that a query mentions, the day of a chunk, and how well the two agree."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date

from msgspec import Struct

from openclaw_memory.text.terms import fold
from openclaw_memory.types import Source
from openclaw_memory.workspace.paths import parse_daily_note_date

# Month names by number, folded; an abbreviation counts next to a day or a year.
_MONTHS = (
    "january januari januar janvier enero",
    "february februari februar fevrier febrero",
    "march maart marz mars marzo",
    "april avril abril",
    "may mei mai mayo",
    "june juni juin junio",
    "july juli juillet julio",
    "august augustus aout agosto",
    "september septembre septiembre",
    "october oktober octobre octubre",
    "november novembre noviembre",
    "december dezember decembre diciembre",
)
_ABBREVIATIONS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_NUMBER_OF_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_NUMBER_OF_MONTH |= {name: number for number, name in enumerate(_ABBREVIATIONS, 1)} | {"sept": 9, "okt": 10, "dez": 12}
# Words that are also a verb or a name: they are a month only with a day, a year, or "in" and its like next to them.
_AMBIGUOUS = frozenset(
    {"may", "march", "mars", "mar", "august", "mai", "mei", "jan", "dec", "april", "june", "sep", "avril"}
)

_MONTH = "|".join(sorted(_NUMBER_OF_MONTH, key=len, reverse=True))
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|\.)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
# Compiled for the first text that may match: that takes a millisecond.
_ISO = r"\b(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>0[1-9]|[12]\d|3[01]))?\b"
_CJK = rf"(?:{_YEAR}\s*[年년]\s*)?(?P<month>1[0-2]|0?[1-9])\s*[月월](?:\s*(?P<day>3[01]|[12]\d|0?[1-9])\s*[日号일])?"
_DAY_MONTH = rf"\b{_DAY}\s+(?:of\s+|de\s+)?(?P<month>{_MONTH})\b\.?(?:,?\s+(?:de\s+)?{_YEAR}\b)?"
_MONTH_DAY = rf"\b(?P<month>{_MONTH})\b\.?(?:\s+{_DAY}\b)?(?:,?\s+(?:of\s+|de\s+)?{_YEAR}\b)?"
_BARE_YEAR = rf"\b{_YEAR}\b"
_LONGEST_BEFORE = 40  # characters that are looked at for a word before a month, blanks and all
_BEFORE_A_MONTH = r"\b(?:in|since|until|during|last|next|this|of|en|im|em|au|de|since|early|late|mid)\s+$"

# How long after what it tells of a note may be written, and how long before.
LATE_DAYS, EARLY_DAYS = 45, 10
ISO_DAY = len("2026-01-06")


class DateMention(Struct, frozen=True):
    """A day, month or year in a query, with None for open parts."""

    year: int | None
    month: int | None
    day: int | None

    def rate_agreement(self, day: date) -> float:
        """Return 1 for the day or month named, less the further the date is from it, and 0 beyond some weeks.

        A note is often written days or weeks after the event, and seldom long before it. Without a year, the event may
        have been in the year of the date or in the one before.
        """
        if self.month is None:
            return 0.5 if self.year == day.year else 0.0
        years = (day.year - 1, day.year) if self.year is None else (self.year,)
        return max(self._rate_nearness(year, day) for year in years)

    def _rate_nearness(self, year: int, day: date) -> float:
        month = self.month or 1
        try:
            first = date(year, month, self.day or 1)
        except ValueError:
            return 0.0
        last = first if self.day else date(year, month, monthrange(year, month)[1])
        if day < first:
            return 0.5 * max(0.0, 1 - (first - day).days / EARLY_DAYS)
        return max(0.0, 1 - (day - last).days / LATE_DAYS) if day > last else 1.0


def find_dates(query: str) -> tuple[DateMention, ...]:
    """Return the dates in a query: English, Dutch, German, French, Spanish, ISO, Chinese, Japanese or Korean.

    Args:
        query: The query, or any other text.
    """
    return tuple(dict.fromkeys(mention for mention, _ in split_dates(query)))


def get_day(source: Source, path: str, context: str) -> date | None:
    """Return the day of a chunk, or None if it is unknown.

    The path of a daily note names it. A transcript may last for days, so the context of each chunk begins with its day.
    """
    if source == "memory":
        return parse_daily_note_date(path)
    try:
        return date.fromisoformat(context[:ISO_DAY])
    except ValueError:
        return None


def split_dates(query: str) -> list[tuple[DateMention, str]]:
    """Return the dates in a query, each with its text, folded."""
    text = fold(query)
    mentions: list[tuple[DateMention, str]] = []
    for pattern in (_ISO, _CJK, _DAY_MONTH, _MONTH_DAY, _BARE_YEAR) if any(map(str.isdigit, text)) else (_MONTH_DAY,):
        left, at = list[str](), 0
        for match in re.finditer(pattern, text):
            groups, (start, end) = match.groupdict(), match.span()
            if _is_date(groups, text[max(0, start - _LONGEST_BEFORE) : start]):
                mentions.append((_read_mention(groups), match.group()))
                left += [text[at:start], " " * (end - start)]
                at = end
        text = "".join([*left, text[at:]])
    return mentions


def _read_mention(groups: dict[str, str | None]) -> DateMention:
    year, month, day = groups.get("year"), groups.get("month"), groups.get("day")
    return DateMention(
        int(year) if year else None,
        None if month is None else int(month) if month.isdigit() else _NUMBER_OF_MONTH[month],
        int(day) if day else None,
    )


def _is_date(groups: dict[str, str | None], before: str) -> bool:
    month = groups.get("month")
    if month not in _AMBIGUOUS and month not in _ABBREVIATIONS:
        return True
    return bool(groups.get("day") or groups.get("year") or re.search(_BEFORE_A_MONTH, before))
