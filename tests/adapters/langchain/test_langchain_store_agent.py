"""An agent of LangChain keeps what its tools put into the store, and another one finds it."""

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.tools import tool
from langchain_openclaw_memory.langgraph_store import OpenClawStore
from langchain_openclaw_memory.testing import calling
from langgraph.config import get_store
from scripted_chat import says

FACTS = ("facts", "anna")


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


@pytest.mark.parametrize("tools", [(remember, look_up), (remember_later, look_up_later)], ids=["waited for", "awaited"])
async def test_what_one_agent_put_another_finds(memory, scripted, tools):
    async def reported(tool, **arguments):
        agent = create_agent(scripted(calling(tool.name, **arguments), "done"), [tool], store=OpenClawStore(memory))
        said = await agent.ainvoke(says("go on")) if tool.coroutine else agent.invoke(says("go on"))
        return said["messages"][-2].content

    put, find = tools
    for fact in ("Spare key: it is with Mrs. Groen.", "Boiler: serviced each October."):
        assert await reported(put, fact=fact) == "remembered"
    assert await reported(find, question="Who has the spare key?") == "Spare key: it is with Mrs. Groen."
