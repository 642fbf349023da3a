"""An index of neighbours for one tenant: made as a sync ends, measured, used by its searches, and said by `status`."""

import json
from urllib.parse import urlsplit

import numpy as np
import pytest
from watching import eventually

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError
from openclaw_memory.store import postgres_connections, postgres_hnsw
from openclaw_memory.store.postgres import PostgresStore
from openclaw_memory.store.postgres_address import open_postgres
from openclaw_memory.testing import RecordingEmbedder, contracts
from openclaw_memory.testing.contracts import _made_key, _made_meta, _made_record, _made_row
from openclaw_memory.types import CandidateRequest

DIMS, COUNT = 16, 1200
ALONE = (
    "SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend')"
)


def vectors(count, seed=0):
    """Vectors as an embedder makes them: in clusters."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(30, DIMS))
    rows = centres[random.integers(30, size=count)] + 0.4 * random.normal(size=(count, DIMS))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def fill(store, count=COUNT, model="check/model", seed=0, *, transcripts=0):
    """Give a store chunks with vectors, the last of them of transcripts, as a sync does."""
    store.begin_build(_made_meta(model)).publish()
    made, keys = vectors(count, seed), [_made_key(f"{seed} {n}") for n in range(count)]
    store.add_vectors(keys, made)
    rows = [_made_row(n, f"every mod{n % 40} n{n}", key=keys[n]) for n in range(count)]
    files = [(_made_record("memory/a.md"), rows[: count - transcripts])]
    if transcripts:
        files.append((_made_record("sessions/a.jsonl", "sessions"), rows[count - transcripts :]))
    store.replace_files(files)
    store.prune(None)
    return made


def indexes(database):
    import psycopg

    with psycopg.connect(database) as connection:
        return [
            name
            for (name,) in connection.execute(
                "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'hnsw%' ORDER BY indexname"
            )
        ]


def scans(database):
    """How often an index of neighbours was asked; a backend tells it when it ends."""
    import psycopg

    postgres_connections.POOLS.close(urlsplit(database).path)
    with psycopg.connect(database, autocommit=True) as connection:
        eventually(lambda: connection.execute(ALONE).fetchone()[0])
        row = connection.execute(
            "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname LIKE 'hnsw%'"
        ).fetchone()
        return int(row[0] or 0)


def test_a_search_asks_the_index_and_finds_nearly_all_of_the_nearest(database):
    exact = PostgresStore(database, tenant="anna")
    store = PostgresStore(database, tenant="anna", hnsw=True)
    made = fill(store)
    assert len(indexes(database)) == 1
    before, found = scans(database), 0
    asked = vectors(30, seed=5)
    for vector in asked:
        near, best = store.search_vector(vector, 10), exact.search_vector(vector, 10)
        found += len({hit.chunk_id for hit in near} & {hit.chunk_id for hit in best})
        assert [hit.score for hit in near] == sorted((hit.score for hit in near), reverse=True)
    assert found / 300 >= 0.95
    assert scans(database) - before == 30, "a search has compared all vectors"
    assert store.search_vector(made[7], 1)[0].chunk_id == exact.search_vector(made[7], 1)[0].chunk_id


def test_a_search_by_words_too_has_the_exact_cosines_of_what_words_find(database):
    exact, store = (PostgresStore(database, tenant="anna", hnsw=hnsw) for hnsw in (False, True))
    fill(store)
    for seed in range(5):
        vector = vectors(1, seed=100 + seed)[0]
        request = CandidateRequest(
            [f"mod{seed}"],
            vector,
            vector_hits=10,
            all_cosines=True,
            choose=lambda hits: [chunk for one in hits for chunk in (*one.text, *(one.vector or {}))],
        )
        near, best = store.candidates(request), exact.candidates(request)
        assert dict(near.hits[0].text) == dict(best.hits[0].text)
        assert [near.hits[0].cosines[chunk] for chunk in near.hits[0].text] == pytest.approx(
            [best.hits[0].cosines[chunk] for chunk in near.hits[0].text]
        )
        assert len({*near.hits[0].vector} & {*best.hits[0].vector}) >= 9


def test_a_source_with_few_chunks_among_the_nearest_is_compared_exactly(database):
    exact, store = (PostgresStore(database, tenant="anna", hnsw=hnsw) for hnsw in (False, True))
    fill(store, transcripts=12)
    vector = vectors(1, seed=3)[0]
    assert store.search_vector(vector, 10, source="sessions") == exact.search_vector(vector, 10, source="sessions")
    request = CandidateRequest(["every"], vector, vector_hits=10)
    assert [dict(one.vector) for one in store.candidates(request).hits] == [
        dict(one.vector) for one in exact.candidates(request).hits
    ]


def test_the_state_says_which_share_is_found(notes, database, monkeypatch):
    with Memory.open(notes, store=f"{database}&tenant=anna&hnsw=1", embedder=RecordingEmbedder()) as memory:
        memory.sync()
        state = memory.status()
        assert state.vector.path == "pgvector, exact"
        assert any("few enough; it is made from 1,000 on" in notice for notice in state.notices)
        assert indexes(database) == []
        monkeypatch.setattr(postgres_hnsw, "LEAST_VECTORS", 3)
        assert memory.search("Who services the boiler?")
        memory.sync()
        state = memory.status()
        assert state.vector.path.startswith("pgvector, HNSW, recall@10 ")
        assert memory.search("Who services the boiler?")[0].path == "memory/household.md"
    with Memory.open(notes, store=f"{database}&tenant=anna", embedder=RecordingEmbedder()) as memory:
        assert memory.status().vector.path == "pgvector, exact"


def test_a_recall_below_the_bar_is_said(database, monkeypatch):
    monkeypatch.setattr(postgres_hnsw, "REACH", 4)  # of the ten nearest
    store = PostgresStore(database, tenant="anna", hnsw=True)
    fill(store)
    info = store.describe()
    assert "recall@10 0." in info.vector_path
    assert "of 50 samples" in info.vector_path
    assert "below 0.95" in info.notices[0]


def test_it_is_measured_again_when_vectors_have_grown_and_made_again_for_another_model(database):
    store = PostgresStore(database, tenant="anna", hnsw=True)
    fill(store)
    first = indexes(database)
    known = json.loads(store.get_meta("hnsw"))
    assert (known["vectors"], known["samples"]) == (COUNT, 50)
    store.prune(None)
    assert json.loads(store.get_meta("hnsw")) == known
    store.add_vectors([_made_key(f"more {n}") for n in range(COUNT)], vectors(COUNT, seed=9))
    store.prune(None)
    assert json.loads(store.get_meta("hnsw"))["vectors"] == 2 * COUNT
    assert indexes(database) == first
    fill(store, model="check/another's 100%", seed=2)
    assert len(indexes(database)) == 1
    assert indexes(database) != first
    exact = PostgresStore(database, tenant="anna")
    vector = vectors(1, seed=2)[0]
    assert store.search_vector(vector, 3) == exact.search_vector(vector, 3)


def test_one_that_was_cut_short_is_made_again(database):
    import psycopg

    store = PostgresStore(database, tenant="anna", hnsw=True)
    fill(store)
    (name,) = indexes(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", (f"openclaw_memory.{name}",)
        )
    assert len(store.search_vector(vectors(1)[0], 10)) == 10
    store.prune(None)
    before = scans(database)
    store.search_vector(vectors(1)[0], 10)
    assert scans(database) - before == 1


def test_a_role_that_owns_no_tables_searches_by_it_and_is_told_that_it_cannot_make_one(database):
    import psycopg

    fill(PostgresStore(database, tenant="anna", hnsw=True))
    fill(PostgresStore(database, tenant="bob"), seed=4)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE service LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA openclaw_memory TO service")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA openclaw_memory TO service")
    address = urlsplit(database)._replace(netloc="service@").geturl()
    try:
        vector = vectors(1, seed=6)[0]
        before = scans(database)
        found = PostgresStore(address, tenant="anna", hnsw=True).search_vector(vector, 5)
        assert len(found) == 5
        postgres_connections.POOLS.close("service@")
        assert scans(database) - before == 1
        bob = PostgresStore(address, tenant="bob", hnsw=True)
        bob.prune(None)
        assert "must be owner of table vectors" in bob.describe().notices[0]
        assert bob.search_vector(vector, 5) == PostgresStore(database, tenant="bob").search_vector(vector, 5)
    finally:
        postgres_connections.POOLS.close("service@")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DROP OWNED BY service")
            connection.execute("DROP ROLE service")


def test_others_have_no_part_in_it(database):
    fill(PostgresStore(database, tenant="anna", hnsw=True))
    other = PostgresStore(database, tenant="bob")
    fill(other, seed=8)
    before = scans(database)
    assert len(other.search_vector(vectors(1, seed=8)[0], 10)) == 10
    assert scans(database) == before
    assert other.describe().vector_path == "pgvector, exact"


@pytest.mark.nightly
@pytest.mark.parametrize("check", contracts._CHECKS, ids=lambda check: check.__name__.removeprefix("_check_"))
def test_it_keeps_the_contract(check, database, monkeypatch):
    monkeypatch.setattr(postgres_hnsw, "LEAST_VECTORS", 1)
    check(PostgresStore(database, tenant="contract", hnsw=True))


def test_the_address_says_yes_or_no(tmp_path):
    address = "postgresql://host/x?tenant=a&hnsw=1&sslmode=prefer"
    assert open_postgres(address, tmp_path).url == "postgresql://host/x?sslmode=prefer"
    with pytest.raises(ConfigError, match="hnsw=maybe"):
        open_postgres("postgresql:///x?hnsw=maybe", tmp_path)
