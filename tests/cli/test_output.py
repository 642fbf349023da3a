"""What is printed: cleaned of controls, folded to the terminal, turned into JSON."""

import datetime
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.cli.output import folded
from openclaw_memory.display import clean
from openclaw_memory.types.results import SyncFailure
from openclaw_memory.types.status import ago, failure, size


@given(st.text(st.characters(codec=None), max_size=50))
def test_clean_text_holds_no_control_but_tab_and_line_feed(text):
    cleaned = clean(text)
    assert all(unicodedata.category(character) not in {"Cc", "Cs"} or character in "\t\n" for character in cleaned)
    cleaned.encode("utf-8")


def test_windows_line_ends_are_shown_as_line_ends():
    assert clean("one\r\ntwo") == "one\ntwo"


@given(st.text(st.sampled_from("ab 北é\t"), max_size=60), st.integers(8, 20))
def test_folding_keeps_every_letter_and_the_width(line, columns):
    rows = list(folded(line, columns))
    assert "".join("".join(rows).split()) == "".join(line.split())
    assert all(sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in row) <= columns for row in rows)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_500_000, "1.5 MB"), (2 * 10**9, "2.0 GB"),
        (10**16, "10000.0 TB"),
    ],
)  # fmt: skip
def test_a_size_is_reported_in_the_unit_that_suits_it(count, text):
    assert size(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(5, "5 s ago"), (300, "5 min ago"), (7200, "2 h ago")])
def test_a_time_of_today_is_reported_by_how_long_ago_it_was(seconds, text):
    moment = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    assert ago(moment.isoformat()) == text


@pytest.mark.parametrize("days", [-1, 2])
def test_a_time_that_is_not_of_today_is_reported_as_it_is(days):
    moment = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)).isoformat()
    assert ago(moment) == moment


def test_an_error_of_an_unknown_time_is_reported_without_one():
    assert failure(SyncFailure(None, "the disk is full")) == "the last sync ended with: the disk is full"
