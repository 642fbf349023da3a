"""An agent starts with what its memory loads, as a block of LlamaIndex's `Memory`."""

from contract_agents import SessionStartContract
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory as ChatMemory
from llama_index_openclaw_memory import OpenClawMemoryBlock, SessionStartBlock, memory_tools
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call, respond_with

from openclaw_memory.runs import run_values


class TestContract(SessionStartContract):
    @staticmethod
    def part(memory, **wishes):
        tools = memory_tools(memory)
        return SessionStartBlock(memory, tools=tools, **wishes)

    async def systems(self, part, *replies, session=None, recalls=False, tools=True, values=None):
        llm = ScriptedLLM(
            script=respond_with(*(one if isinstance(one, str) else make_call(one[0], **one[1]) for one in replies))
        )
        blocks = [part, *([OpenClawMemoryBlock(part.memory)] if recalls else [])]
        session = session or "agent:main:main"
        chat = ChatMemory.from_defaults(session_id=session, memory_blocks=blocks, token_limit=30_000)
        agent = FunctionAgent(tools=memory_tools(part.memory) if tools else [], llm=llm, system_prompt="Be kind.")
        with run_values(**(values or {})):
            await agent.run("When was the boiler serviced?", memory=chat)
        return ["\n".join(message.content for message in seen if message.role == "system") for seen in llm.requests]


async def test_what_changes_is_shown_from_then_on(lived_in):
    block = SessionStartBlock(lived_in)
    before = await block.aget()
    await block.aput([], from_short_term_memory=True)  # nothing is kept of what is ejected
    assert await block.aget() == before
    assert "memory_search" not in before, "it was given no tools"
    (lived_in.workspace.root / "MEMORY.md").write_text("Anna lives in Gouda.\n", encoding="utf-8")
    assert "Gouda" in await block.aget()
