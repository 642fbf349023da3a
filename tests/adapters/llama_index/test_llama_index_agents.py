"""Agents and workflows of LlamaIndex search the memory and write to it, whatever kind they are and wherever they run."""

import json

import pytest
from contract_agents import GROUP
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import Memory as ChatMemory
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from llama_index.core.workflow import Context, JsonSerializer
from llama_index_openclaw_memory import OpenClawMemoryBlock, OpenClawRetriever, OpenClawToolSpec, OpenClawVectorStore
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call, respond_with
from sqlalchemy.ext.asyncio import create_async_engine

QUESTION = "Where is the spare key?"
SEARCH = make_call("memory_search", query=QUESTION)


@pytest.fixture
def memory(synced):
    return synced


@pytest.fixture
def tools(memory):
    return OpenClawToolSpec(memory).to_tool_list()


async def reported(agent, question=QUESTION, **wishes):
    """What an agent answers, and the outputs of the tools that it called."""
    handler = agent.run(question, **wishes)
    outputs = [event.tool_output async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
    return str(await handler), outputs


def agent(tools, *replies, script=None, **wishes):
    return FunctionAgent(tools=tools, llm=ScriptedLLM(script=script or respond_with(*replies)), **wishes)


def reads_what_it_finds(messages, _tools):
    """Searches, then reads the first line that was found, then says it."""
    answers = [json.loads(message.content) for message in messages if message.role == MessageRole.TOOL]
    if not answers:
        return SEARCH
    if len(answers) == 1:
        found = answers[0]["results"][0]
        return make_call("memory_get", path=found["path"], **{"from": int(found["lines"].split("-")[1]), "lines": 1})
    return f"I read: {answers[1]['text']}"


def the_llm(made):
    return made.llm if isinstance(made, FunctionAgent) else made.agents[made.root_agent].llm


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_agent_searches_and_reads(tools, streaming):
    reader = agent(tools, script=reads_what_it_finds, streaming=streaming)
    answer, (found, read) = await reported(reader)
    assert found.raw_output["results"][0]["citation"] == "MEMORY.md#L1-L4"
    assert read.raw_output["citation"] == "MEMORY.md#L4"
    assert "The spare key is with Mrs. Groen." in answer
    shown = [tool["function"] for tool in reader.llm.offered[0]]
    assert [tool["name"] for tool in shown] == ["memory_search", "memory_get", "memory_append"]
    assert set(shown[1]["parameters"]["properties"]) == {"path", "from", "lines"}


def workflow(tools, *replies, **wishes):
    return AgentWorkflow.from_tools_or_functions(tools, llm=ScriptedLLM(script=respond_with(*replies)), **wishes)


def engines(memory):
    """Query engines over a memory, each as a tool of an agent."""
    retriever, index = (
        OpenClawRetriever(memory, min_score=0),
        OpenClawVectorStore(memory, include_notes=True).as_index(),
    )
    return [
        QueryEngineTool.from_defaults(RetrieverQueryEngine.from_args(each, llm=MockLLM()), "engine")
        for each in (retriever, index.as_retriever(similarity_top_k=9))
    ]


@pytest.mark.parametrize("make", [agent, workflow])
@pytest.mark.parametrize("way", ["state", "store", "talk", "tag", "spec", "nothing"])
@pytest.mark.sampled(4)
async def test_whatever_says_that_a_run_is_of_a_group_all_parts_show_less(memory, make, way):
    key = GROUP if way == "spec" else None
    tools = [*OpenClawToolSpec(memory, session_key=key).to_tool_list()[:1], *engines(memory)]
    state = {"initial_state": {"session_key": GROUP}} if way == "state" else {}
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")
    block = OpenClawMemoryBlock(memory, session_key=key, session_start=True)
    session = {"session_id": GROUP} if way == "talk" else {}
    for number, tool in enumerate(tools):
        chat = ChatMemory.from_defaults(**session, async_engine=engine, table_name=f"t{number}", memory_blocks=[block])
        call = SEARCH if number == 0 else make_call("engine", input=QUESTION)
        made = make([tool], call, "I do not know.", **state)
        context = Context(made)
        if way == "store":
            await context.store.set("session_key", GROUP)
        with instrument_tags({"session_key": GROUP} if way == "tag" else {}):
            _, (output,) = await reported(made, memory=chat, ctx=context)
        found = output.raw_output
        places = (
            [hit["path"] for hit in found["results"]]
            if number == 0
            else [node.metadata["path"] for node in found.source_nodes]
        )
        is_alone = way == "nothing" or (way == "spec" and number > 0)
        assert ("MEMORY.md" in places) is is_alone, (way, number)
        shown = "".join(message.content or "" for message in the_llm(made).requests[0])
        assert ("Mrs. Groen" in shown) is (way == "nothing"), (way, number)
    await engine.dispose()


async def test_a_run_that_called_a_tool_can_be_saved_and_goes_on(tools):
    made = agent(tools, SEARCH, "With Mrs. Groen.", SEARCH, "Still with Mrs. Groen.")
    context = Context(made)
    await context.store.set("session_key", GROUP)
    await reported(made, ctx=context)
    saved = json.loads(json.dumps(context.to_dict(serializer=JsonSerializer())))
    answer, (output,) = await reported(made, ctx=Context.from_dict(made, saved, serializer=JsonSerializer()))
    assert answer == "Still with Mrs. Groen."
    assert "MEMORY.md" not in str(output.raw_output["results"])


async def test_a_tool_that_ends_the_run_ends_it_with_a_good_answer_alone(memory):
    last = {"memory_search": ToolMetadata("Look it up.", "memory_search", return_direct=True)}
    tools = OpenClawToolSpec(memory).to_tool_list(func_to_metadata_mapping=last)
    answer, outputs = await reported(agent(tools, make_call("memory_search", query=""), SEARCH, "never said"))
    assert [output.is_error for output in outputs] == [True, False]
    assert "Mrs. Groen" in answer
    assert "never said" not in answer


def test_an_agent_that_writes_code_is_told_how_to_call_the_tools(tools):
    made = CodeActAgent(tools=tools, llm=ScriptedLLM(script=respond_with("")), code_execute_fn=print)
    described = made._get_tool_descriptions(made.tools[:3])
    assert "def memory_get(" in described
    assert "from: The first line to read" in described
