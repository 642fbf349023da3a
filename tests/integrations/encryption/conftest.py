"""What the tests of encryption share: an encrypted memory in a folder of its own, and keys of each test alone."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from encrypted import ENCRYPTED, KEY

from openclaw_memory import Memory
from openclaw_memory.security.keys import VARIABLE


@pytest.fixture
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without keys."""
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has set the key that these tests know."""
    monkeypatch.setenv(VARIABLE, KEY.secret.hex())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    return tmp_path / "notes"


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    with Memory.open(folder, embedder=None, config=ENCRYPTED) as memory:
        yield memory
