"""`VectorStoreIndex`, query and chat engines, and ingestion pipelines over the vector store, end to end."""

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import IndexNode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index_openclaw_memory import OpenClawVectorStore
from some_nodes import WordEmbedding, node

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError

WORDS = WordEmbedding()
FACTS = {
    "launch": "The launch of the ferry was moved to Friday.",
    "venue": "The venue is the old mill by the river.",
    "cook": "Piotr cooks for forty people.",
}


def documents(**changed):
    return [Document(id_=name, text=changed.get(name, text), metadata={"of": name}) for name, text in FACTS.items()]


def texts(store):
    return sorted(one.get_content() for one in store.get_nodes())


def ids(found):
    return [one.node_id for one in found]


@pytest.fixture
def own(tmp_path):
    """A store in a memory with the embedder that ships."""
    with Memory.open(tmp_path) as opened:
        yield OpenClawVectorStore(opened, include_notes=True)


@pytest.fixture(params=["own", "theirs", "unnamed"])
def index(request, own, memory):
    """An index of the facts: by the memory's embedder, by one that the store was given, by one it knows nothing of."""
    store = own if request.param == "own" else OpenClawVectorStore(memory, WORDS if request.param == "theirs" else None)
    context = StorageContext.from_defaults(vector_store=store)
    embed_model = store.embedding if request.param == "own" else WORDS
    return VectorStoreIndex.from_documents(documents(), storage_context=context, embed_model=embed_model)


async def test_an_index_of_documents_is_asked_by_engines(index):
    retrieved = index.as_retriever(similarity_top_k=1).retrieve("Where is the venue, the old mill?")
    assert retrieved[0].node.ref_doc_id == "venue"
    assert retrieved[0].score > 0.3
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=1)
    for response in (engine.query("Piotr cooks"), await engine.aquery("Piotr cooks")):
        assert FACTS["cook"] in str(response)
        assert [one.node.ref_doc_id for one in response.source_nodes] == ["cook"]
    again = VectorStoreIndex.from_vector_store(index.vector_store, embed_model=index._embed_model)
    expected = ids(index.as_retriever().retrieve("the old mill"))
    assert ids(again.as_retriever().retrieve("the old mill")) == expected
    assert ids(await again.as_retriever().aretrieve("the old mill")) == expected


async def test_as_index_needs_no_other_model(own):
    index = own.as_index()
    assert ids(index.as_retriever().retrieve("anything")) == []
    for document in documents()[:2]:
        index.insert(document)
    await index.ainsert(documents()[2])
    index.insert_nodes([TextNode(id_="late", text="The band plays at nine.")])
    assert texts(own) == sorted([*FACTS.values(), "The band plays at nine."])
    assert own.memory.documents.get_vector_identity() == own.memory.embedder.identity
    found = index.as_retriever(vector_store_query_mode="hybrid", similarity_top_k=1).retrieve("Who cooks?")
    assert found[0].text == FACTS["cook"]
    filters = MetadataFilters(filters=[MetadataFilter(key="of", value="venue")])
    assert [one.text for one in index.as_retriever(filters=filters).retrieve("ferry")] == [FACTS["venue"]]


async def test_documents_are_refreshed_updated_and_deleted(index):
    store = index.vector_store
    changed = {"cook": "Piotr cooks for fifty people."}
    assert index.refresh_ref_docs(documents(**changed)) == [False, False, True]
    assert index.refresh_ref_docs(documents(**changed)) == [False, False, False]
    assert texts(store) == sorted((FACTS | changed).values())
    index.update_ref_doc(Document(id_="venue", text="The venue is a barn."))
    await index.aupdate_ref_doc(Document(id_="launch", text="The launch is off."))
    assert texts(store) == sorted([changed["cook"], "The venue is a barn.", "The launch is off."])
    index.delete_ref_doc("venue", delete_from_docstore=True)
    await index.adelete_ref_doc("launch", delete_from_docstore=True)
    (left,) = store.get_nodes()
    index.delete_nodes([left.node_id, "nobody"])
    assert store.get_nodes() == []
    await index.adelete_nodes(["nobody"])


@pytest.mark.parametrize("mode", ["default", "hybrid"])
def test_an_index_finds_all_after_a_node_that_leads_elsewhere_came(own, mode):
    path = own.memory.workspace.root / "MEMORY.md"
    path.write_text("Anna's boat is called Zeppelin.\n")
    index = own.as_index()
    index.insert_nodes([node("cook", FACTS["cook"]), IndexNode(id_="leads", index_id="ships", text="All about ships")])
    found = index.as_retriever(similarity_top_k=9, vector_store_query_mode=mode).retrieve("Anna's boat")
    assert set(ids(found)) == {"cook", "leads", "MEMORY.md#L1"}
    assert ids(index.as_retriever(node_ids=["cook"]).retrieve("Anna's boat")) == ["cook"]
    assert index.as_query_engine(llm=MockLLM()).query("Piotr cooks").source_nodes[0].node_id == "cook"


# --- the index of the store itself


def test_the_index_of_a_store_goes_by_words_and_meaning_unless_a_mode_is_given(own):
    index = own.as_index()
    assert index.as_retriever(vector_store_query_mode="mmr")._vector_store_query_mode.value == "mmr"
    with pytest.raises(ConfigError, match=r"OpenClawVectorStore\(memory, embed_model=...\)"):
        own.as_index(embed_model=WORDS)
    for make in (index.as_retriever, index.as_query_engine):
        with pytest.raises(ConfigError, match=r"takes no filter: .*filters="):
            make(filter={"of": "cook"})
    index.as_chat_engine("condense_question", MockLLM(), similarity_top_k=1, streaming=True, verbose=True)
    index.insert_nodes([node("cook", FACTS["cook"]), node("venue", FACTS["venue"])])
    found = index.as_query_engine(llm=MockLLM(), similarity_top_k=1).query("Who cooks?").source_nodes
    assert [(one.node_id, one.score) for one in found] == [
        (one.id, score) for one, score in own.memory.documents.search("Who cooks?", 1)
    ]


def test_an_index_knows_after_a_restart_what_it_has_seen(tmp_path):
    kept = tmp_path / "kept"
    one = [False, False, True]
    for how, changed, expected in (
        ("first", {}, [True] * 3),
        ("all", {"cook": "Nobody cooks."}, one),
        ("docs", {}, one),
    ):
        with Memory.open(tmp_path) as memory:
            store = OpenClawVectorStore(memory)
            context = None
            if how == "all":
                context = StorageContext.from_defaults(persist_dir=str(kept), vector_store=store)
            if how == "docs":  # whose vector store is another one
                context = StorageContext.from_defaults(docstore=SimpleDocumentStore.from_persist_dir(str(kept)))
            index = store.as_index(storage_context=context)
            assert index.refresh_ref_docs(documents(**changed)) == expected
            assert index.vector_store is store
            assert texts(store) == sorted((FACTS | changed).values())
            index.storage_context.persist(str(kept))
