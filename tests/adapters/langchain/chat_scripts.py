"""What the tests of agents say, the scripts by which models answer and flush it, and the notes there are of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from contract_flush import written as notes
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_openclaw_memory.testing import Reply, Request, ScriptedChatModel, make_call, respond_with
from langgraph.checkpoint.memory import InMemorySaver

from openclaw_memory import Memory

ASKED = re.compile(r"remember(?: that)?:? (.+)", re.IGNORECASE)
FACT = "Please remember: the boiler code is 4711."
SUMMARY = "SUMMARY of what was said before"


class Scripted:
    """A contract whose models are made of scripts."""

    @pytest.fixture(autouse=True)
    def _scripted(self, scripted: Any) -> None:
        self.scripted = scripted


class TextOnlyChatModel(ScriptedChatModel):
    """A model that cannot call tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        raise NotImplementedError  # as LangChain's own base class does


class Listening(BaseCallbackHandler):
    """Keeps all that it hears of models and chains."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_chat_model_start(self, _serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:
        self.heard.append("\n".join(message.text for message in messages[0]))

    def on_llm_start(self, _serialized: Any, prompts: list[str], **_: Any) -> None:
        self.heard += prompts

    def on_chain_start(self, *_: Any, **__: Any) -> None:
        self.heard.append("a chain")

    def on_llm_new_token(self, token: str, **_: Any) -> None:
        self.heard.append(token)

    def on_llm_end(self, response: Any, **_: Any) -> None:
        self.heard.append(response.generations[0][0].text)


def facts_in(messages: Sequence[BaseMessage]) -> list[str]:
    """What the messages ask to be remembered, each once, in order."""
    said = (fact for message in messages for fact in ASKED.findall(message.text))
    return list(dict.fromkeys(said))


def writes_facts(request: Request) -> Reply:
    """The script of a flush model: with `memory_append`, it writes every line it is shown that asks to be remembered."""
    if isinstance(request.messages[-1], ToolMessage):
        return "NO_REPLY"
    facts = facts_in(request.messages)
    return make_call("memory_append", "flush-1", text="\n".join(f"- {fact}" for fact in facts)) if facts else "NO_REPLY"


def says_facts(request: Request) -> Reply:
    """The script of a flush model that cannot call tools: it says the notes."""
    return "\n".join(f"- {fact}" for fact in facts_in(request.messages)) or "NO_REPLY"


def flushes(model: ScriptedChatModel) -> int:
    """How many turns were held: the second request of a turn ends in the answer of the tool."""
    return sum(request.messages[-1].type == "human" for request in model.requests)


def says(*texts: str) -> dict[str, list[BaseMessage]]:
    return {"messages": [HumanMessage(text) for text in texts]}


def thread(name: str = "tuesday", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": name, **more}}


def chat_with(*middleware: Any, model: Any = None, tools: Sequence[Any] = (), saver: Any = None) -> Any:
    """An agent whose model says ok, and which keeps its conversations."""
    model = model or ScriptedChatModel(script=respond_with("ok"))
    return create_agent(model, tools, middleware=middleware, checkpointer=saver or InMemorySaver())


async def run(agent: Any, given: Any, config: Any = None, *, is_async: bool = False) -> Any:
    return await agent.ainvoke(given, config) if is_async else agent.invoke(given, config)


def saved(memory: Memory) -> str:
    """All that is in the notes, or kept word for word."""
    kept = (path.read_text() for path in sorted((memory.workspace.root / "sessions").glob("*.jsonl")))
    return notes(memory) + "".join(kept)


def sessions(memory: Memory) -> dict[str, Any]:
    """The entries of `sessions.json`."""
    return dict(json.loads((memory.workspace.root / "sessions" / "sessions.json").read_text()))
