"""The memory's tools are LlamaIndex tools: same schemas, answers that a model can use, plain data for the program."""

import json
from typing import ClassVar

import pytest
from contract_agents import GROUP, KEY, LINE, QUESTION, ToolsContract, paths
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.memory import Memory as ChatMemory
from llama_index.core.tools import ToolMetadata, ToolOutput
from llama_index.core.tools.calling import acall_tool, call_tool
from llama_index.core.workflow import Context, Workflow, step
from llama_index.core.workflow.events import StartEvent, StopEvent
from llama_index_openclaw_memory import OpenClawToolSpec
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call, respond_with
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import create_async_engine

from openclaw_memory.errors import ConfigError
from openclaw_memory.tools.handlers import TOOLS, build_schema


@pytest.fixture
def memory(synced):
    return synced


@pytest.fixture
def tools(memory):
    return {
        tool.metadata.name: tool
        for tool in choose_tools(memory, include="search get append edit forget promote".split())
    }


def choose_tools(memory, **options):
    return OpenClawToolSpec(memory, **options).to_tool_list()


class Calls(Workflow):
    """Calls a tool in a run."""

    @step
    async def start(self, ctx: Context, event: StartEvent) -> StopEvent:
        for path, value in event.store.items():
            await ctx.store.set(path, value)
        result = event.tool.acall(**event.arguments) if event.is_async else event.tool(**event.arguments)
        return StopEvent(await result if event.is_async else result)


async def call_in_run(tool, arguments, is_async=False, conversation=None, **store):
    """What a tool answers in the run of a workflow, with the `conversation` in its store."""
    if conversation is not None:
        store["memory"] = ChatMemory.from_defaults(session_id=conversation)
    return await Calls().run(tool=tool, arguments=arguments, is_async=is_async, store=store)


class TestContract(ToolsContract):
    of = (choose_tools,)
    lacks: ClassVar = {"additionalProperties"}  # which LlamaIndex leaves out of every schema

    def shown(self, tool):
        schema = tool.metadata.fn_schema.model_json_schema()
        parameters = tool.metadata.get_parameters_dict()
        assert parameters == {name: value for name, value in schema.items() if name not in self.lacks}
        assert json.loads(tool.metadata.fn_schema_str) == parameters
        expected = build_schema(TOOLS[tool.metadata.name.removeprefix("work_")])["properties"]
        assert list(parameters["properties"]) == list(expected)
        return tool.metadata.to_openai_tool()["function"]

    async def answer(self, tool, arguments, session=None, is_async=False):
        output = await call_in_run(tool, arguments, is_async, **({} if session is None else {"session_key": session}))
        assert output.raw_output == json.loads(output.content)
        assert output.raw_input == {"args": (), "kwargs": arguments}
        assert output.is_error is (output.raw_output["status"] not in {"ok", "nothing"})
        assert ToolOutput.model_validate_json(output.model_dump_json()).raw_output == output.raw_output
        return output.raw_output

    async def talk(self, tools, script, *messages):
        replies = (one if isinstance(one, str) else make_call(one[0], **one[1]) for one in script)
        agent = FunctionAgent(tools=tools, llm=ScriptedLLM(script=respond_with(*replies)))
        engine = create_async_engine("sqlite+aiosqlite:///:memory:")
        conversation = ChatMemory.from_defaults(session_id="agent:main:dm:1", async_engine=engine)
        answers = []
        for message in messages:
            events = (handler := agent.run(message, memory=conversation)).stream_events()
            answers.append([one.tool_output.raw_output async for one in events if isinstance(one, ToolCallResult)])
            await handler
        await engine.dispose()
        return answers


def test_arguments_without_a_name_are_in_the_order_of_the_schema(tools):
    assert tools["memory_search"](QUESTION, 1).raw_output["results"][0]["path"] == "memory/household.md"
    assert tools["memory_get"]("memory/household.md", 3, lines=1).raw_output["from"] == 3
    with pytest.raises(TypeError, match=r"takes 3 arguments \(path, from, lines\), 4 were given"):
        tools["memory_get"](1, 2, 3, 4)


RUNS = [
    ({"session_key": GROUP}, False),
    ({"state": {"session_key": GROUP}}, False),
    ({"conversation": GROUP}, False),
    ({"session_key": "main", "state": {"session_key": GROUP}, "conversation": GROUP}, True),
    ({"state": {"session_key": "main"}, "conversation": GROUP}, True),
    ({"conversation": "5f0c1d8e-9a53-4f3e-8b4d-7d3c2f7a1b10"}, True),
    ({"state": "busy", "memory": None}, True),
    ({}, True),
]


async def test_the_session_is_that_of_the_run(tools):
    search = tools["memory_search"]
    for store, shown in RUNS:
        for is_async in (False, True):
            output = await call_in_run(search, KEY, is_async, **store)
            assert ("MEMORY.md" in paths(output.raw_output)) is shown, store
            assert output.raw_input == {"args": (), "kwargs": KEY}


# --- the tool spec


def names(tools):
    return [tool.metadata.name for tool in tools]


async def test_a_spec_has_the_tools_which_can_be_called_and_chosen(memory):
    spec = OpenClawToolSpec(memory, ("forget", "get", "search"), GROUP)
    assert spec.spec_functions == ["memory_search", "memory_get", "memory_forget"]
    assert names(spec.to_tool_list()) == spec.spec_functions
    if hasattr(spec, "to_tool_list_async"):  # older versions have none
        assert names(await spec.to_tool_list_async()) == spec.spec_functions
    assert "MEMORY.md" not in paths(spec.to_tool_list()[0](**KEY).raw_output)
    assert json.loads(spec.memory_search(query=QUESTION))["results"][0]["path"] == "memory/household.md"
    assert [getattr(spec, name).__name__ for name in spec.spec_functions] == spec.spec_functions
    for some in (["memory_get"], [("memory_get", "memory_get")]):
        (get,) = spec.to_tool_list(spec_functions=some)
        assert get(**LINE).raw_output["from"] == 3
    with pytest.raises(ConfigError, match="'memory_edit' here, only memory_search, memory_get, memory_append: include"):
        OpenClawToolSpec(memory).to_tool_list(["memory_edit"])
    with pytest.raises(ConfigError, match="there is no tool 'delete': include takes search, get, append"):
        OpenClawToolSpec(memory, ["search", "delete"])


class Query(BaseModel):
    query: str


@pytest.mark.parametrize(
    ("given", "name", "schema"),
    [
        (ToolMetadata("Look it up.", "recall"), "recall", build_schema(TOOLS["memory_search"])),
        (ToolMetadata("Look it up.", fn_schema=None), "memory_search", build_schema(TOOLS["memory_search"])),
        (ToolMetadata("Look it up.", "recall", fn_schema=Query), "recall", Query.model_json_schema()),
    ],
)
async def test_a_program_says_how_a_tool_is_called(memory, given, name, schema):
    search, get, _ = OpenClawToolSpec(memory).to_tool_list(func_to_metadata_mapping={"memory_search": given})
    assert (search.metadata.name, search.metadata.description) == (name, "Look it up.")
    assert search.metadata.fn_schema.model_json_schema() == schema
    assert get.metadata.description == TOOLS["memory_get"].description
    for output in (call_tool(search, {"query": QUESTION}), await acall_tool(search, {"query": QUESTION})):
        assert output.tool_name == name
        assert "memory/household.md" in paths(output.raw_output)
    assert names(OpenClawToolSpec(memory).to_tool_list()) == ["memory_search", "memory_get", "memory_append"]


class WithMore(OpenClawToolSpec):
    """The memory, and the time."""

    spec_functions: ClassVar = ["memory_search", ("now", "now_later")]

    async def now_later(self) -> str:
        """The time, later."""
        return "evening"

    def now(self) -> str:
        """The time."""
        return "noon"


async def test_a_spec_made_of_this_one_can_have_more(memory):
    tools = WithMore(memory).to_tool_list()
    assert names(tools) == ["memory_search", "now"]
    assert (tools[1]().content, (await tools[1].acall()).content) == ("noon", "evening")
    assert names(WithMore(memory).to_tool_list(["now", "memory_get"])) == ["now", "memory_get"]
