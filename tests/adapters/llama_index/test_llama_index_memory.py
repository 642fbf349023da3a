"""LlamaIndex's `Memory` with the block: what many turns eject is kept, flushed and found again, whatever the model does."""

import asyncio
import json

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.memory import Memory as Conversation
from llama_index.core.memory.memory import InsertMethod
from llama_index.core.storage.chat_store.sql import MessageStatus
from llama_index_openclaw_memory import OpenClawMemoryBlock, OpenClawToolSpec
from llama_index_openclaw_memory._messages import convert_messages
from llama_index_openclaw_memory.testing import ScriptedLLM, TextOnlyLLM, make_call, respond_with
from llm_scripts import says_facts, writes_facts
from unwritable import UNWRITABLE, full

from openclaw_memory.conversation import get_text
from openclaw_memory.text.redaction import mask_value, redact_talk

SECRET = "sk-proj-" + "a1B2c3D4" * 5
EVERY_TENTH = ("Yes.", "Grüße aus Zürich 🚲", "東京は晴れです。", f"My key is {SECRET}.")
FLUSH_TOKENS = 300


def words(text):
    """A tokenizer that is fast: what is counted exactly does not matter here."""
    return text.split()


@pytest.fixture
def conversation():
    """Makes a `Memory` of LlamaIndex that ejects early, with blocks."""

    def make(*blocks, session_id="s1", **options):
        limits = {"token_limit": 400, "token_flush_size": 60, "tokenizer_fn": words}
        return Conversation.from_defaults(session_id=session_id, memory_blocks=list(blocks), **(limits | options))

    return make


def turns(count, name="s1"):
    """What is said in so many turns: with calls of tools, with texts that are equal, with facts to be remembered."""
    for number in range(count):
        if number % 10 == 0:
            yield ChatMessage(EVERY_TENTH[number // 10 % len(EVERY_TENTH)], role="user")
        else:
            yield ChatMessage(f"Please remember: the {name} locker {number} holds item{number}.", role="user")
        if number % 7 == 0:
            call = ToolCallBlock(tool_call_id=f"c{number}", tool_name="look", tool_kwargs={"at": f"shelf {number}"})
            yield ChatMessage(role="assistant", blocks=[TextBlock(text="Let me look."), call])
            yield ChatMessage(f"found {number}", role="tool", additional_kwargs={"tool_call_id": f"c{number}"})
        yield ChatMessage("Noted.", role="assistant")


async def ejected(chat):
    """The messages that `Memory` has archived, as OpenClaw writes them, with secrets masked."""
    return mask_value(convert_messages(await chat.aget_all(status=MessageStatus.ARCHIVED)), redact_talk)


@pytest.fixture
def kept(memory):
    """The messages of a transcript, in their order."""
    return lambda session="s1": list(memory.sessions.log(session).read_messages())


async def test_a_flush_is_held_for_many_ejections_and_shown_each_message_once(memory, conversation):
    llm = ScriptedLLM(script=respond_with("NO_REPLY"))
    block = OpenClawMemoryBlock(memory, llm=llm, flush_tokens=FLUSH_TOKENS)
    chat = conversation(block)
    for message in turns(80):
        await chat.aput(message)
    await block.aflush()
    shown = "\n".join(asked[0].content for asked in llm.requests)
    archived = await ejected(chat)
    assert all(shown.count(get_text(message)) == 1 for message in archived if " locker " in get_text(message))
    chars = sum(len(json.dumps(message)) for message in archived)
    assert 2 < len(llm.requests) < chars / FLUSH_TOKENS / 3


def test_without_a_loop_the_conversation_goes_on_in_a_new_one_for_each_call(
    memory, conversation, tmp_path, noted, kept
):
    database = f"sqlite+aiosqlite:///{tmp_path}/talk.sqlite"
    block = OpenClawMemoryBlock(memory, llm=TextOnlyLLM(script=says_facts), flush_tokens=200)
    chat = conversation(block, async_database_uri=database)
    for message in turns(20):
        chat.put(message)
    chat.put_messages(list(turns(20, "other")))
    memory.sync()
    assert "item3." in chat.get(input="What holds item3?")[0].content
    assert kept() == mask_value(convert_messages(chat.get_all(status=MessageStatus.ARCHIVED)), redact_talk)
    assert "item1." in noted()
    asyncio.run(chat.sql_store._async_engine.dispose())


@pytest.mark.parametrize("priority", [0, 1])
@pytest.mark.parametrize("method", InsertMethod)
async def test_a_block_that_is_too_long_is_made_shorter_where_memory_may(memory, conversation, priority, method):
    for day in range(1, 9):
        memory.append(f"The boiler code was 471{day} on that day, and it rained. " * 6, date=f"2026-02-0{day}")
    memory.sync()
    block = OpenClawMemoryBlock(memory, priority=priority)
    asked = ChatMessage("What was the boiler code on that day?")
    whole = await block.aget([asked])
    chat = conversation(block, token_limit=len(words(whole)) - 40, insert_method=method)
    await chat.aput(asked)
    shown = "\n".join(message.content for message in await chat.aget())
    assert "471" in shown
    assert (shown.count("boiler code was") == whole.count("boiler code was")) is (priority == 0)
    assert shown.count("<recalled-memory id=") == shown.count("</recalled-memory id=") == 1


async def test_an_agent_talks_with_the_memory_and_recalls_what_was_ejected(memory, conversation, noted, kept):
    flush_model = ScriptedLLM(script=writes_facts)
    block = OpenClawMemoryBlock(memory, llm=flush_model, flush_tokens=100)
    chat = conversation(block, token_limit=120, token_flush_size=20)

    def script(messages, _tools):
        if messages[-1].role == "tool":
            return f"I looked it up: {messages[-1].content}"
        is_question = messages[-1].content.endswith("?")
        return make_call("memory_search", query=messages[-1].content) if is_question else "Noted."

    llm = ScriptedLLM(script=script)
    agent = FunctionAgent(llm=llm, tools=OpenClawToolSpec(memory).to_tool_list(), system_prompt="Be kind.")
    for number in range(20):
        await agent.run(f"Please remember: locker {number} holds item{number}.", memory=chat)
    memory.sync()
    assert "locker 3 holds item3" in str(await agent.run("What holds item3?", memory=chat))
    shown = [
        asked for asked in llm.requests if "What holds item3?" in str(asked[-1].content) or asked[-1].role == "tool"
    ]
    blocks = [next(m.content for m in asked if "<recalled-memory" in (m.content or "")) for asked in shown]
    assert all("locker 3 holds item3." in block for block in blocks)
    assert "item3." in noted()
    assert "<recalled-memory" not in json.dumps([message for message in kept() if message["role"] != "toolResult"])
    assert len(flush_model.requests) < 20


@pytest.mark.parametrize("unwritable", UNWRITABLE.values(), ids=UNWRITABLE.keys())
@pytest.mark.sampled(1)
async def test_while_the_memory_cannot_be_written_no_fact_leaves_the_models_view_and_then_all_are_saved(
    memory, conversation, kept, caplog, unwritable
):
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=writes_facts), flush_tokens=FLUSH_TOKENS)
    chat = conversation(block)
    with unwritable(memory.workspace.root):
        for message in turns(40):
            await chat.aput(message)
        await block.asettle()
        view = "\n".join(message.content or "" for message in await chat.aget())
        assert all(f"item{number}." in view for number in range(40) if number % 10)
        assert caplog.text.count("stay in the model's view") == 1
    assert "stay in the model's view" in memory.status().flush["s1"]
    for message in turns(20, "s2"):
        await chat.aput(message)
    await block.asettle()
    assert kept() == await ejected(chat)
    assert "not saved yet" not in "".join(message.content or "" for message in await chat.aget())
    assert memory.status().flush == {}


async def test_where_there_is_less_room_what_is_recalled_makes_room_for_what_is_not_saved(memory):
    memory.append("The boiler code is 4711.", date="2026-02-09")
    memory.sync()
    block = OpenClawMemoryBlock(memory, tokenizer_fn=words, priority=1)
    with full(memory.workspace.root):
        await block.aput([ChatMessage("Please remember: fact 1.")], from_short_term_memory=True, session_id="s1")
        whole = await block.aget([ChatMessage("What is the boiler code?")], session_id="s1")
    shorter = await block.atruncate(whole, 3)
    assert [("4711" in text, "fact 1." in text) for text in (whole, shorter)] == [(True, True), (False, True)]
    assert await block.atruncate(whole, len(words(whole))) is None
