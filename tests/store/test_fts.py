import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.store import SqliteStore
from openclaw_memory.types import Chunk, ChunkRow, HitRequest


def test_a_term_in_most_chunks_neither_decides_nor_is_lost(store, build):
    store.begin_build(build.META).publish()
    rows = [build.row(n, f"name topic{n % 4} n{n}", with_vector=False) for n in range(40)]
    store.replace_files([(build.record("memory/0.md"), rows)])
    with_name = [hit.chunk_id for hit in store.search_text(["name", "topic1"], 10)]
    assert with_name == [hit.chunk_id for hit in store.search_text(["topic1"], 10)]
    assert len(store.search_text(["name", "n7"], 10)) == 10, "too few chunks have the rare term: the others fill up"
    assert store.search_text(["name", "n7"], 10)[0].chunk_id == 8


def test_the_same_word_counts_more_in_text_than_in_context(store, build):
    store.begin_build(build.META).publish()
    context = ChunkRow(Chunk(1, 1, 0, "x"), "other", "boiler", None)
    text = ChunkRow(Chunk(2, 2, 0, "x"), "boiler", "other", None)
    rest = [build.row(number, "filler words", with_vector=False) for number in range(8)]
    store.replace_files([(build.record("memory/0.md"), [context, text, *rest])])
    assert [hit.chunk_id for hit in store.search_text(["boiler"], 5)] == [2, 1]


@pytest.fixture(scope="module")
def filled(tmp_path_factory, build):
    store = SqliteStore.open(tmp_path_factory.mktemp("filled") / "index.sqlite")
    build.fill(store, build.units(10))
    yield store
    store.close()


@given(terms=st.lists(st.text(max_size=80), max_size=80))
def test_no_terms_whatsoever_make_a_search_fail(filled, terms):
    filled.search_text(terms, 5)
    filled.search_text(terms, 5, match="all", source="memory")
    assert set(filled.find_hits(HitRequest([], counted=terms)).frequencies) == set(terms)
