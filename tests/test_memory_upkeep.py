"""An index that keeps itself true: it notices what changed, heals, and lets one sync at a time be at work."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import apsw
import pytest
from index_files import index_file, index_folder
from msgspec.structs import replace
from watching import eventually

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import IndexLockedError, SyncBusyError, WorkspaceError
from openclaw_memory.store import connection
from openclaw_memory.types import Progress

SECONDS = 60  # how long a test waits for something to happen
QUIET = MemoryConfig(sync=SyncConfig(on_search=False))


def finds(memory: Memory, word: str) -> bool:
    return any(word in result.snippet for result in memory.search(word))


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None) as memory:
        memory.sync()
        yield memory


# --- triggers
def test_a_search_notices_a_file_that_was_edited_says_stale_and_has_it_indexed_in_the_background(memory, notes):
    assert not memory.search("boiler").stale
    (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
    eventually(lambda: memory.search("boiler").stale or finds(memory, "zeppelin"))
    eventually(lambda: finds(memory, "zeppelin"))
    eventually(lambda: not memory.search("boiler").stale)


def test_an_index_that_has_to_be_built_again_waits_for_a_call(notes):
    with Memory.open(notes, embedder=None) as memory:
        memory.sync()
    with Memory.open(notes, embedder=HashingEmbedder()) as memory:
        for _ in range(10):
            results = memory.search("boiler")
            assert (results[0].path, results.mode, results.stale) == ("memory/household.md", "keyword", True)
            time.sleep(0.01)
        assert any("builds the index again" in notice for notice in memory.status().notices)
        memory.sync()
        assert (memory.search("boiler").mode, memory.search("boiler").stale) == ("hybrid", False)


def test_a_background_sync_that_fails_is_told_and_harms_nothing(memory, notes, monkeypatch):
    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("the disk is on fire")

    monkeypatch.setattr("openclaw_memory.indexing.sync.sync_once", fail)
    (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
    eventually(lambda: memory.search("boiler") and memory._engine.service.last_error)
    assert "on fire" in str(memory.status().last_error)
    monkeypatch.undo()
    (notes / "memory/newer.md").write_text("Another zeppelin.\n")
    eventually(lambda: finds(memory, "Another"))
    eventually(lambda: memory.status().last_error is None)


# --- one sync at a time
@pytest.mark.fault(11)
def test_a_second_sync_waits_or_is_told(notes):
    reached, go_on = Event(), Event()

    def stop(_: Progress) -> None:
        reached.set()
        assert go_on.wait(SECONDS)

    with (
        Memory.open(notes, embedder=None) as memory,
        Memory.open(notes, embedder=None) as other,
        ThreadPoolExecutor(3) as threads,
    ):
        first = threads.submit(memory.sync, progress=stop)
        assert reached.wait(SECONDS)
        try:
            for waiting in (memory, other):
                with pytest.raises(SyncBusyError):
                    waiting.sync(wait=0)
            joined = [threads.submit(waiting.sync) for waiting in (memory, other)]
        finally:
            go_on.set()
        assert len(first.result(SECONDS).added) == 4
        assert [sync.result(SECONDS).unchanged for sync in joined] == [4, 4]


def test_a_progress_callback_that_syncs_is_told(memory):
    with pytest.raises(SyncBusyError, match="callback"):
        memory.sync(force=True, progress=lambda _: memory.sync())
    assert finds(memory, "boiler")


# --- healing
def spoilt(index: Path, how: str) -> None:
    for companion in ("-wal", "-shm"):
        Path(f"{index}{companion}").unlink(missing_ok=True)
    content = bytearray(index.read_bytes())
    if how == "no database":
        content = bytearray(b"this is no database" * 1000)
    elif how == "cut":
        del content[len(content) // 2 :]
    elif how == "garbage":
        for page in range(1, len(content) // connection.PAGE_SIZE):
            content[page * connection.PAGE_SIZE : page * connection.PAGE_SIZE + 2000] = b"\xab" * 2000
    index.write_bytes(content)


@pytest.mark.fault(5)
@pytest.mark.parametrize("how", ["no database", "cut", "garbage"])
@pytest.mark.parametrize("by", ["search", "sync", "force"])
@pytest.mark.sampled(2)
def test_a_damaged_index_is_deleted_and_built_again(notes, how, by):
    with Memory.open(notes, embedder=None) as memory:
        memory.sync()
    index = index_file(notes)
    spoilt(index, how)
    with Memory.open(notes, embedder=None, config=QUIET) as memory:
        if by != "search":
            report = memory.sync(force=by == "force")
            assert "damaged" in str(report.rebuilt)
            assert len(report.added) == 4
        else:
            results = memory.search("boiler")
            assert results[0].path == "memory/household.md"
            assert "damaged" in str(results.reason)
            assert "damaged" in str(memory.status().last_sync.rebuilt)
        assert memory.search("boiler").reason is None
        assert memory.status(deep=True).problems == ()


@pytest.mark.fault(4)
def test_an_index_that_was_deleted_while_it_was_open_is_built_again(memory, notes):
    for file in index_folder(notes).glob("index.sqlite*"):
        file.unlink()
    assert finds(memory, "boiler")
    assert index_file(notes).exists()


def test_a_workspace_that_went_away_is_not_made_again(memory, notes):
    notes.rename(notes.with_name("elsewhere"))
    for call in (memory.sync, lambda: memory.search("boiler")):
        with pytest.raises(WorkspaceError, match="has gone"):
            call()
    assert not notes.exists()
    notes.with_name("elsewhere").rename(notes)
    assert finds(memory, "boiler")


@pytest.mark.fault(5)
def test_a_lock_is_no_damage(notes, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MS", 50)
    with Memory.open(notes, embedder=None, config=QUIET) as memory:
        memory.sync()
    holder = apsw.Connection(str(index_file(notes)))
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with Memory.open(notes, embedder=None, config=QUIET) as memory:
            (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
            with pytest.raises(IndexLockedError):
                memory.sync()
            results = memory.search("boiler")
            assert results
            assert "damaged" not in str(results.reason)
    finally:
        holder.execute("ROLLBACK")
        holder.close()


# --- watching
def test_watching_twice_is_watching_once_and_ends_with_the_memory(notes):
    config = replace(QUIET, sync=replace(QUIET.sync, debounce_seconds=0.1))
    with Memory.open(notes, embedder=None, config=config) as memory:
        memory.sync()
        watcher = memory.watch()
        assert memory.watch() is watcher
        eventually(lambda: watcher.state.startswith("watching"))
        assert memory.status().watcher == watcher.state
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        eventually(lambda: finds(memory, "zeppelin"))
        watcher.stop()
        again = memory.watch()
        assert again is not watcher
    eventually(lambda: again.state == "stopped")
