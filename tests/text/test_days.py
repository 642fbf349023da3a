"""Dates that a question mentions, in nine languages, and the words that only look like one."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.text.days import DateMention, find_dates


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What happened on 2026-02-09?", (2026, 2, 9)),
        ("What happened in 2026-02?", (2026, 2, None)),
        ("What happened in 2026?", (2026, None, None)),
        ("Who came on 7 May 2023?", (2023, 5, 7)),
        ("Who came on May 7th, 2023?", (2023, 5, 7)),
        ("Who came on the 7th of May?", (None, 5, 7)),
        ("What did we plan in March?", (None, 3, None)),
        ("The meeting of September 2025", (2025, 9, None)),
        ("Sept 3 in the evening", (None, 9, 3)),
        ("Was geschah am 3. Oktober 2024?", (2024, 10, 3)),
        ("Was war im März?", (None, 3, None)),
        ("Wat gebeurde er op 5 mei 2025?", (2025, 5, 5)),
        ("Que s'est-il passé le 14 juillet 2022 ?", (2022, 7, 14)),
        ("en août", (None, 8, None)),
        ("¿Qué pasó el 3 de octubre de 2024?", (2024, 10, 3)),
        ("2026年3月5日に何があった", (2026, 3, 5)),
        ("3月5日", (None, 3, 5)),
        ("2026년 3월 5일", (2026, 3, 5)),
    ],
)
def test_a_date_is_understood(question, expected):
    assert find_dates(question) == (DateMention(*expected),)


@pytest.mark.parametrize(
    "question",
    ["May I ask who came?", "Did they march?", "Is Jan at home?", "April likes trains", "room 20", "version 1.2.3", "",
     "2026-13-45x", "12345", "the second of them"],
)  # fmt: skip
def test_what_only_looks_like_a_date_is_none(question):
    assert [found for found in find_dates(question) if found.month is not None] == []


def test_several_dates_are_each_found_once():
    found = find_dates("Between 2026-02-09 and 12 March 2026, or 2026-02-09 again")
    assert set(found) == {DateMention(2026, 2, 9), DateMention(2026, 3, 12)}
    assert len(found) == 2


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
