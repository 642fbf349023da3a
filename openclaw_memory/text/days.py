"""Read days: the one that a note is of, by its name or a heading, and those that a query means."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from openclaw_memory.text.languages import STOP_WORDS
from openclaw_memory.text.terms import fold

# Month names by number, folded; an abbreviation counts next to a day or a year.
_MONTHS = (
    "january januari januar janvier enero gennaio janeiro января январь",
    "february februari februar fevrier febrero febbraio fevereiro февраля февраль",
    "march maart marz mars marzo marco марта март",
    "april avril abril aprile апреля апрель",
    "may mei mai mayo maggio maio мая май",
    "june juni juin junio giugno junho июня июнь",
    "july juli juillet julio luglio julho июля июль",
    "august augustus aout agosto августа август",
    "september septembre septiembre settembre setembro сентября сентябрь",
    "october oktober octobre octubre ottobre outubro октября октябрь",
    "november novembre noviembre novembro ноября ноябрь",
    "december dezember decembre diciembre dicembre dezembro декабря декабрь",
)
_ABBREVIATIONS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_NUMBER_OF_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_NUMBER_OF_MONTH |= {name: number for number, name in enumerate(_ABBREVIATIONS, 1)} | {"sept": 9, "okt": 10, "dez": 12}
# Words that are also a verb or a name: they are a month only with a day, a year, or "in" and its like next to them.
_AMBIGUOUS = frozenset(
    {"may", "march", "mars", "mar", "august", "mai", "mei", "jan", "dec", "april", "june", "sep", "avril", "marco"}
)
_WEEKDAYS = (
    "monday maandag montag lundi lunes lunedi segunda-feira понедельник понедельника",
    "tuesday dinsdag dienstag mardi martes martedi terca-feira вторник вторника",
    "wednesday woensdag mittwoch mercredi miercoles mercoledi quarta-feira среду среды",
    "thursday donderdag donnerstag jeudi jueves giovedi quinta-feira четверг четверга",
    "friday vrijdag freitag vendredi viernes venerdi sexta-feira пятницу пятницы",
    "saturday zaterdag samstag samedi sabado sabato субботу субботы",
    "sunday zondag sonntag dimanche domingo domenica воскресенье воскресенья",
)
_NUMBER_OF_WEEKDAY = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
_NUMBER_OF_WEEKDAY |= {
    f"{week}{sign}": number for week in ("周", "星期") for number, sign in enumerate("一二三四五六日")
}
_NUMBER_OF_WEEKDAY |= {f"{sign}曜日": number for number, sign in enumerate("月火水木金土日")}
# Days ago, by the word for them.
_DAYS_AGO = {
    0: "today vandaag heute aujourd'hui hoy oggi hoje сегодня 今天 今日 오늘",
    1: "yesterday gisteren gestern hier ayer ieri ontem вчера 昨天 昨日 어제",
    2: "eergisteren vorgestern avant-hier anteayer позавчера 前天 一昨日 그저께",
}
_AGO_OF_WORD = {"the day before yesterday": 2, "day before yesterday": 2}
_AGO_OF_WORD |= {word: days for days, words in _DAYS_AGO.items() for word in words.split()}
_UNITS = {
    "day": "days? dag dagen tage? tagen jours? dias? giorn[io] день дня дней 天 日 일",
    "week": "weeks? weken wochen? semaines? semanas? settiman[ae] недел[яюиье] неделю 周 星期 週間? 주",
    "month": "months? maand maanden monate? monaten mois mes meses mes[ei] месяцев месяца месяце месяц 个?月 か月 달",
    "year": "years? jaar jaren jahre? jahren ans annees? annee anos? ann[io] года году год лет 年 년",
}
_UNIT = "|".join(f"(?P<{name}>{'|'.join(words.split())})" for name, words in _UNITS.items())
_LONG_UNIT = _UNIT.partition("|(?P<week>")[2].join(("(?P<week>", ""))  # the last day is not yesterday
_NUMBERS = (
    "a an one een ein einem einer un une una uno один одну 一",
    "two twee zwei deux dos due два две 二 两",
    "three drie drei trois tres tre три 三",
    "four vier quatre cuatro quattro четыре 四",
    "five vijf funf cinq cinco cinque пять 五",
    "six zes sechs seis sei шесть 六",
    "seven zeven sieben sept siete sette семь 七",
)
_VALUE_OF_NUMBER = {word: value for value, words in enumerate(_NUMBERS, 1) for word in words.split()}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_VALUE_OF_NUMBER, key=len, reverse=True))})"

_MONTH = "|".join(sorted(_NUMBER_OF_MONTH, key=len, reverse=True))
_WEEKDAY = "|".join(sorted(_NUMBER_OF_WEEKDAY, key=len, reverse=True))
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|er|\.)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
# Compiled for the first text that may match: that takes a millisecond.
_ISO = r"\b(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9]|1[0-2])(?:[-/](?P<day>0[1-9]|[12]\d|3[01]))?\b"
_NUMERIC = r"\b(?P<day>0?[1-9]|[12]\d|3[01])\.\s?(?P<month>0?[1-9]|1[0-2])\.(?:\s?(?P<year>(?:19|20)\d\d)\b|(?!\d))"
_CJK = rf"(?:{_YEAR}\s*[年년]\s*)?(?P<month>1[0-2]|0?[1-9])\s*[月월](?:\s*(?P<day>3[01]|[12]\d|0?[1-9])\s*[日号일])?"
_DAY_MONTH = rf"\b{_DAY}\s+(?:of\s+|de\s+)?(?P<month>{_MONTH})\b\.?(?:,?\s+(?:de\s+)?{_YEAR}\b)?"
_MONTH_DAY = rf"\b(?P<month>{_MONTH})\b\.?(?:\s+{_DAY}\b)?(?:,?\s+(?:of\s+|de\s+)?{_YEAR}\b)?"
_BARE_YEAR = rf"\b{_YEAR}\b"
_LONGEST_BEFORE = 40  # characters that are looked at for a word before a month, blanks and all
_BEFORE_A_MONTH = (
    r"\b(?:in|since|until|during|last|next|this|of|en|im|em|au|de|early|late|mid|seit|sinds|depuis|desde)\s+$"
)
_SINCE = r"(?:\b(?:since|seit(?: dem)?|sinds|depuis(?: le)?|desde(?: el)?|da|dal|с|со)\s+|自从?\s*|从\s*)$"
# Before a day without a year that has no name of a month: "3.10." may be a version.
_ON_A_DAY = r"\b(?:am|vom|zum|seit|bis|den|dem|der|op|le|el|il|om|du)\s+$"
_LAST = r"last|previous|vorige?|letzte[nmrs]?|vergangene[nmrs]?|прошл\w+|上个?|先|지난|去|昨"
_THIS = r"this|deze|dit|diese[nrsm]?|cette|ce|esta|este|questa|questo|эт(?:ой|у|ом|от)|[本这]个?|今|이번"
_BEFORE_WEEKDAY = rf"on|since|am|vom|seit|op|sinds|afgelopen|le|depuis|el|desde|da|dal|na|в|во|с|со|{_LAST}"
_WORD_AGO = "|".join(
    word if word >= "\u3000" else rf"\b{word}\b" for word in sorted(_AGO_OF_WORD, key=len, reverse=True)
)
# Phrases that relate to a day, those with more words first.
_RELATIVE = (
    r"上?(?P<weekday>(?:周|星期)[一二三四五六日]|[月火水木金土日]曜日)",
    rf"\b(?P<few>last|past|letzten|laatste|afgelopen|dernier[es]*|ultim[oa]s|последние)\s+{_COUNT}\s+(?:{_UNIT})\b",
    rf"\b(?P<few>past|afgelopen|последн\w+)\s+(?:{_UNIT})\b",
    rf"\b{_COUNT}\s*(?:{_UNIT})\s+(?:ago|geleden|fa|atras|назад)\b",
    rf"\b(?:vor|il y a|hace|ha)\s+{_COUNT}\s+(?:{_UNIT})\b",
    rf"{_COUNT}\s*(?:{_UNIT})之?前",
    rf"\b(?:{_LONG_UNIT})\s+назад\b",
    rf"(?<!\w)(?:{_LAST})\s*(?:{_LONG_UNIT})(?!\w*[a-zа-я])",
    rf"(?<!\w)(?P<this>{_THIS})\s*(?:{_UNIT})(?!\w*[a-zа-я])",
    rf"\b(?:{_LONG_UNIT})\s+(?:derniere?|passee?|pasad[oa]|scors[oa]|passad[oa])\b",
    _WORD_AGO,
    rf"\b(?:{_BEFORE_WEEKDAY})\s+(?P<weekday>{_WEEKDAY})(?:\s+(?:dernier|pasado|scorso))?(?!\w)",
    rf"\b(?P<weekday>{_WEEKDAY})\s+(?:dernier|pasado|scorso)\b",
)
# Each such phrase has a word that begins with one of these, or one beyond ASCII.
_RELATIVE_WORDS = (
    *(word.partition("'")[0] for word in _AGO_OF_WORD),
    *_NUMBER_OF_WEEKDAY,
    *(re.sub(r".\?|\[.*", "", word) for words in _UNITS.values() for word in words.split()),
)
_CALENDAR = (_ISO, _NUMERIC, _CJK, _DAY_MONTH, _MONTH_DAY, _BARE_YEAR)
_LENGTHS = {"day": 1, "week": 7, "month": 30, "year": 365}

# How long after what it tells of a note may be written, and how long before.
LATE_DAYS, EARLY_DAYS = 45, 10
MAX_DAY_TERMS = 31  # of a mention; a longer time is looked up by its months
MAX_MONTH_TERMS = 24
# A day in a name: `2026-05-10`, `2026_05_10`, `2026.05.10` or `2026 05 10`; `20260510`, alone or before a time of day;
# `10-05-2026`, where only one reading is a day, or `10.05.2026`; `2026/05/10` and `2026/05-May/10-x` in folders.
_NAMED = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_. ]?)(\d\d)\2(\d\d)(?:\d{4}|\d{6})?(?!\d)")
_NAMED_SHORT = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_])(\d\d?)\2(\d\d?)(?!\d)")
_NAMED_LAST = re.compile(r"(?<!\d)(\d\d?)([-_.])(\d\d?)\2((?:19|20)\d\d)(?!\d)")
_IN_FOLDERS = re.compile(r"(?:^|/)((?:19|20)\d\d)/(?:\1[-_.])?(\d\d)(?:[-_. ][^/]*)?/(\d\d)(?=$|[-_./])")
_ENDING = re.compile(r"(?:\.(?:md|mdx|markdown|txt|org|jsonl|canvas|age))+$", re.IGNORECASE)
_TITLE_DAY = re.compile(
    rf"[\W_]*(?:(?:{_WEEKDAY}|mon|tues?|wed|thu(?:rs)?|fri|sat|sun|mo|di|mi|do|fr|sa|so)[\W_]+)?(?=\d|(?:{_MONTH})\b)"
)
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
        try:
            first = date(year, month, self.day or 1)
        except ValueError:
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
    """Return the day in the name of a note or of its folders, in any usual form; None for a name without one.

    Args:
        path: The path of the note, relative to the workspace.
    """
    plain = _ENDING.sub("", path.replace("\\", "/"))
    if ".jsonl" in path:  # the messages of a transcript have days
        return None
    folders, _, name = plain.rpartition("/")
    if (day := parse_day(name)) is None and (match := _IN_FOLDERS.search(plain)):
        day = _make_day(match[1], match[2], match[3])
    return day or next(filter(None, map(parse_day, reversed(folders.split("/")))), None)


def parse_day(text: str) -> date | None:
    """Return the first whole day in a name, a title or a field, in any usual form; None without one."""
    for match in (*_NAMED.finditer(text), *_NAMED_SHORT.finditer(text)):
        if day := _make_day(match[1], match[3], match[4]):
            return day
    for first, sign, second, year in _NAMED_LAST.findall(text):
        both = {_make_day(year, second, first)} | ({_make_day(year, first, second)} if sign != "." else set())
        if len(both - {None}) == 1:
            return (both - {None}).pop()
    if not any(map(str.isdigit, text)):
        return None
    mentions = (mention for mention, _ in split_dates(text) if isinstance(mention, DateMention))
    days = (_make_day(each.year, each.month, each.day) for each in mentions if each.year and each.day)
    return next(filter(None, days), None)


def parse_title_day(title: str) -> date | None:
    """Return the day that a title begins with, also after a weekday; None for one that only mentions a day."""
    folded = fold(title)
    if (start := _TITLE_DAY.match(folded)) is None:
        return None
    return parse_day(" ".join(folded[start.end() :].split()[:3]))


def is_date_title(text: str) -> bool:
    """Return whether a text is only a heading that is a date, which repeats the day of a note.

    Args:
        text: The text.
    """
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
    """Return all terms that mean a day in a query; the year alone is a term of its note's name.

    Args:
        day: The day.
    """
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
    text = fold(query).replace("\u2019", "'")
    mentions: list[tuple[Mention, str]] = []

    def take(pattern: str) -> None:
        nonlocal text
        left, at = list[str](), 0
        for match in re.finditer(pattern, text):
            start, end = match.span()
            mention = _read_mention(match, text[max(0, start - _LONGEST_BEFORE) : start], today)
            if mention is not None:
                mentions.append((mention, match.group()))
                left += [text[at:start], " " * (end - start)]
                at = end
        text = "".join([*left, text[at:]])

    may_relate = not text.isascii() or any(word.startswith(_RELATIVE_WORDS) for word in text.replace("'", " ").split())
    for pattern in _RELATIVE if today is not None and may_relate else ():
        take(pattern)
    for pattern in _CALENDAR if any(map(str.isdigit, text)) else (_MONTH_DAY,):
        take(pattern)
    return mentions


def _read_mention(match: re.Match[str], before: str, today: date | None) -> Mention | None:
    """Return the date or days of a match, or None if it is not a date."""
    groups = match.groupdict()
    if match.re.pattern in _CALENDAR or today is None:
        mention: Mention | None = _read_date(match, before, today)
    else:
        mention = _read_relative(groups, match, today)
    lead = before + (match[0][: match.start("weekday") - match.start()] if groups.get("weekday") else "")
    if mention is None or today is None or not re.search(_SINCE, lead):
        return mention
    first = mention.first if isinstance(mention, DayRange) else _find_first(mention, today)
    return DayRange(first, today)


def _read_date(match: re.Match[str], before: str, today: date | None) -> DateMention | None:
    year, month, day = map(match.groupdict().get, ("year", "month", "day"))
    is_doubtful = month in _AMBIGUOUS or month in _ABBREVIATIONS
    if is_doubtful and not (day or year or re.search(_BEFORE_A_MONTH, before)):
        return None
    if match.re.pattern == _NUMERIC and not year and not re.search(_ON_A_DAY, before):
        return None
    number = None if month is None else int(month) if month.isdigit() else _NUMBER_OF_MONTH[month]
    if today and number and not year and re.search(rf"(?:{_LAST})\s+$", before):
        year = str(today.year - (number >= today.month))
    return DateMention(int(year) if year else None, number, int(day) if day else None)


def _read_relative(groups: dict[str, str | None], match: re.Match[str], today: date) -> DayRange | None:
    """Return the days of a phrase such as "yesterday", "last week", "two days ago" or "on Monday"."""
    if (days := _AGO_OF_WORD.get(match[0])) is not None:
        day = today - timedelta(days)
        return None if match[0] == "hier" and _is_german(match.string) else DayRange(day, day)
    if weekday := groups.get("weekday"):
        day = today - timedelta((today.weekday() - _NUMBER_OF_WEEKDAY[weekday] - 1) % 7 + 1)
        return DayRange(day, day)
    unit = next(name for name in _UNITS if groups.get(name))
    count = groups.get("count")
    value = 1 if count is None else int(count) if count.isdigit() else _VALUE_OF_NUMBER[count]
    if groups.get("few"):
        return DayRange(today - timedelta(value * _LENGTHS[unit]), today)
    return _find_unit(today, unit, 0 if groups.get("this") else value)


def _find_unit(today: date, unit: str, back: int) -> DayRange:
    """Return a day, week, month or year before today, by the number of such units; of the present one, up to today."""
    if unit in {"day", "week"}:
        first = today - timedelta(back) if unit == "day" else today - timedelta(today.weekday() + 7 * back)
        return DayRange(first, min(today, first + timedelta(_LENGTHS[unit] - 1)))
    if unit == "year":
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
