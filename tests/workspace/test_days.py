"""A day is a day, however a caller names it: a date, a moment, or the text of either; anything else is an error of ours."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SessionsConfig
from openclaw_memory.errors import InvalidInputError, QueryError
from openclaw_memory.workspace.days import to_day

DAY = datetime.date(2026, 11, 23)
LATE = datetime.datetime(2026, 11, 22, 23, 30, tzinfo=datetime.UTC)  # half past midnight in Amsterdam
AMSTERDAM = MemoryConfig(sessions=SessionsConfig(timezone="Europe/Amsterdam"))
NO_DAYS = [20261123, 1.5, True, b"2026-11-23", ("2026-11-23",), "tomorrow", "", "2026-13-01", "9999-12-31T23:59-10:00"]

MEANT = {
    "a date": DAY,
    "a moment without a zone": datetime.datetime.fromisoformat("2026-11-23T00:42:05.891603"),
    "a moment of another zone": LATE,
    "text": " 2026-11-23 ",
    "text of a moment": "2026-11-23T00:42:05.891603",
    "text of a moment of another zone": "2026-11-22T23:30:00Z",
}


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None, config=AMSTERDAM) as opened:
        yield opened


@pytest.fixture(params=MEANT.values(), ids=MEANT.keys())
def meant(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_day_is_that_of_the_journals_zone(meant):
    assert to_day(meant, "date", "Europe/Amsterdam") == DAY


@pytest.mark.sampled(3)
def test_each_call_is_about_the_day_that_was_meant(memory, meant):
    path = "memory/2026-11-23.md"
    assert memory.append("The gate was painted green.", date=meant).path == path
    assert [file.name for file in (Path(memory.workspace.root) / "memory").glob("*T*")] == []
    memory.append("The gate was painted blue.", date="2026-11-22")
    memory.sync()
    assert path in [file.path for file in memory.notes.bootstrap(now=meant).files]
    for since, until in ((meant, meant), ("2026-11-23", LATE)):
        assert [one.path for one in memory.search("gate painted", filter={"since": since, "until": until})] == [path]
    assert [item.path for item in memory.control.inspect(kind="day", since=meant, until=meant)] == [path]
    assert path in str(memory.control.forget(since=meant).plan)
    assert path in str(memory.control.forget(last_days=1, now=meant).plan)


def test_what_is_no_day_is_an_error_that_names_the_argument_and_the_value(memory):
    calls = {
        "date": lambda given: memory.append("The gate was painted.", date=given),
        "now": lambda given: memory.notes.bootstrap(now=given),
        "since": lambda given: memory.control.forget(since=given),
        "until": lambda given: memory.control.inspect(until=given),
    }
    for given in NO_DAYS:
        for name, call in calls.items():
            with pytest.raises(InvalidInputError, match=rf"^{name} is .*: give a date"):
                call(given)
        with pytest.raises(QueryError, match=r"^since is .*: give a date"):
            memory.search("gate", filter={"since": given})
