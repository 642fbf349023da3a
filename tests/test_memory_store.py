"""A memory asks its store, and knows no file of its own: what the store is called, its locks, an index that vanishes."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from watching import eventually

from openclaw_memory import Memory, SqliteStore, Workspace
from openclaw_memory.errors import SyncBusyError
from openclaw_memory.testing import InMemoryStore, RecordingEmbedder
from openclaw_memory.types import Document, Matrix, StoreInfo, VectorSource

SECONDS = 60  # how long a test waits for another thread


class Renamed(SqliteStore):
    """The built-in store under another name."""

    def describe(self, *, counts: bool = True) -> StoreInfo:
        return replace(super().describe(counts=counts), backend="renamed")


@pytest.mark.parametrize("is_ready", [True, False], ids=["store", "function"])
def test_a_store_that_is_handed_in_names_itself_and_locks_the_syncs(notes, tmp_path, is_ready):
    index = tmp_path / "elsewhere" / "index.sqlite"
    store = Renamed(index) if is_ready else lambda: Renamed(index)
    with Memory(Workspace.open(notes), store, None) as memory, ThreadPoolExecutor(1) as thread:
        assert memory.sync().ok
        assert memory.status().store == "renamed"
        other = SqliteStore(index)
        with other.lock("sync"), pytest.raises(SyncBusyError):
            thread.submit(memory.sync, wait=0).result(SECONDS)
        assert memory.search("boiler")
        other.close()
    assert not (notes / ".memory").exists()


def test_a_store_in_memory_does_all_that_a_memory_does_and_no_file_is_made_next_to_the_notes(notes):
    others = {path.relative_to(notes) for path in notes.rglob("*")}
    embedder = RecordingEmbedder()
    source = VectorSource("made:elsewhere", "elsewhere")
    with Memory.open(notes, store=InMemoryStore(), embedder=embedder) as memory:
        assert memory.sync().ok
        assert memory.search("Who services the boiler?")[0].path == "memory/household.md"
        state = memory.status(deep=True)
        assert (state.store, state.files, memory.index_path) == ("memory", 4, None)
        with memory.watch():
            memory.append("The zeppelin lands on Friday.", date="2026-03-01")
            eventually(lambda: memory.search("zeppelin")[:1])
        memory.documents.add([Document("a", "Ferries"), Document("b", "Trains")], [[1.0, 0.0], [0.6, 0.8]], source)
        found = memory.documents.vector_search([0.0, 1.0], 2, identity=source.identity)
        assert [(one.id, round(score, 2)) for one, score in found] == [("b", 0.8), ("a", 0.0)]
        assert memory.sync(force=True).rebuilt
        assert memory.search("Ferries")
        written = {Path(one.path) for one in memory.documents.get(["a", "b"])}
    new = {path.relative_to(notes) for path in notes.rglob("*")} - others
    lock = Path("memory/.lock")  # that of the notes themselves, which every writer of notes takes
    assert {path for path in new if (notes / path).is_file()} == {Path("memory/2026-03-01.md"), lock, *written}
    assert not (notes / ".memory").exists()


@pytest.mark.parametrize("names", ["index.sqlite", "index.sqlite*"], ids=["database", "all files"])
def test_searches_go_on_while_the_index_is_deleted_again_and_again_and_say_why(notes, names):
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


class Deleting(RecordingEmbedder):
    """An embedder during whose first work the index is deleted, as another process may do it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder: Path | None = folder

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if self.folder is not None:
            shutil.rmtree(self.folder)
            self.folder = None
        return super().embed_documents(texts)


@pytest.mark.sqlite_only
def test_a_sync_whose_index_is_deleted_meanwhile_builds_it_again(notes):
    with Memory.open(notes, embedder=Deleting(notes / ".memory")) as memory:
        assert memory.sync().ok
        assert memory.status(deep=True).dirty == {}
        assert memory.search("gauges")
