"""What a message wants is suggested to an agent's model by a block of LlamaIndex's `Memory`, and nothing is done by it."""

import itertools

from contract_agents import HINT, REMEMBER, IntentContract, Talk, intent
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory as ChatMemory
from llama_index_openclaw_memory import OpenClawMemoryBlock, OpenClawToolSpec
from llama_index_openclaw_memory.testing import ScriptedLLM, TextOnlyLLM, make_call, respond_with


def intents_of(*replies):
    return TextOnlyLLM(script=respond_with(*replies))


async def said_to(memory, block, *messages, replies=("Vale.",), session_id="agent:main:main"):
    """Say messages to an agent, and return what it was shown as system messages, in each call of its model, and said."""
    llm = ScriptedLLM(script=respond_with(*replies))
    chat = ChatMemory.from_defaults(session_id=session_id, memory_blocks=[block], token_limit=30_000)
    agent = FunctionAgent(tools=OpenClawToolSpec(memory).to_tool_list(), llm=llm, system_prompt="Be kind.")
    for message in messages:
        await agent.run(message, memory=chat)
    shown = ["\n".join(message.content for message in seen if message.role == "system") for seen in llm.requests]
    return shown, await chat.aget_all()


class TestContract(IntentContract):
    def part(self, memory, *replies):
        def reply(messages, _tools):
            answer = next(script)
            if isinstance(answer, Exception):
                raise answer
            return answer(messages[0].content) if callable(answer) else answer

        script = itertools.cycle(replies)
        return OpenClawMemoryBlock(memory, intent=TextOnlyLLM(script=reply))

    async def talk(self, memory, replies, *messages, searches=False, session="agent:main:main"):
        block = self.part(memory, *replies)
        said = [*([make_call("memory_search", query="Carla")] if searches else []), *["Vale."] * len(messages)]
        systems, conversation = await said_to(memory, block, *messages, replies=said, session_id=session)
        asked = [seen[0].content for seen in block.intent.requests]
        return Talk(systems, asked, [message.content or "" for message in conversation])

    async def hint(self, part, message):
        return await part.aget([ChatMessage(message)])

    async def test_it_goes_with_what_is_recalled(self, kept):
        block = self.part(kept, intent("query", "caldera"))
        shown, _ = await said_to(kept, block, "¿Qué te dije de la caldera?")
        assert "La caldera hace ruido." in shown[0]
        assert "Words: caldera" in shown[0]
        assert "ruido" not in block.intent.requests[0][0].content


async def test_a_turn_whose_first_messages_go_out_of_view_costs_no_second_call(kept):
    block = OpenClawMemoryBlock(kept, intent=intents_of(intent("remember", "Carla")))
    before = [ChatMessage("Hoi!"), ChatMessage("Hoi!", role="assistant"), ChatMessage(REMEMBER)]
    for messages in (before, [ChatMessage(REMEMBER), ChatMessage("", role="assistant")]):
        assert HINT in await block.aget(messages)
    assert len(block.intent.requests) == 1


async def test_a_memory_of_a_name_is_spoken_of_by_its_tools(kept):
    tools = OpenClawToolSpec(kept, name="home").to_tool_list()
    block = OpenClawMemoryBlock(kept, intent=intents_of(intent("remember", "Carla")), tools=tools)
    assert "save it with home_memory_append" in " ".join((await block.aget([ChatMessage(REMEMBER)])).split())
