"""A workspace with an index, and an embedder that records what it is asked."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from watching import CONFIG, FakeIndex, eventually

from openclaw_memory import MemoryConfig
from openclaw_memory.errors import EmbedderError
from openclaw_memory.indexing.changes import SyncParts
from openclaw_memory.indexing.sync import sync
from openclaw_memory.indexing.watcher import Watcher
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.types import Embedder, Store, SyncReport
from openclaw_memory.workspace import Workspace

# A word of every line that these tests write: looking it up finds every chunk.
MARK = "memo"
DOWN = EmbedderError("the embedder is out of order")


@dataclass
class Place:
    """A workspace folder with its index: write files, sync, look at what the index holds."""

    root: Path
    store: Store
    embedder: RecordingEmbedder
    config: MemoryConfig = field(default_factory=MemoryConfig)

    @property
    def workspace(self) -> Workspace:
        return Workspace.open(self.root, self.config.files)

    def write(self, path: str, *lines: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return file

    def say(self, path: str, *texts: str, role: str = "user", day: str = "2026-11-21") -> Path:
        """Add messages to a transcript, each on a line of its own."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as transcript:
            for text in texts:
                message = {"role": role, "content": text}
                entry = {"type": "message", "timestamp": f"{day}T10:00:00Z", "message": message}
                transcript.write(f"{json.dumps(entry)}\n")
        return file

    def sync(self, **options: Any) -> SyncReport:
        """One sync under the lock of the store: `force` and `wait`, or other parts of it."""
        force, wait = options.pop("force", False), options.pop("wait", None)
        with self.store.lock("sync", wait) as alone:
            parts = SyncParts(self.workspace, self.store, self.embedder, self.config, **options)
            return sync(parts, force=force, is_alone=alone)

    def rows(self) -> list[tuple[object, ...]]:
        """Everything the index holds of each chunk that has the mark, likeness to a question included."""
        return rows(self.store, self.embedder)

    def texts(self) -> list[str]:
        return [str(row[4]) for row in self.rows()]


def rows(store: Store, embedder: Embedder) -> list[tuple[object, ...]]:
    hits = {hit.chunk_id: round(hit.score, 6) for hit in store.search_text([MARK], 100_000)}
    query = embedder.embed_query(f"{MARK} apple")
    likeness = {at: float(vector @ query) for at, vector in store.get_vectors(sorted(hits)).items()}
    return sorted(
        (
            found.path,
            found.chunk.start_line,
            found.chunk.end_line,
            found.chunk.start_char,
            found.chunk.text,
            found.chunk.context,
            hits[found.id],
            round(likeness[found.id], 6) if found.id in likeness else None,
        )
        for found in store.get_chunks(hits)
    )


@pytest.fixture
def place(tmp_path, open_store):
    root = tmp_path / "workspace"
    root.mkdir()
    store = open_store(tmp_path / "index.sqlite")
    yield Place(root, store, RecordingEmbedder())
    store.close()


@pytest.fixture(scope="session")
def open_place(open_store):
    """For tests that need several indexes of one folder, or one in each of many examples."""
    return lambda root, index: Place(root, open_store(index), RecordingEmbedder())


@pytest.fixture
def root(tmp_path):
    """A workspace to watch."""
    root = tmp_path / "workspace"
    (root / "memory").mkdir(parents=True)
    (root / "MEMORY.md").write_text("# Long-term\n")
    (root / "memory" / "a.md").write_text("one\n")
    return root


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Starts watchers that end with the test; each is handed over once it has begun, and all is quiet."""
    from openclaw_memory.indexing import watcher

    for name in ("TICK_SECONDS", "POLL_SECONDS", "RETRY_SECONDS", "TRANSCRIPT_DEBOUNCE_SECONDS"):
        monkeypatch.setattr(watcher, name, 0.1)
    started: list[tuple[Watcher, FakeIndex]] = []

    def start(root: Path, config: MemoryConfig = CONFIG, *, ready: bool = True) -> tuple[Watcher, FakeIndex]:
        place = tmp_path / "index" / "index.sqlite"
        place.parent.mkdir(exist_ok=True)
        index = FakeIndex(Workspace.open(root, config.files, config.sessions), place)
        one = Watcher(index.workspace, index, config)
        started.append((one.start(), index))
        if ready:
            eventually(lambda: index.reports and not one.is_behind)
        return one, index

    yield start
    for one, _ in started:
        one.stop()
    assert not [thread for thread in threading.enumerate() if "openclaw-memory watcher" in thread.name]
