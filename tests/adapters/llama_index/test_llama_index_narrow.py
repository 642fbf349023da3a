"""Few nodes among many: what a query names is asked of the index, and nothing else is read."""

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index_openclaw_memory import OpenClawVectorStore

from openclaw_memory import Memory

MODES = ["default", "hybrid", "text_search", "mmr"]
COUNT = 1_500


def node(at, source=True):
    related = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"source-{at // 10}")} if source else {}
    vector = np.random.default_rng(at).normal(size=8).tolist()
    return TextNode(id_=f"node-{at}", text=f"The common mill {at}.", embedding=vector, relationships=related)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    (folder / "memory").mkdir()
    (folder / "memory" / "mill.md").write_text("The common mill of a person.\n")
    with Memory.open(folder, embedder=None) as memory:
        OpenClawVectorStore(memory).add([node(at) for at in range(COUNT)])
        yield memory


@pytest.fixture
def store(memory):
    return OpenClawVectorStore(memory)


def by(key, value, operator=FilterOperator.EQ):
    return MetadataFilter(key=key, value=value, operator=operator)


def joined(*parts, condition=FilterCondition.AND):
    return MetadataFilters(filters=list(parts), condition=condition)


def asked(store, mode, **narrow):
    vector = np.random.default_rng(705).normal(size=8).tolist()
    mode = VectorStoreQueryMode(mode)
    return store.query(VectorStoreQuery(vector, 30, query_str="common mill", mode=mode, **narrow))


TEN = {f"node-{at}" for at in range(700, 710)}
NARROW = {
    "doc_ids": ({"doc_ids": ["source-70"]}, TEN),
    "two doc_ids": ({"doc_ids": ["source-70", "source-0"]}, TEN | {f"node-{at}" for at in range(10)}),
    "no such doc_id": ({"doc_ids": ["none"]}, set()),
    "ref_doc_id": ({"filters": joined(by("ref_doc_id", "source-70"))}, TEN),
    "doc_id": ({"filters": joined(by("doc_id", "source-70"))}, TEN),
    "document_id in": ({"filters": joined(by("document_id", ["source-70"], FilterOperator.IN))}, TEN),
    "either": (
        {"filters": joined(by("ref_doc_id", "source-70"), by("doc_id", "none"), condition=FilterCondition.OR)},
        TEN,
    ),
    "both": ({"filters": joined(by("ref_doc_id", "source-70"), joined(by("doc_id", "source-71")))}, set()),
    "node_ids": ({"node_ids": ["node-3", "node-700", "none"]}, {"node-3", "node-700"}),
    "node_ids of a source": ({"node_ids": ["node-3", "node-700"], "doc_ids": ["source-70"]}, {"node-700"}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("narrow", "ids"), NARROW.values(), ids=NARROW.keys())
@pytest.mark.sampled(12)
def test_what_a_query_names_is_found_with_its_scores(store, mode, narrow, ids):
    answer = asked(store, mode, **narrow)
    assert set(answer.ids) == ids
    if mode == "hybrid":
        assert all(score > 0 for score in answer.similarities)
    if mode == "default" and "node-705" in ids:
        by_vector = OpenClawVectorStore(store.memory, default_mode="default")
        assert asked(by_vector, mode, **narrow).ids[0] == "node-705"


@pytest.mark.parametrize("mode", ["hybrid", "text_search"])
def test_a_persons_file_is_a_source_too(store, mode):
    answer = asked(store, mode, doc_ids=["memory/mill.md"])
    assert [node.metadata["path"] for node in answer.nodes] == ["memory/mill.md"]
    assert asked(OpenClawVectorStore(store.memory, only_added=True), mode, doc_ids=["memory/mill.md"]).ids == []


def test_nodes_without_a_source_are_found_as_before(store):
    store.add([node(COUNT, source=False)])
    answer = asked(store, "text_search", filters=joined(by("ref_doc_id", "None")))
    assert answer.ids == [f"node-{COUNT}"]
    store.delete_nodes([f"node-{COUNT}"])
