"""The turns of an agent as an OpenClaw session."""

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openclaw_memory import MemoryFlushMiddleware, TranscriptMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from scripted_chat import SUMMARY, calling, saying

from openclaw_memory.errors import ConfigError
from openclaw_memory.sessions import conversation, text_of

THREAD = {"configurable": {"thread_id": "tuesday"}}


def says(text):
    return {"messages": [HumanMessage(text)]}


def weather(place: str) -> str:
    """The weather."""
    return f"sunny in {place}"


def entries(memory, session="tuesday"):
    return [entry for entry in memory.session_log(session).entries() if entry["type"] != "session"]


def spoken(memory, session="tuesday"):
    return [(message["role"], text_of(message)) for message in memory.session_log(session).messages()]


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_said_and_what_tools_answer_is_written_once(memory, scripted, is_async):
    model = scripted(calling("weather", place="Delft"), "Take a hat.", "You are welcome.")
    agent = create_agent(
        model,
        [weather],
        middleware=[TranscriptMiddleware(memory)],
        checkpointer=InMemorySaver(),
        system_prompt="Be kind.",
    )
    for text in ("Do I need a hat?", "Thanks."):
        await agent.ainvoke(says(text), THREAD) if is_async else agent.invoke(says(text), THREAD)
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
    assert "hat" in memory.search("hat", source="sessions")[0].snippet


def test_after_a_restart_nothing_is_written_twice(memory, scripted):
    saver = InMemorySaver()
    for text in ("One.", "Two.", "Three."):
        agent = create_agent(scripted("ok"), [], middleware=[TranscriptMiddleware(memory)], checkpointer=saver)
        agent.invoke(says(text), THREAD)
    assert [text for _, text in spoken(memory)] == ["One.", "ok", "Two.", "ok", "Three.", "ok"]


def test_a_summary_becomes_a_compaction_and_the_log_reads_as_the_model_saw_it(memory, scripted):
    summarization = SummarizationMiddleware(scripted(SUMMARY), trigger=("messages", 5), keep=("messages", 2))
    agent = create_agent(
        scripted("ok"), [], middleware=[TranscriptMiddleware(memory), summarization], checkpointer=InMemorySaver()
    )
    for number in range(5):
        state = agent.invoke(says(f"Number {number}."), THREAD)
    compactions = [entry for entry in entries(memory) if entry["type"] == "compaction"]
    assert len(compactions) == 3
    assert SUMMARY in compactions[0]["summary"]
    assert compactions[0]["tokensBefore"] > 0
    shown = conversation(memory.session_log("tuesday"))
    assert [text_of(message) for message in shown[1:]] == [message.text for message in state["messages"][1:]]
    assert SUMMARY in text_of(shown[0])


def test_a_conversation_that_goes_on_from_an_earlier_point_is_a_branch(memory, scripted):
    agent = create_agent(scripted("ok"), [], middleware=[TranscriptMiddleware(memory)], checkpointer=InMemorySaver())
    agent.invoke(says("One."), THREAD)
    earlier = agent.get_state(THREAD).config
    agent.invoke(says("Two."), THREAD)
    agent.invoke(says("Another two."), earlier)
    assert [text for _, text in spoken(memory)] == ["One.", "ok", "Another two.", "ok"]
    assert "Two." in str(entries(memory))


@pytest.mark.parametrize("flush_first", [False, True])
def test_the_turns_of_a_flush_never_appear_and_what_a_failed_one_keeps_is_not_written_again(
    memory, scripted, flush_first
):
    flush_model = scripted(saying(RuntimeError("no credit left")))
    both = [TranscriptMiddleware(memory), MemoryFlushMiddleware(memory, flush_model, trigger=("messages", 3))]
    agent = create_agent(
        scripted("ok"), [], middleware=both[::-1] if flush_first else both, checkpointer=InMemorySaver()
    )
    for text in ("One.", "Two.", "Three."):
        agent.invoke(says(text), THREAD)
    assert len(flush_model.requests) == 3
    said = [text_of(entry["message"]) for entry in entries(memory)]
    assert [text for text in said if text != "ok"] == ["One.", "Two.", "Three."]
    assert "flush" not in str(entries(memory))


def test_system_prompts_are_no_part_of_the_talk(memory, scripted):
    agent = create_agent(scripted("ok"), [], middleware=[TranscriptMiddleware(memory, session_id="mine")])
    agent.invoke({"messages": [SystemMessage("Be kind."), HumanMessage("One.")]})
    assert [text for _, text in spoken(memory, "mine")] == ["One.", "ok"]


def test_a_run_without_a_thread_needs_the_name_of_a_session(memory, scripted):
    agent = create_agent(scripted("ok"), [], middleware=[TranscriptMiddleware(memory)])
    with pytest.raises(ConfigError, match="session_id="):
        agent.invoke(says("One."))


def test_a_transcript_that_cannot_be_written_is_told_once_and_breaks_no_run(memory, scripted, caplog):
    (memory.workspace.root / "sessions").write_text("in the way")
    agent = create_agent(scripted("ok"), [], middleware=[TranscriptMiddleware(memory)], checkpointer=InMemorySaver())
    for text in ("One.", "Two."):
        assert agent.invoke(says(text), THREAD)["messages"][-1].text == "ok"
    assert len(caplog.records) == 1
