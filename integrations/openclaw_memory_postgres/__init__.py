"""Keep the index of an agent, and its notes if asked to, in PostgreSQL with pgvector.

Importing this package loads nothing of psycopg; a store needs the `postgres` extra when it connects.
"""

from openclaw_memory_postgres.address import open_store
from openclaw_memory_postgres.store import PostgresStore

__all__ = ["PostgresStore", "open_store"]
