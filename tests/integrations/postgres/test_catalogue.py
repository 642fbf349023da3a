"""What a cluster that places rows by tenant asks of the tables and of the statements."""

from pathlib import Path

import pytest
from openclaw_memory_postgres.address import open_store
from openclaw_memory_postgres.store import TABLES, PostgresStore

CITUS = Path(__file__).parents[3] / "benchmarks" / "citus.sql"
# In the place of what Citus has: it refuses a table whose keys do not hold the column that its rows are placed by.
LIKE_CITUS = """
CREATE TABLE placed (name text, beside text);
CREATE VIEW citus_shards AS SELECT name AS table_name, 0 AS shard_size, '' AS nodename FROM placed;
CREATE FUNCTION create_distributed_table(place regclass, by text, colocate_with text = NULL, shard_count int = NULL)
RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (
        SELECT 1 FROM pg_index AS i WHERE i.indrelid = place AND i.indisunique AND NOT EXISTS (
            SELECT 1 FROM pg_attribute AS a WHERE a.attrelid = place AND a.attname = by AND a.attnum = ANY(i.indkey)
        )
    ) THEN RAISE 'a key of % does not hold %', place, by; END IF;
    INSERT INTO placed VALUES (place::text, colocate_with);
END $$
"""


@pytest.fixture
def connection(database):
    import psycopg

    PostgresStore(database, tenant="any").meta()
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


def test_no_table_refers_to_another_and_each_has_its_rows_guarded(connection):
    foreign = connection.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'").fetchone()
    assert foreign == (0,)
    rows = connection.execute(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
        "WHERE relnamespace = 'openclaw_memory'::regnamespace AND relkind = 'r'"
    ).fetchall()
    assert sorted(rows) == [(table, True, True) for table in sorted(TABLES)]


@pytest.mark.parametrize("address", ["tenant=any", "tenant=any&files=column"])
def test_the_script_for_a_cluster_places_all_tables_together(database, tmp_path, address):
    import psycopg

    store = open_store(f"{database}&{address}", tmp_path)
    store.meta()
    if (shared := store.shared_files(tmp_path)) is not None:
        shared.refresh()
    lines = [
        line for line in CITUS.read_text(encoding="utf-8").splitlines() if not line.startswith(("\\", "CREATE EXT"))
    ]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(LIKE_CITUS)
        connection.execute("\n".join(lines))
        placed = dict(connection.execute("SELECT name, beside FROM placed").fetchall())
        tables = connection.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'openclaw_memory'::regnamespace AND relkind = 'r'"
        ).fetchall()
    assert placed.keys() == {name for (name,) in tables}
    assert {beside for name, beside in placed.items() if name != "openclaw_memory.generations"} == {
        "openclaw_memory.generations"
    }
