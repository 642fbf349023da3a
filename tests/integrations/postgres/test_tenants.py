"""An agent never sees what belongs to another one: not by any method, and not by SQL as the role of the application."""

from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openclaw_memory_postgres import connections
from openclaw_memory_postgres.connections import INDEX_TABLES, TABLES
from openclaw_memory_postgres.rows import hash_tenant
from openclaw_memory_postgres.store import PostgresStore

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, StoreError
from openclaw_memory.testing.contracts import fill, make_key, make_meta, make_record, make_row, make_vectors
from openclaw_memory.types import HitRequest


def everything(store):
    """All that a store tells, of any method that reads."""
    vector = make_vectors(1)[0]
    hits = store.find_hits(HitRequest(["every", "n1"], vector, counted=["every"]))
    return {
        "meta": store.read_meta(),
        "name": store.get_meta("name"),
        "files": dict(store.get_files()),
        "by id": dict(store.get_files(ids=["d"])),
        "text": store.search_text(["every"], 99),
        "vector": store.search_vector(vector, 99),
        "chunks": store.get_chunks(range(99)),
        "file": store.get_file_chunks("memory/0.md"),
        "vectors": sorted(store.get_vectors(list(range(99)))),
        "known": store.find_keys([make_key(n) for n in range(20)]),
        "identities": dict(store.count_identities()),
        "hits": (len(hits.by_source), hits.chunk_count, dict(hits.frequencies)),
        "counts": (store.describe().files, store.describe().chunks, store.describe().vectors),
        "sound": store.verify(),
    }


CHANGES = st.lists(st.sampled_from(["fill", "remove", "prune", "build", "damage", "note", "extend"]), max_size=4)


def change(store, what):
    if what == "fill":
        fill(store)
    elif what == "remove":
        store.remove_files(["memory/0.md", "sessions/1.jsonl"])
    elif what == "prune":
        store.prune()
    elif what == "build":
        store.begin_build(make_meta("check/another")).publish()
    elif what == "damage":
        store.delete_damaged("a test says so")
    elif what == "note":
        store.set_meta("name", "text")
    elif "memory/0.md" in store.get_files():
        store.extend_file(make_record("memory/0.md"), [make_row(9, "every more")], 3)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES)
def test_no_method_shows_or_changes_what_another_tenant_has(server, changes):
    mine, other = (PostgresStore(server, tenant=f"{name} {uuid4()}") for name in ("mine", "other"))
    fill(mine)
    mine.set_meta("name", "mine")
    before = everything(mine)
    for what in changes:
        change(other, what)
    assert everything(mine) == before
    if not {"fill", "extend"} & set(changes):
        assert everything(other)["files"] == {}
        assert everything(other)["text"] == everything(other)["chunks"] == []


def test_the_role_of_the_application_sees_one_tenant_by_sql_and_writes_no_other(database, tmp_path):
    import psycopg

    fill(PostgresStore(database, tenant="mine"))
    fill(PostgresStore(database, tenant="other"))
    with Memory.open(tmp_path, store=f"{database}&tenant=mine&files=column", embedder=None) as memory:
        memory.append("The boiler is old.")
    mine = everything(PostgresStore(database, tenant="mine"))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE app LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA openclaw_memory TO app")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA openclaw_memory TO app")
    try:
        address = urlsplit(database)._replace(netloc="app@").geturl()
        with psycopg.connect(address, autocommit=True) as connection:
            for table in TABLES:
                count = connection.execute(f"SELECT count(*) FROM openclaw_memory.{table}").fetchone()[0]
                assert count == 0, f"without a tenant, {table} shows {count} rows"
            connection.execute("SELECT set_config(%s, %s, false)", (connections.SETTING, str(hash_tenant("mine"))))
            for table in INDEX_TABLES[2:]:
                seen = connection.execute(f"SELECT DISTINCT tenant FROM openclaw_memory.{table}").fetchall()
                assert seen == [(hash_tenant("mine"),)]
            refused = pytest.raises(StoreError, match=r"openclaw_memory\.tenant does not reach")
            with refused, connections.map_errors(address):
                connection.execute(
                    "INSERT INTO openclaw_memory.texts VALUES (%s, 'name', 'text')", (hash_tenant("other"),)
                )
        store = PostgresStore(address, tenant="third")
        fill(store)
        assert store.describe().chunks == 20
        assert everything(PostgresStore(address, tenant="mine")) == mine
    finally:
        connections.POOLS.close("app@")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DROP OWNED BY app")
            connection.execute("DROP ROLE app")


def test_names_that_look_alike_are_tenants_of_their_own(server):
    names = ["a", "A", "a ", "a\x00", "\ud800", "\u00e1", "a\u0301", "'; DROP TABLE files; --"]
    stores = [PostgresStore(server, tenant=name) for name in names]
    for number, store in enumerate(stores):
        store.set_meta("name", str(number))
    assert [store.get_meta("name") for store in stores] == [str(number) for number in range(len(names))]


@pytest.mark.parametrize(("tenant", "schema"), [("", "a"), (None, "a"), ("a", "a; DROP"), ("a", "")])
def test_what_names_no_tenant_or_schema_is_refused(tenant, schema):
    with pytest.raises(ConfigError):
        PostgresStore("postgresql:///x", tenant=tenant, schema=schema)


def test_a_server_that_is_down_is_said_without_the_password():
    store = PostgresStore("postgresql://me:hush@127.0.0.1:9/memory", tenant="a")
    with pytest.raises(StoreError, match=r"me@127\.0\.0\.1:9/memory cannot be reached") as caught:
        store.read_meta()
    assert "hush" not in str(caught.value)
