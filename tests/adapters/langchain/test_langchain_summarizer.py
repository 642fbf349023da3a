"""A summarizer that has memories saved of exactly what it summarises."""

import inspect
import json

import langchain.agents.middleware.summarization as installed
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import HumanMessage
from langchain_openclaw_memory import flushing_summarizer
from langchain_openclaw_memory import summarizer as module
from langgraph.checkpoint.memory import InMemorySaver
from scripted_chat import FACT, SUMMARY, notes, writes_facts

from openclaw_memory.errors import ConfigError

# The hook came with a later version than the lowest that is supported.
needs_the_hook = pytest.mark.skipif(
    "summarizer" not in inspect.signature(SummarizationMiddleware.__init__).parameters,
    reason="this version of LangChain has no summarizer=",
)

THREAD = {"configurable": {"thread_id": "tuesday"}}


def summarization(model, summarizer):
    return SummarizationMiddleware(
        model, trigger=("messages", 6), keep=("messages", 2), summarizer=summarizer, trim_tokens_to_summarize=None
    )


def plain(messages):
    return f"{SUMMARY}: {len(messages)} messages"


async def waiting(messages):
    return plain(messages)


async def conversation(agent, *, is_async):
    for text in (FACT, *(f"Chatter number {number}." for number in range(4))):
        said = {"messages": [HumanMessage(text)]}
        state = await agent.ainvoke(said, THREAD) if is_async else agent.invoke(said, THREAD)
    return state["messages"]


@needs_the_hook
@pytest.mark.parametrize(("summarizer", "is_async"), [(plain, False), (plain, True), (waiting, True)])
async def test_memories_of_what_is_lost_are_saved_before_it_is_summarised(
    memory, scripted, flush_model, summarizer, is_async
):
    hook = flushing_summarizer(summarizer, memory, flush_model)
    agent = create_agent(
        scripted("ok"), [], middleware=[summarization(scripted("never asked"), hook)], checkpointer=InMemorySaver()
    )
    messages = await conversation(agent, is_async=is_async)
    assert SUMMARY in messages[0].text
    assert "4711" in notes(memory)
    assert (
        json.loads((memory.workspace.root / "sessions" / "sessions.json").read_text())["tuesday"]["compactionCount"]
        == 1
    )
    shown = flush_model.requests[0].messages
    assert [message.text for message in shown[1:-1]] == [FACT, "ok", "Chatter number 0.", "ok", "Chatter number 1."]


@needs_the_hook
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_chat_model_as_summarizer_writes_both(memory, scripted, is_async):
    def both(request):
        if "memory_append" not in request.tools:
            return SUMMARY
        return writes_facts(request)

    model = scripted(both)
    agent = create_agent(
        scripted("ok"),
        [],
        middleware=[summarization(scripted("x"), flushing_summarizer(model, memory))],
        checkpointer=InMemorySaver(),
    )
    messages = await conversation(agent, is_async=is_async)
    assert SUMMARY in messages[0].text
    assert "4711" in notes(memory)


def both_but_no_more_than(chars):
    """Writes memories and summaries of what is not too long."""

    def script(request):
        if len(request.text) > chars:
            return ContextOverflowError("prompt is too long")
        return writes_facts(request) if "memory_append" in request.tools else f"{SUMMARY}: {request.text}"

    return script


@needs_the_hook
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_too_long_for_the_summarizer_is_summarised_without_its_middle(memory, scripted, is_async):
    hook = flushing_summarizer(scripted(both_but_no_more_than(16_000)), memory)
    messages = [
        HumanMessage(FACT),
        HumanMessage("so it goes on " * 800),
        HumanMessage("The middle."),
        HumanMessage("so it goes on " * 800),
        HumanMessage("The end."),
    ]
    summary = await hook.ainvoke(messages) if is_async else hook.invoke(messages)
    assert FACT in summary
    assert "The end." in summary
    assert "The middle." not in summary
    assert "4711" in notes(memory)


@needs_the_hook
def test_a_summary_is_not_asked_for_again_where_that_cannot_help(memory, scripted, flush_model):
    from langchain_core.exceptions import ModelAuthenticationError  # came later than the lowest version

    model = scripted(ModelAuthenticationError("bad key"))
    with pytest.raises(ModelAuthenticationError):
        flushing_summarizer(model, memory, flush_model).invoke([HumanMessage(FACT)])
    assert len(model.requests) == 1
    assert "4711" in notes(memory)


@needs_the_hook
def test_a_chat_model_is_given_all_messages_and_the_prompt_that_is_wanted(memory, scripted, flush_model):
    model = scripted(SUMMARY)
    hook = flushing_summarizer(model, memory, flush_model, summary_prompt="In three words: {messages}")
    assert hook.invoke([HumanMessage(FACT), HumanMessage("so it goes on " * 2_000)]) == SUMMARY
    assert model.requests[0].text.startswith("In three words: ")
    assert FACT in model.requests[0].text


@needs_the_hook
def test_a_summarizer_by_its_name_writes_both(memory, scripted, monkeypatch):
    model = scripted(both_but_no_more_than(12_000))
    monkeypatch.setattr("langchain.chat_models.init_chat_model", {"house:large": model}.__getitem__)
    assert SUMMARY in flushing_summarizer("house:large", memory).invoke([HumanMessage(FACT)])
    assert "4711" in notes(memory)
    assert SUMMARY in flushing_summarizer(plain, memory, "house:large").invoke([HumanMessage(FACT)])


@needs_the_hook
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("key", "kept"), [(None, "tuesday"), ("house", "house")])
async def test_messages_that_are_kept_are_in_the_transcript_of_their_session(memory, scripted, is_async, key, kept):
    hook = flushing_summarizer(plain, memory, scripted(RuntimeError("no credit left")), session_key=key)
    agent = create_agent(
        scripted("ok"), [], middleware=[summarization(scripted("x"), hook)], checkpointer=InMemorySaver()
    )
    await conversation(agent, is_async=is_async)
    assert "4711" in (memory.workspace.root / "sessions" / f"{kept}.jsonl").read_text()


@needs_the_hook
def test_a_flush_that_fails_costs_no_summary(memory, scripted):
    hook = flushing_summarizer(plain, memory, scripted(RuntimeError("no credit left")))
    assert SUMMARY in hook.invoke([HumanMessage(FACT)])
    memory.sync()
    assert "4711" in memory.search("boiler code", source="sessions")[0].snippet


@needs_the_hook
def test_a_function_alone_cannot_write_memories(memory):
    with pytest.raises(ConfigError, match="pass model="):
        flushing_summarizer(plain, memory)


def test_a_version_without_the_hook_is_kept_apart(memory, scripted, monkeypatch):
    class Earlier(installed.SummarizationMiddleware):
        def __init__(self, model, *, trigger=None, **deprecated):
            super().__init__(model, trigger=trigger, **deprecated)

    monkeypatch.setattr(module, "SummarizationMiddleware", Earlier)
    with pytest.raises(ConfigError, match=r"MemoryFlushMiddleware\.before"):
        flushing_summarizer(scripted("x"), memory)
