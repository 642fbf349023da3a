"""Random histories of several conversations at once, with models that fail: no message is lost, every fact is noted."""

import asyncio
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from subprocess import DEVNULL

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index_openclaw_memory import OpenClawMemoryBlock
from llama_index_openclaw_memory._messages import convert_messages
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call
from llm_scripts import facts_in, writes_facts
from processes import python

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import CompactionConfig, EmbeddingConfig
from openclaw_memory.conversation import get_text

SMALL_TALK = ("Yes.", "And?", "Shall I go on?", "continue", "Grüße aus Zürich 🚲")
FAILURES = (ConnectionError("hung up"), TimeoutError("too slow"), "I cannot do that.", "")

histories = pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 80))]
)


class Unsteady:
    """The script of a flush model that fails now and then, until it is `steady`."""

    def __init__(self, chance, share):
        self.steady, self._chance, self._share = False, chance, share

    def __call__(self, messages, tools):
        if not self.steady and self._chance.random() < self._share:
            return self._chance.choice(FAILURES)
        return writes_facts(messages, tools)


def said(chance, talk, turns):
    """What is said in one conversation: facts, what is said in others too, and calls of tools."""
    for turn in range(turns):
        if chance.random() < 0.3:
            yield ChatMessage(chance.choice(SMALL_TALK), role="user")
        else:
            filler = "so it goes " * chance.choice([0, 0, 3, 40])
            yield ChatMessage(f"Please remember: talk {talk} fact {turn} is here.\n{filler}", role="user")
        if chance.random() < 0.2:
            yield make_call("look", f"call-{turn}", at="shelf")
            yield ChatMessage("found", role="tool", additional_kwargs={"tool_call_id": f"call-{turn}"})
        yield ChatMessage(chance.choice(["Noted.", *SMALL_TALK]), role="assistant")


def sessions_of(chance, talks):
    """The session of each conversation: one for all, one for each, or as it comes; and also none."""
    kind = chance.choice(["one", "each", "any"])
    names = {"one": ["s0"] * talks, "each": [f"s{talk}" for talk in range(talks)]}
    return names.get(kind) or [chance.choice(["s0", "s1", None]) for _ in range(talks)]


def facts(messages):
    return [fact for message in messages for fact in facts_in([message])]


@pytest.fixture
def kept(memory):
    """The texts of a transcript, however often each is there."""
    return lambda session: Counter(get_text(message) for message in memory.sessions.log(session).read_messages())


def texts_of(messages):
    return Counter(get_text(message) for message in convert_messages(messages))


async def gather(calls):
    await asyncio.gather(*(call() for call in calls))


async def eject(block, session, history):
    """Hand a history over as `Memory` does, a few messages at once."""
    left, sizes = list(history), random.Random(len(history))
    while left:
        size = sizes.randint(1, 6)
        await block.aput(left[:size], from_short_term_memory=True, session_id=session)
        left = left[size:]


@pytest.mark.parametrize("way", ["threads", "asyncio"])
@histories
@pytest.mark.sampled(2)
def test_of_what_is_ejected_nothing_is_lost_and_every_fact_is_noted(memory, noted, kept, seed, way):
    chance = random.Random(seed)
    talks = chance.randint(1, 4)
    sessions = sessions_of(chance, talks)
    model = Unsteady(random.Random(seed), chance.choice([0, 0.3, 1]))
    block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=model), flush_tokens=chance.choice([1, 60, 400]))
    histories = [list(said(chance, talk, chance.randint(5, 25))) for talk in range(talks)]
    calls = [partial(eject, block, session, history) for session, history in zip(sessions, histories, strict=True)]
    if way == "threads":  # each with a loop of its own
        with ThreadPoolExecutor(len(calls)) as pool:
            list(pool.map(lambda call: asyncio.run(call()), calls))
    else:
        asyncio.run(gather(calls))
    model.steady = True
    block.flush()
    for session in set(sessions):
        of_it = [history for name, history in zip(sessions, histories, strict=True) if name == session]
        assert kept(session or "main") == texts_of(chain(*of_it))
    notes = noted()
    assert [fact for history in histories for fact in facts(history) if fact not in notes] == []
    assert memory.status().flush == {}


QUIET = MemoryConfig(embedding=EmbeddingConfig(provider="none"))
CHILD = """
import sys
sys.path[:0] = ["tests", "tests/adapters/contracts", "tests/adapters/llama_index"]
import test_llama_index_flush_simulations as simulations
simulations.%s(*sys.argv[1:])
"""


def eject_in_a_process(folder, talk):
    """What each of several processes does: one conversation in the session of all, and a model that fails at times."""
    chance = random.Random(talk)
    with Memory.open(folder, config=QUIET) as memory:
        block = OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=Unsteady(chance, 0.3)), flush_tokens=60)
        asyncio.run(eject(block, "s0", list(said(random.Random(talk), talk, 40))))


@pytest.mark.nightly
def test_of_what_processes_eject_in_one_session_nothing_is_lost(memory, noted, kept):
    code = CHILD % "eject_in_a_process"
    running = [python(code, memory.workspace.root, talk, stdout=DEVNULL) for talk in ("a", "b")]
    assert [process.wait(120) for process in running] == [0, 0]
    OpenClawMemoryBlock(memory, llm=ScriptedLLM(script=writes_facts)).flush("s0")
    history = [message for talk in ("a", "b") for message in said(random.Random(talk), talk, 40)]
    assert kept("s0") == texts_of(history)
    notes = noted()
    assert [fact for fact in facts(history) if fact not in notes] == []


def hang_in_a_process(folder):
    """What a process does whose model never answers: it ends nevertheless."""
    rules = CompactionConfig(flush_timeout_seconds=0.5)
    with Memory.open(folder, config=MemoryConfig(embedding=QUIET.embedding, compaction=rules)) as memory:
        llm = ScriptedLLM(script=lambda *_: time.sleep(3_600))
        block = OpenClawMemoryBlock(memory, llm=llm, flush_tokens=1)
        asyncio.run(block.aput([ChatMessage("Please remember: fact 1 is here.")]))


@pytest.mark.nightly
def test_a_model_that_hangs_does_not_hold_the_end_of_the_program(memory, kept):
    assert python(CHILD % "hang_in_a_process", memory.workspace.root, stdout=DEVNULL).wait(60) == 0
    assert sum(kept("main").values()) == 1
    assert "flush_timeout_seconds" in memory.status().flush["main"]
