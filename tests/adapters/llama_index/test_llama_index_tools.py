"""The memory's tools are LlamaIndex tools: same schemas, answers that a model can use, plain data for the program."""

import json
from typing import ClassVar

import pytest
from llama_index.core.memory import Memory as ChatMemory
from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput
from llama_index.core.tools.calling import acall_tool, call_tool
from llama_index.core.workflow import Context, Workflow, step
from llama_index.core.workflow.events import StartEvent, StopEvent
from llama_index_openclaw_memory import OpenClawToolSpec, memory_tools
from pydantic import BaseModel

from openclaw_memory import Memory
from openclaw_memory import tools as core
from openclaw_memory.errors import ConfigError
from openclaw_memory.tools.handlers import TOOL_DESCRIPTIONS, TOOL_SCHEMAS

QUESTION = "Who services the boiler?"
LINE = {"path": "memory/household.md", "from": 3, "lines": 1}


@pytest.fixture
def memory(notes):
    with Memory.open(notes) as memory:
        memory.sync()
        yield memory


@pytest.fixture
def tools(memory):
    return {tool.metadata.name: tool for tool in memory_tools(memory, edit=True)}


@pytest.mark.parametrize("wishes", [{}, {"edit": True}, {"append": False}, {"edit": True, "records": True}])
def test_what_a_model_is_shown_is_what_the_core_says(memory, wishes):
    for made in (memory_tools(memory, **wishes), OpenClawToolSpec(memory, **wishes).to_tool_list()):
        expected = core.memory_tools(memory, **wishes)
        assert [tool.metadata.fn_schema.model_json_schema() for tool in made] == [tool.parameters for tool in expected]
        # LlamaIndex leaves out of every schema that there are no other arguments.
        left = [{k: v for k, v in tool.parameters.items() if k != "additionalProperties"} for tool in expected]
        assert [tool.metadata.get_parameters_dict() for tool in made] == left
        assert [json.loads(tool.metadata.fn_schema_str) for tool in made] == left
        assert [tool.metadata.to_openai_tool()["function"] for tool in made] == [
            {"name": tool.name, "description": tool.description, "parameters": parameters}
            for tool, parameters in zip(expected, left, strict=True)
        ]


def test_the_arguments_stand_in_the_order_of_the_core(tools, memory):
    for tool in core.memory_tools(memory, edit=True):
        assert list(tools[tool.name].metadata.get_parameters_dict()["properties"]) == list(
            tool.parameters["properties"]
        )


async def test_the_argument_from_keeps_its_name(tools):
    get = tools["memory_get"]
    for output in (get(**LINE), get.call(**LINE), await get.acall(**LINE), call_tool(get, LINE)):
        answer = json.loads(output.content)
        assert answer["from"] == 3
        assert "The boiler is serviced each October by Van Dam." in answer["text"]
        assert output.raw_input == {"args": (), "kwargs": LINE}


async def test_an_output_is_the_answer_as_text_and_as_data(tools):
    search = tools["memory_search"]
    for output in (search.call(query=QUESTION), await search.acall(query=QUESTION)):
        assert isinstance(output, ToolOutput)
        assert output.tool_name == "memory_search"
        assert output.raw_output == json.loads(output.content)
        assert output.raw_output["results"][0]["citation"] == "memory/household.md#L1-L3"
        assert not output.is_error
        assert ToolOutput.model_validate_json(output.model_dump_json()).raw_output == output.raw_output


def test_arguments_without_a_name_are_in_the_order_of_the_schema(tools):
    assert tools["memory_search"](QUESTION, 1).raw_output["results"][0]["path"] == "memory/household.md"
    assert tools["memory_get"]("memory/household.md", 3, lines=1).raw_output["from"] == 3
    with pytest.raises(TypeError, match=r"takes 3 arguments \(path, from, lines\), 4 were given"):
        tools["memory_get"](1, 2, 3, 4)


MENDABLE = [
    ("memory_get", {"path": "memory/nobody.md"}, "not_found"),
    ("memory_get", {"path": "../secret.md"}, "not_allowed"),
    ("memory_get", {"path": "MEMORY.md", "from": 0}, "invalid"),
    ("memory_get", {"path": "MEMORY.md", "from_": 1}, "invalid"),
    ("memory_get", {"path": "MEMORY.md", "from": ["1"]}, "invalid"),
    ("memory_get", {}, "invalid"),
    ("memory_search", {"query": ""}, "invalid"),
    ("memory_search", {"input": "boiler"}, "invalid"),
    ("memory_search", {"query": "boiler", "self": 1, "tool": 2, "context": 3, "key": 4, "ctx": 5}, "invalid"),
    ("memory_append", {"text": " "}, "invalid"),
    ("memory_forget", {"path": "MEMORY.md", "from": 1, "lines": 1, "hash": "0" * 12}, "stale"),
]


@pytest.mark.parametrize(("name", "arguments", "status"), MENDABLE)
async def test_what_a_model_can_fix_is_an_answer(tools, name, arguments, status):
    tool = tools[name]
    outputs = [tool(**arguments), tool.call(**arguments), await tool.acall(**arguments)]
    outputs += [call_tool(tool, arguments), await acall_tool(tool, arguments)]
    for output in outputs:
        answer = json.loads(output.content)
        assert answer["status"] == output.raw_output["status"] == status
        assert answer["error"]
        assert output.is_error
        assert getattr(output, "exception", None) is None  # older versions have none


GROUP = "agent:main:telegram:group:7"
KEY = {"query": "Where is the spare key?"}


def paths(output: ToolOutput) -> set[str]:
    return {result["path"] for result in output.raw_output["results"]}


async def test_in_the_session_of_a_group_less_is_shown(memory):
    (alone, *_), (together, *_) = memory_tools(memory), memory_tools(memory, session_key=GROUP)
    assert "MEMORY.md" in paths(alone(**KEY))
    for output in (together(**KEY), await together.acall(**KEY)):
        assert "MEMORY.md" not in paths(output)
        assert not [result for result in output.raw_output["results"] if "citation" in result]
    assert memory_tools(memory, session_key=GROUP)[1](path="MEMORY.md").raw_output["status"] == "not_allowed"


class Empty(Workflow):
    @step
    async def start(self, _event: StartEvent) -> StopEvent:
        return StopEvent()


async def context_with(conversation=None, **store) -> Context:
    """The context of a run, and in it the `conversation`."""
    context = Context(Empty())
    if conversation is not None:
        store["memory"] = ChatMemory.from_defaults(session_id=conversation)
    for path, value in store.items():
        await context.store.set(path, value)
    return context


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


@pytest.mark.parametrize(("store", "shown"), RUNS)
async def test_the_session_is_that_of_the_run(tools, store, shown):
    context = await context_with(**store)
    for output in (tools["memory_search"](ctx=context, **KEY), await tools["memory_search"].acall(ctx=context, **KEY)):
        assert ("MEMORY.md" in paths(output)) is shown
        assert output.raw_input == {"args": (), "kwargs": KEY}


async def test_a_session_that_is_given_wins_over_that_of_the_run(memory):
    (search, *_) = memory_tools(memory, session_key=GROUP)
    assert "MEMORY.md" not in paths(await search.acall(ctx=await context_with(session_key="main"), **KEY))


def test_tools_of_notes_alone_show_no_conversation(memory):
    memory.session_log("monday").append("user", "The spare key is below the mat.")
    memory.sync()
    spec = OpenClawToolSpec(memory, source="memory")
    for (search, *_), is_there in ((memory_tools(memory), True), (spec.to_tool_list(), False)):
        assert ("sessions/monday.jsonl" in paths(search(**KEY))) is is_there


@pytest.mark.parametrize("make", [memory_tools, OpenClawToolSpec])
def test_something_else_than_a_memory_is_refused_at_once(make):
    with pytest.raises(TypeError, match="not 'notes'"):
        make("notes")


def names(tools: list[FunctionTool]) -> list[str]:
    return [tool.metadata.name for tool in tools]


async def test_a_spec_has_the_tools(memory):
    spec = OpenClawToolSpec(memory, GROUP, edit=True, append=False)
    assert spec.spec_functions == ["memory_search", "memory_get", "memory_edit", "memory_forget", "memory_promote"]
    assert names(spec.to_tool_list()) == spec.spec_functions
    if hasattr(spec, "to_tool_list_async"):  # older versions have none
        assert names(await spec.to_tool_list_async()) == spec.spec_functions
    assert "MEMORY.md" not in paths(spec.to_tool_list()[0](**KEY))


async def test_records_are_remembered_for_the_session(memory):
    theme = {"type": "preference", "key": "editor.theme", "value": "dark"}
    remember, confirm = OpenClawToolSpec(memory, "agent:main:s7", records=True).to_tool_list()[-2:]
    assert (await remember.acall(**theme)).raw_output["outcome"] == "new"
    assert memory.records.get("preference", "editor.theme").source.ref == "agent:main:s7"
    assert confirm(**theme).raw_output["outcome"] == "confirmed"
    assert memory.records.get("preference", "editor.theme").is_confirmed
    group = memory_tools(memory, session_key=GROUP, records=True)
    assert group[-2].call(**theme).raw_output["status"] == "not_allowed"


def test_what_a_spec_names_can_be_called(memory):
    spec = OpenClawToolSpec(memory)
    assert json.loads(spec.memory_search(query=QUESTION))["results"][0]["path"] == "memory/household.md"
    assert {name: getattr(spec, name).__name__ for name in spec.spec_functions} == {n: n for n in spec.spec_functions}


@pytest.mark.parametrize("wanted", [["memory_get"], [("memory_get", "memory_get")]])
def test_some_tools_can_be_chosen(memory, wanted):
    (get,) = OpenClawToolSpec(memory).to_tool_list(spec_functions=wanted)
    assert get(**LINE).raw_output["from"] == 3


def test_a_tool_that_is_not_there_is_named_with_the_way_to_get_it(memory):
    with pytest.raises(ConfigError, match=r"'memory_edit' here, only memory_search, memory_get.* edit=True"):
        OpenClawToolSpec(memory).to_tool_list(["memory_edit"])


class Query(BaseModel):
    query: str


@pytest.mark.parametrize(
    ("given", "name", "schema"),
    [
        (ToolMetadata("Look it up.", "recall"), "recall", TOOL_SCHEMAS["memory_search"]),
        (ToolMetadata("Look it up.", fn_schema=None), "memory_search", TOOL_SCHEMAS["memory_search"]),
        (ToolMetadata("Look it up.", "recall", fn_schema=Query), "recall", Query.model_json_schema()),
    ],
)
async def test_a_program_says_how_a_tool_is_called(memory, given, name, schema):
    search, get, _ = OpenClawToolSpec(memory).to_tool_list(func_to_metadata_mapping={"memory_search": given})
    assert search.metadata.name == name
    assert search.metadata.description == "Look it up."
    assert search.metadata.fn_schema.model_json_schema() == schema
    assert get.metadata.description == TOOL_DESCRIPTIONS["memory_get"]
    for output in (call_tool(search, {"query": QUESTION}), await acall_tool(search, {"query": QUESTION})):
        assert output.tool_name == name
        assert "memory/household.md" in paths(output)
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
    assert tools[1]().content == "noon"
    assert (await tools[1].acall()).content == "evening"
    assert names(WithMore(memory).to_tool_list(["now", "memory_get"])) == ["now", "memory_get"]


def test_tools_of_two_memories_have_names_of_their_own(memory):
    spec = OpenClawToolSpec(memory, name="work")
    assert [tool.metadata.name for tool in spec.to_tool_list()] == [
        "work_memory_search",
        "work_memory_get",
        "work_memory_append",
    ]
    (search, *_) = memory_tools(memory, name="work")
    assert "work_memory_get" in search.metadata.description
    assert not search(query="anything").is_error
