"""The memory's tools are LangChain tools: same schemas, answers that a model can use, artifacts for the program."""

import json

import pytest
from chat_scripts import Scripted, chat_with, run, says, thread
from contract_agents import KEY, LINE, QUESTION, ToolsContract
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openclaw_memory import OpenClawRetriever, memory_tools
from langchain_openclaw_memory.testing import make_call
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from openclaw_memory.errors import ConfigError


@pytest.fixture
def memory(synced):
    return synced


@pytest.fixture
def tools(memory):
    return {tool.name: tool for tool in memory_tools(memory, include="search get append edit forget promote".split())}


class Standard:
    name, example = "memory_search", {"query": QUESTION, "maxResults": 3}

    @pytest.fixture(autouse=True)
    def _memory(self, memory):
        self.memory = memory

    @property
    def tool_constructor(self):
        return memory_tools(self.memory, include=[self.name.removeprefix("memory_")])[0]

    @property
    def tool_invoke_params_example(self):
        return self.example


class TestSearchUnit(Standard, ToolsUnitTests):
    """By LangChain's standard tests, here and below."""


class TestSearch(Standard, ToolsIntegrationTests):
    """As above."""


class TestAppend(Standard, ToolsIntegrationTests):
    name, example = "memory_append", {"text": "Van Dam has a new van."}


class TestRemember(Standard, ToolsIntegrationTests):
    name, example = "memory_remember", {"type": "preference", "key": "editor.theme", "value": "dark"}


def call(tool, arguments, **configurable):
    return tool.invoke(
        {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}, {"configurable": configurable}
    )


class TestContract(Scripted, ToolsContract):
    of = (memory_tools,)

    def shown(self, tool):
        return convert_to_openai_tool(tool)["function"]

    async def answer(self, tool, arguments, session=None, is_async=False):
        said = {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}
        message = await run(
            tool, said, {"configurable": {} if session is None else {"session_key": session}}, is_async=is_async
        )
        answer = json.loads(message.content)
        assert json.loads(json.dumps(message.artifact)) == message.artifact
        assert message.artifact == answer or answer["status"] == "ok"
        return answer

    async def talk(self, tools, script, *messages):
        model = self.scripted(*(one if isinstance(one, str) else make_call(one[0], **one[1]) for one in script))
        agent, answers, before = chat_with(model=model, tools=tools), [], 0
        for message in messages:
            said = (await agent.ainvoke(says(message), thread()))["messages"]
            answers.append([json.loads(one.content) for one in said[before:] if isinstance(one, ToolMessage)])
            before = len(said)
        return answers


def test_a_search_hands_over_documents_as_plain_data(tools, memory):
    documents = [Document(**item) for item in call(tools["memory_search"], {"query": QUESTION}).artifact]
    assert documents == OpenClawRetriever(memory=memory).invoke(QUESTION)[: len(documents)]
    message = call(tools["memory_search"], {"query": QUESTION, "minScore": 1.0})
    assert (json.loads(message.content)["results"], message.artifact) == ([], [])


def test_only_what_is_included_is_there_and_the_memory_is_part_of_no_dump(memory, tools, notes):
    assert [tool.name for tool in memory_tools(memory)] == ["memory_search", "memory_get", "memory_append"]
    chosen = memory_tools(memory, include=("forget", "get"), name="work")
    assert [tool.name for tool in chosen] == ["work_memory_get", "work_memory_forget"]
    assert "hash" in json.loads(call(chosen[0], LINE).content)
    with pytest.raises(ConfigError, match="there is no tool 'delete': include takes search, get, append"):
        memory_tools(memory, include=["search", "delete"])
    for tool in tools.values():
        assert "tool_for" not in tool.model_dump()
        assert str(notes) not in repr(tool)


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_agent_searches_and_the_answer_is_the_same_after_a_checkpoint(memory, scripted, is_async, caplog):
    agent = chat_with(model=scripted(make_call("memory_search", **KEY), "At hers."), tools=memory_tools(memory))
    before = (await run(agent, says(KEY["query"]), thread(), is_async=is_async))["messages"][-2]
    # Read back from the checkpoint, in which a foreign type would be a warning.
    answered = agent.get_state(thread()).values["messages"][-2]
    assert "Mrs. Groen" in answered.content
    assert answered.artifact == before.artifact
    assert answered.artifact[0]["id"] == "MEMORY.md#L1-L4"
    assert not caplog.records


def test_what_a_model_calls_runtime_is_an_argument_it_does_not_have(memory):
    erase = memory_tools(memory, include=["erase"])[0]
    said = json.loads(call(erase, {"lastDays": 1, "runtime": {"state": {"messages": []}}}).content)
    assert (said["status"], "unknown field `runtime`" in said["error"]) == ("invalid", True)
    assert "runtime" not in erase.tool_call_schema["properties"]
