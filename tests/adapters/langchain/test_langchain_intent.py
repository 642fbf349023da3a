"""What a message wants is suggested to an agent's model, or asked of the user, and nothing is done by it."""

import asyncio
import copy
import itertools

import pytest
from chat_scripts import Scripted, chat_with, run, says, thread
from contract_agents import FORGET, REMEMBER, IntentContract, Talk, intent
from langchain.agents import create_agent
from langchain_openclaw_memory import OpenClawIntentMiddleware, OpenClawRecallMiddleware, memory_tools
from langchain_openclaw_memory.testing import make_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError


def agent_of(memory, model, intents, *more, **wishes):
    return agent_with(memory, model, OpenClawIntentMiddleware(memory, intents, **wishes), *more)


def agent_with(memory, model, *middleware):
    tools, saver = memory_tools(memory, include=("search", "get", "append", "forget")), InMemorySaver()
    return create_agent(model, tools, system_prompt="Be kind.", middleware=middleware, checkpointer=saver)


def systems(model):
    """What the model had as its system message, in each call."""
    return [request.messages[0].text for request in model.requests]


class TestContract(Scripted, IntentContract):
    ways = tuple({"mode": mode, "is_async": is_async} for mode in ("note", "interrupt") for is_async in (False, True))
    in_each_call = {}, {"is_async": True}
    before = "Be kind.\n\n"

    def part(self, memory, *replies, **wishes):
        def reply(request):
            answer = next(script)
            if isinstance(answer, Exception):
                raise answer
            return answer(request.text) if callable(answer) else answer

        script = itertools.cycle(replies)
        return OpenClawIntentMiddleware(memory, self.scripted(reply), **wishes)

    async def talk(self, memory, replies, *messages, searches=False, session=None, is_async=False, **wishes):
        middleware = self.part(memory, *replies, **wishes)
        model = self.scripted(
            *([make_call("memory_search", query="Carla")] if searches else []), *["Vale."] * len(messages)
        )
        agent = agent_with(memory, model, middleware)
        config = thread() if session is None else thread(session_key=session)
        for message in messages:
            done = await run(agent, says(message), config, is_async=is_async)
            assert "__interrupt__" not in done
            assert "openclaw_intent" not in done
        asked = [request.text for request in middleware.model.requests]
        return Talk(systems(model), asked, [one.text for one in done["messages"]])

    async def hint(self, part, message):
        model = self.scripted("Vale.")
        agent = create_agent(model, memory_tools(part.memory), middleware=[part])
        await asyncio.to_thread(agent.invoke, says(message))
        return systems(model)[0]

    def check_silent(self, talk):
        super().check_silent(talk)
        assert set(talk.systems) == {"Be kind."}

    def test_a_copy_is_the_same_part(self, memory):
        part = self.part(memory, "x")
        assert copy.deepcopy({"of": [part]})["of"][0] is part

    async def test_a_run_that_no_user_asked_for_costs_no_call(self, kept):
        for mode in ("note", "interrupt"):
            middleware, model = self.part(kept, intent("forget", "caldera"), mode=mode), self.scripted("Vale.")
            agent_with(kept, model, middleware).invoke(says(FORGET), thread(run_kind="heartbeat"))
            assert systems(model) == ["Be kind."]
            assert middleware.model.requests == []


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("agrees", "told"),
    [
        (True, "agrees: save what their message says with memory_append"),
        (False, "save nothing"),
        ("yes", "save nothing"),
    ],
)
async def test_the_user_is_asked_before_something_is_remembered(memory, scripted, agrees, told, asynchronous):
    model, intents = scripted("Klaar."), scripted(intent("remember", "Carla"))
    agent = agent_of(memory, model, intents, OpenClawRecallMiddleware(memory), mode="interrupt")
    (asked,) = (await run(agent, says(REMEMBER), thread(), is_async=asynchronous))["__interrupt__"]
    assert asked.value == {
        "type": "openclaw_memory_intent", "suggestion": "memory_write", "entities": ["Carla"],
        "message": "Zal ik dit onthouden over: Carla?",
    }  # fmt: skip
    assert model.requests == []
    done = await run(agent, Command(resume=agrees), thread(), is_async=asynchronous)
    assert done["messages"][-1].text == "Klaar."
    assert told in systems(model)[0]
    assert len(intents.requests) == 1


@pytest.mark.parametrize("agrees", [True, False])
async def test_the_very_lines_are_shown_before_they_are_forgotten(kept, scripted, agrees):
    model = scripted(make_call("memory_get", path="memory/2026-11-21.md"), "Hecho.")
    intents = scripted(intent("forget", "caldera", language="es"))
    agent = agent_of(kept, model, intents, mode="interrupt")
    (asked,) = agent.invoke(says(FORGET), thread())["__interrupt__"]
    assert asked.value["message"] == "¿Quieres que olvide estas líneas sobre: caldera?"
    assert [line["text"] for line in asked.value["lines"]] == ["La caldera hace ruido."]
    assert asked.value["lines"][0]["citation"].startswith("memory/2026-11-21.md#L")
    done = agent.invoke(Command(resume=agrees), thread())
    assert "__interrupt__" not in done
    assert ["La caldera hace ruido." in system for system in systems(model)] == [agrees] * 2
    assert ["delete nothing" in system for system in systems(model)] == [not agrees] * 2
    assert len(intents.requests) == 1


async def test_an_interrupt_outlives_the_process(tmp_path, kept, scripted):
    from langgraph.checkpoint.sqlite import SqliteSaver

    first, second = scripted(intent("remember", "Carla")), scripted(intent("forget", "Carla"))
    for intents, given in ((first, says(REMEMBER)), (second, Command(resume=True))):
        with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
            model, middleware = scripted("Klaar."), OpenClawIntentMiddleware(kept, intents, mode="interrupt")
            done = chat_with(middleware, model=model, tools=memory_tools(kept), saver=saver).invoke(given, thread())
    assert done["messages"][-1].text == "Klaar."
    assert "agrees" in systems(model)[0]
    assert second.requests == []


async def test_without_the_tool_that_it_takes_nothing_is_suggested(kept, scripted):
    model = scripted("Klaar.")
    agent = create_agent(model, [], middleware=[OpenClawIntentMiddleware(kept, scripted(intent("remember", "Carla")))])
    agent.invoke(says(REMEMBER))
    assert model.requests[0].messages[0].type == "human"


async def test_of_two_memories_each_is_spoken_of_by_its_tools(kept, scripted, tmp_path):
    with Memory.open(tmp_path / "agent", embedder=None) as work:
        tools = [*memory_tools(kept, name="home"), *memory_tools(work, name="work")]
        middleware = [
            OpenClawIntentMiddleware(kept, scripted(intent("remember", "Carla")), name="home"),
            OpenClawIntentMiddleware(work, scripted(intent("query", "Carla")), name="work"),
        ]
        model = scripted("Klaar.")
        create_agent(model, tools, middleware=middleware).invoke(says(REMEMBER))
    (system,) = systems(model)
    assert "save it with home_memory_append" in system
    assert "call work_memory_search" in system


async def test_no_stream_has_the_call_that_finds_the_intent(kept, scripted):
    model, intents = scripted("Klaar."), scripted(intent("remember", "Carla"))
    agent = agent_of(kept, model, intents)
    pieces = [piece.text async for piece, _ in agent.astream(says(REMEMBER), thread(), stream_mode="messages")]
    assert "".join(pieces) == "Klaar."
    assert len(intents.requests) == 1


async def test_a_wrong_argument_is_said_at_once(memory, scripted):
    with pytest.raises(ConfigError, match="'note' or 'interrupt'"):
        OpenClawIntentMiddleware(memory, scripted("x"), mode="act")
    with pytest.raises(ConfigError, match="no chat model"):
        OpenClawIntentMiddleware(memory, None)
