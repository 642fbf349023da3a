"""An agent starts with what its memory loads, as a block of LlamaIndex's `Memory`."""

import copy
import logging

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory as ChatMemory
from llama_index_openclaw_memory import OpenClawMemoryBlock, SessionStartBlock, memory_tools
from llama_index_openclaw_memory.testing import ScriptedLLM, calling, saying

from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.runs import run_values

GROUP = "agent:main:telegram:group:7"


async def shown(memory, *replies, session_id="agent:main:main", blocks=()):
    """What an agent is shown as system messages, in each call of its model."""
    llm, tools = ScriptedLLM(script=saying(*replies)), memory_tools(memory)
    blocks = [SessionStartBlock(memory, tools=tools), *blocks]
    chat = ChatMemory.from_defaults(session_id=session_id, memory_blocks=blocks, token_limit=30_000)
    await FunctionAgent(tools=tools, llm=llm, system_prompt="Be kind.").run("Hello?", memory=chat)
    return ["\n".join(message.content for message in seen if message.role == "system") for seen in llm.seen]


async def test_every_call_of_a_run_has_the_same_text(lived_in):
    first, second = await shown(lived_in, calling("memory_search", query="boiler"), "Hello.")
    assert first == second
    for part in ("Be kind.", "## Memory Recall", "You are Kit", "Anna lives in Delft.", "The boiler was serviced."):
        assert first.count(part) == 1


async def test_in_a_group_long_term_memory_is_left_out(lived_in):
    (text,) = await shown(lived_in, "Hello.", session_id=GROUP)
    assert "Delft" not in text
    assert "The boiler was serviced." in text


async def test_it_goes_with_the_block_that_recalls(lived_in):
    (text,) = await shown(lived_in, "Hello.", blocks=[OpenClawMemoryBlock(lived_in)])
    assert "You are Kit" in text


async def test_what_changes_is_shown_from_then_on(lived_in):
    block = SessionStartBlock(lived_in)
    before = await block.aget()
    assert await block.aget() == before
    (lived_in.workspace.root / "MEMORY.md").write_text("Anna lives in Gouda.\n", encoding="utf-8")
    assert "Gouda" in await block.aget()


async def test_without_tools_none_is_spoken_of(lived_in):
    assert "memory_search" not in await SessionStartBlock(lived_in).aget()


async def test_nothing_is_kept_of_what_is_ejected(lived_in):
    block = SessionStartBlock(lived_in)
    before = await block.aget()
    await block.aput([], from_short_term_memory=True)
    assert await block.aget() == before


async def test_a_memory_that_fails_costs_the_text_and_not_the_turn(lived_in, caplog):
    block = SessionStartBlock(lived_in)
    lived_in.close()
    with caplog.at_level(logging.WARNING):
        assert [await block.aget(), await block.aget()] == ["", ""]
    assert len(caplog.records) == 1


async def test_a_wrong_argument_is_said_at_once(lived_in):
    with pytest.raises(InvalidInputError, match="max_chars"):
        await SessionStartBlock(lived_in, max_chars=0).aget()
    with pytest.raises(TypeError, match="must be a Memory"):
        SessionStartBlock("notes")


async def test_each_run_has_the_memory_of_its_person(users):
    for name in ("anna", "bob"):
        with users.use(name) as memory:
            memory.append(f"{name} has a goat.")
    block = SessionStartBlock(users.template("{user_id}"))
    with run_values(user_id="bob"):
        text = await block.aget()
    assert "bob has a goat." in text
    assert "anna" not in text
    with pytest.raises(ConfigError, match="user_id"):
        await block.aget()


def test_a_copy_shares_the_memory(lived_in):
    assert copy.deepcopy(SessionStartBlock(lived_in)).memory is lived_in
