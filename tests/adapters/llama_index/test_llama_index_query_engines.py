"""Query engines, chat engines and fusions over the retriever: they show the model its lines, and the user where from."""

import re

import pytest
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index_openclaw_memory import OpenClawRetriever
from llama_index_openclaw_memory.testing import TextOnlyLLM, respond_with

QUESTION = "Who services the boiler?"
LINES = "memory/household.md#L1-L3"


@pytest.fixture
def retriever(household):
    return OpenClawRetriever(household)


@pytest.fixture
def llm():
    return TextOnlyLLM(script=respond_with("Van Dam does [1]."))


def shown(llm):
    """All that the model was shown."""
    return "\n".join(message.content or "" for messages in llm.requests for message in messages)


def cited_above(text, llm):
    return re.search(rf"\n\[{re.escape(LINES)} [0-9a-f]{{8}}\]\n{re.escape(text)}", shown(llm))


def citations(response):
    return [node.metadata["citation"] for node in response.source_nodes]


@pytest.mark.parametrize("make", [RetrieverQueryEngine.from_args, CitationQueryEngine])
async def test_a_query_engine_shows_the_model_text_with_citations_and_returns_them(retriever, llm, make):
    engine = make(retriever, llm=llm)
    response = engine.query(QUESTION)
    assert str(response) == "Van Dam does [1]."
    assert citations(response)[0] == LINES
    numbered = "Source 1:\n" if isinstance(engine, CitationQueryEngine) else ""
    assert cited_above(f"{numbered}# Household\n\nThe boiler is serviced each October by Van Dam.", llm)
    assert "start_line" not in shown(llm)
    assert citations(await engine.aquery(QUESTION)) == citations(response)


@pytest.mark.parametrize("kind", [ContextChatEngine, CondensePlusContextChatEngine])
async def test_a_chat_engine_answers_from_the_lines_in_every_way_of_asking(retriever, llm, kind):
    engine = kind.from_defaults(retriever=retriever, llm=llm)
    for response in (engine.chat(QUESTION), await engine.achat(QUESTION)):
        assert str(response) == "Van Dam does [1]."
        assert LINES in citations(response)
    streamed = engine.stream_chat(QUESTION)
    assert "".join(streamed.response_gen) == "Van Dam does [1]."
    assert LINES in citations(streamed)
    streamed = await engine.astream_chat(QUESTION)
    assert "".join([piece async for piece in streamed.async_response_gen()]) == "Van Dam does [1]."
    assert cited_above("# Household", llm)


@pytest.mark.parametrize("mode", FUSION_MODES)
@pytest.mark.parametrize("use_async", [False, True])
@pytest.mark.sampled(2)
async def test_a_fusion_finds_lines_that_several_questions_found_once(household, mode, use_async):
    llm = TextOnlyLLM(script=respond_with("When is the boiler serviced?\nWhere is the spare key?"))
    notes, sessions = (OpenClawRetriever(household, filters={"source": source}) for source in ("memory", "sessions"))
    fusion = QueryFusionRetriever(
        [notes, sessions], llm=llm, mode=mode, num_queries=3, similarity_top_k=20, use_async=use_async
    )
    for found in (fusion.retrieve(QUESTION), await fusion.aretrieve(QUESTION)):
        ids = [node.node_id for node in found]
        assert len(ids) == len(set(ids))
        assert {"memory/household.md#L1-L3", "MEMORY.md#L1-L4"} <= set(ids), ids
        assert [node.score for node in found] == sorted((node.score for node in found), reverse=True)
