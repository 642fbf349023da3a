"""A chat model that says what a script tells it, and remembers everything that it was asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

FACT = re.compile(r"remember(?: that)?:? (.+)", re.IGNORECASE)
SUMMARY = "SUMMARY of what was said before"


@dataclass
class Request:
    """What the model was asked: the messages, and the names of the tools that it could call."""

    messages: list[BaseMessage]
    tools: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)


Reply = str | AIMessage | BaseException
Script = Callable[[Request], Reply]


class ScriptedChat(BaseChatModel):
    """Asks `script` for the reply to each request: a text, a message, or an exception to raise."""

    script: Script
    requests: list[Request] = Field(default_factory=list)
    usage: int | Callable[[Sequence[BaseMessage]], int] | None = count_tokens_approximately
    name_in_usage: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=list(tools), **kwargs)

    def _reply(self, messages: list[BaseMessage], tools: list[Any]) -> AIMessage:
        request = Request(list(messages), [_name(tool) for tool in tools])
        self.requests.append(request)
        reply = self.script(request)
        if isinstance(reply, BaseException):
            raise reply
        reply = AIMessage(reply) if isinstance(reply, str) else reply
        if self.usage is not None:
            read = self.usage(messages) if callable(self.usage) else self.usage
            said = count_tokens_approximately([reply])
            reply.usage_metadata = UsageMetadata(input_tokens=read, output_tokens=said, total_tokens=read + said)
        reply.response_metadata["model_provider"] = self.name_in_usage
        return reply

    def _generate(self, messages, stop=None, run_manager=None, tools=(), **kwargs) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, list(tools)))])

    def _stream(self, messages, stop=None, run_manager=None, tools=(), **kwargs) -> Iterator[ChatGenerationChunk]:  # noqa: ARG002
        reply = self._reply(messages, list(tools))
        for piece in re.findall(r"\S+\s*|\s+", reply.text):
            chunk = ChatGenerationChunk(message=AIMessageChunk(piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            "",
            tool_calls=reply.tool_calls,
            usage_metadata=reply.usage_metadata,
            response_metadata=reply.response_metadata,
        )
        if reply.tool_calls:
            last = AIMessageChunk(
                "",
                tool_call_chunks=[
                    {"name": call["name"], "args": _json(call["args"]), "id": call["id"], "index": at}
                    for at, call in enumerate(reply.tool_calls)
                ],
                usage_metadata=reply.usage_metadata,
                response_metadata=reply.response_metadata,
            )
        yield ChatGenerationChunk(message=last)


class TextOnlyChat(ScriptedChat):
    """A model that cannot call tools."""

    def bind_tools(self, tools, **kwargs):
        raise NotImplementedError


def saying(*replies: Reply) -> Script:
    """A script of `replies`, one after the other; the last one again and again."""
    left = list(replies)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


def calling(name: str, call_id: str = "call", **arguments: Any) -> AIMessage:
    """A reply that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def facts_in(messages: Sequence[BaseMessage]) -> list[str]:
    """What the messages ask to be remembered, each once, in order."""
    said = (fact for message in messages for fact in FACT.findall(message.text))
    return list(dict.fromkeys(said))


def writes_facts(request: Request) -> Reply:
    """The script of a flush model: with `memory_append`, it writes every line it is shown that asks to be remembered."""
    if isinstance(request.messages[-1], ToolMessage):
        return "NO_REPLY"
    facts = facts_in(request.messages)
    return calling("memory_append", "flush-1", text="\n".join(f"- {fact}" for fact in facts)) if facts else "NO_REPLY"


def tells_facts(request: Request) -> Reply:
    """The script of a flush model that cannot call tools: it says the notes."""
    return "\n".join(f"- {fact}" for fact in facts_in(request.messages)) or "NO_REPLY"


def asks_memory(request: Request) -> Reply:
    """The script of an agent: questions are answered with what `memory_search` finds, the rest is acknowledged."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"I looked it up: {last.text}"
    if isinstance(last, HumanMessage) and last.text.endswith("?") and "memory_search" in request.tools:
        return calling("memory_search", f"search-{len(request.messages)}", query=last.text)
    return f"Noted, that was message {len(request.messages)}."


def _name(tool: Any) -> str:
    if isinstance(tool, dict):
        return str(tool.get("function", tool).get("name"))
    return str(getattr(tool, "name", tool))


def _json(value: Any) -> str:
    import json

    return json.dumps(value)
