"""Processes that sync, write and search one workspace at once: none is told that it is busy, and nothing is lost."""

from __future__ import annotations

import json

import pytest
from processes import fresh, python, synced

PROCESSES = 2
SYNCER = """
import sys
from openclaw_memory import Memory
folder, who, times = sys.argv[1:]
with Memory.open(folder, embedder="hashing") as memory:
    log = memory.sessions.log("talk")
    for number in range(int(times)):
        memory.append(f"- memo {who}-{number} apple", date="2026-11-21")
        log.append("user", f"memo {who}-{number} pear")
        report = memory.sync(force=who == "0" and number % 7 == 0)
        assert report.ok, report
        assert any(f"{who}-{number} apple" in hit.snippet for hit in memory.search(f"{who}-{number} apple"))
"""
SEARCHER = """
import os, sys, time
from openclaw_memory import Memory
folder, end = sys.argv[1:]
count = 0
with Memory.open(folder, embedder="hashing") as memory:
    while not os.path.exists(end):
        assert any(hit.path == "MEMORY.md" for hit in memory.search("memo kept quince"))
        count += 1
        time.sleep(0.01)
print(count)
"""


@pytest.mark.fault(11)
@pytest.mark.parametrize("times", [1, pytest.param(60, marks=pytest.mark.nightly)])
def test_processes_that_sync_at_once_meet_no_error_and_searches_are_answered_all_the_while(tmp_path, times):
    notes, end = tmp_path / "notes", tmp_path / "end"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("memo kept quince\n")
    synced(notes)
    searcher = python(SEARCHER, notes, end)
    syncers = [python(SYNCER, notes, who, times) for who in range(PROCESSES)]
    for process in syncers:
        process.communicate()
    end.touch()
    assert int(searcher.communicate()[0]) > 0
    assert {process.returncode for process in (*syncers, searcher)} == {0}
    expected = sorted(f"{who}-{number}" for who in range(PROCESSES) for number in range(times))
    lines = (notes / "memory/2026-11-21.md").read_text().splitlines()[2:]
    assert sorted(line.removeprefix("- memo ").removesuffix(" apple") for line in lines) == expected
    entries = [json.loads(line) for line in (notes / "sessions/talk.jsonl").read_text().splitlines()]
    said = [entry["message"]["content"].split(" ")[1] for entry in entries if entry["type"] == "message"]
    assert sorted(said) == expected
    assert synced(notes) == fresh(notes)
