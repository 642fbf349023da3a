"""A workspace that is synced through a batch service."""

import pytest
from batch_place import Place


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "workspace").mkdir()
    place = Place(tmp_path / "workspace", tmp_path / "index.sqlite")
    monkeypatch.setattr("openclaw_memory_batch.embedder.time", place.clock)
    return place
