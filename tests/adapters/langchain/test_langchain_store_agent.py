"""An agent of LangChain keeps what its tools put into the store, and another one finds it."""

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openclaw_memory.langgraph_store import OpenClawStore
from langgraph.config import get_store

from openclaw_memory import Memory

FACTS = ("facts", "anna")


class Scripted(GenericFakeChatModel):
    """A model that answers what it was given, whatever tools it has."""

    def bind_tools(self, *_, **__):
        return self


@tool
def remember(fact: str, runtime: ToolRuntime) -> str:
    """Remember a fact."""
    runtime.store.put(FACTS, fact.split(maxsplit=1)[0].lower(), {"text": fact})
    return "remembered"


@tool
async def remember_later(fact: str, runtime: ToolRuntime) -> str:
    """Remember a fact."""
    await runtime.store.aput(FACTS, fact.split(maxsplit=1)[0].lower(), {"text": fact})
    return "remembered"


@tool
def look_up(question: str) -> str:
    """Look a fact up."""
    return get_store().search(FACTS, query=question, limit=1)[0].value["text"]


@tool
async def look_up_later(question: str) -> str:
    """Look a fact up."""
    return (await get_store().asearch(FACTS, query=question, limit=1))[0].value["text"]


def agent(memory, tools, name, **arguments):
    call = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "1"}])
    return create_agent(Scripted(messages=iter([call, AIMessage("done")])), tools=tools, store=OpenClawStore(memory))


def reported(state):
    return next(message.content for message in state["messages"] if message.type == "tool")


ASKED = {"messages": [("user", "go on")]}


@pytest.fixture
def memory(notes):
    with Memory.open(notes, embedder=None) as memory:
        yield memory


def test_what_one_agent_put_another_finds(memory):
    for fact in ("Spare key: it is with Mrs. Groen.", "Boiler: serviced each October."):
        assert reported(agent(memory, [remember], "remember", fact=fact).invoke(ASKED)) == "remembered"
    found = reported(agent(memory, [look_up], "look_up", question="Who has the spare key?").invoke(ASKED))
    assert found == "Spare key: it is with Mrs. Groen."


async def test_what_one_agent_put_another_finds_without_blocking(memory):
    for fact in ("Spare key: it is with Mrs. Groen.", "Boiler: serviced each October."):
        asked = agent(memory, [remember_later], "remember_later", fact=fact).ainvoke(ASKED)
        assert reported(await asked) == "remembered"
    asked = agent(memory, [look_up_later], "look_up_later", question="Who has the spare key?").ainvoke(ASKED)
    assert reported(await asked) == "Spare key: it is with Mrs. Groen."
