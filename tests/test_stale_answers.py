"""No answer from before a change is called fresh: what is known to be missing is known before the index is read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from openclaw_memory import Memory, MemoryConfig, SqliteStore, SyncConfig
from openclaw_memory.types import Store

SECONDS = 60
QUIET = MemoryConfig(sync=SyncConfig(on_search=False))
ENTRIES = 25


def opened(notes: Path, config: MemoryConfig | None = QUIET) -> Memory:
    return Memory.open(notes, embedder=None, config=config)


@pytest.fixture
def after_snapshot(monkeypatch):
    """Functions that are called once each, right after a search has taken its snapshot of the index."""
    planned: list[object] = []
    real = SqliteStore.snapshot

    @contextmanager
    def snapshot(store: SqliteStore) -> Iterator[Store]:
        with real(store) as frozen:
            frozen.meta()  # the state that is read is that of now
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
def test_while_syncs_and_searches_run_together_no_old_answer_is_called_fresh(notes, watched):
    ended = Event()

    def sync_on(memory: Memory) -> int:
        syncs = 0
        while not ended.is_set():
            memory.sync()
            syncs += 1
        return syncs

    with opened(notes, MemoryConfig(sync=SyncConfig(debounce_seconds=0.01))) as memory, opened(notes) as other:
        memory.sync()
        if watched:
            memory.watch()
        with ThreadPoolExecutor(2) as threads:
            syncing = [threads.submit(sync_on, memory), threads.submit(sync_on, other)]
            try:
                old = []
                written = memory.append("The gate opens with code 0.", date="2026-03-01")
                for entry in range(1, ENTRIES):
                    line = written.start_line
                    written = memory.edit(written.path, line, line, f"The gate opens with code {entry}.", seen=written)
                    results = memory.search("gate code")
                    says = f"code {entry}." in " ".join(result.snippet for result in results)
                    old += [entry] if not (says or results.stale) else []
            finally:
                ended.set()
            assert min(done.result(SECONDS) for done in syncing) > 0
        assert old == []
