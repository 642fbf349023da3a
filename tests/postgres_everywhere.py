"""A plugin of pytest, `-p postgres_everywhere`: indexes that would be files are tenants of a database instead.

POSTGRES_EVERYWHERE names the database.
"""

import os

import pytest


@pytest.fixture(autouse=True)
def index_in_postgres(monkeypatch):
    """Give each memory that asks for no store of its own one in PostgreSQL, a tenant by its workspace."""
    from openclaw_memory_postgres import PostgresStore

    from openclaw_memory.store import registry

    usual = registry.choose_store

    def choose_store(choice, root, index_path=None, *settings):
        if choice not in {None, "sqlite"}:
            return usual(choice, root, index_path, *settings)
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]  # without its phase: what a fixture opens is of it
        return PostgresStore(os.environ["POSTGRES_EVERYWHERE"], tenant=f"{test} {index_path or root}")

    monkeypatch.setattr(registry, "choose_store", choose_store)
