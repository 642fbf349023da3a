"""What memory costs an agent in LangChain, and what the flush before a compaction saves.

    python benchmarks/agents.py [--quick] [--json] [--only WORD]

Overheads are CPU time, set against the same work without the adapter in the same process. The conversation is
scripted: every fifth turn of the user states a fact until the last compaction is near, each summary forgets them all,
and the model of the flush writes down what it is shown. Then `memory_search` is asked for each fact, after a run with
the middleware and after the same run without it. Last, 300 facts are told to a model with a view of 4 and of 20 messages,
while flushes are refused or cut off and the memory cannot be written, and are looked for in the notes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speed import Row, measure, milliseconds, process_milliseconds
from speed_data import questions, write_chunks

from openclaw_memory import Memory
from openclaw_memory.tools import memory_tools

sys.path.append(str(Path(__file__).parents[1] / "tests" / "adapters" / "langchain"))

from langchain_core.messages import AIMessage, HumanMessage


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    processes: int
    chunks: int
    asked: int
    repeats: int
    messages: int
    turns: int
    facts: int
    compactions: int
    told: int


FULL = Scale(11, 1_000, 60, 9, 1_000, 300, 50, 5, 300)
QUICK = Scale(3, 200, 10, 3, 1_000, 100, 12, 1, 20)


def import_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """In fresh processes, in turns, so that a busy machine slows all alike."""
    before = "import langchain_core.retrievers"
    statements = (
        before,
        f"{before}; import langchain_openclaw_memory",
        f"{before}; from langchain_openclaw_memory import OpenClawRetriever",
    )
    times: dict[str, list[float]] = {statement: [] for statement in statements}
    for _ in range(scale.processes + 1):
        for statement in statements:
            times[statement].append(process_milliseconds(["-c", f"import sys; {_adapters()}; {statement}"], scratch))
    bare, package, name = (statistics.median(times[statement][1:]) for statement in statements)
    yield Row("import langchain_core.retrievers", bare, "ms")
    yield Row("import langchain_openclaw_memory, over that", package - bare, "ms", 30)
    yield Row("from langchain_openclaw_memory import OpenClawRetriever, over that", name - bare, "ms", 30)


def _adapters() -> str:
    return f"sys.path.append({str(Path(__file__).parents[1] / 'adapters')!r})"


def retriever_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """The same questions to the memory and to the retriever, in turns."""
    from langchain_openclaw_memory import OpenClawRetriever

    with Memory.open(write_chunks(scratch / "retriever", scale.chunks)) as memory:
        memory.sync()
        retriever = OpenClawRetriever(memory=memory, k=6)
        for question in questions(scale.asked):  # the first time, words are new to the caches
            retriever.invoke(question)
        bare, through = [], []
        for _ in range(scale.repeats):
            for question in questions(scale.asked):
                bare.append(milliseconds(lambda q=question: memory.search(q)))
                through.append(milliseconds(lambda q=question: retriever.invoke(q)))
    yield Row("memory.search", statistics.median(bare), "ms")
    yield Row("retriever.invoke, over that", statistics.median(through) - statistics.median(bare), "ms", 1)


def middleware_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """`before_model` where no summary is due, less what its token counter takes."""
    from langchain_core.messages.utils import count_tokens_approximately
    from langchain_openclaw_memory import OpenClawSummarizationMiddleware
    from langchain_openclaw_memory.testing import ScriptedChatModel, respond_with

    messages: list[Any] = []
    for number in range(scale.messages // 2):
        messages.append(HumanMessage(f"Question {number}: what about the gauge of the north tower?", id=f"h{number}"))
        messages.append(AIMessage(f"Answer {number}: it was read twice and is within its limits.", id=f"a{number}"))
    (scratch / "middleware").mkdir()
    with Memory.open(scratch / "middleware", embedder=None) as memory:
        middleware = OpenClawSummarizationMiddleware(
            ScriptedChatModel(script=respond_with()),
            memory,
            trigger=("tokens", 10_000_000),
            token_counter=count_tokens_approximately,
        )
        state = {"messages": messages}
        runs = 20
        counting = [
            milliseconds(lambda: [count_tokens_approximately(messages) for _ in range(runs)]) / runs
            for _ in range(scale.repeats)
        ]
        looking = [
            milliseconds(lambda: [middleware.before_model(state, None) for _ in range(runs)]) / runs
            for _ in range(scale.repeats)
        ]
    count = statistics.median(counting)
    yield Row(f"the token counter, {scale.messages:,} messages", count, "ms")
    yield Row("the summary's middleware where none is due, over that", statistics.median(looking) - count, "ms", 2)


# --- the flush ---------------------------------------------------------------------------------------------------

THINGS = (
    "boiler bicycle canoe piano tent kettle drill ladder camera telescope printer sofa violin freezer lantern compass "
    "rucksack saddle anvil easel loom kayak heater mower scanner trumpet wardrobe mixer sled globe harp kiln pump "
    "sextant tripod accordion barometer cello dryer epilator fiddle grinder hammock icebox jukebox kiosk lathe "
    "microscope nightstand oboe"
).split()
PLACES = "attic cellar garage shed workshop office hallway barn boathouse studio".split()


def facts(count: int) -> list[tuple[str, str, str]]:
    """So many facts: what the user says, the question for it, and what its answer must hold."""
    found = []
    for number, thing in enumerate(THINGS[:count]):
        code = f"{thing[:3].upper()}-{1000 + 37 * number}"
        place = PLACES[number % len(PLACES)]
        said = f"Please remember that my {thing} stands in the {place} and bears the number {code}."
        found.append((said, f"What number does the {thing} bear?", code))
    return found


def conversation(scale: Scale) -> list[str]:
    """What the user says, turn by turn; the facts are spread evenly."""
    planted = facts(scale.facts)
    return [
        planted[turn // 5][0]
        if turn % 5 == 0 and turn // 5 < len(planted)
        else f"Turn {turn}: how is the weather on the way to stop {turn % 17}?"
        for turn in range(scale.turns)
    ]


def flush_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """The facts that are found again after the conversation, with the flush and without."""
    for flushes in (True, False):
        told = "with the flush" if flushes else "without it"
        found, still_said, compactions = remembered(scale, scratch / f"flush-{flushes}", flushes=flushes)
        bar = float(scale.facts) if flushes else None
        yield Row(f"compactions, {told}", compactions, "", scale.compactions, at_least=True)
        yield Row(f"facts of {scale.facts} found by memory_search, {told}", found, "", bar, at_least=True)
        yield Row(f"facts of {scale.facts} found or still in the conversation, {told}", still_said, "")


def remembered(scale: Scale, folder: Path, *, flushes: bool) -> tuple[int, int, int]:
    from chat_scripts import writes_facts
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_openclaw_memory import OpenClawSummarizationMiddleware
    from langchain_openclaw_memory.testing import ScriptedChatModel
    from langgraph.checkpoint.memory import InMemorySaver

    folder.mkdir()
    summariser = ScriptedChatModel(script=lambda _: "The user and the assistant talked about this and that.")
    plain = SummarizationMiddleware(summariser, trigger=("messages", 120), keep=("messages", 20))
    with Memory.open(folder) as memory:
        writer = ScriptedChatModel(script=writes_facts)
        flushing = OpenClawSummarizationMiddleware.of(plain, memory, flush_model=writer)
        model = ScriptedChatModel(script=lambda _: "Noted.")
        middleware = [flushing if flushes else plain]
        agent = create_agent(model, [], middleware=middleware, checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "benchmark"}}
        compactions, last = 0, None
        for said in conversation(scale):
            messages = agent.invoke({"messages": [HumanMessage(said)]}, config)["messages"]
            summaries = [m.id for m in messages if m.additional_kwargs.get("lc_source") == "summarization"]
            compactions += summaries[-1:] not in ([], [last])
            last = summaries[-1] if summaries else None
        memory.sync()
        search = memory_tools(memory)[0]
        context = "\n".join(str(message.content) for message in messages)
        answers = [(search({"query": question}), code) for _, question, code in facts(scale.facts)]
    found = [code in answer for answer, code in answers]
    return (
        sum(found),
        sum(known or code in context for known, (_, code) in zip(found, answers, strict=True)),
        compactions,
    )


def fact_rows(scale: Scale, scratch: Path) -> Iterator[Row]:
    """Facts that are lost, or noted twice, of a model that is shown 4 or 20 messages, whatever goes wrong meanwhile."""
    from told_facts import TROUBLES, tell_facts

    for way, troubles in TROUBLES.items():
        for kept in (4, 20):
            lives = []
            for trouble in troubles:
                folder = scratch / f"{way} {kept} {trouble}"
                folder.mkdir()
                with Memory.open(folder, embedder=None) as memory:
                    lives.append(tell_facts(memory, scale.told, kept=kept, way=way, trouble=trouble))
            of = f"{scale.told} facts, {way} of {kept} messages, in {len(lives)} lives"
            yield Row(f"{of}: lost", sum(len(life.lost) for life in lives), "", 0)
            yield Row(f"{of}: noted twice, at most", max(len(life.twice) for life in lives), "", 3)


PARTS = {
    "import": import_rows,
    "retriever": retriever_rows,
    "middleware": middleware_rows,
    "flush": flush_rows,
    "facts": fact_rows,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a part of the work, to see that all runs")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given again")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else FULL
    measure([PARTS[name] for name in options.only or PARTS], scale, as_json=options.json)


if __name__ == "__main__":
    main()
