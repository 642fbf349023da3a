"""A text is embedded once for all workspaces of a user, and what is forgotten is forgotten there too."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import EmbeddingConfig
from openclaw_memory.testing import RecordingEmbedder

TEXT = "The gate code is 4417.\n"


def embed(folder: Path, model: str = "a", max_entries: int = 50_000) -> int:
    """Sync a workspace, and return how many texts were embedded."""
    config = MemoryConfig(embedding=EmbeddingConfig(max_entries=max_entries))
    with Memory.open(folder, embedder=RecordingEmbedder(name=model), config=config) as memory:
        return memory.sync().embedded


def cached(folder: Path) -> int:
    with Memory.open(folder, embedder=RecordingEmbedder()) as memory:
        return memory.status().cache.entries


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/MEMORY.md").write_text(TEXT)
    return tmp_path / "agent"


def test_a_folder_that_was_moved_or_copied_is_indexed_without_embedding(folder, tmp_path):
    assert embed(folder) == 1
    shutil.copytree(folder, tmp_path / "copy")
    folder.rename(tmp_path / "moved")
    assert embed(tmp_path / "copy") == 0
    assert embed(tmp_path / "moved") == 0
    with Memory.open(tmp_path / "moved", embedder=RecordingEmbedder(name="a")) as memory:
        assert memory.status().mode == "hybrid"
        assert memory.status(deep=True).vector.fits is None


def test_going_back_to_an_earlier_embedder_embeds_nothing_again(folder):
    assert [embed(folder, "a"), embed(folder, "b"), embed(folder, "a")] == [1, 1, 0]


def test_an_undone_edit_is_not_embedded_again(folder):
    embed(folder)
    (folder / "MEMORY.md").write_text("Nothing.\n")
    assert embed(folder) == 1
    (folder / "MEMORY.md").write_text(TEXT)
    assert embed(folder) == 0


def test_the_oldest_vectors_go_beyond_the_limit_and_none_are_kept_with_zero(folder):
    for number in range(6):
        (folder / "MEMORY.md").write_text(f"Note {number}.\n")
        embed(folder, max_entries=3)
    assert cached(folder) == 3
    (folder / "MEMORY.md").write_text("Note 0.\n")
    assert embed(folder, max_entries=0) == 1


def test_forgetting_erases_what_a_workspace_has_cached(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "MEMORY.md").write_text("The bakery opens at seven.\n")
    embed(folder)
    embed(other)
    with Memory.open(folder, embedder=RecordingEmbedder()) as memory:
        memory.control.forget(query="gate code", dry_run=False)
    assert cached(other) == 1


def test_a_damaged_cache_is_made_again(folder, tmp_path, caplog):
    embed(folder)
    cache = Path(os.environ["OPENCLAW_MEMORY_HOME"]) / "embeddings.sqlite"
    assert cache.stat().st_mode & 0o777 == 0o600
    cache.write_bytes(b"not a database" * 500)
    folder.rename(tmp_path / "moved")
    assert embed(tmp_path / "moved") == 1
    assert "is damaged" in caplog.text
    (tmp_path / "moved").rename(folder)
    assert embed(folder) == 0


def test_cached_vectors_of_two_sizes_under_one_identity_stop_no_sync(tmp_path):
    for dims, texts in ((64, [TEXT]), (32, ["Nothing.\n"]), (64, [TEXT, "Nothing.\n"])):
        folder = tmp_path / f"{dims}-{len(texts)}"
        folder.mkdir()
        for name, text in zip(("MEMORY.md", "USER.md"), texts, strict=False):
            (folder / name).write_text(text)
        embedder = RecordingEmbedder(dims)
        embedder.identity = "one"
        with Memory.open(folder, embedder=embedder) as memory:
            assert memory.sync().ok
