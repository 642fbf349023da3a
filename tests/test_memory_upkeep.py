"""An index that keeps itself true: it notices what changed, heals, and lets one sync at a time be at work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from openclaw_memory.errors import IndexLockedError, StoreError, SyncBusyError, WorkspaceError
from openclaw_memory.store import SqliteStore, connection
from openclaw_memory.types import Progress, Store

SECONDS = 60  # how long a test waits for something to happen
QUIET = MemoryConfig(sync=SyncConfig(on_search=False))


def opened(notes: Path, config: MemoryConfig | None = None) -> Memory:
    return Memory.open(notes, embedder=None, config=config)


def finds(memory: Memory, word: str) -> bool:
    return any(word in result.snippet for result in memory.search(word))


@pytest.fixture
def memory(notes):
    with opened(notes) as memory:
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
    with opened(notes) as memory:
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

    with opened(notes) as memory, opened(notes) as other, ThreadPoolExecutor(3) as threads:
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
    with opened(notes, QUIET) as memory:
        memory.sync()
    holder = apsw.Connection(str(index_file(notes)))
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with opened(notes, QUIET) as memory:
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
    with opened(notes, config) as memory:
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


def test_a_memory_whose_watcher_stands_by_looks_for_itself(notes):
    slow = MemoryConfig(sync=SyncConfig(debounce_seconds=3600.0))
    with opened(notes, slow) as memory, opened(notes, slow) as other:
        memory.sync()
        working = memory.watch()
        eventually(lambda: working.is_at_work and not working.is_behind)
        waiting = other.watch()
        eventually(lambda: waiting.state.startswith("standing by"))
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        eventually(lambda: other.search("boiler").stale or finds(other, "zeppelin"))


# --- nobody waits for a sync
def test_a_search_never_waits_for_the_sync_of_another_process_though_one_of_its_own_does(notes):
    with opened(notes, QUIET) as memory:
        memory.sync(progress=lambda _: None)
        index = memory.index_path
        assert index is not None
        with ThreadPoolExecutor(2) as threads, opened(notes, QUIET) as other:
            store = other._engine.service.store()
            stored = store.read_meta()
            assert stored is not None
            store._reset(stored)
            with SqliteStore(index).lock("sync"):
                waiting = threads.submit(memory.sync)
                time.sleep(0.3)
                asked = threads.submit(memory.search, "boiler").result(SECONDS)
                assert (len(asked), asked.stale) == (0, True)
                assert not waiting.done()
            waiting.result(SECONDS)
            assert finds(memory, "boiler")


def test_waiting_for_a_turn_ends_when_the_memory_is_closed(notes):
    memory = opened(notes, QUIET)
    memory.sync()
    assert memory.index_path is not None
    with SqliteStore(memory.index_path).lock("sync"), ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(memory.sync)
        time.sleep(0.2)
        memory.close()
        with pytest.raises(StoreError, match="closed"):
            waiting.result(SECONDS)


def test_a_search_may_be_told_to_build_nothing(notes):
    with opened(notes, MemoryConfig(sync=SyncConfig(before_search=False, on_search=False))) as memory:
        results = memory.search("boiler")
        assert (len(results), results.stale) == (0, True)
        assert "nothing is indexed yet" in str(results.reason)
        assert not (notes / ".memory").exists()
        memory.sync()
        assert finds(memory, "boiler")


def test_what_is_written_can_be_had_indexed_before_anybody_asks(notes):
    with opened(notes) as memory:
        memory.notes.sync_soon()
        assert memory.index_path is not None
        assert not memory.index_path.exists()
        memory.sync()
        memory.append("The ferry to Vlieland leaves at seven.")
        memory.notes.sync_soon()
        eventually(lambda: not memory.status().dirty)
        assert "Vlieland" in memory.search("When does the ferry leave?")[0].snippet
        eventually(lambda: not memory.search("When does the ferry leave?").stale)


# --- no answer from before a change is called fresh
@pytest.fixture
def after_snapshot(monkeypatch):
    """Functions that are called once each, right after a search has taken its snapshot of the index."""
    planned: list[object] = []
    real = SqliteStore.snapshot

    @contextmanager
    def snapshot(store: SqliteStore) -> Iterator[Store]:
        with real(store) as frozen:
            frozen.read_meta()  # the state that is read is that of now
            while planned:
                planned.pop()()  # type: ignore[operator]
            yield frozen

    monkeypatch.setattr(SqliteStore, "snapshot", snapshot)
    return planned


@pytest.mark.parametrize("config", [QUIET, MemoryConfig()], ids=["quiet", "syncs on search"])
def test_an_answer_from_before_a_sync_that_has_ended_meanwhile_is_stale(notes, after_snapshot, config):
    with opened(notes, config) as memory, ThreadPoolExecutor(1) as threads:
        memory.sync()
        memory.append("A zeppelin was seen.")
        after_snapshot.append(lambda: threads.submit(memory.sync).result(SECONDS))
        before = memory.search("zeppelin")
        assert (len(before), before.stale) == (0, True)
        after = memory.search("zeppelin")
        assert ("zeppelin" in after[0].snippet, after.stale) == (True, False)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.sampled(1)
def test_while_syncs_and_searches_run_together_no_old_answer_is_called_fresh(notes, watched):
    ended = Event()

    def sync_on(memory: Memory) -> int:
        syncs = 0
        while not ended.is_set():
            memory.sync()
            syncs += 1
        return syncs

    with opened(notes, MemoryConfig(sync=SyncConfig(debounce_seconds=0.01))) as memory, opened(notes, QUIET) as other:
        memory.sync()
        if watched:
            memory.watch()
        with ThreadPoolExecutor(2) as threads:
            syncing = [threads.submit(sync_on, memory), threads.submit(sync_on, other)]
            try:
                old = []
                written = memory.append("The gate opens with code 0.", date="2026-03-01")
                for entry in range(1, 25):
                    line = written.start_line
                    written = memory.edit(
                        written.path, line, line, f"The gate opens with code {entry}.", expected=written
                    )
                    results = memory.search("gate code")
                    says = f"code {entry}." in " ".join(result.snippet for result in results)
                    old += [entry] if not (says or results.stale) else []
            finally:
                ended.set()
            assert min(done.result(SECONDS) for done in syncing) > 0
        assert old == []
