"""What is kept of the last sync: it comes back as it was, and what is no note is told from one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory.indexing.history import record_of, sync_record
from openclaw_memory.types import Skipped, SyncReport
from openclaw_memory.types.results import SyncRecord

NOON = 1_795_348_800.25  # 2026-11-22T12:00:00.250 UTC


def test_a_note_of_a_sync_comes_back_with_its_counts_and_reasons():
    report = SyncReport(
        added=("a.md", "b.md"),
        removed=("c.md",),
        unchanged=7,
        failed=(Skipped("d.md", "is locked"),),
        skipped=(Skipped("e.md", "is not text"),),
        waiting=(Skipped("f.md", "no service"),),
        embedded=3,
        seconds=0.12345,
        rebuilt="the index was damaged",
    )
    assert sync_record(record_of(report, "watcher", NOON)) == SyncRecord(
        at="2026-11-22T12:00:00.250+00:00",
        reason="watcher",
        seconds=0.123,
        added=2,
        changed=0,
        removed=1,
        unchanged=7,
        embedded=3,
        failed={"d.md": "is locked"},
        skipped={"e.md": "is not text"},
        waiting=1,
        rebuilt="the index was damaged",
    )


@pytest.mark.parametrize(
    "text",
    [
        None, "", "{", "[]", "3", '{"error": "no time"}', '{"at": 5}', '{"at": "noon"}', '{"at": "2026-11-22"}',
        '"at"', "\udcff",
    ],
)  # fmt: skip
def test_what_is_no_note_tells_nothing(text):
    assert sync_record(text) is None


@settings(max_examples=15)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_whatever_lies_in_the_place_of_a_note_is_no_error(value):
    assert sync_record(json.dumps(value)) is None
