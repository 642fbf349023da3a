"""A database of its own for each test that wants one."""

import uuid
from urllib.parse import urlsplit

import pytest


@pytest.fixture(autouse=True, scope="session")
def driver():
    """What the extra `[postgres]` brings."""
    return pytest.importorskip("psycopg")


@pytest.fixture
def database(server):
    """The address of a new, empty database."""
    import psycopg
    from openclaw_memory_postgres import connections

    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield urlsplit(server)._replace(path=f"/{name}").geturl()
    connections.POOLS.close(name)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
