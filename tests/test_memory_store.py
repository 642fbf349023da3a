"""A memory asks its store, and knows no file of its own: what the store is called, its locks, an index that vanishes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from index_files import index_folder
from msgspec.structs import replace

from openclaw_memory import Memory
from openclaw_memory.errors import SyncBusyError
from openclaw_memory.store import SqliteStore
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.types import Matrix, StoreInfo
from openclaw_memory.workspace import Workspace

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
    with Memory.open(notes, embedder=Deleting(index_folder(notes))) as memory:
        assert memory.sync().ok
        assert memory.status(deep=True).dirty == {}
        assert memory.search("gauges")
