"""A service with a batch API in memory, and a workspace that is synced through it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from openclaw_memory_batch import BatchEmbedder

from openclaw_memory import MemoryConfig
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.embeddings.remote import RemoteEmbedder
from openclaw_memory.embeddings.service import Limits, Service
from openclaw_memory.indexing.changes import SyncParts
from openclaw_memory.indexing.sync import sync
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import Embedder, Progress, Store, SyncReport
from openclaw_memory.workspace import Workspace

MIN_TEXTS = 5
PROVIDER = "fake"
NOON = 1_770_000_000.0


@dataclass
class FakeService:
    """A service in memory: `send` answers at once; a job is answered once it is `done`, or after `polls`.

    `ordinary` lists the texts that were sent, `jobs` holds those of each job by their keys. `lies` replaces single
    vectors of a job, None leaves one out; `fails` makes a call about jobs fail, by its name.
    """

    model: str = "fake-1"
    dims: int = 64
    polls: int | None = None
    state: str | None = None
    ordinary: list[str] = field(default_factory=list)
    jobs: dict[str, dict[str, str]] = field(default_factory=dict)
    polled: dict[str, int] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    lies: dict[str, Any] = field(default_factory=dict)
    fails: dict[str, Exception] = field(default_factory=dict)
    on_submit: Callable[[], None] = lambda: None

    def embedder(self) -> RemoteEmbedder:
        limits = Limits(items=100, input_tokens=2000)
        service = Service(PROVIDER, self.model, "https://batch.example/v1", limits, self.send)
        return RemoteEmbedder(service)

    async def send(self, _client: Any, texts: list[str], as_query: bool) -> Sequence[Any]:
        self._fail("send")
        self.ordinary += [] if as_query else texts
        return self._vectors(texts)

    def submit(self, items: Sequence[tuple[str, str]]) -> str:
        self._fail("submit")
        self.on_submit()
        name = f"job-{len(self.jobs) + 1}"
        self.jobs[name] = dict(items)
        return name

    def fetch_state(self, name: str) -> str:
        self._fail("state")
        self.polled[name] = self.polled.get(name, 0) + 1
        if self.polls is not None and self.polled[name] > self.polls:
            return "done"
        return self.state or "running"

    def fetch_results(self, name: str) -> Mapping[str, Any]:
        self._fail("results")
        texts = self.jobs[name]
        found = dict(zip(texts, self._vectors(list(texts.values())), strict=True))
        for key, text in texts.items():
            found[key] = next((lie for words, lie in self.lies.items() if words in text), found[key])
        return {key: vector for key, vector in found.items() if vector is not None}

    def cancel(self, name: str) -> None:
        self._fail("cancel")
        self.cancelled.append(name)

    def finish(self) -> None:
        self.state = "done"

    def _vectors(self, texts: list[str]) -> list[Any]:
        return list(HashingEmbedder().embed_documents(texts)[:, : self.dims])

    def _fail(self, call: str) -> None:
        if call in self.fails:
            raise self.fails[call]


@dataclass
class Clock:
    """Time that passes only by sleeping."""

    now: float = NOON
    slept: list[float] = field(default_factory=list)
    strftime, localtime = staticmethod(time.strftime), staticmethod(time.localtime)

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Place:
    """A workspace with an index on disk, synced through a fake service."""

    root: Path
    index: Path
    service: FakeService = field(default_factory=FakeService)
    clock: Clock = field(default_factory=Clock)
    concurrency: int = 2
    max_texts: int = 1000
    chunking: ChunkingConfig = field(default_factory=ChunkingConfig)
    steps: list[Progress] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return Path(f"{self.index}.batches.json")

    def remembered(self) -> list[dict[str, Any]]:
        """What the file says of each job, of whatever model."""
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        return [job for model in known.values() for job in model["jobs"]]

    def embedder(self, use: str = "later", inner: Embedder | None = None) -> BatchEmbedder:
        return BatchEmbedder(
            inner or self.service.embedder(),
            api=self.service,
            wait=use == "wait",
            concurrency=self.concurrency,
            min_texts=MIN_TEXTS,
            max_texts=self.max_texts,
            wait_seconds=100.0,
        )

    def write(self, path: str, *lines: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def fill(self, count: int = 8) -> None:
        for number in range(count):
            self.write(f"memory/{number}.md", f"memo number {number}")

    @contextmanager
    def opened(self) -> Iterator[Store]:
        store = SqliteStore.open(self.index)
        try:
            yield store
        finally:
            store.close()

    def sync(self, use: str = "later", **options: Any) -> SyncReport:
        """One sync as another process would do it: nothing is kept in between but files."""
        config = MemoryConfig(chunking=self.chunking)
        embedder: Embedder = self.service.embedder() if use == "off" else self.embedder(use)
        force = options.pop("force", False)
        given = {"progress": self.steps.append} | options
        try:
            with self.opened() as store, store.lock("sync"):
                return sync(SyncParts(Workspace.open(self.root), store, embedder, config, **given), force=force)
        finally:
            embedder.close()

    def vectors(self) -> int:
        """How many chunks have vectors."""
        with self.opened() as store:
            chunks = [chunk.id for path in store.get_files() for chunk in store.get_file_chunks(path)]
            return len(store.get_vectors(chunks))

    def found(self, word: str) -> int:
        with self.opened() as store:
            return len(store.search_text([word], 100))


def reasons(report: SyncReport) -> set[str]:
    return {file.reason for file in report.waiting}


def refuse(words: str) -> Exception:
    """What httpx raises for an answer that says no."""
    request = httpx.Request("GET", "https://batch.example/v1")
    return httpx.HTTPStatusError(words, request=request, response=httpx.Response(404, request=request))
