"""One graph, many people: each run has the memory that its own values choose, and sees nothing of another's."""

import asyncio
import dataclasses
import re
from concurrent.futures import ThreadPoolExecutor

import langchain_openclaw_memory as ours
import pytest
from chat_scripts import chat_with, says, sessions, thread
from contract_people import QUERY, PeopleContract, seen
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openclaw_memory.testing import ScriptedChatModel, make_call, respond_with
from msgspec.structs import replace
from pydantic import BaseModel

from openclaw_memory import Memories, MemoryConfig
from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import run_values

QUESTION = "Which ferry do I take?"


def search_then_answer(request):
    """Search once, then say what was found."""
    if request.messages[-1].type == "tool":
        return request.messages[-1].text
    return make_call("memory_search", query=QUERY)


class TestContract(PeopleContract):
    def retriever(self, choice):
        return ours.OpenClawRetriever(memory=choice)

    async def retrieve(self, retriever, named=None):
        config = {} if named is None else {"configurable": {"user_id": named}, "metadata": {"user_id": "carol"}}
        found = retriever.invoke(QUERY, config)
        assert await retriever.ainvoke(QUERY, config) == found
        return [document.page_content for document in found]

    async def search_with_tool(self, choice):
        return await ours.memory_tools(choice)[0].ainvoke({"query": QUERY})

    def agent(self, choice):
        return create_agent(ScriptedChatModel(script=search_then_answer), ours.memory_tools(choice))

    async def ask(self, agent):
        return (await agent.ainvoke(says(QUESTION)))["messages"][-1].text


@dataclasses.dataclass(slots=True)
class Given:
    user_id: str


class Model(BaseModel):
    user_id: str


@pytest.mark.parametrize("context", [lambda name: {"user_id": name}, Given, lambda name: Model(user_id=name)])
def test_tools_and_recall_take_the_memory_of_the_context(users, context):
    template, model = users.use_template("{user_id}"), ScriptedChatModel(script=search_then_answer)
    agent = create_agent(model, ours.memory_tools(template), middleware=[ours.OpenClawRecallMiddleware(template)])

    def ask(name):  # the same question in the same message
        given = {"messages": [HumanMessage(QUESTION, id="1")]}
        return agent.invoke(given, context=context(name))["messages"][-1].text

    with ThreadPoolExecutor(2) as threads:
        assert [seen(answer) for answer in threads.map(ask, ("anna", "bob"))] == [{"anna"}, {"bob"}]
    assert [len(seen(request.text)) for request in model.requests] == [1] * 4


def test_outside_a_graph_metadata_and_the_steps_before_say_whose_it_is(users):
    retriever = ours.OpenClawRetriever(memory=users.use_template("{user_id}"))
    assert seen(str(retriever.invoke(QUERY, {"metadata": {"user_id": "anna"}}))) == {"anna"}
    chain = RunnableLambda(lambda question: question) | retriever
    assert seen(str(chain.invoke(QUERY, {"configurable": {"user_id": "bob"}}))) == {"bob"}


def test_a_function_is_called_with_the_context_and_the_config_of_the_run(users):
    runs = []

    def choose(run):
        runs.append((run.context, run.config.get("configurable", {}).get("thread_id")))
        return users.use(run.context["user_id"])

    assert ours.OpenClawRetriever(memory=choose).invoke(QUERY, {"configurable": {"user_id": "anna"}})
    agent = create_agent(ScriptedChatModel(script=search_then_answer), ours.memory_tools(choose))
    agent.invoke(says(QUESTION), thread("t"), context={"user_id": "bob"})
    assert runs == [({"user_id": "anna"}, None), ({"user_id": "bob"}, "t")]


def test_a_memory_that_cannot_be_opened_breaks_no_turn_and_is_reported(users, caplog):
    (users.root / "carol").write_text("in the way")
    template, model = users.use_template("{user_id}"), ScriptedChatModel(script=search_then_answer)
    saving = ours.OpenClawSummarizationMiddleware(model, template, trigger=("messages", 4), keep=("messages", 1))
    transcript = ours.OpenClawTranscriptMiddleware(template, session_key="s")
    middleware = [transcript, ours.OpenClawRecallMiddleware(template), saving]
    agent = create_agent(model, ours.memory_tools(template), middleware=middleware)
    said = [{"role": "user", "content": text, "id": text} for text in ("Hello", "And?", "And now?")]
    for run in (agent.invoke, lambda *given, **more: asyncio.run(agent.ainvoke(*given, **more))):
        state = run({"messages": said}, context={"user_id": "carol"})
        assert [message.text for message in state["messages"]][:3] == ["Hello", "And?", "And now?"]
        assert '"status":"not_allowed"' in state["messages"][-1].text
    assert caplog.text.count("can be saved before a compaction") == 1  # and the summary waits from then on
    assert "nothing could be recalled" in caplog.text


def test_a_store_of_langgraph_over_a_template_keeps_items_of_each_run_apart(users):
    store = ours.OpenClawStore(users.use_template("{user_id}"))
    for name in ("anna", "bob"):
        with run_values(user_id=name):
            store.put(("likes",), "1", {"text": f"{name} rides the tram"})
            assert [item.value["text"] for item in store.search((), query="tram")] == [f"{name} rides the tram"]
            assert asyncio.run(store.aget(("likes",), "1")).value == {"text": f"{name} rides the tram"}
            assert store.sweep_ttl() == 0
    with pytest.raises(ConfigError, match="user_id is missing"):
        store.get(("likes",), "1")


def noting(request):
    """Answer, write down each zebra that a flush shows, and summarise without naming any."""
    zebras = sorted({*re.findall(r"zebra-\w+", request.text)})
    if request.tools == ["memory_append"] and zebras and request.messages[-1].type != "tool":
        return make_call("memory_append", text=f"Noted: {' '.join(zebras)}.")
    return "NO_REPLY" if request.tools == ["memory_append"] else "Fine."


@pytest.mark.parametrize("people", [2, pytest.param(50, marks=pytest.mark.nightly)])
def test_a_whole_agent_serves_many_people_at_once(tmp_path, people):
    names = [f"user{number:02}" for number in range(people)]
    users = Memories(tmp_path, embedder="hashing", max_open=max(1, people // 4))
    template, model = users.use_template("{user_id}"), ScriptedChatModel(script=noting, usage=None)
    saving = ours.OpenClawSummarizationMiddleware(model, template, trigger=("messages", 6), keep=("messages", 2))
    parts = ours.OpenClawTranscriptMiddleware(template), ours.OpenClawRecallMiddleware(template)
    agent = chat_with(*parts, saving, model=model, tools=ours.memory_tools(template))

    async def talk(name):
        # The same texts but for one word, the same ids and threads that differ by their last letter alone.
        for number in range(5):
            said = f"I take the ferry zebra-{name}." if number == 0 else "And then?"
            given = {"messages": [{"role": "user", "content": said, "id": f"m{number}"}]}
            await agent.ainvoke(given, thread(f"thread of {name}"), context={"user_id": name})

    async def main():
        await asyncio.gather(*map(talk, names))

    with users:
        asyncio.run(main())
        for name in names:
            for files in ("memory/*.md", "sessions/*.jsonl"):
                text = "".join(path.read_text() for path in (tmp_path / name).glob(files))
                assert {*re.findall(r"zebra-(\w+)", text)} == {name}
            with users.use(name) as memory:
                assert list(sessions(memory)) == [f"thread of {name}"]
    assert all(len({*re.findall(r"zebra-\w+", request.text)}) <= 1 for request in model.requests)


@pytest.mark.parametrize("off", ["flush", "enabled"])
def test_a_flush_is_due_by_the_settings_of_the_memory_that_is_chosen(tmp_path, off):
    late = CompactionConfig(reserve_tokens=0, reserve_tokens_floor=0, soft_threshold_tokens=500)
    rules = {"early": replace(late, soft_threshold_tokens=6_000), "late": late, "never": replace(late, **{off: False})}
    pools = {
        name: Memories(tmp_path / name, embedder=None, config=MemoryConfig(compaction=compaction))
        for name, compaction in rules.items()
    }

    def chosen(run):
        return pools[run.config["metadata"]["pool"]].use("anna")

    noted, model = ScriptedChatModel(script=noting), ScriptedChatModel(script=respond_with("Fine."), usage=7_000)
    for name in pools:
        config = {"metadata": {"pool": name}}
        said = [HumanMessage("I take the ferry zebra-anna.", id=name), AIMessage("Fine."), HumanMessage("Really.")]
        model.invoke(said, config | {"callbacks": [ours.OpenClawFlushCallback(chosen, noted, window=10_000)]})
    for pool in pools.values():
        pool.close()
    assert [name for name in pools if (tmp_path / name / "anna/memory").exists()] == ["early"]


PARTS = {
    "summary": lambda template, model: ours.OpenClawSummarizationMiddleware(model, template, trigger=("messages", 99)),
    "transcript": lambda template, _model: ours.OpenClawTranscriptMiddleware(template, session_key="s"),
    "recall": lambda template, _model: ours.OpenClawRecallMiddleware(template),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_say_at_the_first_call_that_a_run_chooses_no_memory(users, part):
    model = ScriptedChatModel(script=respond_with("Fine."))
    agent = create_agent(model, middleware=[PARTS[part](users.use_template("{user_id}"), model)])
    with pytest.raises(ConfigError, match=r"user_id is missing from this run.*context={\"user_id\": ...}"):
        agent.invoke(says(QUESTION), context={"tenant": "acme"})
    assert model.requests == []
