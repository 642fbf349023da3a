"""What is kept of the last sync: it comes back as it was, and what is no note is told from one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.errors import WorkspaceError
from openclaw_memory.indexing.history import MOST_FILES, moment, record_of, record_of_error, sync_failure, sync_record
from openclaw_memory.types import Skipped, SyncReport
from openclaw_memory.types.results import SyncFailure, SyncRecord

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


def test_a_note_does_not_grow_with_the_files_that_fail():
    report = SyncReport(failed=tuple(Skipped(f"{number}.md", "no") for number in range(10 * MOST_FILES)))
    said = sync_record(record_of(report, "manual", NOON))
    assert said is not None
    assert len(said.failed) == MOST_FILES


def test_an_error_without_words_is_told_by_its_type():
    assert sync_failure(record_of_error(WorkspaceError("the folder has gone"), NOON)) == SyncFailure(
        "2026-11-22T12:00:00.250+00:00", "the folder has gone"
    )
    said = sync_failure(record_of_error(KeyboardInterrupt(), NOON))
    assert said is not None
    assert said.error == "KeyboardInterrupt"


def test_words_that_are_no_note_are_an_error_of_an_unknown_time():
    assert sync_failure("WorkspaceError: the folder has gone") == SyncFailure(
        None, "WorkspaceError: the folder has gone"
    )
    assert sync_failure(None) is None


@pytest.mark.parametrize(
    "text",
    [
        None, "", "{", "[]", "3", '{"error": "no time"}', '{"at": 5}', '{"at": "noon"}', '{"at": "2026-11-22"}',
        '"at"', "\udcff",
    ],
)  # fmt: skip
def test_what_is_no_note_tells_nothing(text):
    assert sync_record(text) is None


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_whatever_lies_in_the_place_of_a_note_is_no_error(value):
    assert sync_record(json.dumps(value)) is None


@given(st.floats(0, 4e9), st.floats(0, 4e9))
def test_later_times_are_later_texts(one, other):
    one, other = round(one, 3), round(other, 3)
    assert (moment(one) <= moment(other)) or one > other
