"""One graph, many people: each run has the memory that its own values choose, and sees nothing of another's."""

import asyncio
import dataclasses
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openclaw_memory import (
    MemoryFlushMiddleware,
    OpenClawFlushCallback,
    OpenClawRecallMiddleware,
    OpenClawRetriever,
    OpenClawStore,
    OpenClawSummarizationMiddleware,
    OpenClawTranscriptMiddleware,
    memory_tools,
)
from langchain_openclaw_memory.testing import ScriptedChatModel, calling, saying
from pydantic import BaseModel
from scripted_chat import chat_with

from openclaw_memory import Memories, MemoryConfig
from openclaw_memory.config import CompactionConfig
from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import run_values

QUESTION = "Which ferry do I take?"


@dataclasses.dataclass(slots=True)
class Given:
    user_id: str


class Model(BaseModel):
    user_id: str


CONTEXTS = {
    "a dictionary": lambda name: {"user_id": name},
    "a dataclass": Given,
    "a model of pydantic": lambda name: Model(user_id=name),
}


def search_then_answer(request):
    """Search once, then say what was found."""
    if request.messages[-1].type == "tool":
        return request.messages[-1].text
    return calling("memory_search", query="ferry zebra")


@pytest.mark.parametrize("given", CONTEXTS)
@pytest.mark.parametrize("is_async", [False, True], ids=["waited for", "awaited"])
@pytest.mark.sampled(3)
def test_tools_and_recall_take_the_memory_of_the_context(users, given, is_async):
    template = users.template("{user_id}")
    model = ScriptedChatModel(script=search_then_answer)
    agent = create_agent(model, memory_tools(template), middleware=[OpenClawRecallMiddleware(template)])

    def ask(name):
        context = CONTEXTS[given](name)
        if is_async:
            state = asyncio.run(agent.ainvoke({"messages": QUESTION}, context=context))
        else:
            state = agent.invoke({"messages": QUESTION}, context=context)
        return state["messages"][-1].text

    with ThreadPoolExecutor(2) as threads:
        anna, bob = threads.map(ask, ("anna", "bob"))
    assert ("zebra-anna" in anna, "zebra-bob" in anna) == (True, False)
    assert ("zebra-anna" in bob, "zebra-bob" in bob) == (False, True)
    for request in model.requests:
        assert ("zebra-anna" in request.text) is not ("zebra-bob" in request.text)


def test_the_same_question_in_the_same_message_is_recalled_from_each_ones_own_memory(users):
    model = ScriptedChatModel(script=saying("fine"))
    agent = create_agent(model, middleware=[OpenClawRecallMiddleware(users.template("{user_id}"))])
    message = {"role": "user", "content": QUESTION, "id": "1"}
    both = threading.Barrier(2)

    def script(_):
        both.wait(10)  # both turns are being answered: neither block is dropped
        return "fine"

    model.script = script
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(agent.invoke, {"messages": [message]}, context={"user_id": n}) for n in ("anna", "bob")]
        for run in runs:
            run.result()
    assert sorted("zebra-bob" in request.text for request in model.requests) == [False, True]
    assert sorted("zebra-anna" in request.text for request in model.requests) == [False, True]


def found(retriever, **options):
    return [document.page_content for document in retriever.invoke("ferry zebra", **options)]


def test_outside_a_graph_configurable_comes_before_metadata_and_run_values(users):
    retriever = OpenClawRetriever(memory=users.template("{user_id}"))
    anna, bob = ["anna takes the ferry zebra-anna."], ["bob takes the ferry zebra-bob."]
    assert found(retriever, config={"configurable": {"user_id": "bob"}, "metadata": {"user_id": "anna"}}) == bob
    assert found(retriever, config={"metadata": {"user_id": "anna"}}) == anna
    with run_values(user_id="bob"):
        assert found(retriever) == bob
        assert found(retriever, config={"metadata": {"user_id": "anna"}}) == anna
    chain = RunnableLambda(lambda question: question) | retriever
    assert found(chain, config={"configurable": {"user_id": "anna"}}) == anna
    assert (
        asyncio.run(retriever.ainvoke("ferry", config={"configurable": {"user_id": "bob"}}))[0].page_content == bob[0]
    )


def test_a_function_is_called_with_the_context_and_the_config_of_the_run(users):
    seen = []

    def choose(run):
        seen.append((run.context, run.config.get("configurable", {}).get("thread_id")))
        return users.use(run.context["user_id"])

    assert found(OpenClawRetriever(memory=choose), config={"configurable": {"user_id": "anna"}})
    agent = create_agent(ScriptedChatModel(script=search_then_answer), memory_tools(choose))
    state = agent.invoke({"messages": QUESTION}, {"configurable": {"thread_id": "t"}}, context={"user_id": "bob"})
    assert "zebra-bob" in state["messages"][-1].text
    assert seen == [({"user_id": "anna"}, None), ({"user_id": "bob"}, "t")]


def test_a_memory_that_cannot_be_opened_costs_the_block_and_is_an_answer_of_the_tools(users, caplog):
    (users.root / "carol").write_text("in the way")
    template = users.template("{user_id}")
    model = ScriptedChatModel(script=search_then_answer)
    agent = create_agent(model, memory_tools(template), middleware=[OpenClawRecallMiddleware(template)])
    state = agent.invoke({"messages": QUESTION}, context={"user_id": "carol"})
    assert '"status":"not_allowed"' in state["messages"][-1].text
    assert "nothing could be recalled" in caplog.text


def test_a_store_of_langgraph_over_a_template_keeps_items_of_each_run_apart(users):
    store = OpenClawStore(users.template("{user_id}"))

    def put_and_search(state, runtime):
        name = runtime.context["user_id"]
        if not state["messages"][-1].text.startswith("Which"):
            return None
        runtime.store.put(("likes",), "1", {"text": f"{name} rides the tram"})
        return {"messages": [item.value["text"] for item in runtime.store.search(("likes",), query="tram")]}

    class Likes(AgentMiddleware):
        before_model = staticmethod(put_and_search)

    agent = create_agent(ScriptedChatModel(script=saying("fine")), store=store, middleware=[Likes()])
    for name in ("anna", "bob"):
        state = agent.invoke({"messages": QUESTION}, context={"user_id": name})
        assert [message.text for message in state["messages"]] == [QUESTION, f"{name} rides the tram", "fine"]
    with pytest.raises(ConfigError, match="user_id is missing"):
        store.get(("likes",), "1")
    with run_values(user_id="anna"):
        assert asyncio.run(store.aget(("likes",), "1")).value == {"text": "anna rides the tram"}
        assert store.sweep_ttl() == 0


def noting(request):
    """Answer, write down each zebra that a flush shows, and summarise without naming any."""
    zebras = sorted({*re.findall(r"zebra-\w+", request.text)})
    if "memory_append" in request.tools and "search" not in " ".join(request.tools) and zebras:
        if request.messages[-1].type == "tool":
            return "NO_REPLY"
        return calling("memory_append", text=f"Noted: {' '.join(zebras)}.")
    return "Fine."


@pytest.mark.parametrize("people", [2, pytest.param(50, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("parted", [False, True], ids=["own summary", "before"])
def test_a_whole_agent_serves_many_people_at_once(tmp_path, people, parted):
    names = [f"user{number:02}" for number in range(people)]
    users = Memories(tmp_path, embedder="hashing", max_open=max(1, people // 4))
    template = users.template("{user_id}")
    model = ScriptedChatModel(script=noting, usage=None)
    limits = {"trigger": ("messages", 6), "keep": ("messages", 2)}
    if parted:
        cut = SummarizationMiddleware(model, **limits)
        saving = [MemoryFlushMiddleware.before(cut, memory=template), cut]
    else:
        saving = [OpenClawSummarizationMiddleware(model, template, **limits)]
    parts = OpenClawTranscriptMiddleware(template), OpenClawRecallMiddleware(template)
    agent = chat_with(*parts, *saving, model=model, tools=memory_tools(template))

    async def talk(name):
        # The same texts but for one word, the same ids and threads that differ by their last letter alone.
        config = {"configurable": {"thread_id": f"thread of {name}"}}
        for number in range(5):
            said = f"I take the ferry zebra-{name}." if number == 0 else "And then?"
            message = {"role": "user", "content": said, "id": f"m{number}"}
            await agent.ainvoke({"messages": [message]}, config, context={"user_id": name})

    async def main():
        await asyncio.gather(*map(talk, names))

    with users:
        asyncio.run(main())
    for request in model.requests:
        assert len({*re.findall(r"zebra-\w+", request.text)}) <= 1
    for name in names:
        notes = "".join(note.read_text() for note in (tmp_path / name / "memory").glob("*.md"))
        assert {*re.findall(r"zebra-(\w+)", notes)} == {name}
        logs = "".join(log.read_text() for log in (tmp_path / name / "sessions").glob("*.jsonl"))
        assert {*re.findall(r"zebra-(\w+)", logs)} == {name}
        sessions = json.loads((tmp_path / name / "sessions" / "sessions.json").read_text())
        assert list(sessions) == [f"thread of {name}"]


@pytest.mark.parametrize("way", ["callback", "middleware"])
@pytest.mark.parametrize("lease", [True, False])
@pytest.mark.parametrize("off", ["flush", "enabled"])
def test_a_flush_is_due_by_the_settings_of_the_memory_that_is_chosen(tmp_path, way, lease, off):
    rules = CompactionConfig(reserve_tokens=0, reserve_tokens_floor=0, soft_threshold_tokens=500)
    early = MemoryConfig(compaction=replace(rules, soft_threshold_tokens=6_000))
    late, never = MemoryConfig(compaction=rules), MemoryConfig(compaction=replace(rules, **{off: False}))
    with ExitStack() as stack:
        pools = {
            name: stack.enter_context(Memories(tmp_path / name, embedder=None, config=config))
            for name, config in {"early": early, "late": late, "never": never}.items()
        }

        def chosen(run):
            used = pools[run.config["metadata"]["pool"]].use("anna")
            return used if lease else stack.enter_context(used)

        noted, model = ScriptedChatModel(script=noting), ScriptedChatModel(script=saying("Fine."), usage=7_000)
        for name in pools:
            config = {"metadata": {"pool": name}}
            said = [HumanMessage("I take the ferry zebra-anna.", id=name), AIMessage("Fine."), HumanMessage("Really.")]
            if way == "callback":
                model.invoke(said, config | {"callbacks": [OpenClawFlushCallback(chosen, noted, window=10_000)]})
            else:
                flush = MemoryFlushMiddleware(chosen, noted, window=10_000, token_counter=lambda _: 7_000)
                create_agent(model, middleware=[flush]).invoke({"messages": said}, config)
        assert [name for name in pools if (tmp_path / name / "anna/memory").exists()] == ["early"]


@pytest.mark.parametrize("part", ["summary", "flush", "transcript", "recall", "tools"])
def test_parts_say_at_the_first_call_that_a_run_chooses_no_memory(users, part):
    template, model = users.template("{user_id}"), ScriptedChatModel(script=saying("Fine."))
    middleware = {
        "summary": lambda: OpenClawSummarizationMiddleware(model, template, trigger=("messages", 99)),
        "flush": lambda: MemoryFlushMiddleware(template, model, window=100_000),
        "transcript": lambda: OpenClawTranscriptMiddleware(template, session_id="s"),
        "recall": lambda: OpenClawRecallMiddleware(template),
        "tools": lambda: None,
    }[part]()
    model.script = search_then_answer if middleware is None else model.script
    agent = create_agent(model, memory_tools(template), middleware=[middleware] if middleware else [])
    with pytest.raises(ConfigError, match=r"user_id is missing from this run.*context={\"user_id\": ...}"):
        agent.invoke({"messages": QUESTION}, context={"tenant": "acme"})
    assert len(model.requests) == (0 if middleware else 1)


def test_a_memory_that_cannot_be_opened_breaks_no_turn_and_is_logged(users, caplog):
    (users.root / "carol").write_text("in the way")
    template, model = users.template("{user_id}"), ScriptedChatModel(script=saying("Fine."))
    saving = OpenClawSummarizationMiddleware(model, template, trigger=("messages", 2), keep=("messages", 1))
    agent = create_agent(model, middleware=[OpenClawTranscriptMiddleware(template, session_id="s"), saving])
    said = [{"role": "user", "content": text, "id": text} for text in ("Hello", "And?", "And now?")]
    for run in (agent.invoke, lambda *given, **more: asyncio.run(agent.ainvoke(*given, **more))):
        state = run({"messages": said}, context={"user_id": "carol"})
        assert [message.text for message in state["messages"]] == ["Hello", "And?", "And now?", "Fine."]
    assert caplog.text.count("can be saved before a compaction") == 1  # and the summary waits from then on
