"""What is ejected is written at once and flushed by itself, whoever else asks a model, gives up or shares the session."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index_openclaw_memory import OpenClawMemoryBlock, _eviction
from llama_index_openclaw_memory.testing import ScriptedLLM
from scripted_llm import writes_facts

from openclaw_memory import Memory
from openclaw_memory.config import CompactionConfig
from openclaw_memory.conversation import get_text
from openclaw_memory.flush import Session


def user(text):
    return ChatMessage(text, role="user")


def facts(first, last=None):
    return [user(f"Please remember: fact {number} is here.") for number in range(first, (last or first) + 1)]


def put(block, messages, session="s1"):
    """Eject messages, and wait for no flush."""
    asyncio.run(block.aput(messages, from_short_term_memory=True, session_id=session))


@pytest.fixture
def kept(memory):
    """The texts of a transcript."""
    return lambda session: [get_text(message) for message in memory.sessions.flush(session).log.read_messages()]


@pytest.fixture
def noted(memory):
    """Which facts the notes have, and how often."""

    def count(*numbers):
        text = "\n".join(path.read_text() for path in sorted((memory.workspace.root / "memory").glob("*.md")))
        return [text.count(f"fact {number} is here") for number in numbers]

    return count


class Held:
    """A script whose model thinks until `go_on`: it has been asked once `asked` is set."""

    def __init__(self, script=writes_facts):
        self.asked, self.go_on, self._script = threading.Event(), threading.Event(), script

    def __call__(self, messages, tools):
        self.asked.set()
        assert self.go_on.wait(60)
        return self._script(messages, tools)


@pytest.fixture
def held():
    script = Held()
    yield script
    script.go_on.set()


# --- what is written
async def test_a_task_that_is_cancelled_loses_nothing_of_what_was_ejected(memory, kept):
    block = OpenClawMemoryBlock(memory)
    task = asyncio.create_task(block.aput(facts(1), session_id="s1"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await block.asettle()
    assert len(kept("s1")) == 1


async def test_what_is_ejected_waits_for_no_other_session_and_for_none_of_the_loops_threads(memory, kept, held):
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=held), flush_tokens=1)
    loop, go_on = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, go_on.wait, 10)
    for number in range(8):
        await block.aput(facts(number), session_id=f"s{number}")
        assert len(kept(f"s{number}")) == 1
    assert held.asked.wait(60)
    assert not busy.done()
    go_on.set()
    held.go_on.set()
    await block.asettle()
    assert [memory.sessions.flush(f"s{number}").state.compaction_count for number in range(8)] == [1] * 8


def test_what_is_ejected_after_the_memory_was_closed_is_written(memory, noted):
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=writes_facts), flush_tokens=1)
    memory.close()
    put(block, facts(1))
    block.settle()
    assert asyncio.run(block.aget([user("What?")])) == ""
    with Memory.open(memory.workspace.root, config=memory.config) as again:
        assert len(again.sessions.log("s1").read_messages()) == 1
    assert noted(1) == [1]


# --- what is flushed


def test_what_is_ejected_while_a_flush_is_held_is_flushed_after_it_where_that_is_enough(memory, held, noted):
    llm = ScriptedLLM(script=held)
    block = OpenClawMemoryBlock(memory, llm=llm, flush_tokens=8)
    put(block, facts(1))
    assert held.asked.wait(60)
    put(block, facts(2))
    assert noted(1, 2) == [0, 0]
    held.go_on.set()
    block.settle()
    assert noted(1, 2) == [1, 1]
    assert [("fact 1" in asked[0].content, "fact 2" in asked[0].content) for asked in llm.seen[::2]] == [
        (True, False),
        (False, True),
    ]


def test_the_end_of_a_session_waits_for_the_flush_that_is_under_way(memory, held, noted):
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=held), flush_tokens=12)
    put(block, facts(1, 2))
    assert held.asked.wait(60)
    put(block, facts(3))
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(asyncio.run, block.aflush("s1"))
        held.go_on.set()
        ends.result(10)
    assert noted(1, 2, 3) == [1, 1, 1]


def test_the_end_of_a_session_waits_for_a_turn_that_another_process_holds(memory, noted):
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=writes_facts))
    put(block, facts(1))
    others = memory.sessions.flush("s1").begin(1, compacting=True, messages=list)
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(block.flush, "s1")
        others.finish("NO_REPLY")
        ends.result(10)
    assert noted(1) == [1]


class Fails:
    """A script whose model fails while `is_down`."""

    def __init__(self):
        self.is_down = True

    def __call__(self, messages, tools):
        return ConnectionError("down") if self.is_down else writes_facts(messages, tools)


@pytest.mark.parametrize("pause", [0.0, 60.0])
def test_what_a_flush_that_failed_was_shown_comes_again_after_a_pause(memory, noted, monkeypatch, pause):
    monkeypatch.setattr(_eviction, "_PAUSE_SECONDS", pause)
    model = Fails()
    llm = ScriptedLLM(script=model)
    block = OpenClawMemoryBlock(memory, llm=llm, flush_tokens=1)
    for number in (1, 2):
        put(block, facts(number))
        block.settle()
    model.is_down, asked = False, len(llm.seen)
    put(block, facts(3))
    block.settle()
    assert noted(1, 2, 3) == ([1, 1, 1] if pause == 0 else [0, 0, 0])
    assert (len(llm.seen) == asked) is (pause > 0)
    block.flush()  # at the end of a session no pause is made
    assert noted(1, 2, 3) == [1, 1, 1]


def test_a_model_that_hangs_is_given_up_and_asked_again_later(memory, noted, kept, held):
    memory.sessions.config = replace(memory.config, compaction=CompactionConfig(flush_timeout_seconds=0.05))
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=held), flush_tokens=1)
    put(block, facts(1))
    block.settle()
    assert not held.go_on.is_set()
    assert "flush_timeout_seconds" in memory.status().flush["s1"]
    assert len(kept("s1")) == 1
    memory.sessions.config = replace(memory.config, compaction=CompactionConfig())
    held.go_on.set()
    block.flush()
    assert noted(1) == [1]
    assert memory.status().flush == {}


def test_what_another_program_that_was_killed_left_is_flushed_by_one_that_lives_on(memory, noted):
    with Memory.open(memory.workspace.root, config=memory.config) as other:
        living = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=writes_facts), flush_tokens=24)
        put(living, facts(1))
        put(OpenClawMemoryBlock(other, llm=ScriptedLLM(script=writes_facts), flush_tokens=24), facts(2))
    put(living, facts(3, 4))
    living.settle()
    assert noted(1, 2, 3, 4) == [1, 1, 1, 1]


def test_a_transcript_that_became_another_one_is_the_one_that_is_flushed(memory, noted):
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=writes_facts), session_key="agent:main:main")
    put(block, facts(1))
    memory.sessions.flush(Session("agent:main:main", "b7")).record_compaction()
    put(block, facts(2))
    block.flush()
    assert len(memory.sessions.log("b7").read_messages()) == 1
    assert noted(2) == [1]
