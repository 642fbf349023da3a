"""What the stamps of files say, without reading one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openclaw_memory.sync import compare
from openclaw_memory.types import FileRecord, MemoryFile

SECOND = 1_000_000_000
LONG_AGO = 1_000 * SECOND + 123_456_789
FILE = MemoryFile("memory/a.md", "memory", size=10, mtime_ns=LONG_AGO, inode=7)
RECORD = FileRecord("memory/a.md", "memory", "hash", 10, LONG_AGO, 7, checked_ns=LONG_AGO + SECOND)


def test_a_file_with_the_stamp_it_had_is_unchanged() -> None:
    difference = compare([FILE], {FILE.path: RECORD})
    assert (difference.unchanged, difference.to_read, difference.vanished) == (1, (), ())


def test_a_file_that_the_index_does_not_know_is_fresh() -> None:
    assert compare([FILE], {}).fresh == (FILE,)


@pytest.mark.parametrize("change", [{"size": 11}, {"mtime_ns": LONG_AGO - 1}, {"inode": 8}, {"source": "sessions"}])
def test_any_difference_in_the_stamp_makes_a_file_touched_also_an_older_mtime(change: dict[str, object]) -> None:
    file = replace(FILE, **change)  # type: ignore[arg-type]
    assert compare([file], {FILE.path: RECORD}).touched == (file,)


@pytest.mark.parametrize(
    ("mtime_ns", "checked_after_ns", "in_doubt"),
    [
        (LONG_AGO, 0, True),
        (LONG_AGO, 10_000_000, True),
        (LONG_AGO, 30_000_000, False),
        (LONG_AGO, -5 * SECOND, True),  # a stamp from the future
        (1_000 * SECOND, 1 * SECOND, True),  # whole seconds: a coarse clock
        (1_000 * SECOND, 3 * SECOND, False),
    ],
)
def test_a_file_read_within_a_tick_of_its_last_write_is_in_doubt(
    mtime_ns: int, checked_after_ns: int, in_doubt: bool
) -> None:
    file = replace(FILE, mtime_ns=mtime_ns)
    record = replace(RECORD, mtime_ns=mtime_ns, checked_ns=mtime_ns + checked_after_ns)
    difference = compare([file], {file.path: record})
    assert difference.doubtful == ((file,) if in_doubt else ())
    assert difference.dirty == ()


def test_dirty_names_what_is_fresh_touched_or_vanished() -> None:
    fresh, touched = replace(FILE, path="memory/new.md"), replace(FILE, size=99)
    gone = replace(RECORD, path="memory/gone.md")
    difference = compare([fresh, touched], {FILE.path: RECORD, gone.path: gone})
    assert difference.dirty == ("memory/a.md", "memory/gone.md", "memory/new.md")
