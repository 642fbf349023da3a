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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.language_models.base import LangSmithParams
    from langchain_core.runnables import Runnable

__all__ = [
    "Request",
    "ScriptedChatModel",
    "TextOnlyChatModel",
    "classify_request",
    "copy_sentences",
    "make_call",
    "respond_with",
]


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


class TextOnlyChatModel(ScriptedChatModel):
    """A scripted chat model that cannot call tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Refuse, as LangChain's own base class does."""
        raise NotImplementedError


def respond_with(*replies: Reply) -> Script:
    """Return a script that gives `replies` one after the other, and repeats the last one."""
    left = list(replies)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


def make_call(name: str, call_id: str = "call", **arguments: Any) -> AIMessage:
    """Return a reply that calls the tool `name` with these arguments."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


_SOURCE = re.compile(r"\[(\S+#L\d+\S*)\]")
_SUMMARY_SENTENCES = 3


def classify_request(request: Request) -> str:
    """Classify a request as "flush", "summary" or "answer".

    Args:
        request: A request of an agent.
    """
    if request.tools == ["memory_append"]:
        return "flush"
    return "summary" if "<messages>" in request.messages[-1].text else "answer"


def copy_sentences(request: Request) -> str | AIMessage:
    """Reply like a model that knows nothing, and copies sentences from its prompt.

    A question is answered by the sentence that shares most words with it, and the source above that; where none does,
    `memory_search` is called if there is one. A flush saves sentences of the user with a number or a name. A summary
    has the three sentences made of the words that were said most often.

    Args:
        request: The request to the model.
    """
    *before, last = request.messages
    talk = "\n".join(message.text for message in before if isinstance(message, HumanMessage))
    kind = classify_request(request)
    if kind == "flush":
        lines = "\n".join(re.findall(r"^User: (.*)", last.text, re.MULTILINE))
        facts = [each for each in _split_sentences(lines) if re.search(r"\d|\w,? [A-Z]\w", each) and "?" not in each]
        is_done = isinstance(last, ToolMessage) or not facts
        return "NO_REPLY" if is_done else make_call("memory_append", text="\n".join(f"- {each}" for each in facts))
    if kind == "summary":
        turns = re.findall(r'<message type="human">(.*?)</message>', last.text, re.DOTALL)
        return _summarize("\n".join(turns))
    if isinstance(last, ToolMessage):
        notes = "\n".join(f"[{row['citation']}]\n{row['snippet']}" for row in json.loads(last.text)["results"])
        return _copy_sentence(talk.splitlines()[-1], notes) or "I looked, and do not know."
    context, _, question = last.text.rpartition("Question: ")
    if not question.endswith("?"):
        return "I see."
    if answer := _copy_sentence(question, f"{talk}\n{context}"):
        return answer
    return make_call("memory_search", query=question) if "memory_search" in request.tools else "I do not know."


def _copy_sentence(question: str, text: str) -> str:
    """Return the sentence of `text` that shares most words with the question, at least two, and the source above it."""
    best, source, most = "", "", 1
    for sentence in _split_sentences(text):
        if cited := _SOURCE.fullmatch(sentence):
            source = cited[0]
        shared = len(set(_split_words(question)) & set(_split_words(sentence)))
        if shared > most and not sentence.endswith("?"):
            best, most = f"{sentence} {source}".strip(), shared
    return best


def _summarize(text: str) -> str:
    """Return the sentences with the most frequent words, in their order."""
    sentences, count = list(dict.fromkeys(_split_sentences(text))), Counter(_split_words(text))
    weight = {
        each: sum(count[word] for word in _split_words(each)) / (len(_split_words(each)) or 1) for each in sentences
    }
    best = sorted(sentences, key=weight.__getitem__, reverse=True)[:_SUMMARY_SENTENCES]
    return " ".join(each for each in sentences if each in best)


def _split_sentences(text: str) -> list[str]:
    return [part.strip("- ") for part in re.split(r"(?<=[.?!])\s+|\n+", text) if re.search(r"\w.*[.?!\]]$", part)]


def _split_words(text: str) -> list[str]:
    """Return the beginnings of the longer words."""
    return [word[:4] for word in re.findall(r"\w{4,}", text.lower())]


def _name(tool: Any) -> str:
    if isinstance(tool, dict):
        return str(tool.get("function", tool).get("name"))
    return str(getattr(tool, "name", tool))
