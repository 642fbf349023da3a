"""Agents whose memories are saved just before their conversation is summarised."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware, summarization
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openclaw_memory import MemoryFlushMiddleware
from langchain_openclaw_memory.testing import ScriptedChatModel, calling
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from scripted_chat import (
    FACT,
    SUMMARY,
    Listening,
    asks_memory,
    chat_with,
    notes,
    says,
    says_facts,
    thread,
    writes_facts,
)

# Clauses came with a later version than the lowest that is supported.
needs_clauses = pytest.mark.skipif(
    not hasattr(summarization, "TriggerClause"), reason="this version of LangChain has no clauses of triggers"
)

QUESTION = "What is the boiler code?"


class Reported:
    """A list in which models and middleware leave, in order, what happened."""

    def __init__(self):
        self.events = []

    def script(self, event, inner):
        def answered(request):
            self.events.append(event)
            return inner(request)

        return answered

    def cycles(self):
        """What happened between one summary and the next, up to each summary."""
        return " ".join(self.events).split("summary")[:-1]


@pytest.fixture
def reported():
    return Reported()


@pytest.fixture
def make_agent(memory, scripted, reported):
    """Makes an agent that answers questions from memory, and its summarization after 8 messages."""

    def memory_search(query: str) -> str:
        """Search the memory."""
        memory.sync()
        return "\n".join(hit.snippet for hit in memory.search(query)) or "nothing"

    def make(flush=None, *, trigger=("messages", 8), keep=("messages", 2), with_flush=True, **options):
        model = options.pop("model", None) or scripted(reported.script("reply", asks_memory))
        flush_model = options.pop("flush_model", None) or scripted(reported.script("flush", writes_facts))
        shortens = SummarizationMiddleware(
            scripted(reported.script("summary", lambda _: SUMMARY)), trigger=trigger, keep=keep
        )
        flush = flush or MemoryFlushMiddleware.before(shortens, memory=memory, model=flush_model)
        middleware = [flush, shortens] if with_flush else [shortens]
        options.setdefault("checkpointer", InMemorySaver())
        return create_agent(model, [memory_search], middleware=middleware, **options)

    return make


CHATTER = [f"Chatter number {number}." for number in range(13)]


def run_sync(agent, text, config):
    return agent.invoke(says(text), config)


def run_stream(agent, text, config):
    assert list(agent.stream(says(text), config, stream_mode=["messages", "updates"]))
    return agent.get_state(config).values


async def run_async(agent, text, config):
    return await agent.ainvoke(says(text), config)


async def run_async_stream(agent, text, config):
    async for _ in agent.astream(says(text), config, stream_mode=["messages", "updates"]):
        pass
    return (await agent.aget_state(config)).values


async def run_events(agent, text, config):
    async for _ in agent.astream_events(says(text), config, version="v2"):
        pass
    return (await agent.aget_state(config)).values


@pytest.mark.parametrize("run", [run_sync, run_stream, run_async, run_async_stream, run_events])
@pytest.mark.sampled(2)
async def test_a_fact_of_the_first_cycle_is_known_in_the_third_and_each_cycle_has_one_flush(make_agent, reported, run):
    agent = make_agent()
    for text in (FACT, *CHATTER, QUESTION):
        state = run(agent, text, thread())
        state = await state if asyncio.iscoroutine(state) else state
    assert "4711" in state["messages"][-1].text
    assert len(reported.cycles()) >= 3
    # The first flush asks its model twice, for the call of the tool and for the end.
    assert [cycle.count("flush") for cycle in reported.cycles()] == [2] + [1] * (len(reported.cycles()) - 1)


SECRET_WORDS = "flush-whisper"


def whispers(request):
    """A flush model that talks while it writes."""
    if isinstance(request.messages[-1], ToolMessage):
        return f"NO_REPLY {SECRET_WORDS}"
    reply = calling("memory_append", "flush-1", text="- the boiler code is 4711")
    reply.content = SECRET_WORDS
    return reply


@pytest.mark.parametrize("own_callbacks", [False, True])
async def test_no_stream_and_no_callback_of_the_run_sees_the_flush(make_agent, scripted, own_callbacks):
    ear, own = Listening(), Listening()
    flush_model = scripted(whispers, callbacks=[own] if own_callbacks else None)
    agent = make_agent(flush_model=flush_model, trigger=("messages", 2))
    seen = []
    for number, text in enumerate((FACT, *CHATTER[:6])):
        config = thread(callbacks=[ear])
        if number % 3 == 0:
            seen.extend(agent.stream(says(text), config, stream_mode=["messages", "updates", "values"]))
        elif number % 3 == 1:
            seen.extend([part async for part in agent.astream(says(text), config, stream_mode="messages")])
        else:
            seen.extend([event async for event in agent.astream_events(says(text), config, version="v2")])
    assert len(flush_model.requests) >= 4
    assert ear.heard
    for text in map(str, (seen, ear.heard, own.heard)):
        assert SECRET_WORDS not in text
        assert "memory flush" not in text
    assert SECRET_WORDS not in str(agent.get_state(thread()).values["messages"])


@pytest.mark.parametrize(
    "trigger",
    [
        ("tokens", 150),
        ("fraction", 0.3),
        [("messages", 500), ("messages", 6)],
        pytest.param({"messages": 4, "tokens": 100}, marks=needs_clauses),
        pytest.param([("messages", 500), {"messages": 6}], marks=needs_clauses),
    ],
    ids=str,
)
@pytest.mark.sampled(3)
def test_the_flush_comes_just_before_the_summary_whatever_triggers_it(memory, scripted, reported, trigger):
    summary_model = scripted(reported.script("summary", lambda _: SUMMARY), profile={"max_input_tokens": 400})
    shortens = SummarizationMiddleware(summary_model, trigger=trigger, keep=("messages", 2))
    flush = MemoryFlushMiddleware.before(
        shortens, memory=memory, model=scripted(reported.script("flush", lambda _: "NO_REPLY"))
    )
    agent = chat_with(flush, shortens, model=scripted(reported.script("reply", asks_memory)))
    for text in CHATTER:
        agent.invoke(says(text), thread())
    happened = " ".join(reported.events)
    assert happened.count("summary") >= 2
    assert happened.count("flush") == happened.count("flush summary") == happened.count("summary")


def test_a_token_count_of_the_provider_brings_the_flush_as_it_brings_the_summary(scripted, make_agent, reported):
    agent = make_agent(
        model=scripted(reported.script("reply", asks_memory), usage=lambda _: 5_000),
        trigger=("tokens", 5_000),
        keep=("messages", 1),
    )
    # The provider counts what no counter of messages sees; the model that makes summaries is of the same provider.
    for text in CHATTER[:4]:
        agent.invoke(says(text), thread())
    assert [cycle.split() for cycle in reported.cycles()] == [["reply", "flush"]] + [["reply", "flush"]] * 2


def test_a_restart_between_cycles_changes_nothing(tmp_path, make_agent, reported, caplog):
    """Each turn has a process of its own, as far as objects can tell."""
    for text in (FACT, *CHATTER, QUESTION):
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            state = make_agent(checkpointer=saver).invoke(says(text), thread())
    assert "4711" in state["messages"][-1].text
    assert len(reported.cycles()) >= 3
    assert [cycle.count("flush") for cycle in reported.cycles()] == [2] + [1] * (len(reported.cycles()) - 1)
    assert not caplog.text


def test_a_thread_that_is_used_for_another_conversation_is_flushed_again(memory, scripted, reported):
    flush = MemoryFlushMiddleware(
        memory, scripted(reported.script("flush", lambda _: "NO_REPLY")), trigger=("messages", 5)
    )
    saver = InMemorySaver()
    agent = create_agent(scripted("ok"), [], middleware=[flush], checkpointer=saver)
    for topic in ("trains", "boats"):
        for text in CHATTER[:4]:
            agent.invoke(says(f"{topic}: {text}"), thread())
        saver.delete_thread("tuesday")
    assert reported.events == ["flush", "flush"]


def test_going_back_to_before_the_flush_flushes_the_other_way_on(memory, scripted, reported):
    flush = MemoryFlushMiddleware(
        memory, scripted(reported.script("flush", lambda _: "NO_REPLY")), trigger=("messages", 3)
    )
    agent = chat_with(flush)
    agent.invoke(says("One."), thread())
    earlier = agent.get_state(thread()).config
    agent.invoke(says("Two."), thread())
    agent.invoke(says("Three."), thread())
    assert reported.events == ["flush"]
    agent.invoke(says("Another two, which is longer than the other one was, and much more of it."), earlier)
    assert reported.events == ["flush", "flush"]


def test_a_huge_paste_is_flushed_whole_in_parts(memory, scripted, reported):
    paste = "\n".join(f"line {number} of the paste, which goes on for a while" for number in range(3_000))
    flush_model = scripted(reported.script("flush", writes_facts), profile={"max_input_tokens": 8_000})
    flush = MemoryFlushMiddleware(memory, flush_model)
    agent = chat_with(flush)
    agent.invoke(says(f"{FACT}\n{paste}\nPlease remember: the last line is read too."), thread())
    shown = "\n".join(request.text for request in flush_model.requests)
    assert all(f"line {number} of the paste" in shown for number in range(3_000))
    assert all(len(request.text) < 8_000 * 4 for request in flush_model.requests)
    assert "4711" in notes(memory)
    assert "the last line is read too" in notes(memory)


def test_a_flush_that_fails_leaves_the_turn_whole_and_the_messages_are_found(memory, make_agent, scripted, reported):
    flush_model = scripted(reported.script("flush", lambda _: RuntimeError("no credit left")))
    agent = make_agent(flush_model=flush_model)
    for text in (FACT, *CHATTER[:4]):
        state = agent.invoke(says(text), thread())
    assert state["messages"][-1].text.startswith("Noted")
    assert [cycle.count("flush") for cycle in reported.cycles()] == [2]  # the messages, and their text
    memory.sync()
    assert "4711" in memory.search("boiler code", filter={"source": "sessions"})[0].snippet
    assert "no credit left" in str(memory.status())


@pytest.mark.parametrize(("says_last", "is_noted"), [(says_facts, True), ("no_reply.", False)])
def test_a_model_without_tools_says_its_notes_or_nothing(memory, scripted, text_only, says_last, is_noted):
    flush = MemoryFlushMiddleware(memory, text_only(says_last), trigger=("messages", 1))
    create_agent(scripted("ok"), [], middleware=[flush]).invoke(says(FACT))
    assert ("the boiler code is 4711" in notes(memory)) is is_noted


def test_the_flush_is_shown_the_conversation_with_its_tool_calls_and_without_system_prompts(make_agent, scripted):
    flush_model = scripted(writes_facts)
    agent = make_agent(
        flush_model=flush_model, trigger=("messages", 9), keep=("messages", 1), system_prompt="You are the house."
    )
    for text in (FACT, QUESTION, "Thanks."):
        agent.invoke({"messages": [SystemMessage("Be kind."), HumanMessage(text)]}, thread())
    shown = flush_model.requests[0].messages
    assert [type(message) for message in shown].count(SystemMessage) == 1
    assert "You are the house." not in flush_model.requests[0].text
    assert any(isinstance(message, ToolMessage) for message in shown)
    assert any(isinstance(message, AIMessage) and message.tool_calls for message in shown)
    assert flush_model.requests[0].tools == ["memory_append"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_overflow_of_the_agents_model_flushes_once_and_is_raised(memory, scripted, reported, is_async):
    flush = MemoryFlushMiddleware(memory, scripted(reported.script("flush", writes_facts)), window=200_000)
    agent = chat_with(flush, model=scripted(ContextOverflowError("too long")))
    for text in (FACT, "Still there?"):
        with pytest.raises(ContextOverflowError):
            await agent.ainvoke(says(text), thread()) if is_async else agent.invoke(says(text), thread())
    assert reported.events == ["flush", "flush"]  # the call of the tool, and the end of one turn
    assert "4711" in notes(memory)


def test_a_flush_that_is_after_the_summarization_says_so(memory, scripted, caplog):
    shortens = SummarizationMiddleware(scripted(SUMMARY), trigger=("messages", 3), keep=("messages", 1))
    flush = MemoryFlushMiddleware.before(shortens, memory=memory)
    agent = chat_with(shortens, flush)
    for text in CHATTER[:5]:
        agent.invoke(says(text), thread())
    assert caplog.text.count("place MemoryFlushMiddleware before") == 1


def test_a_memory_that_is_closed_holds_up_no_agent(memory, scripted, reported):
    flush = MemoryFlushMiddleware(memory, scripted(reported.script("flush", writes_facts)), trigger=("messages", 1))
    memory.close()
    agent = chat_with(flush)
    assert agent.invoke(says(FACT), thread())["messages"][-1].text == "ok"
    assert reported.events == []


async def test_a_run_that_is_cancelled_during_its_flush_leaves_it_to_the_next_one(memory, scripted, flush_model):
    asked = asyncio.Event()

    class Hanging(ScriptedChatModel):
        async def _agenerate(self, *args, **kwargs):  # noqa: ARG002
            asked.set()
            await asyncio.Event().wait()

    flush = MemoryFlushMiddleware(memory, scripted("ok", kind=Hanging), trigger=("messages", 3))
    agent = chat_with(flush)
    said = {"messages": [HumanMessage(FACT), AIMessage("Noted."), HumanMessage("Thanks.")]}
    run = asyncio.create_task(agent.ainvoke(said, thread()))
    await asked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    flush.model = flush_model
    await agent.ainvoke(None, thread())
    assert "4711" in notes(memory)


async def test_talks_that_wait_for_the_model_at_once_are_each_flushed(memory, scripted):
    """Their messages have ids of a client, the same in each thread."""
    model = scripted(lambda request: writes_facts(request) if request.tools else "ok")
    agent = create_agent(model, [], middleware=[MemoryFlushMiddleware(memory, trigger=("messages", 3))])

    def said(number):
        fact = HumanMessage(f"Please remember: fact {number}.", id="1")
        return {"messages": [fact, AIMessage("Noted.", id="2"), HumanMessage("Thanks.", id="3")]}

    await agent.abatch([said(number) for number in range(30)], [thread(f"t{number}") for number in range(30)])
    assert [number for number in range(30) if f"fact {number}." not in notes(memory)] == []
