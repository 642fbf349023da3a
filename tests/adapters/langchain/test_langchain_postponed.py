"""Summaries that wait while the memory cannot be written."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_openclaw_memory import OpenClawSummarizationMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from scripted_chat import SUMMARY, notes, says, writes_facts
from unwritable import UNWRITABLE, full, gone

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import CompactionConfig, EmbeddingConfig

SMALL = {"trigger": ("messages", 6), "keep": ("messages", 2)}
TUESDAY = {"configurable": {"thread_id": "tuesday"}}


@pytest.fixture
def summary(scripted):
    return scripted(SUMMARY)


@pytest.fixture(params=[False, True], ids=["invoke", "ainvoke"])
def talk(request, memory, scripted, summary, flush_model):
    """Says facts to an agent, which are numbered on; returns what it then has in view."""
    middleware = OpenClawSummarizationMiddleware(summary, memory, flush_model=flush_model, **SMALL)
    agent = create_agent(scripted("ok"), middleware=[middleware], checkpointer=InMemorySaver())
    numbers = iter(range(1_000))

    def turns(count, agent=agent):
        for _ in range(count):
            said = says(f"Please remember: fact {next(numbers)}.")
            invoke = asyncio.run(agent.ainvoke(said, TUESDAY)) if request.param else agent.invoke(said, TUESDAY)
        return "\n".join(message.text for message in invoke["messages"])

    return turns


@pytest.mark.parametrize("unwritable", UNWRITABLE.values(), ids=UNWRITABLE.keys())
@pytest.mark.sampled(2)
def test_while_the_memory_cannot_be_written_no_fact_leaves_the_conversation_and_then_all_are_saved(
    memory, talk, summary, flush_model, unwritable, caplog
):
    with unwritable(memory.workspace.root):
        view = talk(8)
        assert all(f"fact {number}." in view for number in range(8))
        # What cannot be saved is summarised once, and not in each turn again.
        assert len(summary.requests) == 1
        assert len(flush_model.requests) <= 2
        assert caplog.text.count("waits until its messages can be saved") == 1
    assert memory.status().flush["tuesday"]
    view = talk(1)
    assert SUMMARY in view
    assert all((f"fact {number}." in notes(memory)) is not (f"fact {number}." in view) for number in range(9))
    assert memory.status().flush == {}
    assert memory.sessions.flush("tuesday").state.compaction_count == 1


@pytest.mark.parametrize("unwritable", UNWRITABLE.values(), ids=UNWRITABLE.keys())
@pytest.mark.sampled(1)
def test_a_full_window_is_cut_whatever_the_memory_can_take(memory, scripted, talk, flush_model, unwritable, caplog):
    model = scripted(SUMMARY, profile={"max_input_tokens": 200})
    middleware = OpenClawSummarizationMiddleware(model, memory, flush_model=flush_model, **SMALL)
    sizes = []

    def reply(request):
        sizes.append(count_tokens_approximately(request.messages))
        return "ok"

    agent = create_agent(scripted(reply), middleware=[middleware], checkpointer=InMemorySaver())
    with unwritable(memory.workspace.root):
        talk(40, agent)
    assert memory.status().flush["tuesday"]
    assert 120 < max(sizes) < 200
    assert "waits until its messages can be saved" in caplog.text


def test_where_the_window_is_unknown_the_model_says_when_it_is_full(memory, scripted, talk, summary, flush_model):
    middleware = OpenClawSummarizationMiddleware(summary, memory, flush_model=flush_model, **SMALL)
    sizes = []

    def reply(request):
        sizes.append(len(request.messages))
        return ContextOverflowError("too long") if len(request.messages) > 20 else "ok"

    agent = create_agent(scripted(reply), middleware=[middleware], checkpointer=InMemorySaver())
    with full(memory.workspace.root):
        view = talk(16, agent)
    assert max(sizes) == 21
    assert sizes[sizes.index(21) + 1] == 3  # asked again at once, with the summary: the user's turn goes on
    assert SUMMARY in view
    assert "fact 15." in view


def test_a_conversation_that_is_refused_without_having_waited_is_not_cut(memory, scripted, summary, flush_model):
    middleware = OpenClawSummarizationMiddleware(summary, memory, flush_model=flush_model, trigger=("messages", 50))
    agent = create_agent(scripted(lambda _: ContextOverflowError("too long")), middleware=[middleware])
    with pytest.raises(ContextOverflowError):
        agent.invoke(says("Hi."))
    assert summary.requests == []


def test_where_no_flush_is_wanted_a_summary_waits_for_nothing(tmp_path, scripted, summary, talk):
    off = MemoryConfig(embedding=EmbeddingConfig(provider="none"), compaction=CompactionConfig(flush=False))
    folder = tmp_path / "off"
    folder.mkdir()
    with Memory.open(folder, config=off) as memory:
        middleware = OpenClawSummarizationMiddleware(summary, memory, **SMALL)
        agent = create_agent(scripted("ok"), middleware=[middleware], checkpointer=InMemorySaver())
        with full(folder):
            assert SUMMARY in talk(8, agent)


def test_each_conversation_waits_for_itself(memory, scripted, summary):
    flush_model = scripted(writes_facts)
    middleware = OpenClawSummarizationMiddleware(summary, memory, flush_model=flush_model, **SMALL)
    agent = create_agent(scripted("ok"), middleware=[middleware])
    said = {"messages": [AIMessage("ok") if at % 2 else f"Please remember: fact {at}." for at in range(7)]}
    other = {"messages": ["Hello.", *said["messages"][1:]]}
    with gone(memory.workspace.root):
        assert len(agent.invoke(said)["messages"]) == 8
    assert SUMMARY in agent.invoke(other)["messages"][0].text
    assert SUMMARY in agent.invoke(said)["messages"][0].text
    assert "fact 0." in notes(memory)
