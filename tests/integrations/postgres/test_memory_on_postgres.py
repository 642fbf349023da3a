"""A memory whose index is in PostgreSQL: notes, documents, several processes, and connections that are lost."""

import os
from uuid import uuid4

import pytest
from msgspec.structs import replace
from openclaw_memory_postgres import PostgresStore, connections
from watching import eventually

from openclaw_memory import Memory
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.testing.contracts import STORE_CHECKS, make_meta, make_record, make_row
from openclaw_memory.types import Chunk, Document, VectorSource


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__.removeprefix("_check_"))
def test_it_keeps_the_contract_of_every_store(check, server):
    check(PostgresStore(server, tenant=f"contract {uuid4()}"))


def test_a_memory_does_all_that_it_does_elsewhere_and_makes_no_file_for_its_index(notes, database):
    source = VectorSource("made:elsewhere", "elsewhere")
    with Memory.open(notes, store=f"{database}&tenant=anna", embedder=RecordingEmbedder()) as memory:
        assert memory.sync().ok
        assert memory.search("Who services the boiler?")[0].path == "memory/household.md"
        state = memory.status(deep=True)
        assert (state.store, state.files, memory.index_path) == ("postgres", 4, None)
        assert state.index_path.endswith("tenant=anna")
        with memory.watch():
            memory.append("The zeppelin lands on Friday.", date="2026-03-01")
            eventually(lambda: memory.search("zeppelin")[:1])
        memory.documents.add([Document("a", "Ferries"), Document("b", "Trains")], [[1.0, 0.0], [0.6, 0.8]], source)
        found = memory.documents.search_vector([0.0, 1.0], 2, identity=source.identity)
        assert [(one.id, round(score, 2)) for one, score in found] == [("b", 0.8), ("a", 0.0)]
        assert memory.sync(force=True).rebuilt
        assert memory.search("zeppelin")
        plan = memory.control.forget(query="zeppelin", dry_run=True).plan
        memory.control.forget(query="zeppelin", dry_run=False, expected=plan.hash)
        assert not any("zeppelin" in result.snippet.lower() for result in memory.search("zeppelin"))
    assert not [*notes.rglob("index.sqlite*")]


def test_texts_that_the_server_takes_for_none_come_back_as_they_were(database):
    store = PostgresStore(database, tenant="nul")
    store.begin_build(make_meta()).publish()
    texts = ["a\x00b", "\ud800", "\x01", '\x01"a"', "", "\\x00", "\x00"]
    rows = [
        replace(make_row(n, "every"), chunk=Chunk(n, n, 0, text, text, 0, {"key": text}))
        for n, text in enumerate(texts)
    ]
    record = replace(make_record("memory/\ud800.md"), doc_id="d\x00", part_of="\x01")
    store.replace_files([(record, rows)])
    assert store.get_files(ids=["d\x00"], part_of=None) == store.get_files(part_of="\x01") == {record.path: record}
    assert [one.chunk for one in store.get_file_chunks(record.path)] == [row.chunk for row in rows]


def test_a_lost_connection_is_made_again(notes, database):
    import psycopg

    with Memory.open(notes, store=f"{database}&tenant=lost", embedder=None) as memory:
        memory.sync()
        for _ in range(3):
            with psycopg.connect(database, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            assert memory.search("boiler")


def test_a_forked_child_has_connections_of_its_own(database):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    store = PostgresStore(database, tenant="fork")
    store.set_meta("name", "parent")
    child = os.fork()
    if not child:
        try:
            os._exit(0 if store.get_meta("name") == "parent" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.get_meta("name") == "parent"
    assert len([key for key in connections.POOLS.opened if key[1] == database]) == 1
