"""The only SQL: an index of chunks, terms and vectors in one SQLite file."""

from openclaw_memory.store.sqlite import SCHEMA_VERSION, SqliteStore

__all__ = ["SCHEMA_VERSION", "SqliteStore"]
