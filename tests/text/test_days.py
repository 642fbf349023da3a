"""The day that a note is of, the days that a question means, and the words that only look like a date."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.text.days import DateMention, DayRange, find_dates, get_path_day, parse_title_day, split_dates

SUNDAY = date(2026, 11, 29)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What happened on 2026-02-09?|20260209|2026. február 9.|9 feb 2026|9 tháng 2 năm 2026", (2026, 2, 9)),
        ("What happened in 2026-02?|in February 2026|2026年2月|w lutym 2026|tháng 2 năm 2026", (2026, 2, None)),
        ("What happened in 2026?", (2026, None, None)),
        ("Who came on the 7th of May?|on May 7?|am 7.5.?|le 7 mai|5月7日|7 Mayıs'ta|στις 7 Μαΐου", (None, 5, 7)),
        ("What did we plan in March?|Was war im März?|в марте|w marcu|en mars|มีนาคม|במרץ", (None, 3, None)),
        ("Sept 3 in the evening", (None, 9, 3)),
        ("on 14/07/2022|on 7/14/2022|le 14 juillet 2022|el 14 de julio de 2022|14. července 2022", (2022, 7, 14)),
    ],
)
def test_a_date_is_understood(question, expected):
    for each in question.split("|"):
        assert find_dates(each) == (DateMention(*expected),), each


@pytest.mark.parametrize(
    "title",
    [
        "14 May 2026", "Thu 14 May 2026 - rain", "May 14th, 2026", "14.05.2026", "[[2026-05-14]]", "Donnerstag, 14. Mai 2026",
        "14 de mayo de 2026", "jeudi 14 mai 2026", "giovedì 14 maggio 2026", "14 de maio de 2026", "четверг, 14 мая 2026 г.",
        "14 травня 2026", "14 maja 2026 r.", "14. května 2026", "14 Mayıs 2026 Perşembe", "14 maj 2026", "14. toukokuuta 2026",
        "2026. május 14.", "14 mai 2026", "14 Μαΐου 2026", "Ngày 14 tháng 5 năm 2026", "14 Mei 2026", "14 मई 2026",
        "14 พฤษภาคม 2569", "14 مايو 2026", "14 במאי 2026", "2026年5月14日（木）", "2026년 5월 14일 목요일", "14 May", "Do 14. Mai",
    ],
)  # fmt: skip
def test_a_heading_is_of_the_day_that_it_begins_with(title):
    assert parse_title_day(title, 2026) == date(2026, 5, 14)
    assert parse_title_day(f"Plans for {title}", 2026) is None


@pytest.mark.parametrize(
    "question",
    ["May I ask who came?", "Did they march?", "Is Jan at home?", "April likes trains", "room 20", "version 1.2.3", "",
     "2026-13-45x", "12345", "the second of them"],
)  # fmt: skip
def test_what_only_looks_like_a_date_is_none(question):
    assert [found for found in find_dates(question) if found.month is not None] == []


def test_several_dates_are_each_found_once():
    found = find_dates("Between 2026-02-09 and 12 March 2026, or 2026-02-09 again")
    assert found == (DateMention(2026, 2, 9), DateMention(2026, 3, 12))


@pytest.mark.parametrize(
    ("mention", "agreement"),
    [
        (DateMention(2026, 2, 9), 1.0), (DateMention(None, 2, 9), 1.0), (DateMention(2026, 1, 31), 0.8),
        (DateMention(2026, 1, None), 0.8), (DateMention(None, 12, 31), 1 / 9), (DateMention(2025, 12, 25), 0.0),
        (DateMention(2026, 2, 14), 0.25), (DateMention(2026, 3, 9), 0.0), (DateMention(2025, 2, 9), 0.0),
        (DateMention(2026, 2, None), 1.0), (DateMention(2026, 3, None), 0.0), (DateMention(2026, None, None), 0.5),
        (DateMention(2025, None, None), 0.0), (DateMention(2026, 2, 30), 0.0),
    ],
)  # fmt: skip
def test_a_note_agrees_with_a_date_the_nearer_the_better(mention, agreement):
    assert mention.rate_agreement(date(2026, 2, 9)) == pytest.approx(agreement)


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_every_day_is_read_back_however_it_is_written(day):
    named = (DateMention(day.year, day.month, day.day),)
    assert find_dates(f"on {day.isoformat()}?") == named
    assert find_dates(f"on {day.day} {day:%B} {day.year}?") == named
    assert find_dates(f"{day.year}年{day.month}月{day.day}日") == named


@given(st.text(max_size=80) | st.text(alphabet="0123456789-may年月日 .,th", max_size=60))
def test_any_text_is_read_without_an_error(text):
    for mention in find_dates(text):
        assert mention.year is None or 1900 <= mention.year <= 2099
        assert mention.month is None or 1 <= mention.month <= 12
        assert 0 <= mention.rate_agreement(date(2024, 2, 29)) <= 1


@pytest.mark.parametrize(
    "path",
    [
        "Daily/2026-05-10.md", "2026-05-10.md", "journals/2026_05_10.md", "daily.journal.2026.05.10.md",
        "20260510-market.md", "memory/2026-05-10 Sun.md", "2026/05/10.md", "2026/05-May/10.md", "memory/daily-2026-05-10.md",
        "memory/2026-05-10-1908.md", "202605101908 Market.md", "May 10th, 2026.md", "10 mei 2026.md", "2026年5月10日.md",
        "10.05.2026.md", "2026-5-10.md", "2026-05-10/notes.md", "2026/05/10/notes.md", "Daily/2026-05-10.md.age", "notes/2026-05-10.org", "2026/2026-05/10.md",
    ],
)  # fmt: skip
def test_a_note_is_of_the_day_in_its_name_in_any_usual_form(path):
    assert get_path_day(path) == date(2026, 5, 10)


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md", "2026.md", "2026-05.md", "05-10-2026.md", "memory/v1.2.3.md", "2026-13-01.md", "notes/12345678.md",
        "2026/05/10 ways to cook.md", "build-20261301.md", "0050-05-10.md", "memory/may.md",
    ],
)  # fmt: skip
def test_a_name_without_one_certain_day_has_none(path):
    assert get_path_day(path) is None


@pytest.mark.parametrize(
    ("phrases", "first", "last"),
    [
        ("today vandaag heute aujourd'hui hoy oggi 今天 сегодня dziś bugün idag σήμερα วันนี้ اليوم היום आज", 0, 0),
        ("yesterday gestern hier ayer ieri 昨天 вчера 어제 wczoraj dün igår χθες เมื่อวาน أمس אתמול دیروز", 1, 1),
        ("eergisteren|vorgestern|avant-hier|antes de ayer|前天|позавчера|przedwczoraj|おととい|أول أمس", 2, 2),
        ("last week|letzte Woche|la semaine dernière|上個星期|на прошлой неделе|geçen hafta|tuần trước", 13, 7),
        ("this week|deze week|diese Woche|cette semaine|本周|на этой неделе|bu hafta|tuần này|สัปดาห์นี้|इस हफ्ते", 6, 0),
        ("two days ago|vor zwei Tagen|il y a deux jours|há dois dias|兩天前|dwa dni temu|2일 전", 2, 2),
        ("last month|letzten Monat|le mois dernier|上个月|w zeszłym miesiącu|geçen ay|förra månaden", 59, 29),
        ("in the last 3 days|past 3 days|los últimos 3 días|последние 3 дня|最近3天", 3, 0),
        ("on Friday|on Fri|what I did Friday|am Freitag|fait vendredi|в пятницу|w piątek|지난 금요일|cuma günü", 2, 2),
        ("since Monday|seit Montag|depuis lundi|с понедельника|从周一以来|od poniedziałku", 6, 0),
        ("between November 23 and November 25|vom 23. bis 25. November|23-25 November 2026", 6, 4),
        ("since May 1|since 2026-05-01", 212, 0),
    ],
)
def test_a_question_means_days_that_relate_to_its_own(phrases, first, last):
    for phrase in phrases.split("|") if "|" in phrases else phrases.split():
        (mention, _), *others = split_dates(f"{phrase}?", SUNDAY)
        assert others == []
        assert ((SUNDAY - mention.first).days, (SUNDAY - mention.last).days) == (first, last), phrase


def test_a_month_or_weekday_that_was_last_is_the_latest_one():
    assert split_dates("what happened last March", SUNDAY)[0][0] == DateMention(2026, 3, None)
    assert split_dates("what happened last December", SUNDAY)[0][0] == DateMention(2025, 12, None)


@pytest.mark.parametrize(
    "text",
    ["Was steht hier in der Notiz?", "every Monday", "a week of holidays", "the last word", "Monday", "วันศุกร์", ""],
)
def test_words_that_relate_to_no_day_are_left_alone(text):
    assert split_dates(text, SUNDAY) == []


@given(st.dates(date(2000, 1, 1), date(2099, 12, 31)), st.integers(0, 400))
def test_a_range_is_looked_up_by_terms_of_all_its_days(first, length):
    last = date.fromordinal(min(first.toordinal() + length, date(2099, 12, 31).toordinal()))
    terms = DayRange(first, last).list_terms()
    for day in (first, last):
        assert {day.isoformat(), day.isoformat()[:7]} & set(terms)
