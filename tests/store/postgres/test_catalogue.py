"""What a cluster that places rows by tenant asks of the tables and of the statements."""

import inspect
import re

import pytest

from openclaw_memory.store import postgres, postgres_search, postgres_writing
from openclaw_memory.store.postgres import TABLES, PostgresStore


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


@pytest.mark.parametrize("module", [postgres, postgres_search, postgres_writing], ids=lambda module: module.__name__)
def test_each_table_of_a_statement_is_read_for_one_tenant(module):
    """Of every table that a statement names, the tenant is given there or by the table that it is joined with."""
    source = inspect.getsource(module)
    statements = re.findall(r'"""(.*?)"""', source, re.DOTALL)
    read = [one for one in statements if re.search(r"(FROM|JOIN|UPDATE|INTO) \{+s\}+\.", one)]
    assert read
    for statement in read:
        tables = len(re.findall(r"(?:FROM|JOIN|UPDATE|INTO) \{+s\}+\.", statement))
        named = len(re.findall(r"tenant|\{+here\}+", statement))
        assert named >= tables, statement
