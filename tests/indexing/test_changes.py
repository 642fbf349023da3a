"""What the stamps of files say, without reading one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw_memory.config.sections import SessionsConfig
from openclaw_memory.indexing.changes import compare, select_urgent
from openclaw_memory.types import FileRecord, MemoryFile

SECOND = 1_000_000_000
LONG_AGO = 1_000 * SECOND + 123_456_789
FILE = MemoryFile("memory/a.md", "memory", size=10, mtime_ns=LONG_AGO, inode=7, ctime_ns=LONG_AGO)
RECORD = FileRecord("memory/a.md", "memory", "hash", 10, LONG_AGO, 7, LONG_AGO + SECOND, ctime_ns=LONG_AGO)


@pytest.mark.parametrize("stamp", ["mtime_ns", "ctime_ns"])
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
def test_a_file_read_within_a_tick_of_its_last_write_is_in_doubt(stamp, mtime_ns, checked_after_ns, in_doubt):
    early: dict[str, Any] = {"mtime_ns": 1, "ctime_ns": 1}
    file = replace(FILE, **early | {stamp: mtime_ns})
    record = replace(RECORD, **early | {stamp: mtime_ns}, checked_ns=mtime_ns + checked_after_ns)
    difference = compare([file], {file.path: record})
    assert difference.doubtful == ((file,) if in_doubt else ())
    assert difference.dirty == ()


TALK = "sessions/talk.jsonl"
RULES = SessionsConfig(delta_bytes=1000, delta_messages=3)


def worth(place: Any) -> set[str]:
    known = place.store.get_files()
    return set(select_urgent(compare(place.workspace.scan().files, known), known, RULES, place.workspace))


def rewritten(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"apple", b"olive"))
    os.utime(file, (1_000_000, 1_000_000))


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (lambda _, __: None, False),
        (lambda place, _: place.say(TALK, "memo pear", "memo plum"), False),
        (lambda place, _: place.say(TALK, "memo pear", "memo plum", "memo fig"), True),
        (lambda place, _: place.say(TALK, "memo " + "fig" * 400), True),
        (lambda _, file: os.truncate(file, 10), True),
        (lambda _, file: rewritten(file), True),
        (lambda place, file: (place.say("sessions/b", "memo apple", "memo pear"), (file.parent / "b").replace(file)), True),
        (lambda _, file: file.unlink(), True),
        (lambda place, _: place.say("sessions/new.jsonl", "memo"), True),
    ],
    ids=["same", "two messages", "three messages", "much", "shorter", "rewritten", "another file", "gone", "a new one"],
)  # fmt: skip
def test_a_transcript_can_wait_while_it_grows_by_little(place, change, counts):
    file = place.say(TALK, "memo apple")
    place.sync()
    change(place, file)
    assert bool(worth(place)) == counts
