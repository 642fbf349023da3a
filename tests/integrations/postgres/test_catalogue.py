"""What a cluster that places rows by tenant asks of the tables and of the statements."""

import pytest
from openclaw_memory_postgres.store import TABLES, PostgresStore


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


def test_no_table_refers_to_another_and_each_has_its_rows_guarded(connection):
    foreign = connection.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'").fetchone()
    assert foreign == (0,)
    rows = connection.execute(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
        "WHERE relnamespace = 'openclaw_memory'::regnamespace AND relkind = 'r'"
    ).fetchall()
    assert sorted(rows) == [(table, True, True) for table in sorted(TABLES)]
