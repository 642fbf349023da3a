"""Shipped for tests: checks that hold an embedder or a store of your own to its contract."""

from openclaw_memory.testing.embedders import check_embedder
from openclaw_memory.testing.stores import check_store

__all__ = ["check_embedder", "check_store"]
