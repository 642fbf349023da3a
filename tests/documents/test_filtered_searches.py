"""A search with a filter finds what the same search with a function finds, and looks at few documents for it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory import Memory
from openclaw_memory.documents import Documents
from openclaw_memory.types import Document, VectorSource

GIVEN = VectorSource("given", "given")
# What the index keeps of metadata, and what it does not: nested and long values, secrets, null, and nothing at all.
VALUES = [0, 1, 2.5, True, "x", "y" * 300, "ghp_" + "a1B2" * 9, None, ["x", 1], {"b": 1}, {"b": {"c": "x"}}]
METADATA = [
    *({"a": value} for value in VALUES),
    *({"a": one, "a.b": other} for one, other in itertools.product((1, {"b": 1}), ("x", ["x"]))),
    {"b": 1},
    {},
]
operands = st.sampled_from([0, 1, True, "x", "y" * 300, ["x", 1], {"b": 1}])
conditions = st.one_of(
    operands,
    st.builds(lambda name, one: {name: one}, st.sampled_from(["$eq", "$ne"]), operands),
    st.builds(lambda name, some: {name: some}, st.sampled_from(["$in", "$nin"]), st.lists(operands, max_size=2)),
    st.builds(lambda there: {"$exists": there}, st.booleans()),
    st.builds(lambda least: {"$not": {"$gt": least}}, st.sampled_from([0, "x"])),
    st.builds(lambda text: {"$like": text}, st.sampled_from(["%", "x%", "gh%"])),
)
names = st.sampled_from(["a", "b", "a.b", "a.b.c", "citation"])
filters = st.recursive(
    st.dictionaries(names, conditions, max_size=2),
    lambda inner: st.one_of(
        st.builds(lambda some: {"$or": some}, st.lists(inner, max_size=2)), st.builds(lambda one: {"$not": one}, inner)
    ),
    max_leaves=3,
)


def vectors_of(count):
    return np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32)


def opened(folder):
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "garden.md").write_text("# Garden\n\nThe common mill of a person.\n")
    memory = Memory.open(folder, embedder="hashing")
    documents = [Document(f"n{at}", f"common mill {at}", one) for at, one in enumerate(METADATA * 2)]
    documents.append(Document("silent", "", {"a": 1}))
    memory.documents.add(documents, vectors_of(len(documents)), GIVEN)
    return memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("agent")) as memory:
        yield memory


def searches(memory):
    documents, vector = memory.documents, vectors_of(1)[0]
    yield lambda k, where: documents.search_vector(vector, k, identity="given", where=where)
    yield lambda k, where: documents.search_vector(memory.embedder.embed_query("mill"), k, where=where)
    yield lambda k, where: documents.search_keywords("common mill", k, where=where)
    yield lambda k, where: documents.search("common mill", k, where=where)


@settings(max_examples=6)  # each is 160 searches
@given(filters)
def test_a_filter_finds_what_a_function_finds_however_often(memory, wanted):
    fits = Documents.compile_filter(wanted)
    for search in searches(memory):
        for k in (3, 99):
            right = {one.id for one, _ in search(99, lambda one: fits(one.metadata))}
            ranked = [one.id for one, _ in search(k, lambda one: fits(one.metadata))]
            for _ in range(3):
                found = [one.id for one, _ in search(k, Documents.Filter(wanted))]
                assert len(found) == len(ranked)
                assert set(found) <= right
                assert k == 99 or found == ranked


@pytest.fixture
def many(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        documents = [Document(f"n{at}", f"common mill {at}", {"tenth": at % 10}) for at in range(100)]
        memory.documents.add(documents, vectors_of(100), GIVEN)
        yield memory.documents


def third(documents, looked_at=None):
    """The ids of the documents found by their vectors that have `tenth` 3, best first."""
    seen = [] if looked_at is None else looked_at
    where = Documents.Filter({"tenth": 3}, [lambda one: seen.append(one.id) or True])
    return [one.id for one, _ in documents.search_vector(vectors_of(1)[0], 5, identity="given", where=where)]


def test_a_filter_that_was_used_before_looks_only_at_what_passes(many):
    first = third(many)
    again = []
    assert third(many, again) == first == again
    seen = []
    by_words = Documents.Filter({"tenth": 3}, [lambda one: seen.append(one.id) or True])
    assert len(many.search_keywords("mill", 5, where=by_words)) == len(seen) == 5


def test_what_is_added_changed_and_deleted_passes_as_it_is_then(many):
    vector = vectors_of(1)
    assert third(many) == third(many)
    many.add([Document("new", "a mill", {"tenth": 3})], vector, GIVEN)
    assert third(many)[0] == "new"
    many.add([Document("new", "a mill", {"tenth": 4})], vector, GIVEN)
    assert "new" not in third(many)
    many.add([Document("new", "a mill", {"tenth": 3})], vector, GIVEN)
    assert third(many)[0] == "new"
    many.delete(["new"])
    assert "new" not in third(many)
