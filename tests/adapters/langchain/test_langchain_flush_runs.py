"""The flush in runs of every kind: without a checkpointer, nested, with other middleware around it, at its limits."""

import asyncio
import json
import os

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
    wrap_model_call,
)
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_openclaw_memory import MemoryFlushMiddleware
from langchain_openclaw_memory.testing import calling
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from scripted_chat import FACT, SUMMARY, chat_with, notes, says, writes_facts

from openclaw_memory.sessions_and_control import Sessions


def thread(name="tuesday", **more):
    return {"configurable": {"thread_id": name, **more}}


def talk(agent, count, **options):
    """Say so many small things, and return what there is then."""
    for number in range(count):
        state = agent.invoke(says(f"c {number}"), thread(**options))
    return state


def before(shortens, memory, model):
    """The flush before a summarization, and that summarization."""
    return MemoryFlushMiddleware.before(shortens, memory, model), shortens


def sessions(memory):
    return json.loads((memory.workspace.root / "sessions" / "sessions.json").read_text())


@pytest.fixture
def silent(scripted):
    return scripted("NO_REPLY")


@pytest.fixture
def shortens(scripted):
    """Makes a summarization, by default after 8 messages."""
    return lambda trigger=("messages", 8), keep=("messages", 2): SummarizationMiddleware(
        scripted(SUMMARY), trigger=trigger, keep=keep
    )


class Cuts(AgentMiddleware):
    """Keeps the latest messages alone, once there are too many."""

    def __init__(self, most, keep):
        super().__init__()
        self.most, self.keep = most, keep

    def before_model(self, state, runtime):  # noqa: ARG002
        if len(state["messages"]) < self.most:
            return None
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *state["messages"][-self.keep :]]}


@pytest.mark.parametrize(("most", "keep", "flushes"), [(8, 2, 6), (13, 12, 6)], ids=["compaction", "sliding"])
def test_whatever_cuts_the_conversation_each_part_of_it_is_flushed_once(memory, silent, most, keep, flushes):
    flush = MemoryFlushMiddleware(memory, silent, trigger=("messages", most - 1))
    agent = chat_with(flush, Cuts(most, keep))
    for number in range(20):
        state = agent.invoke(says(f"Fact {number}."), thread())
    read = "\n".join(request.text for request in silent.requests)
    left = "\n".join(message.text for message in state["messages"])
    assert all(f"Fact {number}." in read + left for number in range(20))
    assert len(silent.requests) <= flushes


def as_dicts(messages):
    return [
        {"role": {"human": "user", "ai": "assistant"}[message.type], "content": message.text} for message in messages
    ]


@pytest.mark.parametrize("config", [None, thread()], ids=["no thread", "thread"])
@pytest.mark.parametrize("back", [list, as_dicts], ids=["objects", "dicts"])
def test_a_history_that_the_caller_keeps_is_flushed_each_time_that_most_of_it_is_new(
    memory, scripted, silent, config, back
):
    agent = create_agent(
        scripted("ok"), [], middleware=[MemoryFlushMiddleware(memory, silent, trigger=("messages", 3))]
    )
    history = []
    for number in range(8):
        history = back(agent.invoke({"messages": [*history, HumanMessage(f"c {number}")]}, config)["messages"])
    assert len(silent.requests) == 3  # of 15 messages: 3, 7 and 15


def test_an_agent_within_a_graph_has_a_session_of_its_own(memory, scripted, silent):
    flush = MemoryFlushMiddleware(memory, silent, trigger=("messages", 3))
    graph = StateGraph(MessagesState)
    graph.add_node("worker", create_agent(scripted("ok"), [], middleware=[flush]))
    graph.add_edge(START, "worker")
    graph = graph.compile(checkpointer=InMemorySaver())
    for number in range(6):
        graph.invoke(says(f"c {number}"), thread())
    assert len(silent.requests) == 2  # of 11 messages: 3 and 7
    assert list(sessions(memory)) == ["tuesday:worker"]


def test_an_agent_whose_graph_keeps_what_was_summarised_has_a_flush_before_each_summary(memory, scripted, shortens):
    happened = []
    silent = scripted(lambda _: happened.append("flush") or "NO_REPLY")
    middleware = shortens()
    middleware.model.script = lambda _: happened.append("summary") or SUMMARY
    flush = MemoryFlushMiddleware.before(middleware, memory, silent)
    graph = StateGraph(MessagesState)
    graph.add_node("worker", create_agent(scripted("ok"), [], middleware=[flush, middleware]))
    graph.add_edge(START, "worker")
    graph = graph.compile(checkpointer=InMemorySaver())
    for number in range(8):
        graph.invoke(says(f"c {number}"), thread())
    assert happened == ["flush", "summary"] * 4


async def test_an_agent_in_a_tool_has_the_same_session_in_each_call(memory, scripted, silent):
    flush = MemoryFlushMiddleware(memory, silent, trigger=("messages", 1))
    inner = create_agent(scripted("ok"), [], middleware=[flush])

    async def ask(question: str) -> str:
        """Ask the other agent."""
        return (await inner.ainvoke(says(question)))["messages"][-1].text

    calls = [calling("ask", f"call-{number}", question=f"Question {number}?") for number in range(2)]
    outer = create_agent(scripted(*calls, "done"), [ask], checkpointer=InMemorySaver())
    await outer.ainvoke(says("Ask twice."), thread())
    assert len(silent.requests) == 2
    assert list(sessions(memory)) == ["tuesday:tools"]


def test_what_the_provider_counted_before_a_summary_brings_no_flush_after_it(memory, scripted, silent, shortens):
    replies = iter([*["ok"] * 6, RuntimeError("503"), RuntimeError("503")])
    model = scripted(lambda _: next(replies, "ok"), usage=lambda shown: 7_000 if len(shown) >= 8 else 100)
    flush = MemoryFlushMiddleware(memory, silent, window=12_000)
    agent = chat_with(flush, shortens(("messages", 13), ("messages", 3)), model=model)
    flushed = []
    for number in range(11):
        try:
            agent.invoke(says(f"c {number}"), thread())
        except RuntimeError:
            assert number in {6, 7}  # just after the summary
        flushed.append(len(silent.requests))
    assert flushed[:7] == [0] * 5 + [1, 1]  # not again just after the summary, though the last reply counted 7,000
    assert flushed[-1] == 2


def test_where_too_little_is_there_for_a_summary_there_is_no_flush(memory, silent, shortens):
    agent = chat_with(*before(shortens(("messages", 2), ("messages", 20)), memory, silent))
    talk(agent, 5)
    assert silent.requests == []


def test_each_conversation_is_flushed_by_the_model_that_it_is_held_with(memory, scripted):
    def writes(request):
        return "NO_REPLY" if request.tools else "ok"

    models = {name: scripted(writes, profile={"max_input_tokens": 4_000}) for name in ("alice", "bob")}
    chosen = wrap_model_call(
        lambda request, handler: handler(request.override(model=models[get_config()["configurable"]["thread_id"]]))
    )
    agent = chat_with(chosen, MemoryFlushMiddleware(memory), model=models["alice"])
    for name, text in (("bob", "Hello."), ("alice", "alice's diary " * 900), ("bob", "Again."), ("alice", "Again.")):
        agent.invoke(says(text), thread(name))
    assert not any(request.tools for request in models["bob"].requests)
    assert any("alice's diary" in request.text for request in models["alice"].requests if request.tools)


@pytest.mark.parametrize("keep", [1, 3])
async def test_the_model_of_the_agent_is_shown_what_a_summary_took_before_it_was_known(
    memory, scripted, shortens, keep
):
    model = scripted(lambda request: writes_facts(request) if "memory_append" in request.tools else "ok")
    middleware = shortens(("messages", 4), ("messages", keep))
    flush = MemoryFlushMiddleware(memory, trigger=("messages", 4))
    agent = create_agent(model, [], middleware=[flush, middleware])
    history = [HumanMessage(FACT), AIMessage("ok"), HumanMessage("Well."), AIMessage("ok"), HumanMessage("So?")]
    state = await agent.ainvoke({"messages": history})
    assert SUMMARY in state["messages"][0].text
    assert "4711" in notes(memory)
    assert not any("memory_append" in message.text for message in state["messages"])


def test_an_overflow_flushes_what_was_said_and_not_what_others_made_of_it(memory, scripted):
    clears = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=10, keep=0)])
    flush = MemoryFlushMiddleware(memory, scripted(writes_facts), window=200_000)
    agent = create_agent(scripted(ContextOverflowError("too long")), [], middleware=[clears, flush])
    answer = ToolMessage(f"{FACT} {'x ' * 200}", tool_call_id="call", name="look")
    with pytest.raises(ContextOverflowError):
        agent.invoke({"messages": [HumanMessage("Look."), calling("look"), answer, AIMessage("."), HumanMessage("?")]})
    assert "4711" in notes(memory)


def test_a_flush_at_an_overflow_counts_for_the_summary_that_follows(memory, scripted, silent, shortens, caplog):
    middleware = shortens(("messages", 2), ("messages", 1))
    flush = MemoryFlushMiddleware.before(middleware, memory, silent)
    model = scripted(ContextOverflowError("too long"), "ok")
    agent = create_agent(model, [], middleware=[flush, middleware], checkpointer=InMemorySaver())
    with pytest.raises(ContextOverflowError):
        agent.invoke(says(FACT), thread())
    for text in ("Again.", "And?"):
        agent.invoke(says(text), thread())
    assert len(silent.requests) == 2
    assert not caplog.text


async def test_an_asynchronous_run_leaves_all_work_with_files_to_threads(memory, silent, shortens, monkeypatch):
    on_loop, flush_of = [], Sessions.flush

    def watched(self, *args, **options):
        on_loop.append(asyncio._get_running_loop() is not None)
        return flush_of(self, *args, **options)

    monkeypatch.setattr(Sessions, "flush", watched)
    agent = chat_with(*before(shortens(), memory, silent))
    for number in range(9):
        await agent.ainvoke(says(f"c {number}"), thread())
    assert sessions(memory)["tuesday"]["compactionCount"] == 2
    assert on_loop
    assert not any(on_loop)


def test_who_reads_along_gives_no_session_its_name(memory, shortens, silent):
    group = "agent:main:telegram:group:1"
    entry = {"sessionId": "g-2", "updatedAt": 1763790000000, "chatType": "group", "sessionFile": "g-2.jsonl"}
    folder = memory.workspace.root / "sessions"
    folder.mkdir()
    (folder / "sessions.json").write_text(json.dumps({group: entry}))

    def run(**options):
        middleware = shortens()
        flush = MemoryFlushMiddleware.before(middleware, memory, silent, **options)
        agent = chat_with(flush, middleware)
        for number in range(6):
            agent.invoke(says(f"c {number}"), thread("web-77", session_key=group))
        return sessions(memory)

    states = run()
    assert states[group] == entry
    assert states["web-77"]["sessionId"] == "web-77"
    assert states["web-77"]["compactionCount"] == 1
    of_group = run(session_key=group)[group]
    assert of_group["sessionId"] == "g-2"
    assert of_group["compactionCount"] == 1


@pytest.mark.parametrize(("kind", "flushes"), [("heartbeat", 0), ("cli", 0), ("chat", 1), (None, 1)])
def test_runs_that_are_no_conversation_are_not_flushed(memory, scripted, silent, kind, flushes):
    flush = MemoryFlushMiddleware(memory, silent, trigger=("messages", 1))
    create_agent(scripted("ok"), [], middleware=[flush]).invoke(says("c"), thread(run_kind=kind))
    assert len(silent.requests) == flushes


def test_a_workspace_that_is_read_only_is_reported_as_what_it_is(memory, silent, shortens, monkeypatch, caplog):
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    agent = chat_with(*before(shortens(), memory, silent))
    talk(agent, 13)
    assert silent.requests == []
    assert "is read-only" in caplog.text
    assert "place MemoryFlushMiddleware" not in caplog.text


def test_a_retry_of_the_models_call_brings_no_second_flush(memory, scripted):
    @wrap_model_call
    def twice(request, handler):
        handler(request)
        return handler(request)

    model = scripted(lambda request: "NO_REPLY" if request.tools else "ok")
    flush = MemoryFlushMiddleware(memory, trigger=("messages", 1))
    create_agent(model, [], middleware=[twice, flush]).invoke(says("c"))
    assert len([request for request in model.requests if request.tools]) == 1


def test_compactions_without_a_thread_are_booked_to_no_other_session(memory, scripted):
    shortens = SummarizationMiddleware(scripted(SUMMARY), trigger=("messages", 4), keep=("messages", 1))
    flush = MemoryFlushMiddleware.before(shortens, memory=memory, model=scripted(writes_facts))
    agent = create_agent(scripted(lambda _: "ok"), [], middleware=[flush, shortens])
    messages = []
    for number in range(6):
        messages = agent.invoke({"messages": [*messages, *says(f"Box {number}.")["messages"]]})["messages"]

    assert memory.sessions.flush("main").state.compaction_count == 0


def test_a_counter_that_fails_hides_no_error_of_the_model_and_breaks_no_run(memory, scripted, caplog):
    def fails(_messages):
        raise LookupError("no such encoding")

    flush = MemoryFlushMiddleware(memory, trigger=("messages", 1), token_counter=fails)
    agent = create_agent(scripted(ContextOverflowError("too long"), "ok"), [], middleware=[flush])
    with pytest.raises(ContextOverflowError):
        agent.invoke(says(FACT))
    assert agent.invoke(says(FACT))["messages"][-1].text == "ok"
    assert caplog.text.count("no such encoding") == 1
