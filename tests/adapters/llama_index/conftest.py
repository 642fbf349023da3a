"""Memories with and without vectors, stores that are filled, and the events that LlamaIndex dispatches."""

import json

import pytest
from llama_index.core.base.llms import types
from llama_index.core.instrumentation import root_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index_openclaw_memory import OpenClawVectorStore
from some_nodes import WORDS, facts

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import EmbeddingConfig

# What they talk with is made of blocks that came with 0.14.5.
collect_ignore = (
    []
    if hasattr(types, "ToolCallBlock")
    else [f"test_llama_index_{name}.py" for name in ("agents", "flush_model", "memory", "messages")]
)


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    with Memory.open(folder, config=MemoryConfig(embedding=EmbeddingConfig(provider="none"))) as opened:
        yield opened


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
def given(memory):
    """A store in a memory without an embedder, filled with vectors of a model that nobody named."""
    store = OpenClawVectorStore(memory)
    store.add(facts(WORDS))
    return store


@pytest.fixture
def static_memory(tmp_path):
    """A memory with the embedder that ships."""
    with Memory.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def own(static_memory):
    """A store filled with vectors of the memory's own embedder."""
    store = OpenClawVectorStore(static_memory)
    store.add(facts(store.embedding))
    return store


@pytest.fixture
def note(static_memory):
    """The citation of a person's own line."""
    path = static_memory.workspace.root / "memory" / "boat.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("Anna's boat is called Zeppelin.\n")
    static_memory.sync()
    return "memory/boat.md#L1"


@pytest.fixture
def events():
    """The events that LlamaIndex dispatches during a test, in order."""
    heard = []

    class Listens(BaseEventHandler):
        def handle(self, event, **_):
            heard.append(event)

    handler = Listens()
    root_dispatcher.add_event_handler(handler)
    yield heard
    root_dispatcher.event_handlers.remove(handler)
