"""An agent is shown what its memory holds on the user's message, and its conversation stays as it was."""

import re

import pytest
from chat_scripts import Scripted, chat_with, run, thread
from contract_agents import QUESTION, RecallContract
from contract_agents import SERVICED as FACT
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware, wrap_model_call
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openclaw_memory import OpenClawRecallMiddleware, OpenClawTranscriptMiddleware, memory_tools
from langchain_openclaw_memory.testing import make_call
from langgraph.types import Command

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError

RUNS = pytest.mark.parametrize("is_async", [False, True])


@pytest.fixture
def memory(synced):
    return synced


def learn(memory):
    memory.append("The boiler is serviced by Jansen from now on.", date="2026-03-02")
    memory.sync()


async def ask(agent, content, config=None, *, is_async=True, **message):
    return await run(agent, {"messages": [HumanMessage(content, **message)]}, config or thread(), is_async=is_async)


class TestContract(Scripted, RecallContract):
    part = OpenClawRecallMiddleware

    async def recalled(self, part, text, image="", session=None):
        model = self.scripted("Fine.")
        content = [{"type": "text", "text": text}, {"type": "image", "url": image}] if image else text
        config = {"configurable": {} if session is None else {"session_key": session}}
        assert (await ask(create_agent(model, middleware=[part]), content, config))["messages"][-1].text == "Fine."
        shown = model.requests[0].messages[-1].content
        if not image:
            assert shown.endswith(content)
            return shown.removesuffix(content)
        block, *rest = shown
        assert rest == content, "a message of several parts keeps them"
        return block["text"]


@RUNS
async def test_only_the_latest_message_has_a_block_and_the_conversation_stays_as_it_was(memory, scripted, is_async):
    model = scripted("Van Dam.", "Still him.")
    agent = chat_with(OpenClawRecallMiddleware(memory), model=model, tools=memory_tools(memory))
    await ask(agent, QUESTION, is_async=is_async)
    learn(memory)
    done = await ask(agent, QUESTION, is_async=is_async)
    first, (earlier, _, latest) = model.requests[0].messages[0], model.requests[1].messages
    assert first.text.startswith("<recalled-memory id=")
    assert first.text.endswith(f"\n\n{QUESTION}")
    assert [earlier.text, "Jansen" in latest.text, "Jansen" in first.text] == [QUESTION, True, False]
    assert [message.text for message in done["messages"]] == [QUESTION, "Van Dam.", QUESTION, "Still him."]


@RUNS
async def test_the_same_message_in_another_run_is_shown_what_the_memory_holds_then(memory, scripted, is_async):
    model = scripted("Van Dam.", "Jansen.")
    agent = create_agent(model, middleware=[OpenClawRecallMiddleware(memory)])
    for _ in range(2):
        await ask(agent, QUESTION, {}, id="q1", is_async=is_async)
        learn(memory)
    assert ["Jansen" in request.text for request in model.requests] == [False, True]


async def test_a_turn_that_waits_for_approval_goes_on_with_the_same_block(memory, scripted):
    model = scripted(make_call("memory_search", query="spare key"), "Van Dam.")
    approval = HumanInTheLoopMiddleware(interrupt_on={"memory_search": True})
    agent = chat_with(OpenClawRecallMiddleware(memory), approval, model=model, tools=memory_tools(memory))
    await ask(agent, QUESTION)
    learn(memory)
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread())
    first, second = (request.messages[0].text for request in model.requests)
    assert FACT in first
    assert first == second


def chat_with_a_transcript(memory, model, *more):
    return chat_with(OpenClawTranscriptMiddleware(memory), *more, OpenClawRecallMiddleware(memory), model=model)


async def test_the_conversation_that_the_model_is_shown_anyway_is_not_recalled(memory, scripted):
    model = scripted("Noted.")
    agent = chat_with_a_transcript(memory, model)
    for text in ("My cat is called Tom.", "What is my cat called?", "thanks!"):
        await ask(agent, text)
        memory.sync()
    assert "Tom" not in "".join(request.messages[-1].text for request in model.requests[1:])
    await ask(chat_with_a_transcript(memory, model), "What is my cat called?", thread("another"))
    assert "My cat is called Tom." in model.requests[-1].text


async def test_after_a_summary_the_older_part_is_recalled_and_the_summary_is_not_taken_for_a_question(memory, scripted):
    model, summariser = scripted("Noted."), scripted("They spoke of pets, and of the boiler.")
    summarization = SummarizationMiddleware(summariser, trigger=("messages", 5), keep=("messages", 2))
    agent = chat_with_a_transcript(memory, model, summarization)
    for text in ("My cat is called Tom.", "Hello.", "Hello again.", "What is my cat called?"):
        await ask(agent, text)
        memory.sync()
    summary, *_, question = model.requests[-1].messages
    assert "pets" in summary.text
    assert "recalled-memory" not in summary.text
    assert "My cat is called Tom." in question.text
    for keep in (1, 2):  # of the question and the reply to it
        summarization = SummarizationMiddleware(summariser, trigger=("messages", 5), keep=("messages", keep))
        alone = create_agent(model, middleware=[OpenClawRecallMiddleware(memory), summarization])
        await run(alone, {"messages": ["a", "b", "c", "d", QUESTION, AIMessage("Hm.")]})
        assert (FACT in model.requests[-1].text) is (keep == 2)
        assert "recalled-memory" not in model.requests[-1].messages[0].text


async def test_a_model_that_fails_is_not_taken_for_the_memory(memory, scripted):
    agent = create_agent(scripted(RuntimeError("no credit")), middleware=[OpenClawRecallMiddleware(memory)])
    with pytest.raises(RuntimeError, match="no credit"):
        await ask(agent, QUESTION)


@RUNS
async def test_a_conversation_without_a_user_is_shown_nothing(memory, scripted, is_async):
    model = scripted("Hm.")
    agent = create_agent(model, middleware=[OpenClawRecallMiddleware(memory)])
    await run(agent, {"messages": [AIMessage(QUESTION)]}, is_async=is_async)
    assert [request.text for request in model.requests] == [QUESTION]


async def test_what_streams_to_the_user_holds_no_block(memory, scripted):
    agent = create_agent(scripted("Van Dam."), middleware=[OpenClawRecallMiddleware(memory)])
    given, modes = {"messages": [HumanMessage(QUESTION)]}, ["messages", "updates", "values", "custom"]
    pieces = [str(piece) async for piece in agent.astream(given, stream_mode=modes)]
    assert "Van" in "".join(pieces)
    assert not [piece for piece in pieces if "recalled-memory" in piece]


async def test_two_memories_are_recalled_in_one_agent(memory, scripted, tmp_path):
    (tmp_path / "work").mkdir()
    with Memory.open(tmp_path / "work", embedder=None) as work:
        work.append("The boiler invoice is due on Monday.", date="2026-11-21")
        work.sync()
        model = scripted("Fine.")
        parts = [OpenClawRecallMiddleware(memory), OpenClawRecallMiddleware(work, name="work")]
        await ask(create_agent(model, [], middleware=parts), "When is the boiler serviced?")
    shown = model.requests[-1].text
    assert re.findall(r'<recalled-memory id="\w+" from="(\w+)">', shown) == ["work", "memory"]
    assert "invoice is due" in shown


def test_two_tools_of_one_name_are_an_error(memory, scripted):
    tools = memory_tools(memory)

    @wrap_model_call
    def doubled(request, handler):
        return handler(request.override(tools=[*tools, *memory_tools(memory)]))

    agent = create_agent(scripted("Fine."), tools, middleware=[doubled, OpenClawRecallMiddleware(memory)])
    with pytest.raises(ConfigError, match="two tools are called 'memory_search'"):
        agent.invoke({"messages": [HumanMessage("When is the boiler serviced?")]})
