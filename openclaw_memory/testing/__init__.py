"""For your tests: the contracts of an embedder and a store, and fakes that need no model or network."""

from openclaw_memory.testing.contracts import check_embedder, check_store
from openclaw_memory.testing.fakes import RecordingEmbedder

__all__ = ["RecordingEmbedder", "check_embedder", "check_store"]
