"""Random histories of several conversations at once, with models that fail: no message is lost, every fact is noted."""

import asyncio
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index_openclaw_memory import OpenClawMemoryBlock
from llama_index_openclaw_memory._messages import convert_messages
from llama_index_openclaw_memory.testing import ScriptedLLM, make_call
from llm_scripts import facts_in, writes_facts

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
