"""Agents whose memories are saved just before their conversation is cut, in runs of every kind and at their limits."""

import asyncio
import json
import os

import pytest
from chat_scripts import FACT, SUMMARY, Listening, chat_with, flushes, notes, run, says, sessions, thread, writes_facts
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware, summarization, wrap_model_call
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_openclaw_memory import MemoryFlushMiddleware, OpenClawSummarizationMiddleware
from langchain_openclaw_memory.testing import ScriptedChatModel, make_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

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
def shortens(scripted):
    """Makes a summarization, by default after 8 messages."""
    return lambda trigger=("messages", 8), keep=("messages", 2): SummarizationMiddleware(
        scripted(SUMMARY), trigger=trigger, keep=keep
    )


@pytest.fixture
def reported():
    """A list in which models leave, in order, what happened; `reported.by` makes such a model."""

    class Reported(list):
        def by(self, event, reply="ok", **fields):
            def script(request):
                self.append(event)
                return reply(request) if callable(reply) else reply

            return ScriptedChatModel(script=script, **fields)

        def between_summaries(self):
            return [cycle.split() for cycle in " ".join(self).split("summary")[:-1]]

    return Reported()


@pytest.fixture
def make_agent(memory, reported):
    """Makes an agent whose conversation is summarised after 8 messages, and before that flushed."""

    def make(flush_model=None, *, trigger=("messages", 8), keep=("messages", 2), model=None, saver=None):
        shortens = SummarizationMiddleware(reported.by("summary", SUMMARY), trigger=trigger, keep=keep)
        flush = MemoryFlushMiddleware.before(shortens, memory, flush_model or reported.by("flush", writes_facts))
        return chat_with(flush, shortens, model=model or reported.by("reply"), saver=saver)

    return make


# --- once before each cut


def test_a_restart_between_cycles_changes_nothing(tmp_path, make_agent, reported, caplog):
    for text in (FACT, *CHATTER):  # each turn has a process of its own, as far as objects can tell
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            make_agent(saver=saver).invoke(says(text), thread())
    assert [cycle.count("flush") for cycle in reported.between_summaries()] == [2, 1, 1, 1]
    assert not caplog.text


@pytest.mark.parametrize(
    "trigger",
    [
        *(("tokens", 150), ("fraction", 0.3), [("messages", 500), ("messages", 6)]),
        pytest.param({"messages": 4, "tokens": 100}, marks=needs_clauses),
    ],
    ids=str,
)
def test_the_flush_comes_just_before_the_summary_whatever_triggers_it(memory, reported, trigger):
    summary_model = reported.by("summary", SUMMARY, profile={"max_input_tokens": 400})
    shortens = SummarizationMiddleware(summary_model, trigger=trigger, keep=("messages", 2))
    flush = MemoryFlushMiddleware.before(shortens, memory, reported.by("flush", "NO_REPLY"))
    agent = chat_with(flush, shortens, model=reported.by("reply", "Noted, that was a message of yours."))
    for text in CHATTER:
        agent.invoke(says(text), thread())
    cycles = reported.between_summaries()
    assert len(cycles) >= 2
    assert all((cycle[-1], cycle.count("flush")) == ("flush", 1) for cycle in cycles)


class Cuts(AgentMiddleware):
    """Keeps the latest messages alone, once there are too many."""

    def __init__(self, most, keep):
        super().__init__()
        self.most, self.keep = most, keep

    def before_model(self, state, runtime):  # noqa: ARG002
        if len(state["messages"]) < self.most:
            return None
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *state["messages"][-self.keep :]]}


@pytest.mark.parametrize(("most", "keep"), [(8, 2), (13, 12)], ids=["compaction", "sliding"])
def test_whatever_cuts_the_conversation_each_part_of_it_is_flushed_once(memory, silent, most, keep):
    flush = MemoryFlushMiddleware(memory, silent, trigger={"messages": most - 1, "tokens": 1})
    agent = chat_with(flush, Cuts(most, keep))
    for number in range(20):
        state = agent.invoke(says(f"Fact {number}."), thread())
    shown = "\n".join(request.text for request in silent.requests)
    left = "\n".join(message.text for message in state["messages"])
    assert all(f"Fact {number}." in shown + left for number in range(20))
    assert len(silent.requests) <= 6


def test_all_limits_of_a_clause_must_be_reached(memory, silent):
    never = {"messages": 1, "tokens": 1_000_000}
    for trigger, expected in ((never, 0), ([never, ("messages", 1)], 1)):
        chat_with(MemoryFlushMiddleware(memory, silent, trigger=trigger)).invoke(says("Hello."), thread())
        assert len(silent.requests) == expected


@pytest.mark.parametrize("config", [None, thread()], ids=["no thread", "thread"])
def test_a_history_that_the_caller_keeps_is_flushed_each_time_that_most_of_it_is_new(memory, scripted, silent, config):
    flush = MemoryFlushMiddleware(memory, silent, trigger=("messages", 3))
    agent, history = create_agent(scripted("ok"), [], middleware=[flush]), []
    for number in range(8):
        messages = agent.invoke({"messages": [*history, HumanMessage(f"c {number}")]}, config)["messages"]
        history = [{"role": {"human": "user"}.get(one.type, "assistant"), "content": one.text} for one in messages]
    assert len(silent.requests) == 3  # of 15 messages: 3, 7 and 15


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
    middleware = [MemoryFlushMiddleware(memory, trigger=("messages", 4)), shortens(("messages", 4), ("messages", keep))]
    history = [HumanMessage(FACT), AIMessage("ok"), HumanMessage("Well."), AIMessage("ok"), HumanMessage("So?")]
    state = await create_agent(model, [], middleware=middleware).ainvoke({"messages": history})
    assert SUMMARY in state["messages"][0].text
    assert "4711" in notes(memory)
    assert not any("memory_append" in message.text for message in state["messages"])


async def test_talks_that_wait_for_the_model_at_once_are_each_flushed(memory, scripted):
    """Their messages have ids of a client, the same in each thread."""
    model = scripted(lambda request: writes_facts(request) if request.tools else "ok")
    agent = create_agent(model, [], middleware=[MemoryFlushMiddleware(memory, trigger=("messages", 3))])

    def said(number):
        fact = HumanMessage(f"Please remember: fact {number}.", id="1")
        return {"messages": [fact, AIMessage("Noted.", id="2"), HumanMessage("Thanks.", id="3")]}

    await agent.abatch([said(number) for number in range(30)], [thread(f"t{number}") for number in range(30)])
    assert [number for number in range(30) if f"fact {number}." not in notes(memory)] == []


# --- what fails


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_overflow_of_the_agents_model_flushes_once_and_is_raised(memory, flush_model, scripted, is_async):
    flush = MemoryFlushMiddleware(memory, flush_model, window=200_000)
    agent = chat_with(flush, model=scripted(ContextOverflowError("too long")))
    for text in (FACT, "Still there?"):
        with pytest.raises(ContextOverflowError):
            await run(agent, says(text), thread(), is_async=is_async)
    assert flushes(flush_model) == 1
    assert "4711" in notes(memory)


async def test_a_run_that_is_cancelled_during_its_flush_leaves_it_to_the_next_one(memory, scripted, flush_model):
    asked = asyncio.Event()

    class Hanging(ScriptedChatModel):
        async def _agenerate(self, *args, **kwargs):  # noqa: ARG002
            asked.set()
            await asyncio.Event().wait()

    flush = MemoryFlushMiddleware(memory, scripted("ok", kind=Hanging), trigger=("messages", 3))
    agent = chat_with(flush)
    said = {"messages": [HumanMessage(FACT), AIMessage("Noted."), HumanMessage("Thanks.")]}
    task = asyncio.create_task(agent.ainvoke(said, thread()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    flush.model = flush_model
    await agent.ainvoke(None, thread())
    assert "4711" in notes(memory)


def test_a_flush_that_is_after_the_summarization_says_so(memory, shortens, caplog):
    middleware = shortens(("messages", 3), ("messages", 1))
    agent = chat_with(middleware, MemoryFlushMiddleware.before(middleware, memory))
    for text in CHATTER[:5]:
        agent.invoke(says(text), thread())
    assert caplog.text.count("place MemoryFlushMiddleware before") == 1


def test_a_workspace_that_is_read_only_is_reported_as_what_it_is(memory, silent, shortens, monkeypatch, caplog):
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    middleware = shortens()
    agent = chat_with(MemoryFlushMiddleware.before(middleware, memory, silent), middleware)
    for text in CHATTER:
        agent.invoke(says(text), thread())
    assert silent.requests == []
    assert "is read-only" in caplog.text
    assert "place MemoryFlushMiddleware" not in caplog.text


def test_a_counter_that_fails_hides_no_error_of_the_model_and_breaks_no_run(memory, scripted, caplog):
    def fails(_messages):
        raise LookupError("no such encoding")

    flush = MemoryFlushMiddleware(memory, trigger=("messages", 1), token_counter=fails)
    agent = create_agent(scripted(ContextOverflowError("too long"), "ok"), [], middleware=[flush])
    with pytest.raises(ContextOverflowError):
        agent.invoke(says(FACT))
    assert agent.invoke(says(FACT))["messages"][-1].text == "ok"
    assert caplog.text.count("no such encoding") == 1


async def test_an_asynchronous_run_leaves_all_work_with_files_to_threads(memory, silent, shortens, monkeypatch):
    on_loop, flush_of = [], Sessions.flush

    def watched(self, *args, **options):
        on_loop.append(asyncio._get_running_loop() is not None)
        return flush_of(self, *args, **options)

    monkeypatch.setattr(Sessions, "flush", watched)
    middleware = shortens()
    agent = chat_with(MemoryFlushMiddleware.before(middleware, memory, silent), middleware)
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


def test_an_agent_within_a_graph_has_a_session_of_its_own(memory, scripted, silent):
    flush = MemoryFlushMiddleware(memory, silent, trigger=("messages", 3))
    graph = within(create_agent(scripted("ok"), [], middleware=[flush]))
    for number in range(6):
        graph.invoke(says(f"c {number}"), thread())
    assert len(silent.requests) == 2  # of 11 messages: 3 and 7
    assert list(sessions(memory)) == ["tuesday:worker"]


async def test_an_agent_in_a_tool_has_the_same_session_in_each_call(memory, scripted, silent):
    flush = MemoryFlushMiddleware(memory, silent, trigger=("messages", 1))
    inner = create_agent(scripted("ok"), [], middleware=[flush])

    async def ask(question: str) -> str:
        """Ask the other agent."""
        return (await inner.ainvoke(says(question)))["messages"][-1].text

    calls = [make_call("ask", f"call-{number}", question=f"Question {number}?") for number in range(2)]
    outer = create_agent(scripted(*calls, "done"), [ask], checkpointer=InMemorySaver())
    await outer.ainvoke(says("Ask twice."), thread())
    assert len(silent.requests) == 2
    assert list(sessions(memory)) == ["tuesday:tools"]


def test_who_reads_along_gives_no_session_its_name(memory, shortens, silent):
    group = "agent:main:telegram:group:1"
    entry = {"sessionId": "g-2", "updatedAt": 1763790000000, "chatType": "group", "sessionFile": "g-2.jsonl"}
    folder = memory.workspace.root / "sessions"
    folder.mkdir()
    (folder / "sessions.json").write_text(json.dumps({group: entry}))

    def run(**options):
        middleware = shortens()
        agent = chat_with(MemoryFlushMiddleware.before(middleware, memory, silent, **options), middleware)
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


@pytest.mark.parametrize("part", ["threshold", "summary"])
@pytest.mark.parametrize(("kind", "expected"), [("heartbeat", 0), ("cli", 0), ("chat", 1), (None, 1)])
def test_runs_that_are_no_conversation_are_not_flushed(memory, scripted, silent, part, kind, expected):
    limits = {"trigger": ("messages", 2), "keep": ("messages", 1)}
    flush = (
        MemoryFlushMiddleware(memory, silent, trigger=("messages", 1))
        if part == "threshold"
        else OpenClawSummarizationMiddleware(scripted(SUMMARY), memory, flush_model=silent, **limits)
    )
    create_agent(scripted("ok"), [], middleware=[flush]).invoke(says("a", "b", "c"), thread(run_kind=kind))
    assert len(silent.requests) == expected


# --- how it is made


def test_a_window_that_turns_out_to_be_unknown_breaks_no_run_and_is_reported_once(memory, scripted, caplog):
    agent = create_agent(scripted("ok"), [], middleware=[MemoryFlushMiddleware(memory)])
    for _ in range(3):
        assert agent.invoke(says("Hello."))["messages"][-1].text == "ok"
    assert caplog.text.count("window=200_000") == 1


def test_a_summarization_that_never_summarises_is_reported(memory, scripted):
    with pytest.warns(UserWarning, match="no trigger"):
        MemoryFlushMiddleware.before(SummarizationMiddleware(scripted(SUMMARY)), memory=memory)
    with pytest.warns(UserWarning, match="OpenClawSummarizationMiddleware has no trigger"):
        OpenClawSummarizationMiddleware(scripted(SUMMARY), memory)


def flush(memory, model, **options):
    return MemoryFlushMiddleware(memory, model, **options)


def summarize(memory, model, **options):
    return OpenClawSummarizationMiddleware(model, memory, **options)


WRONG = [
    (lambda memory, model: MemoryFlushMiddleware.before(Cuts(8, 2), memory, model), "OpenClawFlushCallback"),
    (MemoryFlushMiddleware.before, "is not LangChain's SummarizationMiddleware"),
    (lambda memory, model: MemoryFlushMiddleware(model, memory), "Memory.open"),
    (flush, "window=200_000"),
    (lambda memory, model: flush(memory, model, trigger=("fraction", 0.5)), "window=200_000"),
    *[
        (lambda memory, model, one=one: flush(memory, model, window=one), f"window={one!r}")
        for one in ("200k", 0, True)
    ],
    *[
        (lambda memory, model, one=one: flush(memory, model, trigger=one), "is not a trigger")
        for one in (("message", 50), 5_000, "tokens", ("fraction", 80), {"tokens": "5k"}, [{}])
    ],
    (lambda memory, model: summarize(memory, model, triger=("messages", 9)), "'trigger'"),
    (lambda _memory, model: summarize("notes", model), r"Memory\.open"),
    (lambda memory, model: summarize(memory, model, session_key=""), "session"),
    (lambda memory, model: summarize(memory, model, flush_model=42), "42"),
]


@pytest.mark.filterwarnings("ignore:the SummarizationMiddleware has no trigger")
def test_what_is_given_wrongly_is_refused_with_what_to_give_instead(memory, scripted):
    for make, words in WRONG:
        with pytest.raises((ConfigError, InvalidInputError, TypeError), match=words):
            make(memory, scripted("ok"))
