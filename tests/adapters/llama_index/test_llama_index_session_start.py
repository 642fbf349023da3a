"""An agent starts with what its memory loads, by the block of LlamaIndex's `Memory`."""

from contract_agents import SessionStartContract
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory as ChatMemory
from llama_index_openclaw_memory import OpenClawMemoryBlock, OpenClawToolSpec
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call, respond_with

from openclaw_memory.runs import run_values


class TestContract(SessionStartContract):
    @staticmethod
    def part(memory, **wishes):
        tools = OpenClawToolSpec(memory).to_tool_list()
        return OpenClawMemoryBlock(memory, session_start=True, tools=tools, min_score=1.0, **wishes)

    async def systems(self, part, *replies, session=None, recalls=False, tools=True, values=None):
        part.min_score = None if recalls else part.min_score
        llm = ScriptedLLM(
            script=respond_with(*(one if isinstance(one, str) else make_call(one[0], **one[1]) for one in replies))
        )
        chat = ChatMemory.from_defaults(
            session_id=session or "agent:main:main", memory_blocks=[part], token_limit=30_000
        )
        given = OpenClawToolSpec(part.memory).to_tool_list() if tools else []
        agent = FunctionAgent(tools=given, llm=llm, system_prompt="Be kind.")
        with run_values(**(values or {})):
            await agent.run("When was the boiler serviced?", memory=chat)
        return ["\n".join(message.content for message in seen if message.role == "system") for seen in llm.requests]


async def test_without_tools_nothing_is_said_of_tools(lived_in):
    shown = await OpenClawMemoryBlock(lived_in, session_start=True).aget()
    assert ("You are Kit" in shown, "memory_search" in shown) == (True, False)
