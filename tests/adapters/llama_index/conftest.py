"""Stores that are filled, and the events that LlamaIndex dispatches."""

import sys
from pathlib import Path

import pytest
from llama_index.core.instrumentation import root_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index_openclaw_memory import OpenClawVectorStore

from openclaw_memory import Memory

sys.path.append(str(Path(__file__).parent))

from some_nodes import WORDS, facts


@pytest.fixture
def make_given():
    def make(folder):
        with Memory.open(folder, embedder=None) as memory:
            OpenClawVectorStore(memory).add(facts(WORDS))

    return make


@pytest.fixture
def given(memory):
    """A store in a memory without an embedder, filled with vectors of a model that nobody named."""
    return OpenClawVectorStore(memory)


@pytest.fixture
def make_own():
    def make(folder):
        with Memory.open(folder) as memory:
            store = OpenClawVectorStore(memory)
            store.add(facts(store.embedding))

    return make


@pytest.fixture
def own(static_memory):
    """A store filled with vectors of the memory's own embedder, that finds people's notes too."""
    return OpenClawVectorStore(static_memory, include_notes=True)


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
