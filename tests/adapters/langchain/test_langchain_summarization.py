"""Summaries and the memories saved before them: one flush for each cut, and nothing lost, however many talk at once."""

import asyncio
import random
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler, get_usage_metadata_callback
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tracers import BaseTracer
from langchain_openclaw_memory import MemoryFlushMiddleware, OpenClawSummarizationMiddleware
from langchain_openclaw_memory.testing import ScriptedChatModel, calling, saying
from langgraph.checkpoint.memory import InMemorySaver
from scripted_chat import FACT, SUMMARY, notes, says, writes_facts

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import CompactionConfig, EmbeddingConfig


def subclass(summary_model, memory, flush_model, *, session_key=None, **options):
    return [
        OpenClawSummarizationMiddleware(
            summary_model, memory, flush_model=flush_model, session_key=session_key, **options
        )
    ]


def before(summary_model, memory, flush_model, *, session_key=None, **options):
    shortens = SummarizationMiddleware(summary_model, **options)
    return [MemoryFlushMiddleware.before(shortens, memory, flush_model, session_key=session_key), shortens]


WAYS = pytest.mark.parametrize("way", [subclass, before])


def thread(name="tuesday", **more):
    return {"configurable": {"thread_id": name}, **more}


def shown(flush_model):
    """What each flush was shown, by its first request."""
    return [request for request in flush_model.requests if request.messages[-1].type == "human"]


def saved(memory):
    """All that is in the notes, or kept word for word."""
    kept = (path.read_text() for path in sorted((memory.workspace.root / "sessions").glob("*.jsonl")))
    return notes(memory) + "".join(kept)


@pytest.fixture
def summary(scripted):
    return scripted(SUMMARY)


SMALL = {"trigger": ("messages", 6), "keep": ("messages", 2)}


@WAYS
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.sampled(2)
async def test_each_cut_has_one_flush_and_one_summary_and_is_shown_what_is_cut(
    memory, scripted, summary, flush_model, way, is_async
):
    middleware = way(summary, memory, flush_model, **SMALL)
    agent = create_agent(scripted("ok"), [], middleware=middleware, checkpointer=InMemorySaver())
    for number in range(12):
        said = says(f"Please remember: fact {number}.")
        state = await agent.ainvoke(said, thread()) if is_async else agent.invoke(said, thread())
    cuts = len(summary.requests)
    assert (cuts, len(shown(flush_model))) == (5, 5)
    left = "\n".join(message.text for message in state["messages"])
    assert all((f"fact {number}." in notes(memory)) is not (f"fact {number}." in left) for number in range(12))
    assert memory.sessions.flush("tuesday").state.compaction_count == cuts
    assert set(state) == {"messages"}


@WAYS
@pytest.mark.parametrize("ends", ["And?", "continue"])
def test_talks_without_a_thread_that_begin_and_end_alike_are_all_flushed(
    memory, scripted, summary, flush_model, way, ends
):
    agent = create_agent(scripted("ok"), [], middleware=way(summary, memory, flush_model, **SMALL))
    for number in range(3):
        middle = [f"Please remember: fact {number}.", "ok", ends, "ok", ends]
        texts = ["Hello.", "ok", *middle]
        agent.invoke({"messages": [(AIMessage if at % 2 else HumanMessage)(text) for at, text in enumerate(texts)]})
    assert all(f"fact {number}." in notes(memory) for number in range(3))
    assert len(shown(flush_model)) == 3


@WAYS
def test_sub_agents_that_tools_run_in_parallel_are_flushed_each_for_itself(memory, scripted, summary, way):
    flush_model = scripted(writes_facts)
    inner = create_agent(scripted("ok"), [], middleware=way(summary, memory, flush_model, **SMALL))

    def research(topic: str) -> str:
        """Ask another agent."""
        texts = [f"Please remember: {topic} {at}." for at in range(7)]
        return inner.invoke({"messages": [HumanMessage(text) for text in texts]})["messages"][-1].text

    calls = [{"name": "research", "args": {"topic": topic}, "id": topic} for topic in ("tea", "rye", "oat")]
    outer = create_agent(scripted(AIMessage("", tool_calls=calls), "done"), [research], checkpointer=InMemorySaver())
    outer.invoke(says("Ask all three."), thread())
    assert all(f"{topic} {at}." in saved(memory) for topic in ("tea", "rye", "oat") for at in range(5))
    assert len(shown(flush_model)) == len(summary.requests) == 3


@pytest.mark.parametrize("is_async", [False, True])
async def test_where_the_memory_wants_no_compaction_there_is_neither_summary_nor_flush(
    tmp_path, scripted, summary, flush_model, is_async
):
    off = MemoryConfig(embedding=EmbeddingConfig(provider="none"), compaction=CompactionConfig(enabled=False))
    with Memory.open(tmp_path, config=off) as memory:
        agent = create_agent(scripted("Fine."), middleware=subclass(summary, memory, flush_model, **SMALL))
        said = {"messages": [HumanMessage(f"{FACT} {number}") for number in range(9)]}
        state = await agent.ainvoke(said) if is_async else agent.invoke(said)
    assert len(state["messages"]) == 10
    assert summary.requests == flush_model.requests == []


@WAYS
def test_a_summary_that_fails_changes_nothing_and_the_next_one_saves_once(memory, scripted, way, monkeypatch):
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)  # between LangChain's own attempts
    summary = scripted(*[ValueError("down")] * 4, SUMMARY)
    flush_model = scripted(writes_facts)
    middleware = way(summary, memory, flush_model, **SMALL)
    agent = create_agent(scripted("ok"), [], middleware=middleware, checkpointer=InMemorySaver())
    for number in range(12):
        try:
            agent.invoke(says(f"Please remember: fact {number}."), thread())
        except ValueError:
            assert "SUMMARY" not in str(agent.get_state(thread()).values["messages"])
    left = str(agent.get_state(thread()).values["messages"])
    assert all(f"fact {number}." in notes(memory) + left for number in range(12))
    assert all(notes(memory).count(f"fact {number}.") <= 1 for number in range(12))


def test_the_summarization_before_which_it_flushes_stays_as_it_is(memory, scripted, summary, flush_model):
    flush, shortens = before(summary, memory, flush_model, **SMALL)
    is_as = dict(vars(shortens))
    agent = create_agent(scripted("ok"), [], middleware=[flush, shortens])
    agent.invoke({"messages": [HumanMessage(str(at)) for at in range(8)]})
    assert vars(shortens) == is_as
    alone = create_agent(scripted("ok"), [], middleware=[shortens])
    alone.invoke({"messages": [HumanMessage(str(at)) for at in range(8)]})
    assert (len(shown(flush_model)), len(summary.requests)) == (1, 2)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_system_prompt_among_the_messages_costs_no_second_summary(
    memory, scripted, summary, flush_model, is_async
):
    agent = create_agent(scripted("ok"), [], middleware=before(summary, memory, flush_model, **SMALL))
    said = {"messages": [SystemMessage("Be brief."), *(HumanMessage(f"{FACT} {number}") for number in range(6))]}
    if is_async:
        await agent.ainvoke(said)
    else:
        agent.invoke(said)
    assert (len(summary.requests), len(shown(flush_model))) == (1, 1)


@WAYS
def test_a_summary_of_no_more_than_the_one_before_needs_no_flush(memory, scripted, summary, flush_model, way):
    middleware = way(summary, memory, flush_model, trigger=("messages", 3), keep=("messages", 2))
    state = {
        "messages": [HumanMessage(SUMMARY, additional_kwargs={"lc_source": "summarization"}), *says("A")["messages"]]
    }
    state["messages"].append(AIMessage("ok"))
    create_agent(scripted("ok"), [], middleware=middleware).invoke(state)
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
@pytest.mark.parametrize("is_async", [False, True])
async def test_the_calls_of_a_flush_are_children_of_its_run_and_their_tokens_count(
    memory, scripted, summary, way, is_async
):
    tracer, usage, reader = Traced(), UsageMetadataCallbackHandler(), Reading()

    def named(request):
        reply = writes_facts(request)
        reply = AIMessage(reply) if isinstance(reply, str) else reply
        return reply.model_copy(update={"response_metadata": {"model_name": "flusher"}})

    flush_model = scripted(named, usage=lambda _: 1_000_000)
    agent = create_agent(scripted("ok", usage=None), [], middleware=way(summary, memory, flush_model, **SMALL))
    run_id = uuid4()
    state = {"messages": [HumanMessage(FACT), *(HumanMessage(str(at)) for at in range(7))]}
    config = {"callbacks": [tracer, usage, reader], "run_id": run_id}
    with get_usage_metadata_callback() as total:
        await agent.ainvoke(state, config) if is_async else agent.invoke(state, config)
    flushes = [run for run in tracer.known.values() if run.name == "memory_flush"]
    assert len(flushes) == 2  # the call of the tool, and the end
    for run in flushes:
        assert run.parent_run_id in tracer.known
        assert run.trace_id == run_id
        assert {"openclaw:flush", "nostream"} <= set(run.tags)
    assert "4711" in notes(memory)
    for counted in (usage.usage_metadata, total.usage_metadata):
        assert counted["flusher"]["input_tokens"] == 2_000_000
    assert not any("4711" in token for token in reader.tokens)


# --- random histories, several at once, failing models
def unreliable(chance, seed):
    """The script of a flush model that fails in all ways, and else writes the facts."""
    dice = random.Random(seed)

    def script(request):
        if dice.random() < chance:
            return dice.choice(
                [RuntimeError("down"), "I am sorry.", calling("memory_append", text=3), calling("memory_append"), ""]
            )
        return writes_facts(request)

    return script


async def talk(agent, name, rounds, dice, *, is_async):
    """Hold one conversation of random messages; return the facts in it, and what is left of it."""
    facts, messages, config = [], [], thread(name) if name else None
    for number in range(rounds):
        fact = f"{name or id(dice)} fact {number} is {dice.random():.6f}"
        facts.append(fact)
        text = dice.choice(["Hello.", "And?", f"So it goes. {'so on ' * dice.randrange(40)}"])
        said = [HumanMessage(text), HumanMessage(f"Please remember: {fact}.")][-dice.randrange(1, 3) :]
        state = {"messages": said if config else [*messages, *said]}
        state = await agent.ainvoke(state, config) if is_async else await asyncio.to_thread(agent.invoke, state, config)
        messages = state["messages"]
    return facts, "".join(message.text for message in messages)


async def simulate(memory, way, seed, *, talks, rounds, is_async, chance):
    dice = random.Random(seed)
    summary = ScriptedChatModel(script=saying(SUMMARY))
    flush_model = ScriptedChatModel(script=unreliable(chance, seed))
    trigger = dice.choice([("messages", dice.randrange(4, 12)), ("tokens", dice.randrange(80, 160))])
    keep = dice.choice([("messages", dice.randrange(1, 4)), ("tokens", dice.randrange(10, 60))])
    key = dice.choice([None, "team"])
    middleware = way(summary, memory, flush_model, session_key=key, trigger=trigger, keep=keep)
    saver = InMemorySaver()
    agent = create_agent(ScriptedChatModel(script=saying("ok")), [], middleware=middleware, checkpointer=saver)
    passing = create_agent(ScriptedChatModel(script=saying("ok")), [], middleware=middleware)
    names = [f"thread {number}" if dice.random() < 0.7 else None for number in range(talks)]
    held = await asyncio.gather(
        *(
            talk(agent if name else passing, name, rounds, random.Random(f"{seed} {number}"), is_async=is_async)
            for number, name in enumerate(names)
        )
    )
    there = saved(memory)
    lost = [fact for facts, left in held for fact in facts if fact not in there and fact not in left]
    flushes = memory_flushes(flush_model)
    return len(summary.requests), flushes, lost


def memory_flushes(flush_model):
    """How many turns were held: each begins with a conversation that was not shown before it."""
    begun = [request.messages for request in flush_model.requests if request.messages[0].type == "system"]
    return len({str([message.id for message in messages[1:-1] if message.type != "tool"][:1]) for messages in begun})


LENGTHS = {"talks": 3, "rounds": 8, "chance": 0.3}, {"talks": 8, "rounds": 20, "chance": 0.5}


@WAYS
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (0, *range(2, 22)))])
@pytest.mark.sampled(2)
async def test_whatever_is_said_by_how_many_each_cut_has_a_flush_and_no_fact_is_lost(memory, way, seed, is_async):
    cuts, flushes, lost = await simulate(memory, way, seed, is_async=is_async, **LENGTHS[seed > 1])
    assert lost == []
    assert cuts == flushes > 0


def cut_off(**about):
    """A call whose text was cut off, as providers return it: LangChain mends the arguments in a stream."""
    call = {"name": "memory_append", "args": {"text": "- fact"}, "id": "a"}
    return AIMessage("", tool_calls=[call], response_metadata=about)


UNPARSED = {"name": "memory_append", "args": '{"text": "- fac', "id": "a", "error": "it ends early"}


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("", invalid_tool_calls=[UNPARSED]),
        calling("write_file", "a", path="memory/facts.md", content="- fact 0."),
        calling("memory_append", "a", text=["- fact 0."]),
        cut_off(finish_reason="length"),
        cut_off(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        cut_off(stop_reason="max_tokens"),
        cut_off(stopReason="guardrail_intervened"),
        AIMessage("NO_REPLY", response_metadata={"finish_reason": "length"}),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.sampled(8)
async def test_what_a_failed_call_should_have_saved_is_kept_and_shown_in_the_status(
    memory, scripted, summary, reply, is_async
):
    flush_model = scripted(reply, "NO_REPLY")
    agent = create_agent(scripted("ok"), middleware=subclass(summary, memory, flush_model, **SMALL))
    said = {"messages": [HumanMessage(f"Please remember: fact {number}.") for number in range(6)]}
    state = await agent.ainvoke(said, thread()) if is_async else agent.invoke(said, thread())
    assert SUMMARY in state["messages"][0].text
    assert all(f"fact {number}." in saved(memory) for number in range(4))
    assert notes(memory) == ""
    assert "was not written" in memory.status().flush["tuesday"] or "cut off" in memory.status().flush["tuesday"]
