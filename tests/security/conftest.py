"""What the tests of security share: an encrypted memory in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from encrypted import ENCRYPTED

from openclaw_memory import Memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    return tmp_path / "notes"


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    with Memory.open(folder, embedder=None, config=ENCRYPTED) as memory:
        yield memory
