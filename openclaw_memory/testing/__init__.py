"""For your tests: the contracts of an embedder and a store, and fakes that need no files, model or network."""

from openclaw_memory.testing.contracts import check_embedder, check_store
from openclaw_memory.testing.fakes import InMemoryStore, RecordingEmbedder, sample_workspace

__all__ = ["InMemoryStore", "RecordingEmbedder", "check_embedder", "check_store", "sample_workspace"]
