"""What a cluster that places rows by tenant asks of tables, statements and the script, on a server without Citus."""

import re
import shutil
import subprocess
from contextlib import ExitStack
from functools import partial
from importlib.resources import files
from urllib.parse import urlsplit

import pytest
from openclaw_memory_postgres import PostgresStore, connections, open_store
from openclaw_memory_postgres.connections import TABLES

from openclaw_memory.errors import StoreError
from openclaw_memory.testing.contracts import fill

PACKAGE = files("openclaw_memory_postgres")
STAND_INS = """
CREATE TABLE placed (name regclass, shards integer, beside text);
CREATE TABLE emptied (name regclass);
CREATE VIEW pg_dist_partition AS SELECT name AS logicalrelid FROM placed;
CREATE FUNCTION create_distributed_table(text, text, shard_count integer = NULL, colocate_with text = NULL) RETURNS void
    LANGUAGE sql AS 'INSERT INTO placed SELECT $1::regclass, $3, $4 FROM pg_class
        WHERE oid = $1::regclass AND NOT relforcerowsecurity';
CREATE FUNCTION truncate_local_data_after_distributing_table(regclass) RETURNS void
    LANGUAGE sql AS 'INSERT INTO emptied VALUES ($1)';
"""


@pytest.fixture
def connection(database):
    import psycopg

    PostgresStore(database, tenant="any").read_meta()
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def test_every_unique_index_begins_with_the_tenant(connection):
    rows = connection.execute(
        """SELECT c.relname, i.indexrelid::regclass::text, i.indisprimary, a.attname FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE n.nspname = 'openclaw_memory' AND i.indisunique"""
    ).fetchall()
    assert {column for *_, column in rows} == {"tenant"}
    assert {table for table, _, primary, _ in rows if primary} == set(TABLES)


def list_guarded(connection):
    return connection.execute(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
        "WHERE relnamespace = 'openclaw_memory'::regnamespace AND relkind = 'r' ORDER BY relname::text COLLATE \"C\""
    ).fetchall()


def test_no_table_refers_to_another_and_each_has_its_rows_guarded(connection):
    foreign = connection.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'").fetchone()
    assert foreign == (0,)
    assert list_guarded(connection) == [(table, True, True) for table in sorted(TABLES)]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql runs the script")
def test_the_script_run_twice_by_a_plain_owner_places_each_table_once(connection, database):
    user = f"owner_{urlsplit(database).path[-8:]}"
    connection.execute(STAND_INS)
    connection.execute(
        f"CREATE ROLE {user} LOGIN NOSUPERUSER; GRANT ALL ON placed, emptied, pg_dist_partition TO {user}"
    )
    try:
        connection.execute(f"ALTER SCHEMA openclaw_memory OWNER TO {user}")
        for table in TABLES:
            connection.execute(f"ALTER TABLE openclaw_memory.{table} OWNER TO {user}")
        address = urlsplit(database)._replace(netloc=f"{user}@").geturl()
        for _ in range(2):
            command = ["psql", "-X", "-v", f"role={user}", "-f", str(PACKAGE / "citus.sql"), address]
            subprocess.run(command, check=True, capture_output=True, text=True)
            first, *further = connection.execute("SELECT name::text, shards, beside FROM placed").fetchall()
            assert first == ("openclaw_memory.generations", 64, None)
            assert {(shards, beside) for _, shards, beside in further} == {(None, "openclaw_memory.generations")}
            names = sorted(f"openclaw_memory.{table}" for table in TABLES)
            assert sorted(name for name, *_ in (first, *further)) == names
            assert sorted(name for (name,) in connection.execute("SELECT name::text FROM emptied")) == names
            assert list_guarded(connection) == [(table, True, True) for table in sorted(TABLES)]
            settings = connection.execute("SELECT rolconfig FROM pg_roles WHERE rolname = %s", (user,)).fetchone()
            assert settings == (["enable_nestloop=off", "jit=off"],)
    finally:
        connection.execute(f"REASSIGN OWNED BY {user} TO CURRENT_USER; DROP OWNED BY {user}; DROP ROLE {user}")


def test_no_statement_is_one_that_a_worker_makes_a_copy_of():
    text = (PACKAGE / "writing.py").read_text() + (PACKAGE / "store.py").read_text()
    inserts = re.findall(r"INSERT INTO.*?(?:\"\"\"|\n            \)|\n                [a-z]+=)", text, re.DOTALL)
    assert len(inserts) >= 5
    assert [insert for insert in inserts if "SELECT" in insert and not re.search("ON CONFLICT|{then}", insert)] == []


def test_the_tenant_is_set_for_a_transaction_and_never_for_a_connection(database):
    store = PostgresStore(database, tenant="mine")
    fill(store)
    with store._get_pool().connection() as pooled:
        assert pooled.execute("SELECT current_setting('openclaw_memory.tenant', true)").fetchone() in {("",), (None,)}
        assert pooled.execute("SHOW citus.propagate_set_commands").fetchone() == ("local",)


def test_a_node_that_is_no_coordinator_is_refused(connection, database):
    connections.POOLS.close(database)
    connection.execute("CREATE FUNCTION citus_is_coordinator() RETURNS boolean LANGUAGE sql AS 'SELECT false'")
    with pytest.raises(StoreError, match="name the coordinator"):
        PostgresStore(database, tenant="any").read_meta()
    connection.execute(
        "CREATE OR REPLACE FUNCTION citus_is_coordinator() RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )
    assert PostgresStore(database, tenant="any").read_meta() is None


def test_a_server_that_hangs_is_waited_for_no_longer_than_said(connection, database, monkeypatch):
    monkeypatch.setattr(connections, "begin", partial(connections.begin, seconds=0.1))
    store = PostgresStore(database, tenant="any")
    with connection.transaction():
        connection.execute("LOCK TABLE openclaw_memory.generations")
        with pytest.raises(StoreError, match="gave no answer in time"):
            store.read_meta()
    assert store.read_meta() is None


def test_one_memory_leaves_connections_to_the_others(database, monkeypatch):
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.1)
    busy = PostgresStore(database, tenant="busy")
    with ExitStack() as stack:
        for _ in range(connections.TENANT_SIZE):
            stack.enter_context(busy.snapshot())
        with pytest.raises(StoreError, match="in use"):
            busy.read_meta()
        assert PostgresStore(database, tenant="calm").read_meta() is None
    assert busy.read_meta() is None


def test_an_option_of_the_server_with_a_space_stays_as_it_is(tmp_path):
    store = open_store("postgresql://host/agents?options=-c%20work_mem%3D64MB&tenant=a", tmp_path)
    assert store.url == "postgresql://host/agents?options=-c%20work_mem%3D64MB"
    assert "%20" in connections.mask_url(store.url)
