"""Facts told to agents whose view is small: which are lost, and which the flush notes twice."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("tests", "tests/adapters/langchain")]

from chat_scripts import chat_with, flushes, notes, saved, thread
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_openclaw_memory import OpenClawFlushCallback, OpenClawSummarizationMiddleware, memory_tools
from langchain_openclaw_memory.testing import Reply, Request, ScriptedChatModel, make_call
from unwritable import files_in_the_place_of_folders

from openclaw_memory import Memory

# By how the view is cut: by a summary, or by the program, which only a callback sees.
TROUBLES = {
    "summary": ("", "refused", "cut off", "unwritable", "search"),
    "callback": ("", "refused", "cut off", "unwritable", "search", "rewritten"),
}
TOLD = re.compile(r"Fact (\d+): my thing(?:\d+) has the number (ABC-\d+)")


class Life(NamedTuple):
    """What came of facts that were told: those that are nowhere, those that were noted twice, and the flushes."""

    lost: list[int]
    twice: list[int]
    flushes: int


def noting(trouble: str) -> Callable[[Request], Reply]:
    """The script of a flush model that notes every fact it sees, in new words each time; each third turn has trouble."""
    turns: list[int] = []

    def note(request: Request) -> Reply:
        if isinstance(request.messages[-1], ToolMessage):
            return "NO_REPLY"
        turns.append(1)
        facts = dict.fromkeys(TOLD.findall(request.text))
        text = "\n".join(f"- Fact {number} is {code}, as turn {len(turns)} says." for number, code in facts)
        reply = make_call("memory_append", text=text) if facts else AIMessage("NO_REPLY")
        if len(turns) % 3 == 0 and trouble == "refused":
            return RuntimeError("no credit left")
        if len(turns) % 3 == 0 and trouble == "cut off":
            reply.response_metadata["finish_reason"] = "length"
        return reply

    return note


def tell_facts(memory: Memory, count: int, *, kept: int, way: str, trouble: str = "") -> Life:
    """Tell facts to a model that is shown `kept` messages, cut by the program or by a summary, and look what is left.

    Trouble is: flushes that are `refused` or `cut off`; a memory that is `unwritable` for a third of the time; a model
    that looks up (`search`) what it was told before; or a program that asks for a `rewritten` question before each turn.
    """
    flush_model = ScriptedChatModel(script=noting(trouble))
    search, *_ = memory_tools(memory, include=("search",))

    def reply(request: Request) -> Reply:
        numbers = re.findall(r"Fact (\d+)", request.messages[-1].text)
        looks = trouble == "search" and request.messages[-1].type == "human" and numbers and int(numbers[-1]) % 5 == 4
        return make_call("memory_search", query=f"thing{int(numbers[-1]) - 4} number") if looks else "ok"

    model = ScriptedChatModel(script=reply, usage=None)
    history: list[BaseMessage] = []
    if way == "summary":
        summary = ScriptedChatModel(script=lambda request: f"Of late: {request.text[-400:]}")
        limits = {"trigger": ("messages", kept), "keep": ("messages", kept // 2), "flush_model": flush_model}
        agent = chat_with(OpenClawSummarizationMiddleware(summary, memory, **limits), model=model, tools=[search])
    else:
        config: Any = {"callbacks": [OpenClawFlushCallback(memory, flush_model, window=200_000)]}
        agent = create_agent(model, [search])

    with ExitStack() as stack:
        for number in range(count):
            if trouble == "unwritable" and number == count // 3:
                stack.enter_context(files_in_the_place_of_folders(memory.workspace.root))
            if number == 2 * count // 3:
                stack.close()
            if trouble == "search" and number % 5 == 4:
                memory.sync()
            told = HumanMessage(f"Fact {number}: my thing{number} has the number ABC-{1000 + 7 * number}.")
            if way == "summary":
                view = agent.invoke({"messages": [told]}, thread())["messages"]
                continue
            history, view = [*history, told], [*history, told][-kept:]
            if trouble == "rewritten":
                lines = "\n".join(f"{message.type}: {message.text}" for message in view)
                model.invoke(
                    [HumanMessage(f"Rewrite the last question so that it can be understood alone.\n{lines}")], config
                )
            view = agent.invoke({"messages": view}, config)["messages"]
            history += view[len([*history][-kept:]) :]
    noted = Counter(map(int, re.findall(r"Fact (\d+)", notes(memory))))
    words = saved(memory) + "".join(message.text for message in view if "lc_source" not in message.additional_kwargs)
    there = {*map(int, re.findall(r"Fact (\d+)", words))}
    twice = [number for number, times in noted.items() if times > 1]
    return Life(sorted({*range(count)} - there), twice, flushes(flush_model))
