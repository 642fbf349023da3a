"""`stale` tells the truth: it is neither true for ever, nor false while files are known to have changed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from watching import eventually

from openclaw_memory import Memory, MemoryConfig, SyncConfig
from openclaw_memory.errors import StoreError
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import Progress

SECONDS = 60
QUIET = MemoryConfig(sync=SyncConfig(on_search=False))
QUICK = MemoryConfig(sync=SyncConfig(debounce_seconds=0.1))


def finds(memory: Memory, word: str) -> bool:
    return any(word in result.snippet for result in memory.search(word))


def opened(notes: Path, config: MemoryConfig | None = None) -> Memory:
    return Memory.open(notes, embedder=None, config=config)


def write(notes: Path) -> None:
    (notes / "memory/new.md").write_text("A zeppelin was seen.\n")


# --- watchers
def test_after_a_watcher_has_ended_searches_look_for_themselves_again(notes):
    with opened(notes, QUICK) as memory:
        memory.sync()
        with memory.watch() as watcher:
            eventually(lambda: watcher.is_at_work and not watcher.is_behind)
        write(notes)
        eventually(lambda: finds(memory, "zeppelin"))


def test_a_memory_whose_watcher_stands_by_looks_for_itself(notes):
    slow = replace(QUICK, sync=replace(QUICK.sync, debounce_seconds=3600.0))
    with opened(notes, slow) as memory, opened(notes, slow) as other:
        memory.sync()
        working = memory.watch()
        eventually(lambda: working.is_at_work and not working.is_behind)
        waiting = other.watch()
        eventually(lambda: waiting.state.startswith("standing by"))
        write(notes)
        eventually(lambda: other.search("boiler").stale or finds(other, "zeppelin"))


# --- what stays as it is
def test_a_file_that_is_not_text_makes_no_answer_stale_once_a_sync_has_said_so(notes):
    (notes / "memory/binary.md").write_bytes(b"\xff\xfe\xff\x00\x80")
    with opened(notes) as memory:
        report = memory.sync()
        assert report.ok
        assert [file.path for file in report.skipped] == ["memory/binary.md"]
        for _ in range(20):
            assert not memory.search("boiler").stale
            time.sleep(0.005)
        (notes / "memory/binary.md").write_text("A zeppelin was seen.\n")
        eventually(lambda: finds(memory, "zeppelin"))


def test_a_note_written_here_and_indexed_by_another_memory_is_not_missing(notes):
    with opened(notes, QUIET) as memory, opened(notes, QUIET) as other:
        memory.sync()
        memory.append("The zeppelin lands on Friday.")
        assert memory.search("boiler").stale
        other.sync()
        assert not memory.search("boiler").stale
        assert finds(memory, "zeppelin")


# --- nobody waits for a sync
def test_a_search_never_waits_for_the_sync_of_another_process_though_one_of_its_own_does(notes):
    with opened(notes, QUIET) as memory:
        memory.sync(progress=lambda _: None)
        index = memory.index_path
        assert index is not None
        with ThreadPoolExecutor(2) as threads, opened(notes, QUIET) as other:
            store = other._service.store()
            stored = store.meta()
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


def test_two_memories_whose_syncs_search_each_other_wait_for_nobody(notes):
    with opened(notes, QUIET) as a, opened(notes, QUIET) as b, ThreadPoolExecutor(2) as threads:
        reached = Event()

        def look(_: Progress) -> None:
            reached.set()
            time.sleep(0.2)
            b.search("boiler")

        first = threads.submit(a.sync, progress=look)
        assert reached.wait(SECONDS)
        second = threads.submit(b.sync)
        assert (first.result(SECONDS).ok, second.result(SECONDS).ok) == (True, True)


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


def test_a_sync_that_was_interrupted_is_no_error(notes):
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with opened(notes, QUIET) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.sync(progress=interrupt)
        assert memory.status().last_error is None


def test_the_status_knows_the_watcher_of_another_memory(notes):
    with opened(notes, QUICK) as memory, opened(notes, QUIET) as other:
        memory.sync()
        assert other.status().watcher is None
        with memory.watch() as watcher:
            eventually(lambda: watcher.syncs > 1 or (watcher.is_at_work and not watcher.is_behind))
            assert str(other.status().watcher).startswith("in another process: ")
        assert other.status().watcher is None


def test_what_is_written_can_be_had_indexed_before_anybody_asks(notes):
    with opened(notes) as memory:
        memory.sync_soon()
        assert memory.index_path is not None
        assert not memory.index_path.exists()
        memory.sync()
        memory.append("The ferry to Vlieland leaves at seven.")
        memory.sync_soon()
        eventually(lambda: not memory.status().dirty)
        assert "Vlieland" in memory.search("When does the ferry leave?")[0].snippet
        eventually(lambda: not memory.search("When does the ferry leave?").stale)


def test_nothing_is_synced_soon_where_searches_sync_nothing(notes):
    with opened(notes, QUIET) as memory:
        memory.sync()
        memory.append("The ferry to Vlieland leaves at seven.")
        memory.sync_soon()
        assert memory.search("ferry").stale
