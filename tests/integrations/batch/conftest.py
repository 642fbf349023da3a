"""A workspace that is synced through a batch service."""

import pytest
from batch_place import Place


@pytest.fixture
def place(tmp_path):
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path / "workspace", tmp_path / "index.sqlite")
