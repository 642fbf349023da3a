"""An agent starts with what its memory loads, in the system message of each call, and its conversation stays as it was."""

import pytest
from chat_scripts import Scripted, says
from contract_agents import SessionStartContract
from langchain.agents import create_agent
from langchain_core.messages import SystemMessage
from langchain_openclaw_memory import OpenClawRecallMiddleware, OpenClawSessionStartMiddleware, memory_tools
from langchain_openclaw_memory.testing import make_call

from openclaw_memory import Memory


class TestContract(Scripted, SessionStartContract):
    part = OpenClawSessionStartMiddleware

    async def systems(self, part, *replies, session=None, recalls=False, tools=True, values=None):
        model = self.scripted(*(one if isinstance(one, str) else make_call(one[0], **one[1]) for one in replies))
        middleware = [part, *([OpenClawRecallMiddleware(part.memory)] if recalls else [])]
        made = memory_tools(part.memory) if tools else []
        agent = create_agent(model, made, system_prompt="Be kind.", middleware=middleware)
        config = {"configurable": {"thread_id": "1", **(values or {}), **({"session_key": session} if session else {})}}
        done = await agent.ainvoke(says("When was the boiler serviced?"), config)
        assert not [message for message in done["messages"] if "You are Kit" in message.text]
        assert ("recalled-memory" in model.requests[-1].messages[1].text) is recalls
        return [request.messages[0].text for request in model.requests]


@pytest.mark.parametrize("prompt", [None, SystemMessage([{"type": "text", "text": "Be kind."}])])
def test_a_prompt_of_parts_keeps_them_and_none_is_needed(lived_in, scripted, prompt):
    model = scripted("Hello.")
    agent = create_agent(model, [], system_prompt=prompt, middleware=[OpenClawSessionStartMiddleware(lived_in)])
    agent.invoke(says("Hello?"))
    system = model.requests[0].messages[0]
    assert isinstance(system, SystemMessage)
    assert "You are Kit" in system.text
    assert prompt is None or system.content[0] == {"type": "text", "text": "Be kind."}


def test_of_two_memories_each_has_its_text(lived_in, scripted, tmp_path):
    (tmp_path / "work").mkdir()
    with Memory.open(tmp_path / "work") as work:
        work.append("The budget is due.")
        tools = [*memory_tools(lived_in, name="home"), *memory_tools(work, name="work")]
        both = ((lived_in, "home"), (work, "work"))
        start = [OpenClawSessionStartMiddleware(memory, name=name) for memory, name in both]
        model = scripted("Hello.")
        create_agent(model, tools, middleware=start).invoke(says("Hello?"))
    system = model.requests[0].messages[0].text
    assert system.count("home_memory_search") == system.count("work_memory_search") == 1
    assert "The budget is due." in system
    assert "You are Kit" in system
