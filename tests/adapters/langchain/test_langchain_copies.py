"""Frameworks copy the parts of an agent: those that hold a memory are shared, like the memory itself."""

import copy

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openclaw_memory import OpenClawVectorStore, RecallMiddleware, TranscriptMiddleware, memory_tools


def test_an_agent_works_with_copies_of_its_middleware(memory, scripted):
    parts = [RecallMiddleware(memory), TranscriptMiddleware(memory, session_id="tuesday")]
    for text in ("One.", "Two."):
        agent = create_agent(scripted("Fine."), [], middleware=copy.deepcopy(parts))
        agent.invoke({"messages": [HumanMessage(text)]})
    assert [message["role"] for message in memory.session_log("tuesday").messages()] == ["user", "assistant"] * 2


def test_what_a_copied_retriever_finds_is_what_the_store_holds(memory):
    store = OpenClawVectorStore(memory)
    retriever = copy.deepcopy(store.as_retriever(search_kwargs={"k": 1}))
    store.add_texts(["The old mill."], ids=["mill"])
    assert [one.id for one in retriever.invoke("mill")] == ["mill"]


@pytest.mark.parametrize("kind", [RecallMiddleware, TranscriptMiddleware, memory_tools])
def test_something_else_than_a_memory_is_refused_at_once(kind):
    with pytest.raises(TypeError, match="not 'notes'"):
        kind("notes")
