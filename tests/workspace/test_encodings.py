"""A note in an encoding of before UTF-8 is not read, and named until it is saved as UTF-8."""

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import SyncConfig
from openclaw_memory.errors import UndecodableError

FRENCH = "La clé de la cave est chez le voisin, près de la boîte aux lettres.\n"


@pytest.fixture
def memory(notes):
    (notes / "memory/cave.md").write_bytes(FRENCH.encode("cp1252"))
    with Memory.open(notes, embedder=None, config=MemoryConfig(sync=SyncConfig(on_search=False))) as opened:
        opened.sync()
        yield opened


def test_a_note_that_cannot_be_read_is_named_by_every_answer(memory):
    said = "not searched, since it is not text in UTF-8: memory/cave.md"
    assert said in str(memory.search("clé de la cave").reason)
    assert said in str(memory.search("boiler").reason)
    assert any(file.path == "memory/cave.md" and "UTF-8" in file.reason for file in memory.status().skipped)
    with pytest.raises(UndecodableError, match="save it as UTF-8"):
        memory.get("memory/cave.md")
    (memory.workspace.root / "memory/cave.md").write_text(FRENCH)
    memory.sync()
    assert memory.search("boiler").reason is None
    assert "boîte" in memory.search("clé de la cave")[0].snippet
