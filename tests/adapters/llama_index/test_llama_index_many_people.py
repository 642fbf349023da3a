"""One agent, many people: each run has the memory that its own values choose, and sees nothing of another's."""

import asyncio
import re

import llama_index_openclaw_memory as ours
import pytest
from contract_people import QUERY, PeopleContract, seen
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call

from openclaw_memory import Memories
from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import run_values

QUESTION = "Which ferry do I take?"


def search_then_answer(messages, _):
    """Search once, then say what was found."""
    last = messages[-1]
    return last.content if last.role.value == "tool" else make_call("memory_search", query=QUERY)


class TestContract(PeopleContract):
    def retriever(self, choice):
        return ours.OpenClawRetriever(choice)

    async def retrieve(self, retriever, named=None):
        with instrument_tags({} if named is None else {"user_id": named}):
            found = retriever.retrieve(QUESTION)
            assert [node.text for node in await retriever.aretrieve(QUESTION)] == [node.text for node in found]
            return [node.text for node in found]

    async def search_with_tool(self, choice):
        with pytest.raises(ConfigError):
            ours.OpenClawToolSpec(choice).memory_search(query=QUERY)
        return ours.OpenClawToolSpec(choice).to_tool_list()[0].call(query=QUERY)

    def agent(self, choice):
        return FunctionAgent(
            tools=ours.OpenClawToolSpec(choice).to_tool_list(), llm=ScriptedLLM(script=search_then_answer)
        )

    async def ask(self, agent):
        return str(await agent.run(QUESTION))

    async def test_a_run_keeps_the_values_that_it_began_with(self, users):
        with run_values(user_id="anna"):
            run = self.agent(users.use_template("{user_id}")).run(QUESTION)
        with run_values(user_id="bob"):
            assert seen(str(await run)) == {"anna"}


def saving_notes(messages, _):
    """The model of the flush: what it is shown of a zebra, it writes down."""
    found = re.findall(r"zebra-\w+", "\n".join(message.content or "" for message in messages))
    if messages[-1].role.value == "tool" or not found:
        return "NO_REPLY"
    return make_call("memory_append", text=f"Seen: {' '.join(sorted(set(found)))}.")


def zebras(folder, files):
    return {*re.findall(r"zebra-(\w+)", "".join(path.read_text() for path in folder.glob(files)))}


@pytest.mark.parametrize("around", [run_values, lambda **tags: instrument_tags(tags)], ids=["values", "tags"])
async def test_one_block_keeps_flushes_and_recalls_for_each_their_own(tmp_path, around):
    names = [f"user{number:02}" for number in range(4)]
    users = Memories(tmp_path, embedder="hashing", max_open=2)
    block = ours.OpenClawMemoryBlock(
        users.use_template("{user_id}"), llm=ScriptedLLM(script=saving_notes), flush_tokens=1
    )

    async def talk(name):
        with around(user_id=name):
            await block.aput([ChatMessage(f"I take the ferry zebra-{name}.", role="user")], session_id="chat")
            await block.asettle()
            await block.aflush("chat")
            asked = [ChatMessage("Which ferry zebra was seen?", role="user")]
            return await block.aget(asked, session_id="chat"), await block.aget(asked, session_id="chat")

    with users:
        for name, (shown, again) in zip(names, await asyncio.gather(*map(talk, names)), strict=True):
            assert {*re.findall(r"zebra-(\w+)", shown)} == {name}
            assert again == shown
    for name in names:
        assert zebras(tmp_path / name, "memory/*.md") == zebras(tmp_path / name, "sessions/*.jsonl") == {name}


@pytest.fixture
def watch():
    """Adds a handler over a template to the instrumentation for the length of a test."""
    added = []

    def watch(users):
        handler = ours.MemoryFlushEventHandler(
            users.use_template("{user_id}"), ScriptedLLM(script=saving_notes), window=4_000
        )
        get_dispatcher().add_event_handler(handler)
        added.append(handler)
        return handler

    yield watch
    for handler in added:
        get_dispatcher().event_handlers.remove(handler)


@pytest.mark.parametrize("in_loop", [False, True])
async def test_one_event_handler_saves_for_each_their_own(tmp_path, watch, in_loop):
    names = [f"user{number:02}" for number in range(6)]
    llm = ScriptedLLM(script=lambda *_: "Noted.")

    async def talk(name):
        with run_values(user_id=name):
            said = [ChatMessage(f"I take the ferry zebra-{name}. " + "It is a boat. " * 600, role="user")]
            await (llm.achat(said) if in_loop else asyncio.to_thread(llm.chat, said))
            await llm.achat([ChatMessage(f"Another one is zebra-{name}_later.", role="user")])

    with Memories(tmp_path, embedder="hashing", max_open=2) as users:
        handler = watch(users)
        await asyncio.gather(*map(talk, names))
        await handler.asettle()
        with run_values(user_id=names[0]):
            await handler.aflush("main")
        for name in names:
            expected = {name, f"{name}_later"} if name == names[0] else {name}
            assert zebras(tmp_path / name, "memory/*.md") == expected


def test_a_call_of_a_run_that_lacks_a_value_is_not_watched_and_that_is_logged(users, watch, caplog):
    watch(users)
    assert str(ScriptedLLM(script=lambda *_: "Noted.").complete("Hello")) == "Noted."
    assert "user_id is missing from this run" in caplog.text


async def test_a_block_in_a_run_without_its_value_says_so(users):
    block = ours.OpenClawMemoryBlock(users.use_template("{user_id}"))
    asked = [ChatMessage(QUESTION, role="user")]
    for call in (block.aput(asked), block.aget(asked)):
        with pytest.raises(ConfigError, match="user_id is missing"):
            await call


async def test_what_cannot_be_written_waits_until_the_memory_can_be_opened(users, caplog):
    block = ours.OpenClawMemoryBlock(users.use_template("{user_id}"))
    (users.root / "carol").write_text("in the way")
    with run_values(user_id="carol"):
        await block.aput([ChatMessage("The ferry zebra-carol leaves.", role="user")], session_id="chat")
        assert "what was ejected waits in memory" in caplog.text
        (users.root / "carol").unlink()
        await block.aput([ChatMessage("At seven.", role="user")], session_id="chat")
    assert zebras(users.root / "carol", "sessions/*.jsonl") == {"carol"}
