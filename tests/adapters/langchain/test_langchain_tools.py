"""The memory's tools are LangChain tools: same schemas, answers that a model can use, artifacts for the program."""

import json

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openclaw_memory import OpenClawRetriever, OpenClawToolkit, memory_tools
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from openclaw_memory import Memory
from openclaw_memory import tools as core
from openclaw_memory.errors import ConfigError

QUESTION = "Who services the boiler?"
EXAMPLES = {
    "memory_search": {"query": QUESTION, "maxResults": 3},
    "memory_get": {"path": "memory/household.md", "from": 3, "lines": 1},
    "memory_append": {"text": "Van Dam has a new van."},
    "memory_remember": {"type": "preference", "key": "editor.theme", "value": "dark"},
}


@pytest.fixture
def memory(notes):
    with Memory.open(notes) as memory:
        memory.sync()
        yield memory


@pytest.fixture
def tools(memory):
    return {tool.name: tool for tool in memory_tools(memory, edit=True)}


class Standard:
    name: str

    @pytest.fixture(autouse=True)
    def _memory(self, memory):
        self.memory = memory

    @property
    def tool_constructor(self):
        return next(tool for tool in memory_tools(self.memory, records=True) if tool.name == self.name)

    @property
    def tool_invoke_params_example(self):
        return EXAMPLES[self.name]


class TestSearchUnit(Standard, ToolsUnitTests):
    name = "memory_search"


class TestSearch(Standard, ToolsIntegrationTests):
    name = "memory_search"


class TestGetUnit(Standard, ToolsUnitTests):
    name = "memory_get"


class TestGet(Standard, ToolsIntegrationTests):
    name = "memory_get"


class TestAppendUnit(Standard, ToolsUnitTests):
    name = "memory_append"


class TestAppend(Standard, ToolsIntegrationTests):
    name = "memory_append"


class TestRememberUnit(Standard, ToolsUnitTests):
    name = "memory_remember"


class TestRemember(Standard, ToolsIntegrationTests):
    name = "memory_remember"


@pytest.mark.parametrize("wishes", [{}, {"edit": True}, {"append": False}, {"edit": True, "records": True}])
def test_what_a_model_is_shown_is_what_the_core_says(memory, wishes):
    shown = [convert_to_openai_tool(tool)["function"] for tool in memory_tools(memory, **wishes)]
    assert shown == [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in core.memory_tools(memory, **wishes)
    ]


def test_the_argument_from_keeps_its_name(tools):
    assert set(tools["memory_get"].args) == {"path", "from", "lines"}
    answer = json.loads(tools["memory_get"].invoke(EXAMPLES["memory_get"]))
    assert answer["from"] == 3
    assert "The boiler is serviced each October by Van Dam." in answer["text"]


def call(tool: BaseTool, arguments, **configurable) -> ToolMessage:
    said = {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}
    return tool.invoke(said, config={"configurable": configurable})


def test_a_search_answers_in_json_and_hands_over_documents_as_plain_data(tools, memory):
    message = call(tools["memory_search"], {"query": QUESTION})
    answer = json.loads(message.content)
    assert answer["status"] == "ok"
    assert answer["results"][0]["citation"] == "memory/household.md#L1-L3"
    assert json.loads(json.dumps(message.artifact)) == message.artifact
    documents = [Document(**item) for item in message.artifact]
    assert documents == OpenClawRetriever(memory=memory).invoke(QUESTION)


def test_a_search_that_finds_nothing_hands_over_an_empty_list(tools):
    message = call(tools["memory_search"], {"query": QUESTION, "minScore": 1.0})
    assert json.loads(message.content)["results"] == []
    assert message.artifact == []


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("memory_get", {"path": "memory/nobody.md"}, "not_found"),
        ("memory_get", {"path": "../secret.md"}, "not_allowed"),
        ("memory_get", {"path": "MEMORY.md", "from": 0}, "invalid"),
        ("memory_get", {}, "invalid"),
        ("memory_search", {"query": ""}, "invalid"),
        ("memory_search", {"query": "boiler", "self": 1, "config": 2, "run_manager": 3, "func": 4}, "invalid"),
        ("memory_forget", {"path": "MEMORY.md", "from": 1, "lines": 1, "hash": "0" * 12}, "stale"),
        ("memory_promote", {"path": "memory/none.md", "from": 1, "lines": 1, "hash": "0" * 12}, "not_found"),
    ],
)
async def test_what_a_model_can_fix_is_an_answer(tools, name, arguments, status):
    said = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
    for message in (tools[name].invoke(said), await tools[name].ainvoke(said)):
        answer = json.loads(message.content)
        assert answer["status"] == status
        assert answer["error"]
        assert message.artifact["status"] == status


def test_a_closed_memory_is_an_answer_too(tools, memory):
    memory.close()
    assert json.loads(call(tools["memory_search"], {"query": QUESTION}).content)["status"] == "unavailable"


GROUP = "agent:main:telegram:group:7"
KEY = {"query": "Where is the spare key?"}


def paths(message: ToolMessage) -> set[str]:
    return {result["path"] for result in json.loads(message.content)["results"]}


@pytest.mark.parametrize("configurable", [{"session_key": GROUP}, {"thread_id": GROUP}])
def test_in_the_session_of_a_group_less_is_shown(tools, configurable):
    alone, together = call(tools["memory_search"], KEY), call(tools["memory_search"], KEY, **configurable)
    assert "MEMORY.md" in paths(alone)
    assert "MEMORY.md" not in paths(together)
    assert not [result for result in json.loads(together.content)["results"] if "citation" in result]
    assert "MEMORY.md" not in {document["metadata"]["path"] for document in together.artifact}


def test_a_session_that_is_given_wins_over_that_of_the_run(memory):
    (search, *_) = memory_tools(memory, session_key=GROUP)
    assert "MEMORY.md" not in paths(call(search, KEY, session_key="main", thread_id="main"))


@pytest.mark.parametrize("thread", [1, "5f0c1d8e-9a53-4f3e-8b4d-7d3c2f7a1b10"])
def test_a_thread_of_any_name_is_a_direct_chat(tools, thread):
    assert "MEMORY.md" in paths(call(tools["memory_search"], KEY, thread_id=thread))


def test_tools_of_notes_alone_show_no_conversation(memory):
    memory.session_log("monday").append("user", "The spare key is below the mat.")
    memory.sync()
    toolkit = OpenClawToolkit(memory=memory, source="memory")
    for (search, *_), is_there in ((memory_tools(memory), True), (toolkit.get_tools(), False)):
        assert ("sessions/monday.jsonl" in paths(call(search, KEY))) is is_there


def test_a_toolkit_has_a_schema():
    assert set(OpenClawToolkit.model_json_schema()["properties"]) == {
        "session_key",
        "edit",
        "append",
        "records",
        "source",
        "name",
        "erase",
    }


def test_a_toolkit_has_the_tools(memory):
    toolkit = OpenClawToolkit(memory=memory, edit=True, append=False, session_key=GROUP)
    names = [tool.name for tool in toolkit.get_tools()]
    assert names == ["memory_search", "memory_get", "memory_edit", "memory_forget", "memory_promote"]
    assert "MEMORY.md" not in paths(call(toolkit.get_tools()[0], KEY))
    assert "memory=" not in repr(toolkit)
    assert "memory" not in toolkit.model_dump()


def test_a_toolkit_remembers_for_the_session_of_the_run(memory):
    toolkit = OpenClawToolkit(memory=memory, records=True)
    remember, confirm = toolkit.get_tools()[-2:]
    theme = {"type": "preference", "key": "editor.theme", "value": "dark"}
    message = call(remember, theme, session_key="agent:main:s7")
    assert json.loads(message.content)["outcome"] == "new"
    assert json.loads(json.dumps(message.artifact)) == json.loads(message.content)
    assert memory.records.get("preference", "editor.theme").source.ref == "agent:main:s7"
    assert json.loads(call(remember, theme, session_key=GROUP).content)["status"] == "not_allowed"
    assert json.loads(call(confirm, theme, session_key="agent:main:s7").content)["outcome"] == "confirmed"
    assert memory.records.get("preference", "editor.theme").is_confirmed


def test_the_memory_is_part_of_no_dump_of_a_tool(tools, notes):
    for tool in tools.values():
        assert "tool_for" not in tool.model_dump()
        assert str(notes) not in repr(tool)


class Calls(GenericFakeChatModel):
    """Says what it is to say, and takes tools."""

    def bind_tools(self, _, **__):
        return self


def calling(name, arguments):
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "1", "type": "tool_call"}])


def agent(memory, *messages):
    model = Calls(messages=iter(messages))
    return create_agent(model, memory_tools(memory), checkpointer=InMemorySaver())


async def ran(agent, asynchronous, **configurable):
    given = {"messages": [("user", "Where is the spare key?")]}
    config = {"configurable": {"thread_id": "1", **configurable}}
    return await agent.ainvoke(given, config) if asynchronous else agent.invoke(given, config)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_agent_searches_and_the_answer_is_the_same_after_a_checkpoint(memory, asynchronous, caplog):
    run = agent(memory, calling("memory_search", KEY), AIMessage("With Mrs. Groen."))
    before = (await ran(run, asynchronous))["messages"][-2]
    # Read back from the checkpoint, in which a foreign type would be a warning.
    answered = run.get_state({"configurable": {"thread_id": "1"}}).values["messages"][-2]
    assert isinstance(answered, ToolMessage)
    assert "Mrs. Groen" in answered.content
    assert answered.artifact == before.artifact
    assert answered.artifact[0]["id"] == "MEMORY.md#L1-L4"
    assert not caplog.records


def test_an_agent_promotes_what_it_has_read(memory):
    day = memory.append("The ferry leaves at seven.", date="2026-11-21").path
    line = {"path": day, "from": 3, "lines": 1}
    promote = line | {"hash": memory.get(day, start=3, lines=1).hash[:12], "section": "Ferries"}
    script = [calling("memory_get", line), calling("memory_promote", promote), AIMessage("It is kept.")]
    run = create_agent(Calls(messages=iter(script)), memory_tools(memory, edit=True))
    said = run.invoke({"messages": [("user", "Keep the ferry for good.")]})["messages"]
    read, kept = (json.loads(message.content) for message in said if isinstance(message, ToolMessage))
    assert read["hash"] == promote["hash"]
    assert (kept["status"], kept["path"]) == ("ok", "MEMORY.md")
    assert memory.get("MEMORY.md").text.endswith("## Ferries\n\nThe ferry leaves at seven.")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_hash_counts_once_the_user_has_typed_it(memory, asynchronous):
    wanted, day = {"query": "ferry leaves"}, memory.append("The ferry leaves at seven.", date="2026-11-21").path
    code = memory.forget(**wanted).plan.hash[:12]
    script = [
        calling("memory_erase", wanted), calling("memory_erase", {"hash": code}), AIMessage(f"Type {code}."),
        calling("memory_erase", {"hash": code}), AIMessage("It is gone."),
    ]  # fmt: skip
    tools = memory_tools(memory, erase=True)
    run = create_agent(Calls(messages=iter(script)), tools, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}

    async def say(text):
        given = {"messages": [("user", text)]}
        said = await run.ainvoke(given, config) if asynchronous else run.invoke(given, config)
        return [json.loads(message.content) for message in said["messages"] if isinstance(message, ToolMessage)]

    planned, refused = await say("Forget the ferry.")
    assert (planned["outcome"], planned["hash"]) == ("planned", code)
    assert (refused["status"], "has not typed" in refused["error"]) == ("not_allowed", True)
    assert "ferry" in memory.get(day).text
    assert (await say(f"{code}, please"))[-1]["outcome"] == "forgotten"
    assert "ferry" not in memory.get(day).text


def test_no_group_forgets_and_what_a_model_calls_runtime_is_an_argument_it_does_not_have(memory):
    erase = OpenClawToolkit(memory=memory, erase=True).get_tools()[-1]
    assert json.loads(call(erase, {"lastDays": 1}, session_key=GROUP).content)["status"] == "not_allowed"
    said = json.loads(call(erase, {"lastDays": 1, "runtime": {"state": {"messages": []}}}).content)
    assert (said["status"], "there is no argument 'runtime'" in said["error"]) == ("invalid", True)
    assert "runtime" not in erase.tool_call_schema["properties"]


def test_tools_of_two_memories_have_names_of_their_own(memory, tmp_path):
    (tmp_path / "work").mkdir()
    with Memory.open(tmp_path / "work", embedder=None) as work:
        work.append("The invoice is due on Monday.", date="2026-11-21")
        work.sync()
        named = OpenClawToolkit(memory=work, name="work", edit=True).get_tools()
        tools = {tool.name: tool for tool in [*memory_tools(memory), *named]}
        assert list(tools) == [
            "memory_search", "memory_get", "memory_append",
            "work_memory_search", "work_memory_get", "work_memory_append", "work_memory_edit", "work_memory_forget",
            "work_memory_promote",
        ]  # fmt: skip
        assert "use work_memory_get to read" in tools["work_memory_search"].description
        assert "In the memory 'work'" in tools["work_memory_search"].description
        assert "work_memory_search gives it" in json.dumps(tools["work_memory_get"].args_schema)
        assert "invoice" in tools["work_memory_search"].invoke({"query": "invoice"})
        assert "invoice" not in tools["memory_search"].invoke({"query": "invoice"})


@pytest.mark.parametrize("name", ["", "my work", "x" * 41, "ü"])
def test_a_name_that_no_tool_may_have_is_refused(memory, name):
    with pytest.raises(ConfigError, match="1 to 40"):
        memory_tools(memory, name=name)


def test_a_toolkit_takes_no_unknown_argument(memory):
    with pytest.raises(ValidationError, match="top_k"):
        OpenClawToolkit(memory=memory, top_k=3)
