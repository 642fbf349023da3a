"""One agent, many people: each run has the memory that its own values choose, and sees nothing of another's."""

import asyncio
import re

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.memory import Memory as ChatMemory
from llama_index_openclaw_memory import (
    MemoryFlushEventHandler,
    OpenClawMemoryBlock,
    OpenClawRetriever,
    OpenClawToolSpec,
    memory_tools,
)
from llama_index_openclaw_memory.testing import ScriptedLLM, calling

from openclaw_memory import Memories
from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import run_values

QUESTION = "Which ferry do I take?"


def search_then_answer(messages, _):
    """Search once, then say what was found."""
    last = messages[-1]
    if last.role.value == "tool":
        return last.content
    return calling("memory_search", query="ferry zebra")


def agent_of(memory):
    return FunctionAgent(tools=memory_tools(memory), llm=ScriptedLLM(script=search_then_answer))


async def asked(agent, name):
    with run_values(user_id=name):
        return str(await agent.run(QUESTION))


async def test_one_agent_at_once_for_many_people_shows_each_their_own_notes(tmp_path):
    names = [f"user-{number:02}" for number in range(6)]
    with Memories(tmp_path, embedder="hashing", max_open=4) as users:
        for name in names:
            with users.use(name) as memory:
                memory.append(f"{name} takes the ferry zebra-{name}.")
        agent = agent_of(users.template("{user_id}"))
        for name, answer in zip(names, await asyncio.gather(*(asked(agent, name) for name in names)), strict=True):
            assert [other for other in names if f"zebra-{other}" in answer] == [name]


async def test_a_run_keeps_the_values_that_it_began_with(users):
    with run_values(user_id="anna"):
        run = agent_of(users.template("{user_id}")).run(QUESTION)
    with run_values(user_id="bob"):
        assert "zebra-anna" in str(await run)


def test_a_run_that_lacks_a_value_says_how_to_give_it(users):
    template = users.template("{user_id}")
    for ask in (
        lambda: OpenClawRetriever(template).retrieve(QUESTION),
        lambda: memory_tools(template)[0].call(query="ferry"),
        lambda: OpenClawToolSpec(template).memory_search(query="ferry"),
    ):
        with pytest.raises(ConfigError, match=r"user_id is missing from this run.*run_values\(user_id=...\)"):
            ask()


def test_the_values_come_from_a_block_or_from_the_tags_of_the_run(users):
    retriever = OpenClawRetriever(users.template("{user_id}"))
    with run_values(user_id="bob"):
        assert [node.text for node in retriever.retrieve(QUESTION)] == [
            node.text for node in asyncio.run(retriever.aretrieve(QUESTION))
        ]
        assert "zebra-bob" in retriever.retrieve(QUESTION)[0].text
    with instrument_tags({"user_id": "anna"}):
        assert "zebra-anna" in retriever.retrieve(QUESTION)[0].text


def test_a_function_without_arguments_returns_the_memory_of_the_run(users):
    retriever = OpenClawRetriever(lambda: users.use("bob"))
    assert "zebra-bob" in retriever.retrieve(QUESTION)[0].text


def saving_notes(messages, _):
    """The model of the flush: what it is shown of a zebra, it writes down."""
    found = re.findall(r"zebra-\w+", "\n".join(message.content or "" for message in messages))
    if messages[-1].role.value == "tool" or not found:
        return "NO_REPLY"
    return calling("memory_append", text=f"Seen: {' '.join(sorted(set(found)))}.")


async def test_one_block_keeps_flushes_and_recalls_for_each_their_own(tmp_path):
    names = [f"user{number:02}" for number in range(4)]
    users = Memories(tmp_path, embedder="hashing", max_open=2)
    block = OpenClawMemoryBlock(users.template("{user_id}"), llm=ScriptedLLM(script=saving_notes), flush_tokens=1)

    async def talk(name):
        with run_values(user_id=name):
            await block.aput([ChatMessage(f"I take the ferry zebra-{name}.", role="user")], session_id="chat")
            await block.asettle()
            await block.aflush("chat")
            asked = [ChatMessage("Which ferry zebra was seen?", role="user")]
            return await block.aget(asked, session_id="chat"), await block.aget(asked, session_id="chat")

    with users:
        for name, (block_shown, again) in zip(names, await asyncio.gather(*map(talk, names)), strict=True):
            assert [other for other in names if f"zebra-{other}" in block_shown] == [name]
            assert again == block_shown
    for name in names:
        notes = "".join(note.read_text() for note in (tmp_path / name / "memory").glob("*.md"))
        assert re.findall(r"zebra-(\w+)", notes) == [name]
        (log,) = (tmp_path / name / "sessions").glob("*.jsonl")
        assert {*re.findall(r"zebra-(\w+)", log.read_text())} == {name}


@pytest.mark.parametrize("in_loop", [False, True])
async def test_one_event_handler_saves_for_each_their_own(tmp_path, in_loop):
    names = [f"user{number:02}" for number in range(6)]
    users = Memories(tmp_path, embedder="hashing", max_open=2)
    llm = ScriptedLLM(script=lambda *_: "Noted.")
    handler = MemoryFlushEventHandler(users.template("{user_id}"), ScriptedLLM(script=saving_notes), window=4_000)

    async def talk(name):
        with run_values(user_id=name):
            said = [ChatMessage(f"I take the ferry zebra-{name}. " + "It is a boat. " * 600, role="user")]
            await (llm.achat(said) if in_loop else asyncio.to_thread(llm.chat, said))
            await llm.achat([ChatMessage(f"Another one is zebra-{name}_later.", role="user")])

    get_dispatcher().add_event_handler(handler)
    try:
        with users:
            await asyncio.gather(*map(talk, names))
            await handler.asettle()
            with run_values(user_id=names[0]):
                await handler.aflush("main")
            for name in names:
                notes = "".join(note.read_text() for note in (tmp_path / name / "memory").glob("*.md"))
                expected = [name, f"{name}_later"] if name == names[0] else [name]
                assert sorted({*re.findall(r"zebra-(\w+)", notes)}) == expected
    finally:
        get_dispatcher().event_handlers.remove(handler)


def test_a_call_of_a_run_that_lacks_a_value_is_not_watched_and_that_is_logged(users, caplog):
    handler = MemoryFlushEventHandler(users.template("{user_id}"), ScriptedLLM(script=saving_notes), window=4_000)
    get_dispatcher().add_event_handler(handler)
    try:
        assert str(ScriptedLLM(script=lambda *_: "Noted.").complete("Hello")) == "Noted."
    finally:
        get_dispatcher().event_handlers.remove(handler)
    assert "user_id is missing from this run" in caplog.text


async def test_a_block_in_a_run_without_its_value_says_so(users):
    block = OpenClawMemoryBlock(users.template("{user_id}"))
    asked = [ChatMessage(QUESTION, role="user")]
    for call in (lambda: block.aput(asked), lambda: block.aget(asked)):
        with pytest.raises(ConfigError, match="user_id is missing"):
            await call()


async def test_what_cannot_be_written_waits_until_the_memory_can_be_opened(users, caplog):
    block = OpenClawMemoryBlock(users.template("{user_id}"))
    in_the_way = users.root / "carol"
    in_the_way.write_text("a file")
    with run_values(user_id="carol"):
        await block.aput([ChatMessage("The ferry zebra leaves.", role="user")], session_id="chat")
        assert "what was ejected waits in memory" in caplog.text
        in_the_way.unlink()
        await block.aput([ChatMessage("At seven.", role="user")], session_id="chat")
    (log,) = (users.root / "carol" / "sessions").glob("*.jsonl")
    assert "ferry zebra" in log.read_text()


def answers_from_both(messages, tools):
    """Note what the user says, search for it once, then say what the block and the tools show; in a flush, save it."""
    if "memory_search" not in tools:
        return saving_notes(messages, tools)
    shown = [message.content or "" for message in messages]
    results = [text for message, text in zip(messages, shown, strict=True) if message.role.value == "tool"]
    if not results:
        return calling("memory_append", text=f"Said: {shown[-1]}")
    if len(results) == 1:
        return calling("memory_search", query="ferry zebra")
    return f"BLOCK {' '.join(shown[:1])} TOOLS {' '.join(results)}"


@pytest.mark.nightly
@pytest.mark.parametrize("around", [run_values, lambda **tags: instrument_tags(tags)], ids=["values", "tags"])
async def test_an_agent_with_block_and_tools_serves_two_people_at_once(tmp_path, monkeypatch, around):
    monkeypatch.chdir(tmp_path)
    llm = ScriptedLLM(script=answers_from_both)
    block = OpenClawMemoryBlock("users/{user_id}", llm=llm, flush_tokens=1)
    agent = FunctionAgent(tools=memory_tools("users/{user_id}"), llm=llm)

    async def talk(name):
        heard = []
        with around(user_id=name):
            # A short history: each answer ejects what was said before it.
            memory = ChatMemory.from_defaults(session_id="chat", token_limit=300, memory_blocks=[block])
            for turn in range(4):
                question = f"I take the ferry zebra-{name}, number {turn}. " + "It is a fine boat. " * 20
                heard.append(str(await agent.run(question, memory=memory)))
            await block.asettle()
            await block.aflush("chat")
            heard.append(str(await agent.run("Which ferry zebra do I take?", memory=memory)))
        return heard

    both = dict(zip(("anna", "bob"), await asyncio.gather(talk("anna"), talk("bob")), strict=True))
    for name, other in (("anna", "bob"), ("bob", "anna")):
        assert f"zebra-{other}" not in "".join(both[name])
        block_part, _, tools_part = both[name][-1].partition("TOOLS")
        assert f"zebra-{name}" in block_part
        assert f"zebra-{name}" in tools_part
        folder = tmp_path / "users" / name
        notes = "".join(note.read_text() for note in (folder / "memory").glob("*.md"))
        assert f"Seen: zebra-{name}." in notes  # by the flush
        assert "Said: I take the ferry" in notes  # by the tool
        (log,) = (folder / "sessions").glob("*.jsonl")
        assert {*re.findall(r"zebra-(\w+)", notes + log.read_text())} == {name}
