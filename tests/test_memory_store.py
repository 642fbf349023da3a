"""A memory asks its store, and knows no file of its own: what the store is called, its locks, an index that vanishes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from openclaw_memory import Memory, SqliteStore, Workspace
from openclaw_memory.errors import SyncBusyError
from openclaw_memory.types import StoreInfo

SECONDS = 60  # how long a test waits for another thread


class Renamed(SqliteStore):
    """The built-in store under another name."""

    def describe(self, *, counts: bool = True) -> StoreInfo:
        return replace(super().describe(counts=counts), backend="renamed")


@pytest.mark.parametrize("is_ready", [True, False], ids=["store", "function"])
def test_a_store_that_is_handed_in_names_itself_and_locks_the_syncs(
    notes: Path, tmp_path: Path, is_ready: bool
) -> None:
    index = tmp_path / "elsewhere" / "index.sqlite"
    store = Renamed(index) if is_ready else lambda: Renamed(index)
    with Memory(Workspace.open(notes), store, None) as memory, ThreadPoolExecutor(1) as thread:
        assert memory.sync().ok
        assert memory.status().backend == "renamed"
        other = SqliteStore(index)
        with other.lock("sync"), pytest.raises(SyncBusyError):
            thread.submit(memory.sync, wait=0).result(SECONDS)
        assert memory.search("boiler")
        other.close()
    assert not (notes / ".memory").exists()


@pytest.mark.parametrize("names", ["index.sqlite", "index.sqlite*"], ids=["database", "all files"])
def test_searches_go_on_while_the_index_is_deleted_again_and_again_and_say_why(notes: Path, names: str) -> None:
    errors: list[object] = []
    reasons: list[str] = []
    asked, stop = threading.Semaphore(0), threading.Event()

    def ask(memory: Memory) -> None:
        while not stop.is_set():
            try:
                results = memory.search("boiler")
                if results.reason:
                    reasons.append(results.reason)
                elif not results:
                    errors.append("an empty answer without a reason")
            except Exception as error:  # noqa: BLE001 - each is shown below
                errors.append(error)
            asked.release()

    with Memory.open(notes, embedder=None) as memory, ThreadPoolExecutor(3) as threads:
        memory.sync()
        running = [threads.submit(ask, memory) for _ in range(3)]
        try:
            for _ in range(10):
                for _ in range(6):
                    assert asked.acquire(timeout=SECONDS)
                for file in (notes / ".memory").glob(names):
                    file.unlink(missing_ok=True)
        finally:
            stop.set()
        for one in running:
            one.result(SECONDS)
        assert errors == []
        assert any("was deleted, and was built again" in reason for reason in reasons)
        assert memory.search("boiler")[0].path == "memory/household.md"
