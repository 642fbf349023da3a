"""For your tests: the contracts of an embedder and a store, and fakes that need no files, model or network."""

from openclaw_memory.testing.embedders import check_embedder
from openclaw_memory.testing.fakes import RecordingEmbedder, sample_workspace
from openclaw_memory.testing.memory_store import InMemoryStore
from openclaw_memory.testing.stores import check_store

__all__ = ["InMemoryStore", "RecordingEmbedder", "check_embedder", "check_store", "sample_workspace"]
