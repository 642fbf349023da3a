"""In a group, nothing that a framework is given shows what is private; a setting hides it wherever that is unsure."""

import asyncio
import json

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.runs import run_values
from openclaw_memory.tools import memory_tools, recall, search_for
from openclaw_memory.tools.visibility import find_audience

GROUP, DIRECT = "agent:main:telegram:group:42", "agent:main:main"
IN_GROUP, IN_DIRECT = ({"configurable": {"session_key": key}} for key in (GROUP, DIRECT))
BY_THREAD = {"configurable": {"thread_id": GROUP}}
QUESTION = "zebra"


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "sessions").mkdir()
    (folder / "MEMORY.md").write_text("The secret zebra is called Otto.\n", encoding="utf-8")
    (folder / "memory/zoo.md").write_text("The zebra of the zoo is fed at noon.\n", encoding="utf-8")
    return folder


@pytest.fixture
def opened(notes):
    memories = []

    def open_it(**settings):
        memory = Memory.open(notes, **settings)
        memories.append(memory)
        memory.sync()
        return memory

    yield open_it
    for memory in memories:
        memory.close()


@pytest.fixture
def memory(opened):
    return opened()


def strict(opened):
    return opened(config=MemoryConfig().replace({"recall": {"assume_direct": False}}))


def paths(documents):
    return {document.metadata["path"] for document in documents}


def nightly(*values):
    return pytest.param(*values, marks=pytest.mark.nightly)


BOTH, OTHERS = {"MEMORY.md", "memory/zoo.md"}, {"memory/zoo.md"}


@pytest.mark.fault(55)
@pytest.mark.parametrize(
    ("config", "seen"), [(IN_DIRECT, BOTH), (IN_GROUP, OTHERS), nightly(None, BOTH), nightly(BY_THREAD, OTHERS)]
)
def test_what_langchain_retrieves_is_what_the_readers_of_the_run_may_see(memory, config, seen):
    pytest.importorskip("langchain_core")
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough
    from langchain_openclaw_memory import OpenClawRetriever, OpenClawVectorStore

    store = OpenClawVectorStore(memory)
    retrievers = [
        OpenClawRetriever(memory=memory, min_score=0),
        store.as_retriever(search_kwargs={"k": 9}),
        store.as_retriever(search_type="mmr", search_kwargs={"k": 9}),
    ]
    for retriever in retrievers:
        assert paths(retriever.invoke(QUESTION, config)) == seen
        assert paths(asyncio.run(retriever.ainvoke(QUESTION, config))) == seen
        assert paths(retriever.batch([QUESTION], config)[0]) == seen
        assert paths((RunnablePassthrough() | retriever).invoke(QUESTION, config)) == seen
        assert paths(retriever.invoke(QUESTION)) == BOTH  # nothing of a run is left behind
    vector = store.embeddings.embed_query(QUESTION)
    for search in (
        lambda _: store.similarity_search(QUESTION, 9),
        lambda _: [document for document, _ in store.similarity_search_with_score(QUESTION, 9)],
        lambda _: store.similarity_search_by_vector(vector, 9),
        lambda _: store.max_marginal_relevance_search(QUESTION, 9),
        lambda _: store.similarity_search(QUESTION, 9, filter=lambda _document: True),
        lambda _: store.get_by_ids(["MEMORY.md#L1", "memory/zoo.md#L1"]),
    ):
        assert paths(RunnableLambda(search).invoke(QUESTION, config)) == seen


def test_a_session_that_is_named_to_langchains_parts_counts_for_every_run(memory):
    pytest.importorskip("langchain_core")
    from langchain_openclaw_memory import OpenClawRetriever, OpenClawVectorStore

    assert paths(OpenClawRetriever(memory=memory, min_score=0, session_key=GROUP).invoke(QUESTION, IN_DIRECT)) == OTHERS
    store = OpenClawVectorStore(memory, session_key=GROUP)
    assert paths(store.similarity_search(QUESTION, 9)) == OTHERS
    assert paths(store.as_retriever(search_kwargs={"k": 9}).invoke(QUESTION, IN_DIRECT)) == OTHERS


@pytest.mark.fault(55)
@pytest.mark.parametrize(("key", "seen"), [(GROUP, OTHERS), nightly(None, BOTH), nightly(DIRECT, BOTH)])
@pytest.mark.parametrize("by", ["part", "tag", "block"])
def test_what_llama_index_retrieves_is_what_the_readers_of_the_run_may_see(memory, key, seen, by):
    pytest.importorskip("llama_index.core")
    from llama_index.core.instrumentation.dispatcher import instrument_tags
    from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
    from llama_index_openclaw_memory import OpenClawRetriever, OpenClawToolSpec, OpenClawVectorStore

    own = {"session_key": key} if by == "part" else {}
    store = OpenClawVectorStore(memory, include_notes=True, **own)
    retriever = OpenClawRetriever(memory, min_score=0, **own)
    get = OpenClawToolSpec(memory, **own).to_tool_list(["memory_get"])[0]
    with run_values(session_key=key) if by == "block" else instrument_tags({"session_key": key} if by == "tag" else {}):
        assert paths(found.node for found in retriever.retrieve(QUESTION)) == seen
        assert paths(found.node for found in asyncio.run(retriever.aretrieve(QUESTION))) == seen
        for mode in VectorStoreQueryMode:
            if mode.value in {"default", "hybrid", "semantic_hybrid", "text_search", "sparse", "mmr"}:
                query = VectorStoreQuery(query_str=QUESTION, similarity_top_k=9, mode=mode)
                assert paths(store.query(query).nodes) == seen
        assert paths(store.as_index().as_retriever(similarity_top_k=9).retrieve(QUESTION)) == seen
        assert paths(store.get_nodes(["MEMORY.md#L1", "memory/zoo.md#L1"])) == seen
        assert (get.call(path="MEMORY.md").raw_output["status"] == "ok") is (seen == BOTH)


@pytest.mark.fault(55)
@pytest.mark.parametrize(
    ("key", "private"),
    [
        (None, False), ("", False), ("s7", False), ("agent:main:telegram:broadcast:7", False), ("agent:main:x", False), (GROUP, False),
        ("main", True), (DIRECT, True), ("agent:main:telegram:dm:7", True), ("agent:main:direct:7", True),
    ],
)  # fmt: skip
def test_a_setting_hides_what_is_private_wherever_nothing_says_that_the_user_alone_reads(opened, key, private):
    memory = strict(opened)
    audience = find_audience(memory, key)
    assert (audience.is_user_alone, audience.citations) == (private, private)
    assert ("Otto" in recall(memory, QUESTION, session_key=key, min_score=0)) is private
    found = {hit.path for hit in search_for(memory, QUESTION, session_key=key, min_score=0)}
    assert found == (BOTH if private else OTHERS)
    answer = memory_tools(memory, session_key=key)[1].run({"path": "MEMORY.md"})
    assert answer.ok is private
    if not private and key != GROUP:
        assert "recall.assume_direct is false" in answer.data["error"]


def test_with_that_setting_the_state_of_a_session_may_say_that_its_chat_is_direct(notes, opened):
    states = {"s7": {"sessionId": "i7", "chatType": "direct"}, "s8": {"sessionId": "i8"}, DIRECT: {"sessionId": "i9"}}
    (notes / "sessions/sessions.json").write_text(json.dumps(states))
    memory = strict(opened)
    memory.sessions.open_conversation(lambda *_: "Yes.", "s9").send("Hello.")
    private = [find_audience(memory, key).is_user_alone for key in ("s7", "i7", "i9", "s8", "i8", "s9")]
    assert private == [True, True, True, False, False, False]


@pytest.mark.fault(55)
@pytest.mark.parametrize("kind", [7, True, ["direct"], {"direct": 1}, 0.5, False, 0, []])
def test_a_chat_type_of_a_wrong_type_is_no_direct_chat(notes, memory, kind):
    (notes / "sessions/sessions.json").write_text(json.dumps({"s7": {"chatType": kind}, "s8": {"chatType": None}}))
    assert not find_audience(memory, "s7").is_user_alone
    assert find_audience(memory, "s8").is_user_alone
    assert "Otto" not in recall(memory, QUESTION, session_key="s7", min_score=0)


@pytest.mark.fault(55)
def test_a_program_that_searches_by_itself_sees_everything(opened):
    assert {hit.path for hit in strict(opened).search(QUESTION, min_score=0)} == BOTH
