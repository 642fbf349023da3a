"""The turns of an agent as an OpenClaw session."""

import asyncio
import copy
import json
from functools import partial

import langchain_openclaw_memory as ours
import pytest
from chat_scripts import SUMMARY, chat_with, run, says, thread
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openclaw_memory.testing import make_call
from langgraph.checkpoint.memory import InMemorySaver

from openclaw_memory.conversation import get_text, load_conversation

THREAD = thread()
ASKED = "Do I need a hat?"


def weather(place: str) -> str:
    """The weather."""
    return f"sunny in {place}"


@pytest.fixture
def entries(memory):
    return lambda session="tuesday": [
        entry for entry in memory.sessions.log(session).read_entries() if entry["type"] != "session"
    ]


@pytest.fixture
def texts(memory):
    return lambda session="tuesday": [get_text(message) for message in memory.sessions.log(session).read_messages()]


@pytest.fixture
def asks_weather(memory, scripted):
    """An agent that looks at the weather before it answers."""
    model = scripted(make_call("weather", place="Delft"), "Take a hat.", "You are welcome.")
    return chat_with(ours.OpenClawTranscriptMiddleware(memory), model=model, tools=[weather])


def edit(agent, message, config=THREAD):
    return agent.update_state(config, {"messages": [message]})


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_said_and_what_tools_answer_is_written_once(memory, asks_weather, texts, entries, is_async):
    for text in (ASKED, "Thanks."):
        said = {"messages": [SystemMessage("Be brief."), HumanMessage(text)]}
        await run(asks_weather, said, THREAD, is_async=is_async)
    assert texts() == [ASKED, "", "sunny in Delft", "Take a hat.", "Thanks.", "You are welcome."]
    call, result = entries()[1:3]
    called = {"type": "toolCall", "id": "call", "name": "weather", "arguments": {"place": "Delft"}}
    assert call["message"]["content"] == [called]
    assert (result["message"]["toolCallId"], result["message"]["toolName"]) == ("call", "weather")
    memory.sync()
    assert "hat" in memory.search("hat", filter={"source": "sessions"})[0].snippet


def test_a_summary_becomes_a_compaction_and_the_log_reads_as_the_model_saw_it(memory, scripted, entries):
    summarization = SummarizationMiddleware(scripted(SUMMARY), trigger=("messages", 5), keep=("messages", 2))
    agent = chat_with(ours.OpenClawTranscriptMiddleware(memory), summarization)
    for number in range(5):
        state = agent.invoke(says(f"Number {number}."), THREAD)
    compactions = [entry for entry in entries() if entry["type"] == "compaction"]
    assert len(compactions) == 3
    assert SUMMARY in compactions[0]["summary"]
    assert compactions[0]["tokensBefore"] > 0
    shown = [get_text(message) for message in load_conversation(memory.sessions.log("tuesday"))]
    assert SUMMARY in shown[0]
    assert shown[1:] == [message.text for message in state["messages"][1:]]


# --- what is changed later


def test_a_message_that_is_edited_later_is_written_again_as_it_is_now(memory, texts, entries):
    saver = InMemorySaver()

    def agent():  # after a restart
        return chat_with(ours.OpenClawTranscriptMiddleware(memory), saver=saver)

    agent().invoke({"messages": [HumanMessage("The code is 1111.", id="h1")]}, THREAD)
    edit(agent(), HumanMessage("The code is 4711.", id="h1"))
    for text in ("Thanks.", "Bye."):
        agent().invoke(says(text), THREAD)
    assert texts() == ["The code is 1111.", "ok", "The code is 4711.", "Thanks.", "ok", "Bye.", "ok"]
    assert [entry["corrects"] for entry in entries() if "corrects" in entry] == ["h1"]
    edit(agent(), HumanMessage("The code is 1111.", id="h1"))
    agent().invoke(says("Hm."), THREAD)
    assert texts()[-3:] == ["The code is 1111.", "Hm.", "ok"]
    ids = [entry["id"] for entry in entries()]
    assert len(set(ids)) == len(ids)


def test_a_question_that_is_edited_and_asked_again_is_a_branch(memory, texts, entries):
    agent = chat_with(ours.OpenClawTranscriptMiddleware(memory))
    for number, text in enumerate(("One.", "Two.")):
        agent.invoke({"messages": [HumanMessage(text, id=f"h{number}")]}, THREAD)
    asked = [state for state in agent.get_state_history(THREAD) if len(state.values["messages"]) in {1, 3}]
    agent.invoke(None, edit(agent, HumanMessage("Another two.", id="h1"), asked[0].config))
    assert texts() == ["One.", "ok", "Another two.", "ok"]
    agent.invoke(None, edit(agent, HumanMessage("Another one.", id="h0"), asked[-1].config))
    assert texts() == ["Another one.", "ok"]
    assert "Two." in str(entries())


def test_what_a_tool_gave_stays_and_the_calls_of_an_edited_reply_are_not_made_again(asks_weather, texts, entries):
    _, call, answer, _ = asks_weather.invoke(says(ASKED), THREAD)["messages"]
    edit(asks_weather, answer.model_copy(update={"content": "[cleared]"}))
    edit(asks_weather, call.model_copy(update={"content": "I look it up."}))
    asks_weather.invoke(says("Thanks."), THREAD)
    assert "[cleared]" not in texts()
    assert [get_text(entry["message"]) for entry in entries() if "corrects" in entry] == ["I look it up."]
    assert str(entries()).count("toolCall'") == 1


# --- what cannot be written


def test_a_message_that_no_log_can_hold_costs_none_of_the_others(memory, texts, caplog):
    saver = InMemorySaver()
    for text in ("One.", f"Four lines: {'x' * 9_000_000}", "\ud800 lone", "Four."):
        chat_with(ours.OpenClawTranscriptMiddleware(memory), saver=saver).invoke(says(text), THREAD)
    first, second, *others = [text for text in texts() if text != "ok"]
    assert (first, others) == ("One.", ["\ud800 lone", "Four."])
    assert second.startswith("Four lines: ")
    assert "[not all is kept: it has 9,0" in second
    assert len(caplog.records) == 1


async def test_a_run_without_a_thread_goes_on_and_that_it_is_not_written_is_said_once(memory, scripted, caplog):
    agent = create_agent(scripted("ok"), [], middleware=[ours.OpenClawTranscriptMiddleware(memory)])
    for is_async in (False, True):
        assert (await run(agent, says("One."), is_async=is_async))["messages"][-1].text == "ok"
    assert caplog.text.count("session_key=...") == 1
    assert not (memory.workspace.root / "sessions").exists()


def test_a_transcript_that_cannot_be_written_is_reported_once_breaks_no_run_and_is_written_later(memory, texts, caplog):
    (memory.workspace.root / "sessions").write_text("in the way")
    agent = chat_with(ours.OpenClawTranscriptMiddleware(memory))
    for text in ("One.", "Two.", "Three."):
        assert agent.invoke(says(text), THREAD)["messages"][-1].text == "ok"
        if text == "Two.":
            assert len(caplog.records) == 1
            (memory.workspace.root / "sessions").unlink()
    assert texts() == ["One.", "ok", "Two.", "ok", "Three.", "ok"]


# --- beside other parts


@pytest.mark.parametrize("flush_first", [False, True])
def test_the_turns_of_a_flush_never_appear_and_what_a_failed_one_keeps_is_not_written_again(
    memory, scripted, entries, flush_first
):
    flush_model = scripted(RuntimeError("no credit left"))
    options = {"flush_model": flush_model, "trigger": ("messages", 3), "keep": ("messages", 1)}
    both = [
        ours.OpenClawTranscriptMiddleware(memory),
        ours.OpenClawSummarizationMiddleware(scripted("In short."), memory, **options),
    ]
    agent = chat_with(*(both[::-1] if flush_first else both))
    for text in ("One.", "Two.", "Three."):
        agent.invoke(says(text), THREAD)
    assert flush_model.requests
    said = [get_text(entry["message"]) for entry in entries() if entry["type"] == "message"]
    assert [text for text in said if text != "ok"] == ["One.", "Two.", "Three."]
    assert "flush" not in str(entries())


def test_an_agent_in_a_tool_of_an_agent_has_a_transcript_of_its_own(memory, scripted, texts):
    expert = create_agent(scripted("Sunny."), [], middleware=[ours.OpenClawTranscriptMiddleware(memory)])

    def ask_the_expert(question: str) -> str:
        """Asks somebody who knows."""
        return expert.invoke(says(question))["messages"][-1].text

    model = scripted(make_call("ask_the_expert", question="How is it in Delft?"), "Take a hat.")
    chief = chat_with(ours.OpenClawTranscriptMiddleware(memory), model=model, tools=[ask_the_expert])
    for text in (ASKED, "Thanks."):
        chief.invoke(says(text), THREAD)
    assert texts() == [ASKED, "", "Sunny.", "Take a hat.", "Thanks.", "Take a hat."]
    assert texts("tuesday:tools") == ["How is it in Delft?", "Sunny."]


@pytest.mark.parametrize("in_threads", [False, True])
async def test_what_replies_have_read_and_said_is_counted_once_for_each_session(memory, scripted, in_threads):
    saver, sessions = InMemorySaver(), ("monday", "tuesday", "wednesday")
    for number in range(2):  # the second time as after a restart
        agent = chat_with(
            ours.OpenClawTranscriptMiddleware(memory), model=scripted("It is cold.", usage=lambda _: 100), saver=saver
        )
        invoke = partial(asyncio.to_thread, agent.invoke) if in_threads else agent.ainvoke
        await asyncio.gather(*(invoke(says(f"Number {number}."), thread(name)) for name in sessions))
    said = count_tokens_approximately([AIMessage("It is cold.")])
    states = [memory.sessions.flush(name).state for name in sessions]
    assert [(state.input_tokens, state.output_tokens) for state in states] == [(200, 2 * said)] * 3
    written = json.loads((memory.workspace.root / "sessions/sessions.json").read_text())
    assert {name: entry["inputTokens"] for name, entry in written.items()} == dict.fromkeys(sessions, 200)


def test_an_agent_works_with_copies_of_its_middleware_and_counts_no_tokens_without_a_report(memory, scripted, texts):
    parts = [ours.OpenClawRecallMiddleware(memory), ours.OpenClawTranscriptMiddleware(memory, session_key="mine")]
    for text in ("One.", "Two."):
        chat_with(*copy.deepcopy(parts), model=scripted("ok", usage=None)).invoke(says(text), THREAD)
    assert texts("mine") == ["One.", "ok", "Two.", "ok"]
    assert not (memory.workspace.root / "sessions/sessions.json").exists()
