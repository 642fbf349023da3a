"""A clock that is wrong, and the nights on which clocks change: the right day's file, ages that are never negative."""

from __future__ import annotations

import datetime
import os
import time

import pytest
from processes import QUIET, fresh, synced

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SearchConfig, SessionsConfig
from openclaw_memory.workspace import notes, time_zone

DAYS = {"40 days ago": -40, "in 10 years": 3653, "now": 0}


@pytest.mark.fault(26)
@pytest.mark.parametrize("days", DAYS.values(), ids=DAYS)
def test_files_that_were_written_at_another_time_are_followed(tmp_path, days):
    notes = tmp_path / "notes"
    (notes / "memory").mkdir(parents=True)
    (notes / "sessions").mkdir()
    note, talk = notes / "memory/a.md", notes / "sessions/a.jsonl"
    moment = time.time() + days * 86_400
    line = '{"type": "message", "message": {"role": "user", "content": "memo %s"}}\n'

    def at(shift: float) -> None:
        for file in (note, talk):
            os.utime(file, (moment + shift, moment + shift))

    note.write_text("memo apple\n")
    talk.write_text(line % "apple")
    at(0)
    synced(notes)
    note.write_text("memo fig one\n")
    talk.write_text(line % "apple" + line % "fig")
    at(-3600)  # set back by an hour
    assert synced(notes) == fresh(notes)
    with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
        assert {result.path for result in memory.search("fig", min_score=0.0)} == {"memory/a.md", "sessions/a.jsonl"}
    if days > 0:  # a stamp that is yet to come is trusted by nobody: not even one that stays the same
        note.write_text("memo fig two\n")
        at(-3600)
        assert synced(notes) == fresh(notes)


@pytest.mark.fault(26)
@pytest.mark.parametrize("moment", [253_402_300_799, -(10**10)], ids=["the year 9999", "the year 1653"])
def test_a_file_of_any_year_is_found(notes, moment):
    with Memory.open(notes, embedder="hashing", config=QUIET) as memory:
        note = "memory/household.md"
        os.utime(notes / note, (moment, moment))
        assert memory.sync().ok
        assert memory.search("boiler", min_score=0.0)[0].path == note
        assert memory.sync().unchanged == 4


@pytest.mark.fault(26)
@pytest.mark.parametrize("days", [-40, 0, 1, 3653])
def test_notes_of_other_days_are_found_with_a_score_that_is_one(tmp_path, days):
    day = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days)
    config = MemoryConfig(search=SearchConfig(half_life_days=30))
    with Memory.open(tmp_path, embedder="hashing", config=config) as memory:
        memory.append("memo apple", date=day)
        memory.sync()
        (result,) = memory.search("apple", min_score=0.0)
        assert result.path == f"memory/{day.isoformat()}.md"
        assert 0 < result.score <= 1


# The moment, the zone whose days count, and the day and hour there.
MOMENTS = [
    ("2026-11-21T22:59:59+00:00", "Europe/Amsterdam", "2026-11-21", "23:59"),
    ("2026-11-21T23:00:00+00:00", "Europe/Amsterdam", "2026-11-22", "0:00"),
    ("2026-03-29T00:59:59+00:00", "Europe/Amsterdam", "2026-03-29", "1:59"),
    ("2026-03-29T01:00:00+00:00", "Europe/Amsterdam", "2026-03-29", "3:00"),
    ("2026-10-25T00:30:00+00:00", "Europe/Amsterdam", "2026-10-25", "2:30"),
    ("2026-10-25T01:30:00+00:00", "Europe/Amsterdam", "2026-10-25", "2:30"),
    ("2026-09-06T04:30:00+00:00", "America/Santiago", "2026-09-06", "1:30"),  # midnight itself is left out there
    ("2026-09-06T03:59:59+00:00", "America/Santiago", "2026-09-05", "23:59"),
    ("2026-12-31T10:00:00+00:00", "Pacific/Kiritimati", "2027-01-01", "0:00"),
    ("2026-12-31T12:00:00+00:00", "Etc/GMT+12", "2026-12-31", "0:00"),
    ("2036-02-29T12:00:00+00:00", "Asia/Kathmandu", "2036-02-29", "17:45"),
    ("1999-12-31T23:59:59+00:00", "UTC", "1999-12-31", "23:59"),
]


@pytest.mark.fault(26)
@pytest.mark.parametrize(("moment", "zone", "day", "hour"), MOMENTS)
def test_a_note_is_of_the_day_of_its_reader_at_midnight_and_when_clocks_change(tmp_path, moment, zone, day, hour):
    utc = datetime.datetime.fromisoformat(moment)
    now = time_zone.get_local_now(zone, utc)
    config = MemoryConfig(sessions=SessionsConfig(timezone=zone))
    with Memory.open(tmp_path, embedder=None, config=config) as memory:
        files = memory.workspace.files
        written = notes.append(files, "memo", date=now.date(), title="Entry", now=now)
        assert (written.path, written.text.split("\n")[0]) == (f"memory/{day}.md", f"## {hour} - Entry")
        assert [file.path for file in memory.notes.bootstrap(now=utc).files] == [f"memory/{day}.md"]
        tomorrow = now.replace(tzinfo=None) + datetime.timedelta(days=1)
        assert [file.path for file in memory.notes.bootstrap(now=tomorrow).files] == [f"memory/{day}.md"]
