"""An agent starts with what its memory loads, in the system message of each call, and its conversation stays as it was."""

import copy
import logging

import pytest
from langchain.agents import create_agent
from langchain_core.messages import SystemMessage
from langchain_openclaw_memory import RecallMiddleware, SessionStartMiddleware, memory_tools
from langchain_openclaw_memory.testing import calling
from langgraph.checkpoint.memory import InMemorySaver
from scripted_chat import says

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, InvalidInputError

GROUP = {"configurable": {"session_key": "agent:main:telegram:group:7", "thread_id": "7"}}
ALONE = {"configurable": {"thread_id": "1"}}


def agent_of(model, memory, *more, system_prompt="Be kind.", **wishes):
    middleware = [SessionStartMiddleware(memory, **wishes), *more]
    return create_agent(
        model, memory_tools(memory), system_prompt=system_prompt, middleware=middleware, checkpointer=InMemorySaver()
    )


async def ask(agent, asynchronous=False, config=ALONE):
    given = says("Hello?")
    return await agent.ainvoke(given, config) if asynchronous else agent.invoke(given, config)


def systems(model):
    return [request.messages[0] for request in model.requests]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_every_call_of_a_run_has_the_same_text_below_the_prompt(lived_in, scripted, asynchronous):
    model = scripted(calling("memory_search", query="boiler"), "Hello.")
    done = await ask(agent_of(model, lived_in), asynchronous)
    first, second = systems(model)
    assert first.content == second.content
    assert first.content.startswith("Be kind.\n\n## Memory Recall\n")
    for part in ("You are Kit", "Anna lives in Delft.", "The boiler was serviced."):
        assert first.content.count(part) == 1
    assert [message.type for message in done["messages"]] == ["human", "ai", "tool", "ai"]


async def test_in_a_group_long_term_memory_is_left_out(lived_in, scripted):
    model = scripted("Hello.", "Hello.")
    agent = agent_of(model, lived_in)
    await ask(agent, config=GROUP)
    await ask(agent)
    assert ["Delft" in message.content for message in systems(model)] == [False, True]


async def test_what_was_written_is_there_from_the_next_call_on(lived_in, scripted):
    model = scripted(calling("memory_append", text="Ines brings the projector."), "Noted.")
    await ask(agent_of(model, lived_in))
    first, second = (message.content for message in systems(model))
    assert "projector" not in first
    assert "projector" in second
    assert second.startswith(first.partition("<recalled-memory")[0])


@pytest.mark.parametrize("prompt", [None, SystemMessage([{"type": "text", "text": "Be kind."}])])
async def test_a_prompt_of_parts_keeps_them_and_none_is_needed(lived_in, scripted, prompt):
    model = scripted("Hello.")
    await ask(agent_of(model, lived_in, system_prompt=prompt))
    (system,) = systems(model)
    assert isinstance(system, SystemMessage)
    assert "You are Kit" in system.text
    assert prompt is None or system.content[0] == {"type": "text", "text": "Be kind."}


async def test_it_goes_with_what_is_recalled(lived_in, scripted):
    lived_in.sync()
    model = scripted("Hello.")
    agent = agent_of(model, lived_in, RecallMiddleware(lived_in))
    agent.invoke(says("When was the boiler serviced?"), ALONE)
    (request,) = model.requests
    assert "You are Kit" in request.messages[0].text
    assert "recalled-memory" in request.messages[1].text


async def test_a_memory_that_fails_costs_the_text_and_not_the_turn(lived_in, scripted, caplog):
    model = scripted("Hello.", "Hello.")
    agent = agent_of(model, lived_in)
    lived_in.close()
    with caplog.at_level(logging.WARNING):
        assert (await ask(agent))["messages"][-1].text == "Hello."
        await ask(agent)
    assert [message.text for message in systems(model)] == ["Be kind."] * 2
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


async def test_a_wrong_argument_is_said_at_the_first_call(lived_in, scripted):
    with pytest.raises(InvalidInputError, match="max_chars"):
        await ask(agent_of(scripted("Hello."), lived_in, max_chars=0))
    with pytest.raises(TypeError, match="must be a Memory"):
        SessionStartMiddleware("notes")


async def test_each_run_has_the_memory_of_its_person(users, scripted):
    model = scripted("Hello.", "Hello.")
    for name in ("anna", "bob"):
        with users.use(name) as memory:
            memory.append(f"{name} has a goat.")
    agent = create_agent(model, [], middleware=[SessionStartMiddleware(users.template("{user_id}"))])
    for name in ("anna", "bob"):
        agent.invoke(says("Hello?"), {"configurable": {"user_id": name}})
    assert ["anna has a goat." in message.text for message in systems(model)] == [True, False]
    assert ["bob has a goat." in message.text for message in systems(model)] == [False, True]
    with pytest.raises(ConfigError, match="user_id"):
        agent.invoke(says("Hello?"))


async def test_of_two_memories_each_has_its_text(lived_in, scripted, tmp_path):
    (tmp_path / "work").mkdir()
    with Memory.open(tmp_path / "work") as work:
        work.append("The budget is due.")
        tools = [*memory_tools(lived_in, name="home"), *memory_tools(work, name="work")]
        start = [SessionStartMiddleware(lived_in, memory_name="home"), SessionStartMiddleware(work, memory_name="work")]
        model = scripted("Hello.")
        create_agent(model, tools, middleware=start).invoke(says("Hello?"))
    (system,) = systems(model)
    assert system.text.count("home_memory_search") == system.text.count("work_memory_search") == 1
    assert "The budget is due." in system.text
    assert "You are Kit" in system.text


def test_a_copy_shares_the_memory(lived_in):
    middleware = SessionStartMiddleware(lived_in)
    assert copy.deepcopy(middleware).memory is lived_in
