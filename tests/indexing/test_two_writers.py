"""Two syncs of one index at the same time: what one has embedded is never written as the other's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import StoreError


class Named(HashingEmbedder):
    """Hashed words under a name of their own, each model with another sign; `meanwhile` runs amid a call."""

    def __init__(self, name: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__(16)
        self.model, self.identity = name, f"hashing:{name}"
        self.sign = -1 if name == "b" else 1
        self.meanwhile = meanwhile

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.meanwhile()
        return self.sign * super().embed_documents(texts)


@pytest.fixture
def store(tmp_path, open_store):
    """Opens the index of the notes."""
    return lambda: open_store(tmp_path / "index.sqlite")


@pytest.fixture
def opened(notes, store):
    memories: list[Memory] = []

    def open_memory(embedder: Any, **settings: Any) -> Memory:
        memories.append(Memory.open(notes, embedder=embedder, config=MemoryConfig(**settings), store=store))
        return memories[-1]

    yield open_memory
    for memory in memories:
        memory.close()


@pytest.mark.parametrize(
    "chunking", [ChunkingConfig(), ChunkingConfig(style="tokens")], ids=["other model", "other chunks too"]
)
def test_a_sync_that_another_overtakes_with_another_model_writes_nothing_of_its_own(opened, notes, store, chunking):
    opened(Named("a")).sync()
    (notes / "memory/new.md").write_text("A zeppelin was seen over the harbour.\n")

    def rebuild() -> None:
        assert opened(Named("b"), chunking=chunking).sync().rebuilt

    with pytest.raises(StoreError, match=r"built again by another \w+ meanwhile; sync again"):
        opened(Named("a", meanwhile=rebuild)).sync()
    memory = opened(Named("b"), chunking=chunking)
    assert (memory.sync().ok, dict(memory.status().dirty), memory.status().model) == (True, {}, "b")
    index = store()
    (zeppelin,) = index.get_file_chunks("memory/new.md")
    (vector,) = index.get_vectors([zeppelin.id]).values()
    index.close()
    assert vector @ Named("b").embed_query("zeppelin seen over the harbour") > 0.5


def test_a_rebuild_that_finds_all_vectors_in_the_cache_still_says_their_dimensions(opened):
    for name in ("a", "b", "a"):
        memory = opened(Named(name))
        memory.sync()
        assert memory.status().vector.dims == 16
    opened(Named("a")).sync(force=True)
    assert opened(Named("a")).status().vector.dims == 16


def test_nothing_is_pruned_by_a_sync_in_the_midst_of_another(opened, notes, store):
    opened(Named("a")).sync()
    memory = opened(Named("b"))
    with closing(store()) as index, index.lock("sync"):
        memory.sync()
        assert index.describe().vectors == 8
    (notes / "memory/new.md").write_text("A zeppelin was seen.\n")
    memory.sync()
    with closing(store()) as index:
        assert index.describe().vectors == 5  # all of them in use
