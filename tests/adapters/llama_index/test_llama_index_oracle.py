"""The vector store beside LlamaIndex's own `SimpleVectorStore`: the same nodes, similarities and order."""

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from llama_index_openclaw_memory import OpenClawVectorStore
from some_nodes import metadata, needs_all_filters, nested_filters, node, passes, words

from openclaw_memory import Memory
from openclaw_memory.errors import QueryError

DIMS = 3
# Few whole numbers, so that some are equally near; of zeros there is no cosine.
vectors = st.lists(st.integers(-3, 3).map(float), min_size=DIMS, max_size=DIMS).filter(any)


@st.composite
def some_nodes(draw):
    count = draw(st.integers(1, 7))
    sources = st.none() | words
    return [node(f"n{at}", f"text {at}", draw(sources), draw(vectors), **draw(metadata)) for at in range(count)]


def filled(memory, nodes):
    ours, theirs = OpenClawVectorStore(memory), SimpleVectorStore()
    assert ours.add(nodes) == theirs.add(nodes)
    return ours, theirs


def assert_same(ours, theirs):
    """Equal similarities in the same order, and the same ids but for those that are as near as the last."""
    assert ours.similarities == pytest.approx(theirs.similarities, abs=1e-6)
    assert [one.node_id for one in ours.nodes] == ours.ids
    if not theirs.ids:
        return
    least = min(theirs.similarities) + 1e-6
    nearer = [
        {one for one, score in zip(found.ids, found.similarities, strict=True) if score > least}
        for found in (ours, theirs)
    ]
    assert nearer[0] == nearer[1]


@needs_all_filters
@given(
    some_nodes(), st.lists(st.tuples(vectors, st.integers(1, 9), st.none() | nested_filters), min_size=4, max_size=8)
)
@settings(max_examples=8)
def test_the_nearest_are_those_of_llama_indexs_own_store(nodes, questions):
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        ours, theirs = filled(memory, nodes)
        for vector, k, filters in questions:
            there = [one.node_id for one in nodes if filters is None or passes(filters, node_to_metadata_dict(one))]
            try:
                found = ours.query(VectorStoreQuery(vector, k, filters=filters))
            except QueryError:  # a filter that can work with no node
                continue
            expected = theirs.query(VectorStoreQuery(vector, k, node_ids=there))
            assert_same(found, expected)
            if there:
                assert_same(ours.query(VectorStoreQuery(vector, k, node_ids=there)), expected)
            assert [one.node_id for one in ours.get_nodes(filters=filters)] == there


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 14),
    st.lists(st.tuples(st.integers(1, 16), st.sampled_from([None, 0.1, 0.5, 0.8, 1])), min_size=2, max_size=5),
)
@settings(max_examples=5)
def test_maximal_marginal_relevance_is_that_of_llama_indexs_own_store(seed, count, questions):
    random = np.random.default_rng(seed)
    nodes = [node(f"n{at}", f"text {at}", embedding=random.normal(size=5).tolist()) for at in range(count)]
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        ours, theirs = filled(memory, nodes)
        for k, threshold in questions:
            asked = random.normal(size=5).tolist()
            query = VectorStoreQuery(asked, k, mode=VectorStoreQueryMode.MMR)
            expected = theirs.query(query, mmr_threshold=threshold)
            found = ours.query(query, mmr_threshold=threshold)
            assert found.ids == expected.ids
            assert found.similarities == pytest.approx(expected.similarities, abs=1e-6)
            named = VectorStoreQuery(asked, k, mode=VectorStoreQueryMode.MMR, mmr_threshold=threshold)
            assert ours.query(named).ids == expected.ids
