"""What a search answers while an index is being built, behind its files, or made by an embedder that fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import StoreError
from openclaw_memory.types import Matrix, Progress, Vector

QUIET = MemoryConfig(
    sync=SyncConfig(on_search=False)
)  # what a search begins by itself would mix with what is held here
SECONDS = 60  # how long a thread may take before a test gives up on it


class Failing:
    """An embedder without vectors of words, which raises a foreign error while it is `broken`."""

    provider, model, identity, leaves_machine = "fake", "failing", "fake:failing", False

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken

    def embed_query(self, text: str) -> Vector:
        self._check()
        return HashingEmbedder().embed_query(text)

    def embed_documents(self, texts: Any) -> Matrix:
        self._check()
        return HashingEmbedder().embed_documents(texts)

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self.broken:
            raise ConnectionResetError("the line is dead")


def opened(notes: Path, embedder: Any = None) -> Memory:
    return Memory.open(notes, embedder=embedder, config=QUIET)


@contextmanager
def held(memory: Memory, **options: bool) -> Iterator[Callable[[], Any]]:
    """A sync in another thread, stopped after its first transaction; what is yielded lets it go on and end."""
    reached, go_on = Event(), Event()

    def stop(_: Progress) -> None:
        reached.set()
        assert go_on.wait(SECONDS)

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(memory.sync, progress=stop, **options)

        def end() -> Any:
            go_on.set()
            return done.result(SECONDS)

        try:
            assert reached.wait(SECONDS)
            yield end
        finally:
            go_on.set()


# --- while a sync runs
@pytest.mark.usefixtures("one_file_a_transaction")
def test_a_search_does_not_wait_for_a_rebuild_and_says_that_it_is_stale(notes):
    with opened(notes) as memory:
        memory.sync()
        with held(memory, force=True) as end:
            assert memory.search("boiler").stale
            assert "a sync is under way" in memory.status().notices
            end()
        results = memory.search("boiler")
        assert (results[0].path, results.stale) == ("memory/household.md", False)


@pytest.mark.usefixtures("one_file_a_transaction")
def test_a_search_waits_for_the_first_sync_of_its_memory(notes):
    with opened(notes) as memory, held(memory) as end, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(memory.search, "boiler")
        end()
        results = asked.result(SECONDS)
        assert (results[0].path, results.stale) == ("memory/household.md", False)


@pytest.mark.usefixtures("one_file_a_transaction")
def test_another_memory_answers_from_an_index_in_the_making_and_says_that_it_is_stale(notes):
    with opened(notes) as memory, opened(notes) as other:
        with held(memory) as end:
            results = other.search("trains")
            assert (results[0].path, results.stale) == ("MEMORY.md", True)
            assert any("not complete" in notice for notice in other.status().notices)
            end()
        assert not other.search("trains").stale


# --- a build that was cut short ---


def test_a_memory_that_is_closed_ends_a_sync_between_two_transactions(notes):
    memory = opened(notes)
    with pytest.raises(StoreError, match="closed"):
        memory.sync(progress=lambda _: memory.close())
    with opened(notes) as again:
        assert again.search("boiler")


def test_a_closed_memory_neither_reads_nor_writes(notes):
    memory = opened(notes)
    memory.sync()
    memory.close()
    memory.close()
    reading = (lambda: memory.search("boiler"), lambda: memory.get("MEMORY.md"), memory.status)
    for call in (*reading, lambda: memory.append("text"), memory.sync):
        with pytest.raises(StoreError, match="closed"):
            call()
    assert len(list(notes.rglob("*.md"))) == 4


# --- embedders that fail
def broken_function(texts: list[str]) -> Any:
    raise ZeroDivisionError(len(texts))


@pytest.mark.parametrize("embedder", [Failing(broken=True), broken_function], ids=["embedder", "function"])
def test_a_foreign_error_of_an_embedder_is_told_and_leaves_the_keywords(notes, embedder):
    with opened(notes, embedder) as memory:
        report = memory.sync()
        assert len(report.waiting) == len(report.added) == 4
        assert all(re.search("ConnectionReset|ZeroDivision", file.reason) for file in report.waiting)
        results = memory.search("boiler")
        assert (results[0].path, results.stale, results.mode) == ("memory/household.md", True, "keyword")


def test_a_search_goes_on_by_keywords_when_the_embedder_fails_and_says_why(notes):
    embedder = Failing()
    with opened(notes, embedder) as memory:
        memory.sync()
        assert (memory.search("boiler").mode, memory.search("boiler").reason) == ("hybrid", None)
        embedder.broken = True
        results = memory.search("boiler")
        assert (results[0].path, results.mode) == ("memory/household.md", "keyword")
        assert "the line is dead" in str(results.reason)
        assert "the line is dead" in str(memory.status(deep=True).vector.error)


def test_files_that_could_not_be_embedded_stay_dirty(notes):
    embedder = Failing()
    with opened(notes, embedder) as memory:
        memory.sync()
        (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
        embedder.broken = True
        assert ["the line is dead" in file.reason for file in memory.sync().waiting] == [True]
        assert list(memory.status().dirty) == ["memory/new.md"]
        assert any("1 file without vectors, found by keywords alone" in notice for notice in memory.status().notices)
        assert memory.search("boiler").stale
        assert memory.search("zeppelin")[0].path == "memory/new.md"
    with opened(notes, Failing()) as memory:
        results = memory.search("boiler")
        assert (results.stale, results.mode) == (True, "hybrid")
        assert "1 file without vectors, found by keywords alone: " in str(results.reason)
        assert list(memory.status().dirty) == ["memory/new.md"]
        assert (memory.sync().embedded, memory.status().dirty) == (1, {})
        assert (memory.search("boiler").stale, memory.search("boiler").reason) == (False, None)


@pytest.mark.parametrize(
    ("built", "asked", "words"),
    [
        (None, HashingEmbedder(), "none (keywords only)"),
        (HashingEmbedder(), HashingEmbedder(dims=32), "builds the index again"),
        (HashingEmbedder(), None, None),
        (HashingEmbedder(), HashingEmbedder(), None),
    ],
    ids=["keywords only", "another one", "none wanted", "the same"],
)
def test_the_reason_says_why_vectors_are_not_asked(notes, built, asked, words):
    with opened(notes, built) as memory:
        memory.sync()
    with opened(notes, asked) as memory:
        results = memory.search("boiler")
        assert results.mode == ("keyword" if words or asked is None else "hybrid")
        assert (words in str(results.reason)) if words else results.reason is None
