"""The status: it claims no more than a search would get, and tells the embedder's failures from the index's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from openclaw_memory import Memory
from openclaw_memory.embeddings import openai
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import EmbedderError
from openclaw_memory.sync.status import told_of_lacking
from openclaw_memory.types import Matrix, Status, Vector


class Moody(HashingEmbedder):
    """The hashing embedder: it fails while `broken`, and refuses texts with a word in `refused`."""

    def __init__(self, dims: int = 64, identity: str = "moody") -> None:
        super().__init__(dims)
        self.identity = identity
        self.broken = False
        self.refused = "no such word"

    def embed_query(self, text: str) -> Vector:
        if self.broken:
            raise EmbedderError("the line is dead")
        vector: Vector = super().embed_documents([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if self.broken or any(self.refused in text for text in texts):
            raise EmbedderError("the line is dead")
        return super().embed_documents(texts)


def deep(notes: Path, embedder: Moody) -> Status:
    with Memory.open(notes, embedder=embedder) as memory:
        return memory.status(deep=True)


@pytest.fixture
def embedder() -> Moody:
    return Moody()


@pytest.fixture
def without_vectors(notes: Path, embedder: Moody) -> Path:
    """The notes, one of them empty, with an index that was made while the embedder did not answer."""
    (notes / "memory/empty.md").touch()
    embedder.broken = True
    with Memory.open(notes, embedder=embedder) as memory:
        assert len(memory.sync().waiting) == 4
    embedder.broken = False
    return notes


@pytest.fixture
def indexed(notes: Path, embedder: Moody) -> Path:
    """The notes with a whole index."""
    with Memory.open(notes, embedder=embedder) as memory:
        assert memory.sync().ok
    return notes


@pytest.mark.parametrize("look_deep", [False, True])
def test_an_index_without_any_vector_is_searched_by_keywords(
    without_vectors: Path, embedder: Moody, look_deep: bool
) -> None:
    with Memory.open(without_vectors, embedder=embedder) as memory:
        assert memory.status(deep=look_deep).mode == "keyword"
        memory.sync()
        assert memory.status(deep=look_deep).mode == "hybrid"


def test_files_that_lack_some_of_their_vectors_leave_the_search_hybrid(notes: Path, embedder: Moody) -> None:
    long = "\n\n".join(f"## Part {part}\n\n{f'Number {part}. ' * 100}" for part in range(300))
    for path in notes.rglob("*.md"):
        path.unlink()
    (notes / "MEMORY.md").write_text(f"{long}\n\n## Last\n\nThe zebra.\n")
    embedder.refused = "zebra"
    with Memory.open(notes, embedder=embedder) as memory:
        assert (len(memory.sync().waiting), memory.status().files) == (1, 1)
        assert memory.status(deep=True).mode == "hybrid"
        assert memory.status(deep=True).vector["verified"]


def test_vectors_that_are_still_to_come_are_no_proof_of_a_fault(without_vectors: Path, embedder: Moody) -> None:
    vector = deep(without_vectors, embedder).vector
    assert (vector["answers"], "verified" in vector, vector["error"]) == (True, False, None)


def test_an_embedder_that_does_not_answer_leaves_the_keywords(indexed: Path, embedder: Moody) -> None:
    embedder.broken = True
    state = deep(indexed, embedder)
    assert (state.mode, state.vector["answers"], state.vector["available"]) == ("keyword", False, False)
    assert "the line is dead" in state.vector["error"]


def test_an_embedder_is_asked_though_the_index_is_of_another_model_or_there_is_none(
    indexed: Path, tmp_path: Path
) -> None:
    other = Moody(identity="another")
    assert deep(indexed, other).vector["answers"] is True
    other.broken = True
    (tmp_path / "new").mkdir()
    for place in (indexed, tmp_path / "new"):
        assert deep(place, other).vector["answers"] is False


def test_vectors_that_do_not_fit_the_index_are_not_laid_to_silence(indexed: Path) -> None:
    state = deep(indexed, Moody(dims=65))
    assert (state.vector["answers"], state.vector["fits"], state.mode) == (True, False, "keyword")
    assert "64 dimensions" in state.vector["error"]


def test_files_that_only_wait_for_vectors_are_told_from_those_that_changed(
    without_vectors: Path, embedder: Moody
) -> None:
    (without_vectors / "MEMORY.md").write_text("other words\n")
    (without_vectors / "memory/new.md").write_text("new\n")
    with Memory.open(without_vectors, embedder=embedder) as memory:
        state = memory.status()
    waiting = {file.path for file in state.waiting}
    assert waiting == {"memory/2026-02-09.md", "memory/2026-02-26.md", "memory/household.md"}
    assert set(state.dirty) == {*waiting, "MEMORY.md", "memory/new.md"}
    assert all("the line is dead" in file.reason for file in state.waiting)


def test_of_many_reasons_the_most_frequent_are_told() -> None:
    counts = {f"request {number} failed": 1 for number in range(300)} | {"busy": 7, "refused": 9}
    lines = told_of_lacking(counts)
    assert [line.partition(" without")[0] for line in lines] == ["9 files", "7 files", "1 file", "and 299 more files"]
    assert lines[0].endswith(": refused")


def test_few_reasons_are_all_told() -> None:
    assert len(told_of_lacking({"one": 1, "two": 2, "three": 3})) == 3
    assert told_of_lacking({}) == []


def test_an_index_whose_provider_auto_cannot_have_is_not_said_to_be_built_again(
    notes: Path, embedder: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> Moody:
        raise EmbedderError("the key is gone")

    embedder.provider = "openai"
    monkeypatch.setattr(openai, "create", lambda *_: embedder)
    with Memory.open(notes, embedder="auto") as memory:
        assert memory.sync().ok
        assert memory.status().mode == "hybrid"
    monkeypatch.setattr(openai, "create", lambda *_: lost())
    with Memory.open(notes, embedder="auto") as memory:
        state = memory.status()
    assert [notice for notice in state.notices if "builds the index again" in notice] == []
    assert any("not to be had: the key is gone" in notice for notice in state.notices)
