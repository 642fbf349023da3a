"""Summaries and the memories saved before them: one flush a cut, nothing lost, and a summary that waits for the disk."""

import asyncio
import json
import os
import random
from collections import Counter
from uuid import uuid4

import chat_scripts as chats
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler, get_usage_metadata_callback
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tracers import BaseTracer
from langchain_openclaw_memory import OpenClawSummarizationMiddleware
from langchain_openclaw_memory.testing import ScriptedChatModel, make_call, respond_with
from langgraph.checkpoint.memory import InMemorySaver
from unwritable import UNWRITABLE, full, gone

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import CompactionConfig, EmbeddingConfig
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.sessions import Sessions


def subclass(summary_model, memory, flush_model, *, session_key=None, **options):
    options |= {"flush_model": flush_model, "session_key": session_key}
    return [OpenClawSummarizationMiddleware(summary_model, memory, **options)]


def of(summary_model, memory, flush_model, *, session_key=None, **options):
    shortens = SummarizationMiddleware(summary_model, **options)
    options = {"flush_model": flush_model, "session_key": session_key}
    return [OpenClawSummarizationMiddleware.of(shortens, memory, **options)]


WAYS = pytest.mark.parametrize("way", [subclass, of])
RUNS = pytest.mark.parametrize("is_async", [False, True])
SMALL = {"trigger": ("messages", 6), "keep": ("messages", 2)}


def facts(count, first=0):
    return [f"Please remember: fact {number}." for number in range(first, first + count)]


@pytest.fixture
def summary(scripted):
    return scripted(chats.SUMMARY)


@WAYS
@RUNS
async def test_each_cut_has_one_flush_and_one_summary_and_is_shown_what_is_cut(
    memory, scripted, summary, flush_model, way, is_async
):
    middleware = way(summary, memory, flush_model, **SMALL)
    agent = create_agent(scripted("ok"), [], middleware=middleware, checkpointer=InMemorySaver())
    for fact in facts(12):
        state = await chats.run(agent, chats.says(fact), chats.thread(), is_async=is_async)
    assert len(summary.requests) == chats.flushes(flush_model) == 5
    left = "\n".join(message.text for message in state["messages"])
    assert all((f"fact {number}." in chats.notes(memory)) is not (f"fact {number}." in left) for number in range(12))
    assert memory.sessions.flush("tuesday").state.compaction_count == 5
    assert set(state) == {"messages"}


@WAYS
def test_sub_agents_that_tools_run_in_parallel_are_flushed_each_for_itself(memory, scripted, summary, flush_model, way):
    inner = create_agent(scripted("ok"), [], middleware=way(summary, memory, flush_model, **SMALL))

    def research(topic: str) -> str:
        """Ask another agent."""
        return inner.invoke(chats.says(*(f"Please remember: {topic} {at}." for at in range(7))))["messages"][-1].text

    calls = [{"name": "research", "args": {"topic": topic}, "id": topic} for topic in ("tea", "rye", "oat")]
    outer = create_agent(scripted(AIMessage("", tool_calls=calls), "done"), [research], checkpointer=InMemorySaver())
    outer.invoke(chats.says("Ask all three."), chats.thread())
    assert all(f"{topic} {at}." in chats.saved(memory) for topic in ("tea", "rye", "oat") for at in range(5))
    assert chats.flushes(flush_model) == len(summary.requests) == 3


@RUNS
async def test_where_the_memory_wants_no_compaction_there_is_neither_summary_nor_flush(
    tmp_path, scripted, summary, flush_model, is_async
):
    off = MemoryConfig(embedding=EmbeddingConfig(provider="none"), compaction=CompactionConfig(enabled=False))
    with Memory.open(tmp_path, config=off) as memory:
        agent = create_agent(scripted("Fine."), middleware=subclass(summary, memory, flush_model, **SMALL))
        state = await chats.run(agent, chats.says(*facts(9)), is_async=is_async)
    assert len(state["messages"]) == 10
    assert summary.requests == flush_model.requests == []


@WAYS
def test_a_summary_that_fails_changes_nothing_and_the_next_one_saves_once(
    memory, scripted, flush_model, way, monkeypatch
):
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)  # between LangChain's own attempts
    middleware = way(scripted(*[ValueError("down")] * 4, chats.SUMMARY), memory, flush_model, **SMALL)
    agent = create_agent(scripted("ok"), [], middleware=middleware, checkpointer=InMemorySaver())
    for fact in facts(12):
        try:
            agent.invoke(chats.says(fact), chats.thread())
        except ValueError:
            assert "SUMMARY" not in str(agent.get_state(chats.thread()).values["messages"])
    left = str(agent.get_state(chats.thread()).values["messages"])
    assert all(f"fact {number}." in chats.notes(memory) + left for number in range(12))
    assert all(chats.notes(memory).count(f"fact {number}.") <= 1 for number in range(12))


def test_a_summarization_made_elsewhere_stays_as_it_is(memory, scripted, summary, flush_model):
    class Titled(SummarizationMiddleware):
        def before_model(self, state, runtime):
            update = super().before_model(state, runtime)
            return update and {"messages": [*update["messages"][:-1], HumanMessage("As asked: " + chats.SUMMARY)]}

    shortens = Titled(summary, **SMALL)
    is_as = dict(vars(shortens))
    for middleware in (OpenClawSummarizationMiddleware.of(shortens, memory, flush_model=flush_model), shortens):
        state = create_agent(scripted("ok"), [], middleware=[middleware]).invoke(chats.says(*facts(8)))
        assert "As asked" in state["messages"][-2].text
        assert vars(shortens) == is_as
    assert (chats.flushes(flush_model), len(summary.requests)) == (1, 2)


@WAYS
@RUNS
async def test_no_answer_of_a_tool_outlives_its_call(memory, scripted, summary, flush_model, way, is_async):
    """Providers refuse it; LangChain keeps one whose call is not the last before the cut (langchain#38352)."""
    calls = [AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": name}]) for name in "ab"]
    answers = [ToolMessage(f"Please remember: {name} is there.", tool_call_id=name) for name in "ab"]
    talk = [calls[0], HumanMessage("Wait."), calls[1], *answers, HumanMessage("So?")]
    agent = create_agent(
        scripted("ok"), middleware=way(summary, memory, flush_model, trigger=("messages", 6), keep=("messages", 3))
    )
    state = await chats.run(agent, {"messages": [HumanMessage("Hello."), *talk]}, chats.thread(), is_async=is_async)
    kept = [message.tool_call_id for message in state["messages"] if isinstance(message, ToolMessage)]
    called = [
        call["id"] for message in state["messages"] if isinstance(message, AIMessage) for call in message.tool_calls
    ]
    assert kept == called == ["b"]
    assert "a is there" in chats.notes(memory)
    assert "b is there" not in chats.notes(memory)


@WAYS
def test_a_summary_of_no_more_than_the_one_before_needs_no_flush(memory, scripted, summary, flush_model, way):
    middleware = way(summary, memory, flush_model, trigger=("messages", 3), keep=("messages", 2))
    earlier = HumanMessage(chats.SUMMARY, additional_kwargs={"lc_source": "summarization"})
    create_agent(scripted("ok"), [], middleware=middleware).invoke({"messages": [earlier, "A", AIMessage("ok")]})
    assert (len(summary.requests), flush_model.requests) == (1, [])


# --- who hears of it


class Traced(BaseTracer):
    """Keeps the runs of a trace: the name, the tags and the parent of each."""

    def __init__(self):
        super().__init__()
        self.known = {}

    def _start_trace(self, run):
        super()._start_trace(run)
        self.known[run.id] = run

    def _persist_run(self, run):
        pass


class Reading(BaseCallbackHandler):
    def __init__(self):
        self.tokens = []

    def on_llm_new_token(self, token, **_):
        self.tokens.append(token)


@WAYS
@RUNS
async def test_the_calls_of_a_flush_are_children_of_its_run_and_their_tokens_count(
    memory, scripted, summary, way, is_async
):
    def named(request):
        reply = chats.writes_facts(request)
        reply = AIMessage(reply) if isinstance(reply, str) else reply
        return reply.model_copy(update={"response_metadata": {"model_name": "flusher"}})

    tracer, usage, reader, run_id = Traced(), UsageMetadataCallbackHandler(), Reading(), uuid4()
    flush_model = scripted(named, usage=lambda _: 1_000_000)
    agent = create_agent(scripted("ok", usage=None), [], middleware=way(summary, memory, flush_model, **SMALL))
    config = {"callbacks": [tracer, usage, reader], "run_id": run_id}
    with get_usage_metadata_callback() as total:
        await chats.run(agent, chats.says(chats.FACT, *map(str, range(7))), config, is_async=is_async)
    traced = [one for one in tracer.known.values() if one.name == "memory_flush"]
    assert len(traced) == 2  # the call of the tool, and the end
    for one in traced:
        assert one.parent_run_id in tracer.known
        assert one.trace_id == run_id
        assert {"openclaw:flush", "nostream"} <= set(one.tags)
    assert "4711" in chats.notes(memory)
    for counted in (usage.usage_metadata, total.usage_metadata):
        assert counted["flusher"]["input_tokens"] == 2_000_000
    assert not any("4711" in token for token in reader.tokens)


# --- random histories, several at once, failing models


def unreliable(chance, seed):
    """The script of a flush model that fails in all ways, and else writes the facts."""
    dice = random.Random(seed)
    failures = [RuntimeError("down"), "I am sorry.", make_call("memory_append", text=3), make_call("memory_append"), ""]
    return lambda request: dice.choice(failures) if dice.random() < chance else chats.writes_facts(request)


async def talk(agent, name, rounds, dice, *, is_async):
    """Hold one conversation of random messages; return the facts in it, and what is left of it."""
    said, messages, config = [], [], chats.thread(name) if name else None
    for number in range(rounds):
        fact = f"{name or id(dice)} fact {number} is {dice.random():.6f}"
        said.append(fact)
        text = dice.choice(["Hello.", "And?", f"So it goes. {'so on ' * dice.randrange(40)}"])
        new = [HumanMessage(text), HumanMessage(f"Please remember: {fact}.")][-dice.randrange(1, 3) :]
        state = {"messages": new if config else [*messages, *new]}
        state = await agent.ainvoke(state, config) if is_async else await asyncio.to_thread(agent.invoke, state, config)
        messages = state["messages"]
    return said, "".join(message.text for message in messages)


@WAYS
@RUNS
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (0, *range(2, 22)))])
@pytest.mark.sampled(2)
async def test_whatever_is_said_by_how_many_each_cut_has_a_flush_and_no_fact_is_lost(memory, way, seed, is_async):
    dice, (talks, rounds, chance) = random.Random(seed), (8, 20, 0.5) if seed > 1 else (3, 8, 0.3)
    summary, flush_model = (
        ScriptedChatModel(script=script) for script in (respond_with(chats.SUMMARY), unreliable(chance, seed))
    )
    limits = {
        "trigger": dice.choice([("messages", dice.randrange(4, 12)), ("tokens", dice.randrange(80, 160))]),
        "keep": dice.choice([("messages", dice.randrange(1, 4)), ("tokens", dice.randrange(10, 60))]),
    }
    middleware = way(summary, memory, flush_model, session_key=dice.choice([None, "team"]), **limits)
    model = ScriptedChatModel(script=respond_with("ok"))
    agent = create_agent(model, [], middleware=middleware, checkpointer=InMemorySaver())
    passing = create_agent(model, [], middleware=middleware)
    names = [f"thread {number}" if dice.random() < 0.7 else None for number in range(talks)]
    each = [
        talk(agent if name else passing, name, rounds, random.Random(f"{seed} {number}"), is_async=is_async)
        for number, name in enumerate(names)
    ]
    held, there = await asyncio.gather(*each), chats.saved(memory)
    assert [fact for said, left in held for fact in said if fact not in there and fact not in left] == []
    turns = [request.text for request in flush_model.requests if len(request.messages) == 1]
    assert len(summary.requests) == len(turns) > 0
    assert max(Counter(fact for text in turns for fact in chats.ASKED.findall(text)).values()) == 1


UNPARSED = {"name": "memory_append", "args": '{"text": "- fac', "id": "a", "error": "it ends early"}


@pytest.mark.parametrize(
    "reply", [AIMessage("", invalid_tool_calls=[UNPARSED]), make_call("memory_append", "a", text=["- fact 0."])]
)
@RUNS
async def test_what_a_failed_call_should_have_saved_is_kept_and_shown_in_the_status(
    memory, scripted, summary, reply, is_async
):
    agent = create_agent(scripted("ok"), middleware=subclass(summary, memory, scripted(reply, "NO_REPLY"), **SMALL))
    state = await chats.run(agent, chats.says(*facts(6)), chats.thread(), is_async=is_async)
    assert chats.SUMMARY in state["messages"][0].text
    assert all(f"fact {number}." in chats.saved(memory) for number in range(4))
    assert chats.notes(memory) == ""
    assert "was not written" in memory.status().flush["tuesday"]


# --- a memory that cannot be written


@pytest.fixture(params=[False, True], ids=["invoke", "ainvoke"])
def turns(request, memory, scripted, summary, flush_model):
    """Says facts to an agent, which are numbered on; returns what it then has in view."""
    agent = create_agent(
        scripted("ok"), middleware=subclass(summary, memory, flush_model, **SMALL), checkpointer=InMemorySaver()
    )
    numbers = iter(range(1_000))

    def talk(count, agent=agent):
        for _ in range(count):
            state = asyncio.run(
                chats.run(agent, chats.says(*facts(1, next(numbers))), chats.thread(), is_async=request.param)
            )
        return "\n".join(message.text for message in state["messages"])

    return talk


ALL_UNWRITABLE = pytest.mark.parametrize("unwritable", UNWRITABLE.values(), ids=UNWRITABLE.keys())


@ALL_UNWRITABLE
@pytest.mark.sampled(2)
def test_while_the_memory_cannot_be_written_no_fact_leaves_the_conversation_and_then_all_are_saved(
    memory, turns, summary, flush_model, unwritable, caplog
):
    with unwritable(memory.workspace.root):
        view = turns(8)
        assert all(f"fact {number}." in view for number in range(8))
        # What cannot be saved is summarised once, and not in each turn again.
        assert len(summary.requests) == 1
        assert len(flush_model.requests) <= 2
        assert caplog.text.count("waits for its messages to be saved") == 1
    assert memory.status().flush["tuesday"]
    view = turns(1)
    assert chats.SUMMARY in view
    assert all((f"fact {number}." in chats.notes(memory)) is not (f"fact {number}." in view) for number in range(9))
    assert memory.status().flush == {}
    assert memory.sessions.flush("tuesday").state.compaction_count == 1


@ALL_UNWRITABLE
@pytest.mark.sampled(1)
def test_a_full_window_is_cut_whatever_the_memory_can_take(memory, scripted, turns, flush_model, unwritable):
    model, sizes = scripted(chats.SUMMARY, profile={"max_input_tokens": 200}), []

    def reply(request):
        sizes.append(count_tokens_approximately(request.messages))
        return "ok"

    middleware = subclass(model, memory, flush_model, **SMALL)
    with unwritable(memory.workspace.root):
        turns(40, create_agent(scripted(reply), middleware=middleware, checkpointer=InMemorySaver()))
    assert 120 < max(sizes) < 200


def test_where_the_window_is_unknown_the_model_says_when_it_is_full(memory, scripted, turns, summary, flush_model):
    sizes = []

    def reply(request):
        sizes.append(len(request.messages))
        return ContextOverflowError("too long") if len(request.messages) > 20 else "ok"

    middleware = subclass(summary, memory, flush_model, **SMALL)
    with full(memory.workspace.root):
        view = turns(16, create_agent(scripted(reply), middleware=middleware, checkpointer=InMemorySaver()))
    assert max(sizes) == 21
    assert sizes[sizes.index(21) + 1] == 3  # asked again at once, with the summary: the user's turn goes on
    assert chats.SUMMARY in view
    assert "fact 15." in view


def test_each_conversation_waits_for_itself(memory, scripted, summary, flush_model):
    agent = create_agent(scripted("ok"), middleware=subclass(summary, memory, flush_model, **SMALL))
    said = chats.says(*facts(7))
    with gone(memory.workspace.root):
        assert len(agent.invoke(said)["messages"]) == 8
    for conversation in (chats.says("Hello.", *facts(6)), said):
        assert chats.SUMMARY in agent.invoke(conversation)["messages"][0].text
    assert "fact 0." in chats.notes(memory)


# --- which runs


@pytest.fixture
def silent(scripted):
    return scripted("NO_REPLY")


@pytest.fixture
def shortens(memory, summary, silent):
    """Makes a summarization, by default after 8 messages, that flushes with a silent model."""

    def make(trigger=("messages", 8), keep=("messages", 2), **options):
        limits = {"trigger": trigger, "keep": keep}
        return OpenClawSummarizationMiddleware(summary, memory, flush_model=silent, **limits, **options)

    return make


def whispers(request):
    """A flush model that talks while it writes."""
    if isinstance(request.messages[-1], ToolMessage):
        return "NO_REPLY flush-whisper"
    reply = make_call("memory_append", "flush-1", text="- the boiler code is 4711")
    reply.content = "flush-whisper"
    return reply


async def test_no_stream_and_no_callback_of_the_run_sees_the_flush(memory, scripted, summary):
    ear, own = chats.Listening(), chats.Listening()
    flush_model = scripted(whispers, callbacks=[own])
    limits = {"trigger": ("messages", 3), "keep": ("messages", 1)}
    agent, seen = chats.chat_with(*subclass(summary, memory, flush_model, **limits)), []
    for number, text in enumerate((chats.FACT, *map(str, range(6)))):
        config = {**chats.thread(), "callbacks": [ear]}
        if number % 3 == 0:
            seen.extend(agent.stream(chats.says(text), config, stream_mode=["messages", "updates", "values"]))
        elif number % 3 == 1:
            seen.extend([part async for part in agent.astream(chats.says(text), config, stream_mode="messages")])
        else:
            seen.extend([event async for event in agent.astream_events(chats.says(text), config, version="v2")])
    assert len(flush_model.requests) >= 4
    assert ear.heard
    for text in map(str, (seen, ear.heard, own.heard, agent.get_state(chats.thread()).values["messages"])):
        assert "flush-whisper" not in text
        assert "memory flush" not in text


def test_a_workspace_that_is_read_only_is_reported_as_what_it_is(silent, shortens, monkeypatch, caplog):
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    agent = chats.chat_with(shortens())
    for text in map(str, range(13)):
        agent.invoke(chats.says(text), chats.thread())
    assert silent.requests == []
    assert "is read-only" in caplog.text


async def test_an_asynchronous_run_leaves_all_work_with_files_to_threads(memory, shortens, monkeypatch):
    on_loop, flush_of = [], Sessions.flush

    def watched(self, *args, **options):
        on_loop.append(asyncio._get_running_loop() is not None)
        return flush_of(self, *args, **options)

    monkeypatch.setattr(Sessions, "flush", watched)
    agent = chats.chat_with(shortens())
    for number in range(9):
        await agent.ainvoke(chats.says(f"c {number}"), chats.thread())
    assert chats.sessions(memory)["tuesday"]["compactionCount"] == 2
    assert on_loop
    assert not any(on_loop)


async def test_an_agent_in_a_tool_has_the_same_session_in_each_call(memory, scripted, silent, shortens):
    inner = create_agent(scripted("ok"), [], middleware=[shortens(("messages", 2), ("messages", 1))])

    async def ask(question: str) -> str:
        """Ask the other agent."""
        return (await inner.ainvoke(chats.says("Hello.", question)))["messages"][-1].text

    calls = [make_call("ask", f"call-{number}", question=f"Question {number}?") for number in range(2)]
    outer = create_agent(scripted(*calls, "done"), [ask], checkpointer=InMemorySaver())
    await outer.ainvoke(chats.says("Ask twice."), chats.thread())
    assert len(silent.requests) == 2
    assert list(chats.sessions(memory)) == ["tuesday:tools"]


def test_who_reads_along_gives_no_session_its_name_and_is_its_kind_of_chat(memory, shortens):
    group = "agent:main:telegram:group:1"
    entry = {"sessionId": "g-2", "updatedAt": 1763790000000, "chatType": "group", "sessionFile": "g-2.jsonl"}
    folder = memory.workspace.root / "sessions"
    folder.mkdir()
    (folder / "sessions.json").write_text(json.dumps({group: entry}))

    def run(**options):
        agent = chats.chat_with(shortens(**options))
        for number in range(6):
            agent.invoke(chats.says(f"c {number}"), chats.thread("web-77", session_key=group))
        fields = ("sessionId", "compactionCount", "chatType")
        return {name: tuple(map(one.get, fields)) for name, one in chats.sessions(memory).items()}

    assert run() == {group: ("g-2", None, "group"), "web-77": ("web-77", 1, "group")}
    assert run(session_key=group)[group] == ("g-2", 1, "group")


@pytest.mark.parametrize(("kind", "expected"), [("heartbeat", 0), ("cli", 0), ("chat", 1), (None, 1)])
def test_runs_that_are_no_conversation_are_not_flushed(scripted, silent, shortens, kind, expected):
    agent = create_agent(scripted("ok"), [], middleware=[shortens(("messages", 2), ("messages", 1))])
    agent.invoke(chats.says("a", "b", "c"), chats.thread(run_kind=kind))
    assert len(silent.requests) == expected


# --- how it is made


@pytest.mark.parametrize("of", [False, True])
def test_a_summarization_that_never_summarises_is_reported(memory, scripted, of):
    plain = SummarizationMiddleware(scripted(chats.SUMMARY))
    with pytest.warns(UserWarning, match="OpenClawSummarizationMiddleware has no trigger"):
        OpenClawSummarizationMiddleware.of(plain, memory) if of else summarize(memory, scripted(chats.SUMMARY))


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
