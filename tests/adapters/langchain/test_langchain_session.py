"""The session of a run comes from its config, its context or a block around it, and all parts of an agent read that one."""

from contextlib import nullcontext

import langchain_openclaw_memory as ours
import pytest
from chat_scripts import says, sessions
from contract_agents import GROUP
from langchain.agents import create_agent
from langchain_openclaw_memory.testing import make_call

from openclaw_memory.runs import run_values

PRIVATE = {"MEMORY.md": "Otto", "USER.md": "Leiden", "a record": "dark-blue", "a transcript": "chocolate"}
WAYS = {
    "config": lambda key: ({"config": {"configurable": {"session_key": key}}}, nullcontext()),
    "context": lambda key: ({"context": {"session_key": key}}, nullcontext()),
    "block": lambda key: ({"config": {"configurable": {"thread_id": "42"}}}, run_values(session_key=key)),
    "thread": lambda key: ({"config": {"configurable": {"thread_id": key}}}, nullcontext()),
}


@pytest.fixture
def kept(memory):
    (memory.workspace.root / "MEMORY.md").write_text("The secret zebra is called Otto.\n")
    (memory.workspace.root / "USER.md").write_text("The user has a zebra in Leiden.\n")
    memory.append("The zebra of the zoo is fed at noon.", date="2026-11-21")
    memory.records.remember("preference", "zebra.colour", "dark-blue")
    memory.sessions.log("monday").append("user", "My zebra likes chocolate.")
    memory.sync()
    return memory


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", [GROUP, "agent:main:main"])
def test_a_group_sees_dated_notes_and_nothing_private_whatever_part_shows_it(kept, scripted, way, key):
    def look(word: str) -> str:
        """Look a word up."""
        retriever, store = ours.OpenClawRetriever(memory=kept, min_score=0, k=9), ours.OpenClawVectorStore(kept)
        return "\n".join(str(found) for found in (*retriever.invoke(word), *store.similarity_search(word, 9)))

    model = scripted(
        make_call("memory_search", "1", query="zebra", maxResults=9),
        make_call("memory_get", "2", path="MEMORY.md"),
        make_call("look", "3", word="zebra"),
        "Done.",
    )
    middleware = [
        ours.OpenClawSessionStartMiddleware(kept),
        ours.OpenClawRecallMiddleware(kept, min_score=0, max_results=9),
    ]
    agent = create_agent(model, [*ours.memory_tools(kept), look], middleware=middleware)
    run, block = WAYS[way](key)
    with block:
        agent.invoke(says("What of the zebra?"), **run)
    shown = [part.text for part in model.requests[-1].messages]
    is_group = key == GROUP
    assert all("zoo is fed at noon" in text for text in (shown[1], shown[3], shown[7]))
    for name, word in PRIVATE.items():
        assert (word in "\n".join(shown)) is not is_group, name
    assert ("memory/2026-11-21.md#L" in shown[1] + shown[3]) is not is_group


def test_all_nine_fields_of_a_session_are_written(kept, scripted):
    options = {"flush_model": scripted("NO_REPLY"), "trigger": ("messages", 4), "keep": ("messages", 1)}
    summarization = ours.OpenClawSummarizationMiddleware(scripted("In short."), kept, **options)
    agent = create_agent(scripted("Yes."), middleware=[ours.OpenClawTranscriptMiddleware(kept), summarization])
    agent.invoke(says("One.", "Two.", "Three.", "Four."), {"configurable": {"thread_id": "main"}})
    entry = sessions(kept)["main"]
    names = "sessionId updatedAt chatType compactionCount memoryFlushAt memoryFlushCompactionCount inputTokens"
    assert entry.keys() >= {*names.split(), "outputTokens", "contextTokens"}
    assert 0 < entry["contextTokens"] <= entry["inputTokens"] + entry["outputTokens"]
