"""Read days: the one that a note is of, by its name or a heading, and those that a query means."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from msgspec import Struct

from openclaw_memory.text.languages import STOP_WORDS, read_table
from openclaw_memory.text.markdown_blocks import split_blocks
from openclaw_memory.text.terms import fold
from openclaw_memory.types.conditions import DAY, Metadata


def _read_words() -> dict[str, dict[str, int]]:
    """Read the words of each kind, with their places."""
    kinds: dict[str, dict[str, int]] = {}
    for _, kind, *entries in read_table("day_words.txt"):
        for place, entry in enumerate(entries):
            forms = (form.replace("_", " ") for form in entry.split(",") if form != "_")
            kinds.setdefault(kind, {}).update(dict.fromkeys(forms, place))
    return kinds


_WORDS = _read_words()
_MONTHS = {word: place + 1 for word, place in (_WORDS["short"] | _WORDS["month"]).items()}
_DAYS, _WEEKS, _, _YEARS = range(4)
_PLACED = {"ago", "weekday", "brief", "unit", "number"}  # kinds of which an entry means its place
# Around a word; Indian scripts have signs in it that are letters to a reader and not to `re`.
_START, _END = r"(?<![\w\u0900-\u0dff])", r"(?![\w\u0900-\u0dff])"
_WORD = r"(?:[^\W\d_]|[\u0900-\u0dff])++"
_UNSPACED = "\u0e00"  # from here on, scripts without spaces between words


def _list_words(*kinds: str, spaced: bool = True) -> str:
    """Return a pattern for the words of these kinds, the longest first, in scripts with spaces or without."""
    words = {word for kind in kinds for word in _WORDS[kind] if (word < _UNSPACED) == spaced}
    return "|".join(sorted(words, key=len, reverse=True)).replace(" ", r"\s+") or "(?!)"


def _look_up(kind: str, *, spaced: bool = True) -> str:
    """Return a pattern for a word of a kind; a plain word in a script with spaces is looked up when it is read."""
    words = [word for word in _WORDS[kind] if not (spaced and re.fullmatch(_WORD, word))]
    own = [word for word in sorted(words, key=len, reverse=True) if (word < _UNSPACED) == spaced]
    return f"(?P<{kind}>{'|'.join([*own, *([_WORD] if spaced else [])])})".replace(" ", r"\s+")


_MONTH = f"(?:{_look_up('month')}{_END})"
_THAI_MONTH = _look_up("month", spaced=False)
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|\.)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
# Compiled for the first text that may match: that takes a millisecond.
_ISO = r"\b(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9]|1[0-2])(?:[-/](?P<day>0[1-9]|[12]\d|3[01]))?\b"
_COMPACT = r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])(?!\d)"
_NUMERIC = r"\b(?P<day>0?[1-9]|[12]\d|3[01])\.\s?(?P<month>0?[1-9]|1[0-2])\.(?:\s?(?P<year>(?:19|20)\d\d)\b|(?!\d))"
_LATE_DAY, _MONTH_NUMBER = r"(?P<day>1[3-9]|2\d|3[01])", r"(?P<month>0?[1-9]|1[0-2])"  # of which the order is certain
_DAY_FIRST = rf"(?<![\d/.-]){_LATE_DAY}[/_-]{_MONTH_NUMBER}[/_-]{_YEAR}(?![\d/.-])"
_MONTH_FIRST = rf"(?<![\d/.-]){_MONTH_NUMBER}[/_-]{_LATE_DAY}[/_-]{_YEAR}(?![\d/.-])"
_CJK = rf"(?:{_YEAR}\s*[年년]\s*)?(?P<month>1[0-2]|0?[1-9])\s*[月월](?:\s*(?P<day>3[01]|[12]\d|0?[1-9])\s*[日号일])?"
_VIETNAMESE = rf"\b(?:{_DAY}\s+)?thang\s+(?P<month>1[0-2]|0?[1-9])\b(?:,?\s+(?:nam\s+)?{_YEAR}\b)?"
_DAY_MONTH = rf"\b{_DAY}\s+(?:of\s+|de\s+)?{_MONTH}\.?(?:,?\s+(?:de\s+)?{_YEAR}\b)?"
_THAI = rf"(?:{_DAY}\s*)?{_THAI_MONTH}(?:\s*(?P<year>(?:19|20|25)\d\d)(?!\d))?"
_YEAR_FIRST = rf"\b{_YEAR}\.?\s+{_MONTH}\.?\s+{_DAY}(?!\w)"
_MONTH_DAY = rf"{_START}{_MONTH}\.?(?:\s+{_DAY}\b)?(?:,?\s+(?:of\s+|de\s+)?{_YEAR}\b)?"
_BARE_YEAR = rf"\b{_YEAR}\b"
_LONGEST_BEFORE = 40  # characters that are looked at for a word before a month, blanks and all
_TO, _AND = rf"\.?\s*(?:[-–—~]|{_list_words('to')})\s*(?:the\s+)?", rf"\s*(?:{_list_words('and')})\s*"


@lru_cache(maxsize=16)
def _match_end(*kinds: str) -> re.Pattern[str]:
    """Return a pattern for a word of these kinds at the end of the text before a day."""
    glued = _list_words(*kinds, spaced=False)
    return re.compile(rf"(?:{_START}(?:{_list_words(*kinds)})\s+|(?:{glued})\s*)$")


def _make_phrases(*, spaced: bool) -> tuple[str, ...]:
    """Make the patterns of phrases that relate to a day, those with more words first."""

    def list_words(*kinds: str) -> str:
        return f"(?:{_list_words(*kinds, spaced=spaced)})"

    start, end, gap = (_START, _END, r"\s+") if spaced else ("", "", r"\s*")
    unit, weekday = _look_up("unit", spaced=spaced), _look_up("weekday", spaced=spaced)
    count = rf"(?:(?P<count>\d{{1,3}})\s*|{_look_up('number', spaced=spaced)}{gap})"
    phrases = (
        f"{start}(?P<few>{list_words('few')}){gap}{count}{unit}{end}",
        f"{start}(?P<few>{list_words('late')}){gap}{unit}{end}",
        f"{start}{count}{unit}{gap}{list_words('after')}{end}",
        f"{start}(?:{list_words('before')}{gap}{count}|{list_words('just')}{gap}){unit}{end}",
        f"{start}{unit}{gap}{list_words('long')}{end}",
        f"{start}{list_words('last')}{gap}{unit}{end}",
        f"{start}(?P<this>{list_words('this')}){gap}{unit}{end}",
        f"{start}{unit}{gap}{list_words('past')}{end}",
        f"{start}{unit}{gap}(?P<this>{list_words('present')}){end}",
        f"{start}{_look_up('ago', spaced=spaced)}{end}",
        f"{start}(?P<lead>{list_words('on', 'last')}){gap}{weekday}(?:{gap}{list_words('past')})?{end}",
        f"{start}{weekday}{gap}{list_words('past', 'at')}{end}",
        rf"(?<=\s){weekday}\W*$" if spaced else rf"(?!\A{list_words('weekday')}\W*\Z){weekday}",  # not alone
        rf"{start}on\s+(?P<brief>{list_words('brief')}){end}",
    )
    return tuple(phrase for phrase in phrases if "(?:(?!))" not in phrase)


_SPACED, _GLUED = _make_phrases(spaced=True), _make_phrases(spaced=False)
# Each phrase of ASCII has a word that is the last of one of these.
_RELATIVE_WORDS = frozenset(
    word.split()[-1] for kind in _PLACED - {"number"} for word in _WORDS[kind] if word[2:] or kind != "brief"
)
_CALENDAR = (
    _ISO, _COMPACT, _NUMERIC, _DAY_FIRST, _MONTH_FIRST, _YEAR_FIRST, _CJK, _VIETNAMESE, _THAI, _DAY_MONTH, _MONTH_DAY,
    _BARE_YEAR,
)  # fmt: skip
_LENGTHS = (1, 7, 30, 365)  # of the units, in days

# How long after what it tells of a note may be written, and how long before.
LATE_DAYS, EARLY_DAYS = 45, 10
MAX_DAY_TERMS = 31  # of a mention; a longer time is looked up by its months
MAX_MONTH_TERMS = 24
BUDDHIST_ERA = 543
# A day in a name: `2026-05-10`, `2026_05_10`, `2026.05.10` or `2026 05 10`; `20260510`, alone or before a time of day;
# `10-05-2026`, where only one reading is a day, or `10.05.2026`; `2026/05/10` and `2026/05-May/10-x` in folders.
_NAMED = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_. ]?)(\d\d)\2(\d\d)(?:\d{4}|\d{6})?(?!\d)")
_NAMED_SHORT = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_])(\d\d?)\2(\d\d?)(?!\d)")
_IN_FOLDERS = re.compile(r"(?:^|/)((?:19|20)\d\d)/(?:\1[-_.])?(\d\d)(?:[-_. ][^/]*)?/(\d\d)(?=$|[-_./])")
_HAS_YEAR = re.compile("(?:19|20|25)[0-9][0-9]")
_ENDING = re.compile(r"(?:\.(?:md|mdx|markdown|txt|org|jsonl|canvas|age))+$", re.IGNORECASE)
_FIRST_WEEKDAY = rf"{_look_up('weekday')}[\W_]+(?=.)"
_DAY_FIELDS = ("date", "created", "created_at")
_DATE_TITLE = re.compile(r"\s*#{1,6}\s+\d{4}([-_.])\d{2}\1\d{2}\s*")


class DateMention(Struct, frozen=True):
    """A day, month or year in a query, with None for open parts."""

    year: int | None
    month: int | None
    day: int | None

    def find_single_day(self, today: date) -> date | None:
        """Return the day that is named; without a year the latest such day until today. None for a month or year."""
        day = _find_first(self, today) if self.month and self.day else None
        return day if day is not None and self.has_day(day) else None

    def rate_agreement(self, day: date) -> float:
        """Return 1 for the day or month named, less the further the date is from it, and 0 beyond some weeks.

        A note is often written days or weeks after the event, and seldom long before it. Without a year, the event may
        have been in the year of the date or in the one before.
        """
        if self.month is None:
            return 0.5 if self.year == day.year else 0.0
        years = (day.year - 1, day.year) if self.year is None else (self.year,)
        return max(self._rate_nearness(year, day) for year in years)

    def has_day(self, day: date) -> bool:
        """Return whether a day is the one named, or in the month or year named."""
        own = (self.year, self.month, self.day)
        return all(part in (None, value) for part, value in zip(own, (day.year, day.month, day.day), strict=True))

    def list_terms(self) -> list[str]:
        """Return the terms of these days in the keyword index; none for a year."""
        return [] if self.month is None else [format_date_term(self.year, self.month, self.day)]

    def _rate_nearness(self, year: int, day: date) -> float:
        month = self.month or 1
        if (first := _make_day(year, month, self.day or 1)) is None:
            return 0.0
        last = first if self.day else date(year, month, monthrange(year, month)[1])
        if day < first:
            return 0.5 * max(0.0, 1 - (first - day).days / EARLY_DAYS)
        return max(0.0, 1 - (day - last).days / LATE_DAYS) if day > last else 1.0


class DayRange(Struct, frozen=True):
    """The days that a query means by "yesterday", "last week" or "since Monday"; both ends are included."""

    first: date
    last: date

    def find_single_day(self, _today: date) -> date | None:
        """Return the day, if it is one."""
        return self.first if self.first == self.last else None

    def rate_agreement(self, day: date) -> float:
        """Return 1 for one of these days, else 0."""
        return float(self.has_day(day))

    def has_day(self, day: date) -> bool:
        """Return whether a day is one of these."""
        return self.first <= day <= self.last

    def list_terms(self) -> list[str]:
        """Return the terms of these days in the keyword index, or those of the months of a longer time."""
        count = (self.last - self.first).days + 1
        if count <= MAX_DAY_TERMS:
            days = (self.first + timedelta(at) for at in range(count))
            return [format_date_term(day.year, day.month, day.day) for day in days]
        months = range(12 * self.first.year + self.first.month - 1, 12 * self.last.year + self.last.month)
        return [format_date_term(at // 12, at % 12 + 1, None) for at in months[-MAX_MONTH_TERMS:]]


# --- the day of a note -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def get_path_day(path: str) -> date | None:
    """Return the day in the name of a note or of its folders, in any usual form; None for a name without one."""
    plain = _ENDING.sub("", path.replace("\\", "/"))
    if ".jsonl" in path:  # the messages of a transcript have days
        return None
    folders, _, name = plain.rpartition("/")
    if (day := parse_day(name)) is None and (match := _IN_FOLDERS.search(plain)):
        day = _make_day(match[1], match[2], match[3])
    return day or next(filter(None, map(parse_day, reversed(folders.split("/")))), None)


def get_note_day(path: str, fields: Mapping[str, object]) -> date | None:
    """Return the day of a note: the one in its name or folders, or else in a field above its text."""
    days = (parse_day(str(fields[name])) for name in _DAY_FIELDS if fields.get(name))
    return get_path_day(path) or next(filter(None, days), None)


def get_chunk_day(path: str, metadata: Metadata) -> date | None:
    """Return the day of a chunk: that of its heading, front matter or messages, or else the one in its path."""
    day = metadata.get(DAY)
    return date.fromisoformat(str(day)) if day else get_path_day(path)


def find_heading_day(titles: Sequence[str], path: str) -> date | None:
    """Return the day of the nearest heading that begins with one; None without one.

    Where it has no year, that is the year of a heading above it or of the note's name.
    """
    year = re.search(r"(?<!\d)(?:19|20)\d\d(?!\d)", "\n".join([*titles, path]))
    return next(filter(None, (parse_title_day(title, year and int(year[0])) for title in titles)), None)


def list_line_days(lines: Sequence[str], path: str) -> list[date | None]:
    """Return the day of each line of a note: that of its heading, or else the one in the path."""
    day, above = get_path_day(path), list[tuple[int, str]]()
    days = [day] * len(lines)
    for block in split_blocks(lines) if lines else ():
        if block.kind == "heading":
            level, title = block.get_title(lines)
            above = [(level, title), *(own for own in above if own[0] < level)]
            own = find_heading_day([title for _, title in above], path) or day
            days[block.first :] = [own] * (len(lines) - block.first)
    return days


def is_within(day: date | None, since: date | None, until: date | None = None) -> bool:
    """Return whether a day is within two others; nothing without a day is.

    Args:
        day: The day.
        since: The first one; None for any.
        until: The last one, included; None for any.
    """
    return day is not None and (since is None or since <= day) and (until is None or day <= until)


def parse_day(text: str) -> date | None:
    """Return the first whole day in a name, a title or a field, in any usual form; None without one.

    Args:
        text: The name, the title or the field.
    """
    if text.isascii() and not _HAS_YEAR.search(text):
        return None
    for match in (*_NAMED.finditer(text), *_NAMED_SHORT.finditer(text)):
        if day := _make_day(match[1], match[3], match[4]):
            return day
    days = (_make_day(each.year, each.month, each.day) for each in find_dates(text) if each.year and each.day)
    return next(filter(None, days), None)


@lru_cache(maxsize=4096)  # a title is of many chunks
def parse_title_day(title: str, year: int | None = None) -> date | None:
    """Return the day that a title begins with, also after a weekday; None for one that only mentions a day."""
    text = fold(title).strip("#*<>[]() \t")
    first = re.match(_FIRST_WEEKDAY, text)
    if first and any(first["weekday"] in _WORDS[kind] for kind in ("weekday", "brief", "date")):
        text = text[first.end() :]
    if not text[:1].isdigit() and re.split(r"[\W\d_]", text, maxsplit=1)[0] not in _MONTHS:
        return None
    if day := parse_day(text.partition(" ")[0]):
        return day
    starts = (mention for mention, part in split_dates(text) if text.startswith(part))
    mention = next(starts, None)
    return _make_day(mention.year or year, mention.month, mention.day) if isinstance(mention, DateMention) else None


def is_date_title(text: str) -> bool:
    """Return whether a text is only a heading that is a date, which repeats the day of a note."""
    return _DATE_TITLE.fullmatch(text) is not None


def format_date_term(year: int | None, month: int, day: int | None) -> str:
    """Return a date as one term of the keyword index, in ISO 8601 form: 2026-01-06, 2026-01, --01-06 or --01.

    Args:
        year: The year; None for any.
        month: The month.
        day: The day; None for any.
    """
    start = f"{year:04}" if year is not None else "-"
    return f"{start}-{month:02}" if day is None else f"{start}-{month:02}-{day:02}"


def list_date_terms(day: date) -> tuple[str, ...]:
    """Return all terms that mean a day in a query; the year alone is a term of its note's name."""
    return tuple(format_date_term(y, day.month, d) for y in (day.year, None) for d in (day.day, None))


def _make_day(year: str | int | None, month: str | int | None, day: str | int | None) -> date | None:
    try:
        return date(int(year or 0), int(month or 0), int(day or 0))
    except ValueError:
        return None


# --- the days that a query means -------------------------------------------------------------------------------------

Mention: TypeAlias = DateMention | DayRange


def find_dates(query: str) -> tuple[DateMention, ...]:
    """Return the dates in a text: in ISO form, in European languages, in Chinese, Japanese or Korean.

    Args:
        query: The query, or any other text.
    """
    return tuple(dict.fromkeys(each for each, _ in split_dates(query) if isinstance(each, DateMention)))


def split_dates(query: str, today: date | None = None) -> list[tuple[Mention, str]]:
    """Return the dates in a query, each with its text, folded.

    Args:
        query: The query.
        today: The day of the query, to which "yesterday" and "last week" relate; None leaves these out.
    """
    whole = text = fold(query).replace("\u2019", "'")
    mentions: list[tuple[int, Mention, str]] = []

    def take(pattern: str) -> None:
        nonlocal text
        left, at = list[str](), 0
        for match in re.finditer(pattern, text):
            start, end = match.span()
            mention = _read_mention(match, text[max(0, start - _LONGEST_BEFORE) : start], today)
            if mention is not None:
                mentions.append((start, mention, match.group()))
                left += [text[at:start], " " * (end - start)]
                at = end
        text = "".join([*left, text[at:]])

    words = set(re.findall(r"[\w'-]+", text))
    if today is not None and not (text.isascii() and _RELATIVE_WORDS.isdisjoint(words)):
        for pattern in _SPACED if max(text, default="") < _UNSPACED else (*_GLUED, *_SPACED):
            take(pattern)
    if any(map(str.isdigit, text)):
        for pattern in _CALENDAR:
            take(pattern)
    elif not (text.isascii() and words.isdisjoint(_MONTHS)):
        take(_THAI)
        take(_MONTH_DAY)
    mentions.sort(key=itemgetter(0))
    return [(mention, part) for _, mention, part in (_join_ranges(mentions, whole, today) if today else mentions)]


def _join_ranges(mentions: list[tuple[int, Mention, str]], text: str, today: date) -> list[tuple[int, Mention, str]]:
    """Join the first and the last day of a time: "between May 3 and May 5", "3 to 5 May"."""
    joined: list[tuple[int, Mention, str]] = []
    for at, mention, part in mentions:
        last, own = mention.find_single_day(today), (at, mention, part)
        before = joined[-1] if joined else None
        if last and before and (first := before[1].find_single_day(last)) and first < last:
            link, between = text[before[0] + len(before[2]) : at], _match_end("between").search(text[: before[0]])
            if re.fullmatch(_TO, link) or (between and re.fullmatch(_AND, link)):
                start = between.start() if between else before[0]
                joined[-1:], own = [], (start, DayRange(first, last), text[start : at + len(part)])
        elif last and (day := re.search(rf"(?<!\d)(\d\d?){_TO}$", text[:at])) and int(day[1]) in range(1, last.day):
            first = last.replace(day=int(day[1]))
            own = (day.start(), DayRange(first, last), text[day.start() : at + len(part)])
        joined.append(own)
    return joined


def _read_mention(match: re.Match[str], before: str, today: date | None) -> Mention | None:
    """Return the date or days of a match, or None if it is not a date."""
    mention: Mention | None
    if "month" in match.re.groupindex or "year" in match.re.groupindex or today is None:
        mention = _read_date(match, before, today)
    else:
        mention = _read_relative(match, before, today)
    lead = f"{before}{match.groupdict().get('lead') or ''} "
    if mention is None or today is None or not _match_end("since").search(lead):
        return mention
    first = mention.first if isinstance(mention, DayRange) else _find_first(mention, today)
    return DayRange(first, today)


def _read_date(match: re.Match[str], before: str, today: date | None) -> DateMention | None:
    year, month, day = map(match.groupdict().get, ("year", "month", "day"))
    is_doubtful = month in _WORDS["doubtful"] or month in _WORDS["short"]
    if is_doubtful and not (day or year or _match_end("in", "last", "this").search(before)):
        return None
    number = None if month is None else int(month) if month.isdigit() else _MONTHS.get(" ".join(month.split()), 0)
    # "3.10." may be a version.
    if number == 0 or (match.re.pattern == _NUMERIC and not year and not _match_end("date").search(before)):
        return None
    if today and number and not year and _match_end("last").search(before):
        year = str(today.year - (number >= today.month))
    return DateMention(
        int(year) - BUDDHIST_ERA * year.startswith("25") if year else None, number, int(day) if day else None
    )


def _read_relative(match: re.Match[str], before: str, today: date) -> DayRange | None:
    """Return the days of a phrase such as "yesterday", "last week", "two days ago" or "on Monday"."""
    groups = {name: " ".join(text.split()) for name, text in match.groupdict().items() if text}
    places = {kind: _WORDS[kind].get(word, -1) for kind, word in groups.items() if kind in _PLACED}
    if -1 in places.values():
        return None
    if "unit" not in groups:
        weekday = places.get("weekday", places.get("brief", 0))
        day = today - timedelta(places.get("ago", (today.weekday() - weekday - 1) % 7 + 1))
        is_other = (match[0] == "hier" and _is_german(match.string)) or _match_end("not").search(before)
        return None if is_other else DayRange(day, day)
    value = int(groups["count"]) if "count" in groups else places.get("number", 0) + 1
    if "few" in groups:
        return DayRange(today - timedelta(value * _LENGTHS[places["unit"]]), today)
    is_last_day = places["unit"] == _DAYS and groups.keys().isdisjoint(
        {"count", "number", "this"}
    )  # it is not yesterday
    return None if is_last_day else _find_unit(today, places["unit"], 0 if "this" in groups else value)


def _find_unit(today: date, unit: int, back: int) -> DayRange:
    """Return a day, week, month or year before today, by the number of such units; of the present one, up to today."""
    if unit in {_DAYS, _WEEKS}:
        first = today - timedelta(today.weekday() * unit + _LENGTHS[unit] * back)
        return DayRange(first, min(today, first + timedelta(_LENGTHS[unit] - 1)))
    if unit == _YEARS:
        return DayRange(date(today.year - back, 1, 1), min(today, date(today.year - back, 12, 31)))
    year, month = divmod(12 * today.year + today.month - 1 - back, 12)
    return DayRange(date(year, month + 1, 1), min(today, date(year, month + 1, monthrange(year, month + 1)[1])))


def _find_first(mention: DateMention, today: date) -> date:
    """Return the first day of a mention; without a year, of the latest one that is not after today."""
    month, day = mention.month or 1, mention.day or 1
    years = (mention.year,) if mention.year else (today.year, today.year - 1)
    days = [own for year in years if (own := _make_day(year, month, day)) and (mention.year or own <= today)]
    return days[0] if days else today


def _is_german(text: str) -> bool:
    """Return whether the words beside "hier" are more German or Dutch than French: there it is not a day."""
    words = set(text.split()) - {"hier"}
    return len(words & (STOP_WORDS["de"] | STOP_WORDS["nl"])) > len(words & STOP_WORDS["fr"])
