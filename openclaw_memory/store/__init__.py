"""The only SQL: an index of chunks, terms and vectors in one SQLite file."""

from openclaw_memory.store.sqlite import SqliteStore

__all__ = ["SqliteStore"]
