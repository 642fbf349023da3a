"""What the tests of every adapter need."""

import json

import pytest

from openclaw_memory import Memories, Memory, MemoryConfig
from openclaw_memory.config import EmbeddingConfig

pytest.register_assert_rewrite("adapter_contracts", "adapter_agent_contracts", "adapter_store_contract")


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    with Memory.open(folder, config=MemoryConfig(embedding=EmbeddingConfig(provider="none"))) as opened:
        yield opened


@pytest.fixture
def static_memory(tmp_path):
    """A memory with the embedder that ships."""
    with Memory.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def note(static_memory):
    """The citation of a person's own line."""
    path = static_memory.workspace.root / "memory" / "boat.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("Anna's boat is called Zeppelin.\n")
    static_memory.sync()
    return "memory/boat.md#L1"


@pytest.fixture
def lived_in(memory):
    (memory.workspace.root / "SOUL.md").write_text("You are Kit, and brief.\n", encoding="utf-8")
    (memory.workspace.root / "MEMORY.md").write_text("Anna lives in Delft.\n", encoding="utf-8")
    memory.append("The boiler was serviced.")
    return memory


@pytest.fixture
def users(tmp_path):
    """The memories of two people, each with a note that names the other nowhere."""
    with Memories(tmp_path / "users", embedder="hashing", max_open=4) as users:
        for name in ("anna", "bob"):
            with users.use(name) as memory:
                memory.append(f"{name} takes the ferry zebra-{name}.", date="2026-11-01")
        yield users


@pytest.fixture
def household(notes):
    """A synced memory of notes and one transcript, with vectors of the model that ships."""
    (notes / "sessions").mkdir()
    said = {"role": "user", "content": "The boiler man rang twice about the boiler."}
    entries = [{"type": "session", "id": "talk"}, {"type": "message", "id": "a", "message": said}]
    (notes / "sessions" / "talk.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    with Memory.open(notes) as opened:
        opened.sync()
        yield opened


@pytest.fixture
def kept(memory):
    """A memory that nothing may change, of two notes."""
    memory.append("De ketel is nagekeken.", date="2026-11-20")
    memory.append("La caldera hace ruido.", date="2026-11-21")
    memory.sync()
    files = {path: path.read_bytes() for path in memory.workspace.root.rglob("*.md")}
    yield memory
    assert {path: path.read_bytes() for path in memory.workspace.root.rglob("*.md")} == files
