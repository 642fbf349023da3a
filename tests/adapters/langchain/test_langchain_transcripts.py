"""The turns of an agent as an OpenClaw session."""

import asyncio
import copy
import json
from functools import partial

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openclaw_memory import MemoryFlushMiddleware, OpenClawRecallMiddleware, OpenClawTranscriptMiddleware
from langchain_openclaw_memory.testing import calling, saying
from langgraph.checkpoint.memory import InMemorySaver
from scripted_chat import SUMMARY, chat_with, says

from openclaw_memory.conversation import get_text, load_conversation

THREAD = {"configurable": {"thread_id": "tuesday"}}


def weather(place: str) -> str:
    """The weather."""
    return f"sunny in {place}"


def entries(memory, session="tuesday"):
    return [entry for entry in memory.sessions.log(session).read_entries() if entry["type"] != "session"]


def spoken(memory, session="tuesday"):
    return [(message["role"], get_text(message)) for message in memory.sessions.log(session).read_messages()]


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_said_and_what_tools_answer_is_written_once(memory, scripted, is_async):
    model = scripted(calling("weather", place="Delft"), "Take a hat.", "You are welcome.")
    agent = create_agent(
        model,
        [weather],
        middleware=[OpenClawTranscriptMiddleware(memory)],
        checkpointer=InMemorySaver(),
        system_prompt="Be kind.",
    )
    for text in ("Do I need a hat?", "Thanks."):
        said = {"messages": [SystemMessage("Be brief."), *says(text)["messages"]]}
        await agent.ainvoke(said, THREAD) if is_async else agent.invoke(said, THREAD)
    assert spoken(memory) == [
        ("user", "Do I need a hat?"),
        ("assistant", ""),
        ("toolResult", "sunny in Delft"),
        ("assistant", "Take a hat."),
        ("user", "Thanks."),
        ("assistant", "You are welcome."),
    ]
    call, result = entries(memory)[1:3]
    assert call["message"]["content"] == [
        {"type": "toolCall", "id": "call", "name": "weather", "arguments": {"place": "Delft"}}
    ]
    assert (result["message"]["toolCallId"], result["message"]["toolName"]) == ("call", "weather")
    memory.sync()
    assert "hat" in memory.search("hat", filter={"source": "sessions"})[0].snippet


def test_a_summary_becomes_a_compaction_and_the_log_reads_as_the_model_saw_it(memory, scripted):
    summarization = SummarizationMiddleware(scripted(SUMMARY), trigger=("messages", 5), keep=("messages", 2))
    agent = chat_with(OpenClawTranscriptMiddleware(memory), summarization)
    for number in range(5):
        state = agent.invoke(says(f"Number {number}."), THREAD)
    compactions = [entry for entry in entries(memory) if entry["type"] == "compaction"]
    assert len(compactions) == 3
    assert SUMMARY in compactions[0]["summary"]
    assert compactions[0]["tokensBefore"] > 0
    shown = load_conversation(memory.sessions.log("tuesday"))
    assert [get_text(message) for message in shown[1:]] == [message.text for message in state["messages"][1:]]
    assert SUMMARY in get_text(shown[0])


def edited(agent, saver_config, message):
    return agent.update_state(saver_config, {"messages": [message]})


def texts(memory):
    return [text for _, text in spoken(memory)]


def test_a_message_that_is_edited_later_is_written_again_as_it_is_now(memory, scripted):
    saver = InMemorySaver()

    def agent():
        return create_agent(scripted("ok"), [], middleware=[OpenClawTranscriptMiddleware(memory)], checkpointer=saver)

    agent().invoke({"messages": [HumanMessage("The code is 1111.", id="h1")]}, THREAD)
    edited(agent(), THREAD, HumanMessage("The code is 4711.", id="h1"))
    for text in ("Thanks.", "Bye."):
        agent().invoke(says(text), THREAD)
    assert texts(memory) == ["The code is 1111.", "ok", "The code is 4711.", "Thanks.", "ok", "Bye.", "ok"]
    assert [entry["corrects"] for entry in entries(memory) if "corrects" in entry] == ["h1"]
    edited(agent(), THREAD, HumanMessage("The code is 1111.", id="h1"))
    agent().invoke(says("Hm."), THREAD)
    assert texts(memory)[-3:] == ["The code is 1111.", "Hm.", "ok"]
    ids = [entry["id"] for entry in entries(memory)]
    assert len(set(ids)) == len(ids)


def test_a_question_that_is_edited_and_asked_again_is_a_branch(memory):
    agent = chat_with(OpenClawTranscriptMiddleware(memory))
    for number, text in enumerate(("One.", "Two.")):
        agent.invoke({"messages": [HumanMessage(text, id=f"h{number}")]}, THREAD)
    asked = [state for state in agent.get_state_history(THREAD) if len(state.values["messages"]) in {1, 3}]
    agent.invoke(None, edited(agent, asked[0].config, HumanMessage("Another two.", id="h1")))
    assert texts(memory) == ["One.", "ok", "Another two.", "ok"]
    agent.invoke(None, edited(agent, asked[-1].config, HumanMessage("Another one.", id="h0")))
    assert texts(memory) == ["Another one.", "ok"]
    assert "Two." in str(entries(memory))


def test_what_a_program_shortens_later_stays_as_the_tool_gave_it(memory, scripted):
    model = scripted(calling("weather", place="Delft"), "Take a hat.")
    agent = chat_with(OpenClawTranscriptMiddleware(memory), model=model, tools=[weather])
    answer = agent.invoke(says("Do I need a hat?"), THREAD)["messages"][2]
    edited(agent, THREAD, answer.model_copy(update={"content": "[cleared]"}))
    agent.invoke(says("Thanks."), THREAD)
    assert "[cleared]" not in texts(memory)


def test_the_calls_of_an_edited_reply_are_not_made_again(memory, scripted):
    model = scripted(calling("weather", place="Delft"), "Take a hat.")
    agent = chat_with(OpenClawTranscriptMiddleware(memory), model=model, tools=[weather])
    call = agent.invoke(says("Do I need a hat?"), THREAD)["messages"][1]
    edited(agent, THREAD, call.model_copy(update={"content": "I look it up."}))
    agent.invoke(says("Thanks."), THREAD)
    assert [get_text(entry["message"]) for entry in entries(memory) if "corrects" in entry] == ["I look it up."]
    assert str(entries(memory)).count("toolCall'") == 1


def test_a_message_that_no_log_can_hold_costs_none_of_the_others(memory, caplog):
    saver = InMemorySaver()
    for text in ("One.", f"Four lines: {'x' * 9_000_000}", "\ud800 lone", "Four."):
        agent = chat_with(OpenClawTranscriptMiddleware(memory), saver=saver)
        agent.invoke(says(text), THREAD)
    first, second, *rest = [text for text in texts(memory) if text != "ok"]
    assert (first, rest) == ("One.", ["\ud800 lone", "Four."])
    assert second.startswith("Four lines: ")
    assert "[not all is kept: it has 9,0" in second
    assert len(caplog.records) == 1


def test_a_call_whose_arguments_are_no_json_is_kept_without_them(memory, scripted):
    model = scripted(calling("weather", place=float("nan")), "Take a hat.")
    agent = create_agent(model, [weather], middleware=[OpenClawTranscriptMiddleware(memory)])
    agent.invoke(says("Do I need a hat?"), THREAD)
    assert [role for role, _ in spoken(memory)] == ["user", "assistant", "toolResult", "assistant"]
    note, call = entries(memory)[1]["message"]["content"]
    assert note["text"].startswith("[not all is kept: ")
    assert call == {"type": "toolCall", "id": "call", "name": "weather", "arguments": {}}


@pytest.mark.parametrize("flush_first", [False, True])
def test_the_turns_of_a_flush_never_appear_and_what_a_failed_one_keeps_is_not_written_again(
    memory, scripted, flush_first
):
    flush_model = scripted(saying(RuntimeError("no credit left")))
    both = [OpenClawTranscriptMiddleware(memory), MemoryFlushMiddleware(memory, flush_model, trigger=("messages", 3))]
    agent = create_agent(
        scripted("ok"), [], middleware=both[::-1] if flush_first else both, checkpointer=InMemorySaver()
    )
    for text in ("One.", "Two.", "Three."):
        agent.invoke(says(text), THREAD)
    assert len(flush_model.requests) == 2
    said = [get_text(entry["message"]) for entry in entries(memory)]
    assert [text for text in said if text != "ok"] == ["One.", "Two.", "Three."]
    assert "flush" not in str(entries(memory))


def test_an_agent_in_a_tool_of_an_agent_has_a_transcript_of_its_own(memory, scripted):
    expert = create_agent(scripted("Sunny."), [], middleware=[OpenClawTranscriptMiddleware(memory)])

    def ask_the_expert(question: str) -> str:
        """Asks somebody who knows."""
        return expert.invoke(says(question))["messages"][-1].text

    chief = chat_with(
        OpenClawTranscriptMiddleware(memory),
        model=scripted(calling("ask_the_expert", question="How is it in Delft?"), "Take a hat."),
        tools=[ask_the_expert],
    )
    chief.invoke(says("Do I need a hat?"), THREAD)
    chief.invoke(says("Thanks."), THREAD)
    assert [text for _, text in spoken(memory)] == [
        "Do I need a hat?",
        "",
        "Sunny.",
        "Take a hat.",
        "Thanks.",
        "Take a hat.",
    ]
    assert spoken(memory, "tuesday:tools") == [("user", "How is it in Delft?"), ("assistant", "Sunny.")]


async def test_a_run_without_a_thread_goes_on_and_that_it_is_not_written_is_said_once(memory, scripted, caplog):
    agent = create_agent(scripted("ok"), [], middleware=[OpenClawTranscriptMiddleware(memory)])
    assert agent.invoke(says("One."))["messages"][-1].text == "ok"
    assert (await agent.ainvoke(says("Two.")))["messages"][-1].text == "ok"
    assert caplog.text.count("session_id=...") == 1
    assert not (memory.workspace.root / "sessions").exists()


def test_a_transcript_that_cannot_be_written_is_reported_once_breaks_no_run_and_is_written_later(memory, caplog):
    (memory.workspace.root / "sessions").write_text("in the way")
    agent = chat_with(OpenClawTranscriptMiddleware(memory))
    for text in ("One.", "Two.", "Three."):
        assert agent.invoke(says(text), THREAD)["messages"][-1].text == "ok"
        if text == "Two.":
            assert len(caplog.records) == 1
            (memory.workspace.root / "sessions").unlink()
    assert texts(memory) == ["One.", "ok", "Two.", "ok", "Three.", "ok"]


@pytest.mark.parametrize("in_threads", [False, True])
async def test_what_replies_have_read_and_said_is_counted_once_for_each_session(memory, scripted, in_threads):
    saver, sessions = InMemorySaver(), ("monday", "tuesday", "wednesday")

    for number in range(2):  # the second time as after a restart
        model = scripted("It is cold.", usage=lambda _: 100)
        agent = create_agent(model, [], middleware=[OpenClawTranscriptMiddleware(memory)], checkpointer=saver)
        said, threads = says(f"Number {number}."), [{"configurable": {"thread_id": name}} for name in sessions]
        invoke = partial(asyncio.to_thread, agent.invoke) if in_threads else agent.ainvoke
        await asyncio.gather(*(invoke(said, thread) for thread in threads))
    said = count_tokens_approximately([AIMessage("It is cold.")])
    states = [memory.sessions.flush(name).state for name in sessions]
    assert [(state.input_tokens, state.output_tokens) for state in states] == [(200, 2 * said)] * 3
    written = json.loads((memory.workspace.root / "sessions/sessions.json").read_text())
    assert {name: entry["inputTokens"] for name, entry in written.items()} == dict.fromkeys(sessions, 200)


def test_without_a_report_nothing_is_counted(memory, scripted):
    agent = create_agent(scripted("ok", usage=None), [], middleware=[OpenClawTranscriptMiddleware(memory)])
    agent.invoke(says("Hello."), THREAD)
    assert spoken(memory)[-1] == ("assistant", "ok")
    assert not (memory.workspace.root / "sessions/sessions.json").exists()


def test_an_agent_works_with_copies_of_its_middleware(memory):
    parts = [OpenClawRecallMiddleware(memory), OpenClawTranscriptMiddleware(memory, session_id="mine")]
    for text in ("One.", "Two."):
        chat_with(*copy.deepcopy(parts)).invoke(says(text), THREAD)
    assert spoken(memory, "mine") == [("user", "One."), ("assistant", "ok"), ("user", "Two."), ("assistant", "ok")]
