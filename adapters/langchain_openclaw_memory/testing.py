"""Test agents with a chat model that replies by a script and records every request. No network, no key.

>>> model = ScriptedChatModel(script=respond_with("The ferry leaves at seven."))
>>> model.invoke("When does the ferry leave?").text
'The ferry leaves at seven.'
>>> model.requests[0].text
'When does the ferry leave?'
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.language_models.base import LangSmithParams
    from langchain_core.runnables import Runnable

__all__ = ["Request", "ScriptedChatModel", "make_call", "respond_with"]


@dataclass
class Request:
    """One request to the model: the messages, and the names of the tools that were offered."""

    messages: list[BaseMessage]
    tools: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "\n".join(message.text for message in self.messages)


Reply = str | AIMessage | BaseException
Script = Callable[[Request], Reply]


class ScriptedChatModel(BaseChatModel):
    """A chat model that replies by `script`, a function from a `Request` to a text, a message or an exception.

    `requests` are all requests so far. `usage` counts the input tokens that a reply reports (None: it reports none).
    """

    script: Script
    requests: list[Request] = Field(default_factory=list)
    usage: int | Callable[[Sequence[BaseMessage]], int] | None = count_tokens_approximately
    name_in_usage: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer these tools to the script, by name."""
        return self.bind(tools=list(tools), **kwargs)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # A summary counts reported tokens only where the reply names the same provider as the model.
        return {**super()._get_ls_params(stop=stop, **kwargs), "ls_provider": "scripted"}

    def _make_reply(self, messages: list[BaseMessage], tools: list[Any]) -> AIMessage:
        request = Request(list(messages), [_name(tool) for tool in tools])
        self.requests.append(request)
        reply = self.script(request)
        if isinstance(reply, BaseException):
            raise reply
        reply = AIMessage(reply) if isinstance(reply, str) else reply
        if self.usage is not None:
            read = self.usage(messages) if callable(self.usage) else self.usage
            spoken = count_tokens_approximately([reply])
            reply.usage_metadata = UsageMetadata(input_tokens=read, output_tokens=spoken, total_tokens=read + spoken)
        reply.response_metadata["model_provider"] = self.name_in_usage
        return reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        tools: Sequence[Any] = (),
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._make_reply(messages, list(tools)))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,
        tools: Sequence[Any] = (),
        **kwargs: Any,  # noqa: ARG002
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._make_reply(messages, list(tools))
        for piece in re.findall(r"\S+\s*|\s+", reply.text):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="",
            tool_call_chunks=[
                {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": at}
                for at, call in enumerate(reply.tool_calls)
            ],
            usage_metadata=reply.usage_metadata,
            response_metadata=reply.response_metadata,
        )
        yield ChatGenerationChunk(message=last)


def respond_with(*replies: Reply) -> Script:
    """Return a script that gives `replies` one after the other, and repeats the last one."""
    left = list(replies)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


def make_call(name: str, call_id: str = "call", **arguments: Any) -> AIMessage:
    """Return a reply that calls the tool `name` with these arguments."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def _name(tool: Any) -> str:
    if isinstance(tool, dict):
        return str(tool.get("function", tool).get("name"))
    return str(getattr(tool, "name", tool))
