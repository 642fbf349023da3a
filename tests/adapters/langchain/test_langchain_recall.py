"""An agent is shown what its memory holds on the user's message, and its conversation stays as it was."""

import re

import pytest
from adapter_agent_contracts import QUESTION, RecallContract
from adapter_agent_contracts import SERVICED as FACT
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware, wrap_model_call
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openclaw_memory import OpenClawRecallMiddleware, OpenClawTranscriptMiddleware, memory_tools
from langchain_openclaw_memory.testing import ScriptedChatModel, saying
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted_chat import chat_with

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import FLUSH_TAG

THREAD = {"configurable": {"thread_id": "1"}}
SEARCH = {"name": "memory_search", "args": {"query": "spare key"}, "id": "1", "type": "tool_call"}


@pytest.fixture
def memory(synced):
    return synced


def model_saying(*answers):
    return ScriptedChatModel(script=saying(*answers))


def shown_to(model):
    return [request.messages for request in model.requests]


async def asked(agent, content, asynchronous=False, config=None):
    given = {"messages": [HumanMessage(content)]}
    config = {**THREAD, **(config or {})}
    return await agent.ainvoke(given, config) if asynchronous else agent.invoke(given, config)


def agent_with(memory, model, **wishes):
    tools = memory_tools(memory)
    return create_agent(
        model,
        tools,
        system_prompt="Be kind.",
        middleware=[OpenClawRecallMiddleware(memory, **wishes)],
        checkpointer=InMemorySaver(),
    )


class TestContract(RecallContract):
    part = OpenClawRecallMiddleware

    async def recalled(self, part, text, image="", session=None):
        model = model_saying("Fine.")
        agent = create_agent(model, middleware=[part])
        content = [{"type": "text", "text": text}, {"type": "image", "url": image}] if image else text
        config = {"configurable": {} if session is None else {"session_key": session}}
        assert (await asked(agent, content, asynchronous=True, config=config))["messages"][-1].text == "Fine."
        shown = model.requests[0].messages[-1].content
        if not image:
            assert shown.endswith(content)
            return shown.removesuffix(content)
        block, *rest = shown
        assert rest == content, "a message of several parts keeps them"
        return block["text"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_model_is_shown_a_fenced_block_and_the_conversation_stays_as_it_was(memory, asynchronous):
    model = model_saying("Van Dam.")
    done = await asked(agent_with(memory, model), QUESTION, asynchronous)
    (system, shown) = model.requests[0].messages
    assert system.content == "Be kind."
    block, _, question = shown.content.rpartition("\n\n")
    assert question == QUESTION
    assert block.startswith("<recalled-memory id=")
    place, _, text = block.partition("\n")[2].partition("\n")
    assert place.startswith("[memory/household.md#L1-L3 ")
    assert text.startswith(f"# Household\n\n{FACT}")
    assert [message.content for message in done["messages"]] == [QUESTION, "Van Dam."]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_only_the_latest_message_has_a_block_and_it_is_a_fresh_one(memory, asynchronous):
    model = model_saying("Van Dam.", "Still him.")
    agent = agent_with(memory, model)
    await asked(agent, QUESTION, asynchronous)
    memory.append("The boiler is serviced by Jansen from now on.", date="2026-03-02")
    memory.sync()
    await asked(agent, QUESTION, asynchronous)
    _, earlier, _, latest = model.requests[1].messages
    assert earlier.content == QUESTION
    assert "Jansen" in latest.content
    assert "Jansen" not in model.requests[0].messages[1].content


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_same_message_in_another_run_is_shown_what_the_memory_holds_then(memory, asynchronous):
    model = model_saying("Van Dam.", "Jansen.")
    agent = create_agent(model, middleware=[OpenClawRecallMiddleware(memory)])
    for fact in (None, "The boiler is serviced by Jansen from now on."):
        if fact:
            memory.append(fact, date="2026-03-02")
            memory.sync()
        given = {"messages": [HumanMessage(QUESTION, id="q1")]}
        await agent.ainvoke(given) if asynchronous else agent.invoke(given)
    assert ["Jansen" in messages[0].text for messages in shown_to(model)] == [False, True]


async def test_a_turn_that_waits_for_approval_goes_on_with_the_same_block(memory):
    model = model_saying(AIMessage("", tool_calls=[SEARCH]), "Van Dam.")
    agent = chat_with(
        OpenClawRecallMiddleware(memory),
        HumanInTheLoopMiddleware(interrupt_on={"memory_search": True}),
        model=model,
        tools=memory_tools(memory),
    )
    await asked(agent, QUESTION)
    memory.append("The boiler is serviced by Jansen from now on.", date="2026-03-02")
    memory.sync()
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    first, second = (messages[0].text for messages in shown_to(model))
    assert FACT in first
    assert first == second


def chat_with_a_transcript(memory, model, *more):
    middleware = [OpenClawTranscriptMiddleware(memory), *more, OpenClawRecallMiddleware(memory)]
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver())


async def test_the_conversation_that_the_model_is_shown_anyway_is_not_recalled(memory):
    model = model_saying(*["Noted."] * 3)
    agent = chat_with_a_transcript(memory, model)
    for text in ("My cat is called Tom.", "What is my cat called?", "thanks!"):
        await asked(agent, text)
        memory.sync()
    assert "Tom" not in "".join(messages[-1].text for messages in shown_to(model)[1:])
    # Of another thread it is recalled.
    other = model_saying("Tom.")
    another_thread = {"configurable": {"thread_id": "2"}}
    await asked(chat_with_a_transcript(memory, other), "What is my cat called?", config=another_thread)
    assert "My cat is called Tom." in other.requests[0].messages[-1].text


async def test_after_a_summary_the_older_part_of_the_conversation_is_recalled(memory):
    model, summariser = model_saying(*["Noted."] * 5), model_saying(*["They spoke of pets."] * 5)
    summarization = SummarizationMiddleware(summariser, trigger=("messages", 5), keep=("messages", 2))
    agent = chat_with_a_transcript(memory, model, summarization)
    for text in ("My cat is called Tom.", "Hello.", "Hello again.", "What is my cat called?"):
        await asked(agent, text)
        memory.sync()
    assert "pets" in model.requests[-1].messages[0].text
    assert "My cat is called Tom." in model.requests[-1].messages[-1].text


async def test_a_model_that_fails_is_not_taken_for_the_memory(memory):
    with pytest.raises(RuntimeError, match="no credit"):
        await asked(agent_with(memory, model_saying(RuntimeError("no credit"))), QUESTION)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_silent_flush_is_shown_nothing(memory, asynchronous):
    model = model_saying("NO_REPLY")
    await asked(agent_with(memory, model), QUESTION, asynchronous, {"tags": [FLUSH_TAG]})
    assert model.requests[0].messages[1].content == QUESTION


async def test_a_summary_is_not_taken_for_a_question(memory):
    model, summariser = model_saying("Yes.", "Van Dam."), model_saying("They spoke of the boiler.")
    summarization = SummarizationMiddleware(summariser, trigger=("messages", 3), keep=("messages", 1))
    recall = OpenClawRecallMiddleware(memory)
    agent = create_agent(model, middleware=[recall, summarization], checkpointer=InMemorySaver())
    await asked(agent, "Hello, is anybody there?")
    await asked(agent, QUESTION)
    summary, question = model.requests[1].messages
    assert "They spoke of the boiler." in summary.content
    assert "recalled-memory" not in summary.content
    assert FACT in question.content


async def test_what_streams_to_the_user_holds_no_block(memory):
    agent = agent_with(memory, model_saying("Van Dam."))
    given = {"messages": [HumanMessage(QUESTION)]}
    modes = ["messages", "updates", "values", "custom"]
    pieces = [str(piece) async for piece in agent.astream(given, THREAD, stream_mode=modes)]
    assert "Van" in "".join(pieces)
    assert not [piece for piece in pieces if "recalled-memory" in piece]


async def test_a_conversation_without_a_user_goes_on(memory):
    model = model_saying("Hello.")
    agent = create_agent(model, middleware=[OpenClawRecallMiddleware(memory)])
    assert agent.invoke({"messages": [AIMessage("Hi")]})["messages"][-1].content == "Hello."


def test_two_memories_are_recalled_in_one_agent(memory, scripted, tmp_path):
    (tmp_path / "work").mkdir()
    with Memory.open(tmp_path / "work", embedder=None) as work:
        work.append("The boiler invoice is due on Monday.", date="2026-11-21")
        work.sync()
        model = scripted("Fine.")
        parts = [OpenClawRecallMiddleware(memory), OpenClawRecallMiddleware(work, memory_name="work")]
        agent = create_agent(model, [], middleware=parts)
        agent.invoke({"messages": [HumanMessage("When is the boiler serviced?")]})
        shown = str(model.requests[-1].messages[-1].content)
        assert re.findall(r'<recalled-memory id="\w+" from="(\w+)">', shown) == ["work", "memory"]
        assert "invoice is due" in shown


def test_two_tools_of_one_name_are_an_error(memory, scripted):
    tools = memory_tools(memory)

    @wrap_model_call
    def doubled(request, handler):
        return handler(request.override(tools=[*tools, *memory_tools(memory)]))

    agent = create_agent(scripted("Fine."), tools, middleware=[doubled, OpenClawRecallMiddleware(memory)])
    with pytest.raises(ConfigError, match="two tools of the agent are called 'memory_append'"):
        agent.invoke({"messages": [HumanMessage("When is the boiler serviced?")]})
