"""How the commands keep the index up with the files: before a question, after a note, and while another process syncs."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from index_files import index_file

from openclaw_memory.cli import options
from openclaw_memory.embeddings.static import StaticEmbedder
from openclaw_memory.errors import EmbedderError, StoreError
from openclaw_memory.store import SqliteStore


@pytest.mark.parametrize("changed", [True, False])
def test_search_can_answer_from_the_index_as_it_is_and_says_whether_that_is_behind(run, notes, changed):
    run("index", "--workspace", notes)
    if changed:
        with (notes / "memory" / "household.md").open("a") as household:
            household.write("The zeppelin is serviced in May.\n")
    outcome = run("search", "--workspace", notes, "--no-sync", "boiler")
    assert "serviced each October" in outcome.out
    assert (f"run `openclaw-memory index --workspace {notes}`" in outcome.err) is changed
    assert json.loads(run("search", "-w", notes, "--no-sync", "--json", "boiler").out)["stale"] is changed


def test_what_was_appended_is_indexed_at_once(run, notes):
    added = run("add", "--workspace", notes, "--date", "2026-03-01", "The ferry leaves at", "seven.")
    assert "memory/2026-03-01.md#L" in added.out
    found = run("search", "--workspace", notes, "--no-sync", "When does the ferry leave?")
    assert "memory/2026-03-01.md" in found.out
    assert "behind" not in found.err


def test_an_index_that_cannot_follow_the_files_still_answers_and_says_why(run, notes, monkeypatch):
    run("index", "--workspace", notes)

    def refuse(*_):
        raise EmbedderError("the line is dead")

    monkeypatch.setattr(StaticEmbedder, "embed_documents", refuse)
    added = run("add", "--workspace", notes, "The ferry leaves at seven.")
    assert (added.code, added.err.count("the line is dead")) == (0, 1)
    found = run("search", "--workspace", notes, "boiler")
    assert "household.md" in found.out
    assert (found.code, found.err.count("the line is dead")) == (0, 1)
    answer = json.loads(run("search", "--workspace", notes, "--json", "boiler").out)
    assert (answer["stale"], "the line is dead" in answer["sync_error"]) == (True, True)


def test_a_search_without_an_index_that_cannot_build_one_is_an_error(run, notes, monkeypatch):
    def refuse(*_, **__):
        raise StoreError("no space is left")

    monkeypatch.setattr(SqliteStore, "replace_files", refuse)
    outcome = run("search", "--workspace", notes, "--json", "boiler")
    assert (outcome.code, outcome.err) == (2, "error: no space is left\n")
    assert json.loads(outcome.out) == {"error": "no space is left", "kind": "StoreError"}


# --- while another process syncs
@pytest.fixture
def another_sync(notes, monkeypatch):
    """Holds the turn to sync the index of the notes, as another process does, until it is told to release it."""
    monkeypatch.setattr(options, "WAIT_SECONDS", 0.1)
    index_file(notes).parent.mkdir(exist_ok=True)
    taken, release = Event(), Event()

    def hold():
        with SqliteStore(index_file(notes)).lock("sync"):
            taken.set()
            assert release.wait(60)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(hold)
        assert taken.wait(60)
        yield release
        release.set()


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.sampled(1)
def test_a_search_answers_from_the_index_as_it_is_while_another_process_syncs(run, notes, request, indexed):
    if indexed:
        run("index", "--workspace", notes)
    request.getfixturevalue("another_sync")
    outcome = run("search", "--workspace", notes, "boiler")
    assert (outcome.code, "household.md" in outcome.out) == ((0, True) if indexed else (1, False))
    assert "note: another process syncs this index" in outcome.err
    answer = json.loads(run("search", "--workspace", notes, "--json", "boiler").out)
    assert (answer["stale"], "another process" in answer["sync_error"]) == (True, True)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.sampled(1)
def test_index_waits_for_another_process_and_says_so_once(notes, another_sync, as_json):
    words = [sys.executable, "-m", "openclaw_memory", "index", "-w", str(notes), *["--json"] * as_json]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not as_json:
        reported = process.stderr.readline()
        assert re.fullmatch(
            rf"note: waiting: thread \d+ of process {os.getpid()} holds index.sqlite.sync-lock\n", reported
        )
    another_sync.set()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert (len(json.loads(out)["added"]) if as_json else int(out.split()[0])) == 4
