"""For tests of agents: LLMs that reply by a script, and record every request. No network, no key.

>>> llm = ScriptedLLM(script=respond_with("The ferry leaves at seven."))
>>> str(llm.complete("When does the ferry leave?"))
'The ferry leaves at seven.'
>>> llm.requests[0][0].content
'When does the ferry leave?'
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index.core.base.llms import types
from llama_index.core.llms import LLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import Field

from llama_index_openclaw_memory._messages import list_calls

if TYPE_CHECKING:
    from llama_index.core.tools import BaseTool

__all__ = ["ScriptedLLM", "TextOnlyLLM", "make_call", "quote_sentence", "respond_with"]

Reply = types.ChatMessage | str | BaseException
Script = Callable[[Sequence[types.ChatMessage], Sequence[str]], Reply]
CompletionPieces = AsyncGenerator[types.CompletionResponse, None]
T = TypeVar("T")


class TextOnlyLLM(LLM):
    """A model that cannot call tools. Its replies come from `script`, given the messages and the names of the tools.

    A reply is a text, a message, or an exception to raise. `requests` holds the messages of each call, `offered` its
    tools in OpenAI's schema. `usage` counts the tokens of a prompt, which a reply reports as OpenAI's integration does.
    """

    script: Script = Field(exclude=True)
    requests: list[list[types.ChatMessage]] = Field(default_factory=list, exclude=True)
    offered: list[list[dict[str, Any]]] = Field(default_factory=list, exclude=True)
    usage: Callable[[Sequence[types.ChatMessage]], int] | None = Field(default=None, exclude=True)
    context_window: int = 128_000
    name: str = "scripted"

    @classmethod
    def class_name(cls) -> str:
        return "scripted_llm"

    @property
    def metadata(self) -> types.LLMMetadata:
        return types.LLMMetadata(
            context_window=self.context_window,
            is_chat_model=True,
            is_function_calling_model=isinstance(self, FunctionCallingLLM),
            model_name=self.name,
        )

    def _make_reply(
        self, messages: Sequence[types.ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> types.ChatResponse:
        request = [message.model_copy(deep=True) for message in messages]
        self.requests.append(request)
        self.offered.append(list(tools))
        reply = self.script(request, [tool["function"]["name"] for tool in tools])
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, str):
            reply = types.ChatMessage(role=types.MessageRole.ASSISTANT, content=reply)
        counted = {} if self.usage is None else {"prompt_tokens": self.usage(request), "completion_tokens": 1}
        return types.ChatResponse(message=reply, raw={"scripted": True}, additional_kwargs=counted)

    @llm_chat_callback()
    def chat(self, messages: Sequence[types.ChatMessage], **kwargs: Any) -> types.ChatResponse:
        return self._make_reply(messages, kwargs.get("tools", ()))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[types.ChatMessage], **kwargs: Any) -> types.ChatResponse:
        return self._make_reply(messages, kwargs.get("tools", ()))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[types.ChatMessage], **kwargs: Any) -> Iterator[types.ChatResponse]:
        return _stream_pieces(self._make_reply, messages, kwargs.get("tools", ()))

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[types.ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[types.ChatResponse, None]:
        return _yield_async(_stream_pieces(self._make_reply, messages, kwargs.get("tools", ())))

    @llm_completion_callback()
    def complete(self, prompt: str, *_: Any, **__: Any) -> types.CompletionResponse:
        return _to_completion(self._make_reply([types.ChatMessage(prompt)]))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, *_: Any, **__: Any) -> types.CompletionResponse:
        return _to_completion(self._make_reply([types.ChatMessage(prompt)]))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, *_: Any, **__: Any) -> Iterator[types.CompletionResponse]:
        return map(_to_completion, _stream_pieces(self._make_reply, [types.ChatMessage(prompt)]))

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, *_: Any, **__: Any) -> CompletionPieces:
        return _yield_async(map(_to_completion, _stream_pieces(self._make_reply, [types.ChatMessage(prompt)])))


class ScriptedLLM(TextOnlyLLM, FunctionCallingLLM):
    """A scripted model that can call tools: a reply made with `make_call` does."""

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | types.ChatMessage | None = None,
        chat_history: list[types.ChatMessage] | None = None,
        *_: Any,
        **__: Any,
    ) -> dict[str, Any]:
        user = [types.ChatMessage(user_msg) if isinstance(user_msg, str) else user_msg] if user_msg else []
        offered = [tool.metadata.to_openai_tool() for tool in tools]
        return {"messages": [*(chat_history or []), *user], "tools": offered}

    def get_tool_calls_from_response(
        self, response: types.ChatResponse, error_on_no_tool_call: bool = True, **_: Any
    ) -> list[ToolSelection]:
        selections = [
            ToolSelection(tool_id=call_id, tool_name=name, tool_kwargs=arguments)
            for call_id, name, arguments in list_calls(response.message)
        ]
        if error_on_no_tool_call and not selections:
            raise ValueError("The reply calls no tool.")
        return selections


def respond_with(*replies: Reply) -> Script:
    """Return a script that gives `replies` one after the other, and repeats the last one."""
    left = list(replies)
    return lambda _messages, _tools: left.pop(0) if len(left) > 1 else left[0]


def make_call(name: str, call_id: str = "call", /, **arguments: Any) -> types.ChatMessage:
    """Return a reply that calls the tool `name`."""
    call = types.ToolCallBlock(tool_call_id=call_id, tool_name=name, tool_kwargs=arguments)
    return types.ChatMessage(role=types.MessageRole.ASSISTANT, blocks=[call])


def quote_sentence(messages: Sequence[types.ChatMessage], tools: Sequence[str]) -> Reply:
    """Reply like a model that knows nothing, and quotes the sentence that fits the question best.

    In a flush it saves sentences of the user with a number.
    """
    *before, last = [message.content or "" for message in messages]
    lines = "\n".join([*before, last]).splitlines()
    if list(tools) == ["memory_append"]:
        facts = [line.removeprefix("User: ") for line in lines if re.match(r"User: .*\d", line)]
        is_done = messages[-1].role == types.MessageRole.TOOL or not facts
        return "NO_REPLY" if is_done else make_call("memory_append", text="\n".join(f"- {line}" for line in facts))
    if not last.endswith("?"):
        return "I see."
    texts = [line.strip("- ").removeprefix("User: ") for line in lines]
    sentences = [each for text in texts for each in re.split(r"(?<=[.?!])\s", text)]
    overlap = {each: len(_split_words(each) & _split_words(last)) for each in sentences if each.endswith((".", "!"))}
    best = max(overlap, key=overlap.__getitem__, default="")
    return best if overlap.get(best, 0) > 1 else "I do not know."


def _split_words(text: str) -> set[str]:
    """Return the beginnings of the longer words of a text."""
    return {word[:4] for word in re.findall(r"\w{4,}", text.lower())}


def _stream_pieces(reply: Callable[..., types.ChatResponse], *request: Any) -> Iterator[types.ChatResponse]:
    """Yield a reply word by word, as services stream it: each piece has all text so far, the last one the calls."""
    whole, text = reply(*request), ""
    for word in re.findall(r"\S+\s*|\s+", whole.message.content or ""):
        text += word
        message = types.ChatMessage(role=types.MessageRole.ASSISTANT, blocks=[types.TextBlock(text=text)])
        yield types.ChatResponse(message=message, delta=word, raw=whole.raw)
    yield whole.model_copy(update={"delta": ""})


async def _yield_async(pieces: Iterator[T]) -> AsyncGenerator[T, None]:
    for piece in pieces:
        yield piece


def _to_completion(response: types.ChatResponse) -> types.CompletionResponse:
    text = response.message.content or ""
    return types.CompletionResponse(text=text, delta=response.delta, additional_kwargs=response.additional_kwargs)
