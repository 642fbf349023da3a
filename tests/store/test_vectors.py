import random
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

import apsw
import numpy as np
import pytest

from openclaw_memory.errors import EmbedderError
from openclaw_memory.store import SqliteStore, filter_cache


def test_the_coarse_codes_lose_next_to_nothing_on_clustered_vectors(store, build):
    rng = np.random.default_rng(3)
    centres, near = rng.normal(size=(20, 128)), rng.normal(size=(2000, 128))
    rows = (centres[rng.integers(20, size=2000)] + 0.3 * near).astype(np.float32)
    vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    build.fill(store, vectors, per_file=200)
    found = 0
    for query in vectors[:20]:
        nearest = set((np.argsort(-(vectors @ query))[:50] + 1).tolist())
        found += len(nearest & {hit.chunk_id for hit in store.search_vector(query, 50)})
    assert store.describe().vector_path == "sqlite-vec"
    assert found / 1000 >= 0.99


def test_more_hits_than_sqlite_vec_can_give_are_found_by_scanning(store, build):
    build.fill(store, build.units(4200, dims=8), per_file=1000)
    hits = store.search_vector(build.units(1, dims=8, seed=1)[0], 4150)
    assert len({hit.chunk_id for hit in hits}) == 4150
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_an_index_written_without_sqlite_vec_is_scanned_until_the_next_write_with_it(path, build):
    vectors, query = build.units(100), build.units(1, seed=1)[0]
    nearest = (np.argsort(-(vectors @ query))[:10] + 1).tolist()
    plain = SqliteStore.open(path, vector_extension=False)
    build.fill(plain, vectors)
    assert (plain.describe().vector_path, plain.describe().vector_error) == ("scan", "switched off")
    plain.close()
    store = SqliteStore.open(path)
    assert store.describe().vector_path == "scan"
    assert "written without sqlite-vec" in str(store.describe().vector_error)
    assert [hit.chunk_id for hit in store.search_vector(query, 10)] == nearest
    store.replace_files([(build.record("memory/new.md"), [build.row(100, with_vector=False)])])
    assert store.describe().vector_path == "sqlite-vec"
    assert [hit.chunk_id for hit in store.search_vector(query, 10)] == nearest
    store.close()


def test_a_write_without_sqlite_vec_cannot_leave_stale_codes_behind(path, build):
    store = SqliteStore.open(path)
    build.fill(store, build.units(100))
    store.close()
    plain = SqliteStore.open(path, vector_extension=False)
    plain.remove_files(["memory/0.md"])
    plain.replace_files([(build.record("memory/new.md"), [build.row(0)])])
    plain.close()
    store = SqliteStore.open(path)
    assert {hit.chunk_id for hit in store.search_vector(build.units(1)[0], 100)} == set(range(51, 102))
    store.close()


@pytest.mark.fault(22)
def test_a_chunk_whose_vector_is_all_zero_is_found_by_its_words_alone(store, build):
    store.begin_build(build.META).publish()
    vectors = build.units(3)
    vectors[1] = -0.0
    store.add_vectors([build.key(number) for number in range(3)], vectors)
    store.replace_files([(build.record("memory/0.md"), [build.row(number, f"n{number}") for number in range(3)])])
    assert store.find_keys([build.key(1)]) == {build.key(1)}
    assert [hit.chunk_id for hit in store.search_text(["n1"], 5)] == [2]
    assert sorted(hit.chunk_id for hit in store.search_vector(vectors[0], 5)) == [1, 3]
    assert store.search_vector(vectors[1], 5) == []


def test_cosines_of_vectors_in_half_the_room_are_those_of_the_vectors(store, path, build):
    vectors = build.units(300, dims=256)
    vectors[1] = np.eye(1, 256, 3)
    build.fill(store, vectors)
    scores = {hit.chunk_id: hit.score for hit in store.search_vector(vectors[0], 300)}
    assert [scores[at + 1] for at in range(300)] == pytest.approx((vectors @ vectors[0]).tolist(), abs=2e-5)
    assert np.array_equal(store.get_vectors([2])[2], vectors[1])
    with closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT DISTINCT length(embedding) FROM vectors").fetchall() == [(2 * 256,)]


@pytest.mark.parametrize("bad", [np.full(32, np.nan), np.ones(31), np.ones((1, 32))], ids=["nan", "short", "matrix"])
def test_a_query_vector_that_does_not_fit_is_refused(store, bad, build):
    build.fill(store, build.units(5))
    with pytest.raises(EmbedderError, match="query vector"):
        store.search_vector(bad.astype(np.float32), 3)


@pytest.mark.parametrize("source", [None, "memory"])
@pytest.mark.parametrize("extension", [True, False])
def test_the_nearest_that_pass_a_filter_are_found_wherever_they_are(path, build, extension, source):
    with closing(SqliteStore.open(path, vector_extension=extension)) as store:
        vectors = build.units(900)
        build.fill(store, vectors, per_file=1)
        near = np.argsort(-vectors @ vectors[0], kind="stable").tolist()
        for chosen in (near, near[::2], near[::40], near[450:], near[890:], []):
            paths = {f"{kind}/{at}.md" for at in chosen for kind in ("memory", "sessions")}
            right = [at + 1 for at in chosen if source is None or at % 3 != 2]
            for _ in range(2):
                found = store.search_vector(vectors[0], 7, source=source, where=_OneOf(frozenset(paths)))
                assert [hit.chunk_id for hit in found] == right[:7]
            words = store.search_text(["all"], 900, source=source, where=_OneOf(frozenset(paths)))
            assert [hit.chunk_id for hit in words] == sorted(right)


@dataclass(frozen=True)
class _OneOf:
    paths: frozenset[str]

    def __call__(self, path, _metadata):
        return path in self.paths


def test_filters_pass_the_chunks_that_are_there_while_files_come_grow_and_go(path, build, monkeypatch):
    monkeypatch.setattr(filter_cache, "MOST_RUNS", 9)  # so that runs are kept now and then
    rng, there = random.Random(5), dict[str, int]()
    with closing(SqliteStore.open(path)) as store:
        build.fill(store, build.units(1))
        there["memory/0.md"] = 1
        for _ in range(60):
            name, count = f"memory/{rng.randrange(9)}.md", rng.randrange(4)
            if count:
                store.replace_files([(build.record(name), [build.row(0, "all", with_vector=False)] * count)])
                there[name] = count
            else:
                store.remove_files([name])
                there.pop(name, None)
            wanted = frozenset(rng.sample(sorted(there), rng.randrange(len(there) + 1)))
            found = store.get_chunks(hit.chunk_id for hit in store.search_text(["all"], 99, where=_OneOf(wanted)))
            assert Counter(stored.path for stored in found) == {one: there[one] for one in wanted}
