"""The memory of a project that a coding agent works in."""

import pytest

from openclaw_memory import Memory
from openclaw_memory.testing import RecordingEmbedder


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "my notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Memory\n\n- The harbour is Den Helder.\n")
    return folder


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=RecordingEmbedder()) as memory:
        yield memory
