"""What a client of the protocol is offered and answered, by the SDK's own client in this process."""

import asyncio
import threading

import anyio
import jsonschema
import pytest
from mcp import MCPError
from mcp_types import ElicitResult
from openclaw_memory_mcp import resources
from openclaw_memory_mcp.tool_facts import ANNOTATIONS, OUTPUT_SCHEMAS

from openclaw_memory import Memory
from openclaw_memory.tools import memory_tools, recall_section
from openclaw_memory.tools.handlers import TOOLS
from openclaw_memory.types import Progress

ALL = {"include": [name.removeprefix("memory_") for name in TOOLS]}
# Older clients subscribe so; the SDK's own warns that newer ones do not.
pytestmark = pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
GROUP = "agent:main:telegram:group:42"
DAY = "memory/2026-02-26.md"


async def test_every_tool_but_the_one_that_asks_is_the_cores_own_to_the_letter(memory, connected, mode):
    async with connected(memory, mode, **ALL) as client:
        served = (await client.list_tools()).tools
    own = memory_tools(memory, **ALL)
    assert [(one.name, one.description, one.input_schema) for one in served[:-1]] == [
        (one.name, one.description, dict(one.parameters)) for one in own[:-1]
    ]
    assert "hash" not in f"{served[-1].description} {served[-1].input_schema}"
    assert TOOLS.keys() == ANNOTATIONS.keys() == OUTPUT_SCHEMAS.keys() == {one.name for one in own}
    for tool in served:
        assert tool.output_schema == OUTPUT_SCHEMAS[tool.name]
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


async def test_a_client_reads_what_a_tool_may_change(memory, connected):
    async with connected(memory, **ALL) as client:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    assert {name for name, hint in hints.items() if hint.read_only_hint} == {"memory_search", "memory_get"}
    destroying = {"memory_edit", "memory_forget", "memory_confirm", "memory_erase"}
    assert {name for name, hint in hints.items() if hint.destructive_hint} == destroying
    assert {name for name, hint in hints.items() if not hint.idempotent_hint} == {"memory_forget"}


@pytest.mark.parametrize(
    "include", ["search get append", "search get", "search get append edit forget promote", "search get append erase"]
)
async def test_it_offers_the_tools_that_are_included(memory, connected, include):
    names = [f"memory_{tool}" for tool in include.split()]
    async with connected(memory, include=include.split()) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == names
        assert client.instructions == recall_section(names, citations=True)
        with pytest.raises(MCPError, match="there is no tool 'memory_confirm'"):
            await client.call_tool("memory_confirm", {"type": "fact", "key": "a", "value": "b"})


async def test_a_search_is_answered_as_the_core_answers_it(memory, connected, mode):
    question = {"query": "Who has the spare key?"}
    async with connected(memory, mode) as client:
        answer = await client.call_tool("memory_search", question)
    own = memory_tools(memory)[0].run(question)
    assert (answer.is_error, answer.structured_content) == (False, own.data)
    assert [block.text for block in answer.content] == [own.text]
    assert answer.structured_content["results"][0]["citation"] == "MEMORY.md#L1-L4"


async def test_a_search_answers_in_2000_characters_unless_a_client_asks_for_more(memory, connected):
    for number in range(20):
        memory.append(f"Ferry {number} leaves at noon, from the pier behind the mill. {'It is slow. ' * 20}")
    memory.sync()
    question = {"query": "Which ferry leaves at noon?"}
    async with connected(memory) as client:
        short = await client.call_tool("memory_search", question)
        long = await client.call_tool("memory_search", {**question, "maxResults": 5})
    assert 1_000 < len(short.content[0].text) <= 2_000 < len(long.content[0].text)
    assert short.structured_content["omitted"] > 0


async def test_answers_of_all_tools_are_as_their_schemas_say(memory, connected):
    """The client itself checks them; here, that the schema knows every field."""
    async with connected(memory, **ALL, elicitation_callback=agree) as client:
        said = {}

        async def call(name, **given):
            answer = await client.call_tool(name, {key.rstrip("_"): value for key, value in given.items()})
            said.setdefault(name, []).append(answer.structured_content)
            jsonschema.validate(answer.structured_content, OUTPUT_SCHEMAS[name])
            return answer.structured_content

        await call("memory_search", query="spare key", maxResults=1)
        await call("memory_search", query="  ", maxResults=0)
        line = await call("memory_get", path="memory/household.md", from_=3, lines=1)
        await call("memory_append", text="The caterer is Brandt.", title="Party")
        place = {"path": "memory/household.md", "from_": 3, "lines": 1}
        await call("memory_edit", **place, text="The boiler is serviced each May.", hash=line["hash"])
        stale = await call("memory_edit", **place, text="never", hash=line["hash"])
        await call("memory_promote", **place, hash=stale["hash"], section="House")
        await call("memory_forget", **place, hash=stale["hash"])
        await call("memory_remember", type="fact", key="city", value="Ghent", confidence=0.9)
        await call("memory_remember", type="fact", key="city", value="Antwerp")
        await call("memory_confirm", type="fact", key="city", value="Antwerp")
        done = await call("memory_erase", query="E_CAL_DRIFT")
        await call("memory_erase", query="nothing says this")
        await call("memory_get", path="memory/none.md")
        await call("memory_get", path="../etc/passwd")
    assert said["memory_get"][1]["status"] == "not_found"
    assert (stale["status"], done["outcome"]) == ("stale", "forgotten")
    for name, answers in said.items():
        known = OUTPUT_SCHEMAS[name]["properties"]
        assert {key for answer in answers for key in answer} - known.keys() == set(), name


async def test_what_a_model_can_correct_is_an_answer_and_marked_as_an_error(memory, connected):
    async with connected(memory) as client:
        answer = await client.call_tool("memory_get", {"path": "memory/none.md"})
        assert (answer.is_error, answer.structured_content["status"]) == (True, "not_found")
        answer = await client.call_tool("memory_search", {"question": "key"})
        assert "unknown field `question`" in answer.structured_content["error"]


async def agree(_, __):
    return ElicitResult(action="accept", content={"forget": True})


# --- forgetting, with the word of a person
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ElicitResult(action="accept", content={"forget": True}), None),
        (ElicitResult(action="accept", content={"forget": False}), "the user has not agreed"),
        (ElicitResult(action="decline"), "the user has not agreed"),
        (None, "`openclaw-memory forget` in a terminal"),  # the client has no way to ask
    ],
)
async def test_only_what_a_person_has_agreed_to_is_forgotten_for_good(memory, connected, mode, reply, error):
    asked, before = [], (memory.workspace.root / DAY).read_text(encoding="utf-8")

    async def ask(_, params):
        asked.append(params.message)
        return reply

    asks = {"elicitation_callback": ask} if reply else {}
    async with connected(memory, mode, include=["search", "erase"], **asks) as client:
        answer = (await client.call_tool("memory_erase", {"query": "E_CAL_DRIFT"})).structured_content
        assert (await client.call_tool("memory_erase", {"hash": "0" * 12})).is_error
    assert error in answer["error"] if error else answer["outcome"] == "forgotten"
    assert ((memory.workspace.root / DAY).read_text(encoding="utf-8") == before) is bool(error)
    assert len(asked) == bool(reply)
    assert all(f"\n- {DAY}#L3: they say it" in message for message in asked)


# --- who reads along
async def test_in_a_group_nothing_private_is_shown_by_any_way(memory, connected, mode):
    async with connected(memory, mode, session_key=GROUP) as client:
        found = (await client.call_tool("memory_search", {"query": "Who has the spare key?"})).structured_content
        assert all(row["path"] != "MEMORY.md" and "citation" not in row for row in found["results"])
        assert (await client.call_tool("memory_get", {"path": "MEMORY.md"})).is_error
        assert "MEMORY.md" not in [one.name for one in (await client.list_resources()).resources]
        for uri in (
            "memory:///MEMORY.md",
            "memory://memory.md",
            "memory:///memory/../MEMORY.md",
            "memory:///MEMORY.md#L3-L4",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        asked = await client.get_prompt("recall", {"question": "Who has the spare key?"})
        assert "Groen" not in str(asked)
        assert "Never mention file paths" in client.instructions
        with pytest.raises(MCPError, match="private"):
            await subscribed(client, mode, "memory:///MEMORY.md")


async def subscribed(client, mode, uri):
    if mode == "legacy":
        return await client.subscribe_resource(uri)
    async with client.listen(resource_subscriptions=[uri]) as events:
        return await anext(events)


# --- resources
async def test_notes_are_listed_and_read_as_resources(memory, connected, mode):
    async with connected(memory, mode) as client:
        listed = (await client.list_resources()).resources
        assert [one.uri for one in listed] == [
            "memory:///MEMORY.md",
            "memory:///memory/2026-02-09.md",
            "memory:///memory/2026-02-26.md",
            "memory:///memory/household.md",
        ]
        for one in listed:
            (shown,) = (await client.read_resource(one.uri)).contents
            text = (memory.workspace.root / one.name).read_text(encoding="utf-8")
            assert (shown.text.strip(), shown.mime_type, one.size) == (text.strip(), "text/markdown", len(text))
        (lines,) = (await client.read_resource("memory:///MEMORY.md#L4-L4")).contents
        assert lines.text.strip() == "- The spare key is with Mrs. Groen."
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["memory:///{+path}", "memory:///{+path}#L{start}-L{end}"]


async def test_a_name_with_blanks_and_umlauts_has_an_address(memory, connected):
    (memory.workspace.root / "memory" / "Küche & Bad #2.md").write_text("Tiles.\n", encoding="utf-8")
    async with connected(memory) as client:
        uri = next(one.uri for one in (await client.list_resources()).resources if "Bad" in one.name)
        assert uri == "memory:///memory/K%C3%BCche%20%26%20Bad%20%232.md"
        assert (await client.read_resource(uri)).contents[0].text.strip() == "Tiles."


@pytest.mark.parametrize(
    "uri",
    [
        "memory:///none.md",
        "memory:///memory/none.md",
        "memory:///../x.md",
        "memory:///",
        "file:///etc/passwd",
        "memory",
    ],
)
async def test_what_is_no_memory_file_cannot_be_read(memory, connected, uri):
    async with connected(memory) as client:
        with pytest.raises(MCPError):
            await client.read_resource(uri)


async def test_many_notes_are_listed_in_pages(memory, connected, monkeypatch):
    monkeypatch.setattr(resources, "PAGE", 3)
    async with connected(memory) as client:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
    assert [len(first.resources), len(second.resources), second.next_cursor] == [3, 1, None]


async def test_a_long_file_says_where_it_goes_on(memory, connected, monkeypatch):
    monkeypatch.setattr(resources, "MOST_LINES", 2)
    async with connected(memory) as client:
        text = (await client.read_resource("memory:///MEMORY.md")).contents[0].text
        assert text.endswith("… goes on at memory:///MEMORY.md#L3-L4\n")
        assert "Groen" in (await client.read_resource(text.split()[-1])).contents[0].text


# --- changes
async def test_a_client_that_listens_hears_of_changes(memory, connected):
    note = memory.workspace.root / "memory" / "household.md"
    async with (
        connected(memory, follows=True) as client,
        client.listen(resources_list_changed=True, resource_subscriptions=["memory://memory/household.md"]) as events,
    ):
        note.write_text("The boiler is new.\n", encoding="utf-8")
        with anyio.fail_after(20):
            assert (await anext(events)).uri == "memory:///memory/household.md"
        (note.parent / "new.md").write_text("New.\n", encoding="utf-8")
        with anyio.fail_after(20):
            assert type(await anext(events)).__name__ == "ResourcesListChanged"


async def test_an_older_client_that_subscribes_hears_of_changes(memory, connected):
    heard, arrived = [], asyncio.Event()

    async def hear(message):
        heard.append(message.method)
        arrived.set()

    note = memory.workspace.root / "memory" / "household.md"
    async with connected(memory, "legacy", follows=True, message_handler=hear) as client:
        assert client.server_capabilities.resources.subscribe
        assert client.server_capabilities.resources.list_changed
        await client.subscribe_resource("memory:///memory/household.md")
        await client.subscribe_resource("memory:///memory/2026-02-09.md")
        await client.unsubscribe_resource("memory:///memory/2026-02-09.md")
        (note.parent / "2026-02-09.md").write_text("Nobody hears.\n", encoding="utf-8")
        note.write_text("The boiler is new.\n", encoding="utf-8")
        await asyncio.wait_for(arrived.wait(), 20)
        assert heard == ["notifications/resources/updated"]
        arrived.clear()
        note.unlink()
        await asyncio.wait_for(arrived.wait(), 20)
    assert "notifications/resources/list_changed" in heard


# --- prompts
async def test_prompts_recall_and_save(memory, connected, mode):
    async with connected(memory, mode) as client:
        assert [one.name for one in (await client.list_prompts()).prompts] == ["recall", "flush"]
        recalled, question = (await client.get_prompt("recall", {"question": "Who has the spare key?"})).messages
        assert "Mrs. Groen" in recalled.content.text
        assert "<recalled-memory" in recalled.content.text
        assert question.content.text == "Who has the spare key?"
        (asked,) = (await client.get_prompt("flush")).messages
        assert "memory_append" in asked.content.text
        assert "YYYY" not in asked.content.text
        with pytest.raises(MCPError, match="say what to recall"):
            await client.get_prompt("recall", {"question": " "})
        with pytest.raises(MCPError, match="there are recall and flush"):
            await client.get_prompt("forget")


# --- a first index, many clients, many calls
async def test_a_client_hears_how_far_a_first_index_is(notes, connected, monkeypatch):
    heard, go_on, begun = [], threading.Event(), threading.Event()
    sync = Memory.sync

    def slow(self, *, progress=None, **options):
        if progress is not None:
            progress(Progress(3, 8, "embedding"))
            begun.set()
            assert go_on.wait(20)
        return sync(self, progress=progress, **options)

    async def hear(done, total, label):
        heard.append((done, total, label))
        go_on.set()

    def search(self, query, **options):
        assert go_on.wait(20)
        return found(self, query, **options)

    found = Memory.search
    monkeypatch.setattr(Memory, "sync", slow)
    monkeypatch.setattr(Memory, "search", search)
    with Memory.open(notes) as memory:
        async with connected(memory, follows=True, waits=False) as client:
            assert await anyio.to_thread.run_sync(begun.wait, 20)
            answer = await client.call_tool("memory_search", {"query": "spare key"}, progress_callback=hear)
    assert heard[0] == (3.0, 8.0, "embedding")
    assert answer.structured_content["results"]


async def test_a_client_that_goes_in_the_middle_of_a_call_leaves_the_others_alone(memory, connected, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    found = Memory.search

    def search(self, query, **options):
        if query == "slow":
            begun.set()
            assert go_on.wait(20)
        return found(self, query, **options)

    monkeypatch.setattr(Memory, "search", search)
    async with connected(memory, "legacy") as other:
        async with connected(memory, "legacy") as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "memory_search", {"query": "slow"})
            assert await anyio.to_thread.run_sync(begun.wait, 20)
            tasks.cancel_scope.cancel()
        assert (await other.call_tool("memory_search", {"query": "spare key"})).structured_content["results"]
        go_on.set()
