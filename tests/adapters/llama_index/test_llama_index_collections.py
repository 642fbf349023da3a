"""Two vector stores over one memory, each with a collection: ids, searches and deletions of their own."""

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index_openclaw_memory import OpenClawVectorStore

from openclaw_memory import Memory


@pytest.fixture
def stores(tmp_path):
    with Memory.open(tmp_path) as memory:
        stores = [OpenClawVectorStore(memory, collection=name) for name in (None, "work", "home")]
        for number, store in enumerate(stores):
            store.add([TextNode(id_="walrus", text=f"The walrus of store {number}.")])
        yield stores


def found(store, mode):
    vector = store.embedding.get_query_embedding("walrus")
    query = VectorStoreQuery(vector, 5, query_str="walrus", mode=mode)
    return [node.text[-2] for node in store.query(query).nodes]


@pytest.mark.parametrize("mode", ["default", "hybrid", "text_search", "mmr"])
def test_each_finds_its_own(stores, mode):
    assert [found(store, VectorStoreQueryMode(mode)) for store in stores] == [["0"], ["1"], ["2"]]


def test_each_deletes_its_own(stores):
    assert [store.get_nodes(["walrus"])[0].text[-2] for store in stores] == ["0", "1", "2"]
    stores[1].clear()
    assert [len(store.get_nodes()) for store in stores] == [1, 0, 1]
    stores[0].delete_nodes(["walrus"])
    assert [len(store.get_nodes()) for store in stores] == [0, 0, 1]
    assert found(stores[1], VectorStoreQueryMode.HYBRID) == []
