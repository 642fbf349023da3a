"""Agents whose memories are saved just before their conversation is cut, in runs of every kind and at their limits."""

import asyncio
import json
import os

import pytest
from chat_scripts import FACT, SUMMARY, Listening, chat_with, says, sessions, thread, writes_facts
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, summarization
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openclaw_memory import OpenClawSummarizationMiddleware
from langchain_openclaw_memory.testing import ScriptedChatModel, make_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.sessions import Sessions

# Clauses came with a later version than the lowest that is supported.
needs_clauses = pytest.mark.skipif(
    not hasattr(summarization, "TriggerClause"), reason="this version of LangChain has no clauses of triggers"
)
CHATTER = [f"Chatter number {number}." for number in range(13)]


@pytest.fixture
def silent(scripted):
    return scripted("NO_REPLY")


@pytest.fixture
def shortens(memory, scripted, silent):
    """Makes a summarization, by default after 8 messages, that flushes with a silent model."""

    def make(trigger=("messages", 8), keep=("messages", 2), **options):
        limits = {"trigger": trigger, "keep": keep}
        return OpenClawSummarizationMiddleware(scripted(SUMMARY), memory, flush_model=silent, **limits, **options)

    return make


@pytest.fixture
def reported():
    """A list in which models leave, in order, what happened; `reported.by` makes such a model."""

    class Reported(list):
        def by(self, event, reply="ok", **fields):
            def script(request):
                self.append(event)
                return reply(request) if callable(reply) else reply

            return ScriptedChatModel(script=script, **fields)

        def after_summaries(self):
            return [cycle.split() for cycle in " ".join(self).split("summary")[1:]]

    return Reported()


@pytest.fixture
def make_agent(memory, reported):
    """Makes an agent whose conversation is summarised after 8 messages, and flushed."""

    def make(flush_model=None, *, trigger=("messages", 8), keep=("messages", 2), model=None):
        options = {"flush_model": flush_model or reported.by("flush", writes_facts), "trigger": trigger, "keep": keep}
        middleware = OpenClawSummarizationMiddleware(reported.by("summary", SUMMARY), memory, **options)
        return chat_with(middleware, model=model or reported.by("reply"))

    return make


# --- once before each cut


@pytest.mark.parametrize(
    "trigger",
    [
        *(("tokens", 150), ("fraction", 0.3), [("messages", 500), ("messages", 6)]),
        pytest.param({"messages": 4, "tokens": 100}, marks=needs_clauses),
    ],
    ids=str,
)
def test_each_summary_has_its_flush_before_the_reply_whatever_triggers_it(memory, reported, trigger):
    summary_model = reported.by("summary", SUMMARY, profile={"max_input_tokens": 400})
    options = {"flush_model": reported.by("flush", "NO_REPLY"), "trigger": trigger, "keep": ("messages", 2)}
    shortens = OpenClawSummarizationMiddleware(summary_model, memory, **options)
    agent = chat_with(shortens, model=reported.by("reply", "Noted, that was a message of yours."))
    for text in CHATTER:
        agent.invoke(says(text), thread())
    cycles = reported.after_summaries()
    assert len(cycles) >= 2
    assert all((cycle[0], cycle.count("flush")) == ("flush", 1) for cycle in cycles)


# --- by which model, and of what


def whispers(request):
    """A flush model that talks while it writes."""
    if isinstance(request.messages[-1], ToolMessage):
        return "NO_REPLY flush-whisper"
    reply = make_call("memory_append", "flush-1", text="- the boiler code is 4711")
    reply.content = "flush-whisper"
    return reply


async def test_no_stream_and_no_callback_of_the_run_sees_the_flush(make_agent, scripted):
    ear, own = Listening(), Listening()
    flush_model = scripted(whispers, callbacks=[own])
    agent, seen = make_agent(flush_model, trigger=("messages", 2)), []
    for number, text in enumerate((FACT, *CHATTER[:6])):
        config = {**thread(), "callbacks": [ear]}
        if number % 3 == 0:
            seen.extend(agent.stream(says(text), config, stream_mode=["messages", "updates", "values"]))
        elif number % 3 == 1:
            seen.extend([part async for part in agent.astream(says(text), config, stream_mode="messages")])
        else:
            seen.extend([event async for event in agent.astream_events(says(text), config, version="v2")])
    assert len(flush_model.requests) >= 4
    assert ear.heard
    for text in map(str, (seen, ear.heard, own.heard, agent.get_state(thread()).values["messages"])):
        assert "flush-whisper" not in text
        assert "memory flush" not in text


# --- what fails


def test_a_workspace_that_is_read_only_is_reported_as_what_it_is(silent, shortens, monkeypatch, caplog):
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    agent = chat_with(shortens())
    for text in CHATTER:
        agent.invoke(says(text), thread())
    assert silent.requests == []
    assert "is read-only" in caplog.text


async def test_an_asynchronous_run_leaves_all_work_with_files_to_threads(memory, shortens, monkeypatch):
    on_loop, flush_of = [], Sessions.flush

    def watched(self, *args, **options):
        on_loop.append(asyncio._get_running_loop() is not None)
        return flush_of(self, *args, **options)

    monkeypatch.setattr(Sessions, "flush", watched)
    agent = chat_with(shortens())
    for number in range(9):
        await agent.ainvoke(says(f"c {number}"), thread())
    assert sessions(memory)["tuesday"]["compactionCount"] == 2
    assert on_loop
    assert not any(on_loop)


# --- in which session


def within(agent):
    """A graph that has an agent as its node `worker`."""
    graph = StateGraph(MessagesState)
    graph.add_node("worker", agent)
    graph.add_edge(START, "worker")
    return graph.compile(checkpointer=InMemorySaver())


def test_an_agent_within_a_graph_has_a_session_of_its_own(memory, scripted, silent, shortens):
    graph = within(create_agent(scripted("ok"), [], middleware=[shortens()]))
    for number in range(6):
        graph.invoke(says(f"c {number}"), thread())
    assert silent.requests
    assert list(sessions(memory)) == ["tuesday:worker"]


async def test_an_agent_in_a_tool_has_the_same_session_in_each_call(memory, scripted, silent, shortens):
    inner = create_agent(scripted("ok"), [], middleware=[shortens(("messages", 2), ("messages", 1))])

    async def ask(question: str) -> str:
        """Ask the other agent."""
        return (await inner.ainvoke(says("Hello.", question)))["messages"][-1].text

    calls = [make_call("ask", f"call-{number}", question=f"Question {number}?") for number in range(2)]
    outer = create_agent(scripted(*calls, "done"), [ask], checkpointer=InMemorySaver())
    await outer.ainvoke(says("Ask twice."), thread())
    assert len(silent.requests) == 2
    assert list(sessions(memory)) == ["tuesday:tools"]


def test_who_reads_along_gives_no_session_its_name(memory, shortens):
    group = "agent:main:telegram:group:1"
    entry = {"sessionId": "g-2", "updatedAt": 1763790000000, "chatType": "group", "sessionFile": "g-2.jsonl"}
    folder = memory.workspace.root / "sessions"
    folder.mkdir()
    (folder / "sessions.json").write_text(json.dumps({group: entry}))

    def run(**options):
        agent = chat_with(shortens(**options))
        for number in range(6):
            agent.invoke(says(f"c {number}"), thread("web-77", session_key=group))
        return {name: (one["sessionId"], one.get("compactionCount")) for name, one in sessions(memory).items()}

    assert run() == {group: ("g-2", None), "web-77": ("web-77", 1)}
    assert run(session_key=group)[group] == ("g-2", 1)


def test_compactions_without_a_thread_are_booked_to_no_other_session(make_agent, memory):
    messages = []
    for number in range(6):
        agent = make_agent(trigger=("messages", 4), keep=("messages", 1))
        agent.checkpointer = None
        messages = agent.invoke({"messages": [*messages, HumanMessage(f"Box {number}.")]})["messages"]
    assert memory.sessions.flush("main").state.compaction_count == 0
    assert sum(one.get("compactionCount", 0) for one in sessions(memory).values()) > 0


@pytest.mark.parametrize(("kind", "expected"), [("heartbeat", 0), ("cli", 0), ("chat", 1), (None, 1)])
def test_runs_that_are_no_conversation_are_not_flushed(scripted, silent, shortens, kind, expected):
    agent = create_agent(scripted("ok"), [], middleware=[shortens(("messages", 2), ("messages", 1))])
    agent.invoke(says("a", "b", "c"), thread(run_kind=kind))
    assert len(silent.requests) == expected


# --- how it is made


@pytest.mark.parametrize("of", [False, True])
def test_a_summarization_that_never_summarises_is_reported(memory, scripted, of):
    plain = summarization.SummarizationMiddleware(scripted(SUMMARY))
    with pytest.warns(UserWarning, match="OpenClawSummarizationMiddleware has no trigger"):
        OpenClawSummarizationMiddleware.of(plain, memory) if of else summarize(memory, scripted(SUMMARY))


def summarize(memory, model, **options):
    return OpenClawSummarizationMiddleware(model, memory, **options)


WRONG = [
    (lambda memory, _model: OpenClawSummarizationMiddleware.of(AgentMiddleware(), memory), "OpenClawFlushCallback"),
    (OpenClawSummarizationMiddleware.of, "not LangChain's SummarizationMiddleware"),
    (lambda memory, model: summarize(memory, model, triger=("messages", 9)), "'trigger'"),
    (lambda _memory, model: summarize("notes", model), r"Memory\.open"),
    (lambda memory, model: summarize(memory, model, session_key=""), "session"),
    (lambda memory, model: summarize(memory, model, flush_model=42), "42"),
]


def test_what_is_given_wrongly_is_refused_with_what_to_give_instead(memory, scripted):
    for make, words in WRONG:
        with pytest.raises((ConfigError, InvalidInputError, TypeError), match=words):
            make(memory, scripted("ok"))
