"""The status: it claims no more than a search would get, and tells the embedder's failures from the index's."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import EmbeddingConfig, FilesConfig, SearchConfig
from openclaw_memory.embeddings import openai
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import EmbedderError
from openclaw_memory.indexing.staleness import LAST_ERROR
from openclaw_memory.store import SqliteStore
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.types import Status

from .conftest import DOWN


def deep(notes: Path, embedder: RecordingEmbedder) -> Status:
    with Memory.open(notes, embedder=embedder) as memory:
        return memory.status(deep=True)


@pytest.fixture
def embedder():
    return RecordingEmbedder()


@pytest.fixture
def without_vectors(notes, embedder):
    """The notes, one of them empty, with an index that was made while the embedder did not answer."""
    (notes / "memory/empty.md").touch()
    embedder.failure = DOWN
    with Memory.open(notes, embedder=embedder) as memory:
        assert len(memory.sync().waiting) == 4
    embedder.failure = None
    return notes


@pytest.fixture
def indexed(notes, embedder):
    """The notes with a whole index."""
    with Memory.open(notes, embedder=embedder) as memory:
        assert memory.sync().ok
    return notes


@pytest.mark.parametrize("look_deep", [False, True])
def test_an_index_without_any_vector_is_searched_by_keywords(without_vectors, embedder, look_deep):
    with Memory.open(without_vectors, embedder=embedder) as memory:
        assert memory.status(deep=look_deep).mode == "keyword"
        memory.sync()
        assert memory.status(deep=look_deep).mode == "hybrid"


def test_an_embedder_that_does_not_answer_leaves_the_keywords(indexed, embedder):
    embedder.failure = DOWN
    state = deep(indexed, embedder)
    assert (state.mode, state.vector.answers, state.vector.available) == ("keyword", False, False)
    assert "the embedder is out of order" in state.vector.error


def test_vectors_that_do_not_fit_the_index_are_not_laid_to_silence(indexed, embedder):
    wider = RecordingEmbedder(65)
    wider.identity = embedder.identity
    state = deep(indexed, wider)
    assert (state.vector.answers, state.vector.fits, state.mode) == (True, False, "keyword")
    assert "64 dimensions" in state.vector.error


def test_files_that_only_wait_for_vectors_are_told_from_those_that_changed(without_vectors, embedder):
    (without_vectors / "MEMORY.md").write_text("other words\n")
    (without_vectors / "memory/new.md").write_text("new\n")
    with Memory.open(without_vectors, embedder=embedder) as memory:
        state = memory.status()
    waiting = {file.path for file in state.waiting}
    assert waiting == {"memory/2026-02-09.md", "memory/2026-02-26.md", "memory/household.md"}
    assert set(state.dirty) == {*waiting, "MEMORY.md", "memory/new.md"}
    assert all("the embedder is out of order" in file.reason for file in state.waiting)


def test_each_file_that_is_behind_says_why(indexed, embedder):
    (indexed / "memory/new.md").write_text("new\n")
    (indexed / "MEMORY.md").write_text("other words\n")
    (indexed / "memory/household.md").unlink()
    with Memory.open(indexed, embedder=embedder) as memory:
        why = {"MEMORY.md": "changed since it was indexed", "memory/household.md": "gone from disk"}
        assert memory.status().dirty == {**why, "memory/new.md": "new"}


def test_what_lies_behind_an_unreadable_folder_is_not_said_to_be_gone_and_stays(indexed, embedder, monkeypatch):
    listed = os.scandir

    def scandir(path):
        if str(path).endswith("memory"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    with Memory.open(indexed, embedder=embedder) as memory:
        monkeypatch.setattr(os, "scandir", scandir)
        assert memory.sync().removed == ()
        assert (memory.status().files, {*memory.status().dirty.values()}) == (4, {"cannot be looked at"})


def test_an_index_whose_provider_auto_cannot_have_is_not_said_to_be_built_again(notes, embedder, monkeypatch):
    def lost() -> RecordingEmbedder:
        raise EmbedderError("the key is gone")

    embedder.provider = "openai"
    monkeypatch.setattr(openai, "create", lambda *_: embedder)
    with Memory.open(notes, embedder="auto") as memory:
        assert (memory.sync().ok, memory.status().mode) == (True, "hybrid")
    monkeypatch.setattr(openai, "create", lambda *_: lost())
    with Memory.open(notes, embedder="auto") as memory:
        state = memory.status()
    assert [notice for notice in state.notices if "builds the index again" in notice] == []
    assert any("unavailable (the key is gone)" in notice for notice in state.notices)


def note(memory: Memory, name: str, text: str) -> None:
    """Keep a note in the index, as another process would."""
    with closing(SqliteStore.open(memory.status().index_path)) as store:
        store.set_meta(name, text)


def test_another_process_sees_what_the_last_sync_did(notes, embedder):
    (notes / "memory/bad.md").write_bytes(b"\xff\xfe\x00")
    with Memory.open(notes, embedder=embedder) as memory:
        report = memory.sync()
    with Memory.open(notes, embedder=embedder) as memory:
        state = memory.status()
    last = state.last_sync
    assert (last.added, last.reason, state.last_error) == (len(report.added), "manual", None)
    assert state.dirty["memory/bad.md"] == f"failed: {report.skipped[0].reason}"
    assert [file.path for file in state.skipped] == ["memory/bad.md"]


def test_a_failure_is_told_until_a_later_sync_comes_to_its_end(indexed, embedder):
    with Memory.open(indexed, embedder=embedder) as memory:
        for at, told in (("2096-10-02T07:06:40.000+00:00", True), ("2001-09-09T01:46:40.000+00:00", False)):
            note(memory, LAST_ERROR, f'{{"at": "{at}", "error": "the disk is full"}}')
            error = memory.status().last_error
            assert (error is not None and error.error == "the disk is full") is told


def test_the_status_of_openclaw_is_all_there(notes, tmp_path):
    (tmp_path / "extra").mkdir()
    config = MemoryConfig(
        files=FilesConfig(extra_paths=(str(tmp_path / "extra"),)), embedding=EmbeddingConfig(max_entries=77)
    )
    with Memory.open(notes, config=config) as memory:
        memory.sync()
        state = memory.status()
    assert (state.backend, state.store, state.custom) == ("builtin", "sqlite", {})
    assert (state.extra_paths, state.batch, state.fallback) == ((str(tmp_path / "extra"),), {}, None)
    assert Path(f"{state.vector.extension_path}.so").exists()
    # The static model embeds a text sooner than its vector is read.
    assert (state.cache.enabled, state.cache.max_entries, state.cache.entries) == (True, 77, 0)
    assert {"sqlite", "sqlite_vec"} <= set(state.engine)


def test_an_index_that_its_share_of_memory_cannot_hold_is_named_and_answers_the_same(notes):
    sections = (f"## Ship {number}\n\nThe cargo of ship {number} is tea.\n" for number in range(80))
    (notes / "memory/ships.md").write_text("\n".join(sections), encoding="utf-8")
    found = {}
    for memory_mb in (256, 1, 0):
        config = MemoryConfig(search=SearchConfig(memory_mb=memory_mb))
        with Memory.open(notes, embedder=HashingEmbedder(4096), config=config) as memory:
            memory.sync()
            answers = [list(memory.search(f"the cargo of ship {number}")) for number in range(8)]
            found[memory_mb] = answers, [notice for notice in memory.status().notices if "memory_mb" in notice]
    assert found[256][0] == found[1][0] == found[0][0]
    assert [len(notices) for _, notices in found.values()] == [0, 1, 0]
    assert "search.memory_mb is 1" in found[1][1][0]
