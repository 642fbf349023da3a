"""The flush for agents and engines that have no `Memory`: an event handler that watches the calls of every LLM."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import llm as calls
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.llms import LLM
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.events.span import SpanDropEvent
from pydantic import Field, PrivateAttr, SkipValidation

from llama_index_openclaw_memory._background import Background, is_in_event_loop
from llama_index_openclaw_memory._flush_model import flush, get_window, open_flush
from llama_index_openclaw_memory._messages import convert_messages, estimate_text
from llama_index_openclaw_memory._session import find_session, lease_run_memory
from openclaw_memory import Memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.conversation import format_messages
from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import ConversationDetector, Flush, Session
from openclaw_memory.runs import MemoryChoice, RunMemory

if TYPE_CHECKING:
    from llama_index.core.instrumentation.events import BaseEvent


_BUFFER_SHARE = 0.75  # of the window: where the buffers of LlamaIndex begin to drop messages

# In a response's `raw`, `additional_kwargs` or message, as the services of the integrations call it.
_PLACES = ("usage", "usage_metadata", "token_usage", "usageMetadata")
# The tokens of a call: a total, or what was read and what was said (OpenAI, Gemini, Ollama, Anthropic, Bedrock); of the
# last two, what was read out of a cache, and into it, is counted apart.
_TOTALS = ("total_tokens", "total_token_count", "totalTokens", "totalTokenCount")
_INPUT_AND_OUTPUT = (
    (("prompt_tokens",), "completion_tokens"),
    (("prompt_token_count",), "candidates_token_count"),
    (("prompt_eval_count",), "eval_count"),
    (("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), "output_tokens"),
    (("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"), "outputTokens"),
)


class MemoryFlushEventHandler(BaseEventHandler):
    """Save memories of conversations with any LLM of the program, before messages are dropped.

    Add it to the instrumentation: `get_dispatcher().add_event_handler(handler)`. It then sees the calls that agents,
    chat engines and query engines make. It flushes

    - once a call leaves out messages that no flush has seen,
    - after a reply that brought a conversation to `window - reserve - soft threshold` tokens (see
      `memory.config.compaction`), and again each time more than half of the conversation is new,
    - where the provider refuses the conversation as too long,
    - with `flush`, at the end of a session.

    Messages that a buffer drops after the last call are lost to it, unless `flush` ends the session. For agents with a
    `Memory`, take `OpenClawMemoryBlock`. What a reply says that it has read and said is added to `inputTokens` and
    `outputTokens` of its session in `sessions.json`.

    A call belongs to the session of its run, which has a `session_key` in its state or as a tag:
    `with instrument_tags({"session_key": "alice"}): ...`. A handler with a `session_key` ignores calls of other
    sessions. One that is added later for the same memory and `session_key` replaces this one. In an event loop, a flush
    runs in a thread; the end of the program waits for it.

    Args:
        memory: Where to save, or a selector of one for each call: see `OpenClawToolSpec`.
        llm: The model that writes the memories.
        window: The tokens that a conversation has room for, by default three quarters of the context window of `llm`.
        session_key: The session of calls whose run names none, by default `main`.
        token_counter: Counts the tokens of a text, by default four characters as one. What the provider reports counts
            where it is more.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError: `llm` is not an LLM, its window is unknown, or the window is not a number of tokens.
    """

    memory: Any = Field(exclude=True)
    llm: LLM = Field(exclude=True)
    window: SkipValidation[int]  # the detector says what is wrong with it
    session_key: str | None = None
    token_counter: Callable[[str], int] = Field(exclude=True)
    _detector: ConversationDetector = PrivateAttr()
    _background: Background = PrivateAttr(default_factory=Background)
    # The arguments of the prompt that an engine has made for the call to come.
    _prompt: ContextVar[Any] = PrivateAttr(default_factory=lambda: ContextVar("openclaw_memory.prompt", default=None))

    def __init__(
        self,
        memory: MemoryChoice,
        llm: LLM,
        *,
        window: int | None = None,
        session_key: str | None = None,
        token_counter: Callable[[str], int] | None = None,
    ) -> None:
        if not isinstance(llm, LLM):
            raise ConfigError(f"llm={llm!r:.80} is no LLM of LlamaIndex: give one, it writes the memories down")
        size = int(_BUFFER_SHARE * (get_window(llm) or 0)) if window is None else window
        if window is None and not size:
            raise ConfigError(f"the context window of {type(llm).__name__} is unknown: pass window=200_000")
        fields: dict[str, Any] = {"memory": RunMemory.read_choice(memory), "llm": llm, "window": size}
        super().__init__(**fields | {"session_key": session_key, "token_counter": token_counter or estimate_text})
        self._detector = ConversationDetector(
            self._save, rules=lambda leased: leased.config.compaction, window=self.window, run=self._run
        )

    @classmethod
    def class_name(cls) -> str:
        return "MemoryFlushEventHandler"

    def handle(self, event: BaseEvent, **_: Any) -> None:
        """Follow the calls of an LLM; errors are logged once for each kind, and not raised."""
        try:
            self._follow(event)
        except Exception as error:  # noqa: BLE001 - the dispatcher would swallow it
            self._background.report("a call of an LLM could not be watched for the flush", error)

    def flush(self, session_key: str | None = None) -> None:
        """Flush, at the end of a session, the messages that no flush was shown, and wait for running flushes.

        Failures are logged, and nothing is raised, except where this run has no value for the template of its memory.

        Args:
            session_key: The session, of the memory of this run. Default: all of them, of all memories.
        """
        self._detector.finish(None if session_key is None else lease_run_memory(self.memory, Session(session_key)))
        self.settle()

    async def aflush(self, session_key: str | None = None) -> None:
        """Run `flush` in a thread.

        Args:
            session_key: The session. Default: all of them.
        """
        await run_in_thread(self.flush, session_key)

    def settle(self) -> None:
        """Wait until every flush that is under way is over."""
        self._background.settle()

    async def asettle(self) -> None:
        """`settle` that lets the loop go on."""
        await run_in_thread(self.settle)

    def _follow(self, event: BaseEvent) -> None:
        detector, call = self._detector, event.span_id
        match event:
            case calls.LLMPredictStartEvent():
                self._prompt.set({**event.template.kwargs, **(event.template_args or {})})
            case calls.LLMChatStartEvent():
                self._begin(event, event.messages)
            case calls.LLMCompletionStartEvent():
                self._begin(event, [ChatMessage(event.prompt)])
            case calls.LLMChatInProgressEvent() | calls.LLMCompletionInProgressEvent():
                detector.count_tokens(call, get_reported_tokens(event.response))
            case calls.LLMChatEndEvent():
                reply = event.response.message if event.response else None
                self._count(call, event.response)
                self._end(call, reply, event.response)
            case calls.LLMCompletionEndEvent():
                self._count(call, event.response)
                self._end(call, ChatMessage(event.response.text, role=MessageRole.ASSISTANT), event.response)
            case ExceptionEvent():
                detector.fail_call(call, event.exception)
            case SpanDropEvent():
                # The event comes while the error is being handled, and has only its text.
                detector.fail_call(call, sys.exception() or RuntimeError(event.err_str))

    def _begin(
        self, event: calls.LLMChatStartEvent | calls.LLMCompletionStartEvent, messages: Sequence[ChatMessage]
    ) -> None:
        if event.tags.get(Flush.TAG) or self._is_replaced():
            return
        # An event is handled where the call is made, within the run.
        session = find_session(conversation=self.session_key or "main") or Session()
        if self.session_key not in {None, session.key}:
            return
        leased = lease_run_memory(self.memory, Session(session.key))
        # An LLM that takes text is asked for a chat by a completion, which is the same call once more.
        if isinstance(event, calls.LLMCompletionStartEvent) and self._detector.is_call_prompt(leased, event.prompt):
            return
        conversation, arguments = convert_messages(messages), self._prompt.get() or {}
        self._prompt.set(None)
        question = arguments.get("question") or arguments.get("query_str")
        if question and len(conversation) == 1:
            conversation = convert_messages([ChatMessage(str(question))])
        if conversation:
            tokens = self.token_counter(format_messages(conversation))
            self._detector.begin_call(event.span_id, leased, conversation, tokens)
        if "chat_history" in arguments and len(conversation) == 1:  # the reply is the same question once more
            self._detector.end_call(event.span_id, None)

    def _end(self, call: Any, reply: ChatMessage | None, response: Any) -> None:
        converted = convert_messages([reply] if reply else [])
        self._detector.end_call(call, converted[0] if converted else None, get_reported_tokens(response))

    def _count(self, call: Any, response: Any) -> None:
        """Add the tokens of a watched call to the counts of its session."""
        usage = get_reported_usage(response)
        if (run := self._detector.runs.get(call)) is None or not any(usage):
            return
        leased: Any = run.key

        def add_tokens() -> None:
            try:
                with leased as memory:
                    open_flush(memory, leased.session).add_tokens(*usage)
            except Exception as error:  # noqa: BLE001 - no count ever breaks the turn of the user
                self._background.report("the tokens of a session could not be counted", error)

        self._run(add_tokens)

    def _is_replaced(self) -> bool:
        """Tell whether a handler for the same memory and session was added later: two would write everything twice."""
        alike = [
            handler
            for handler in root_dispatcher.event_handlers
            if isinstance(handler, MemoryFlushEventHandler)
            and (handler.session_key, _get_memories_key(handler.memory))
            == (self.session_key, _get_memories_key(self.memory))
        ]
        return any(handler is self for handler in alike) and alike[-1] is not self

    def _save(self, leased: RunMemory, messages: Sequence[Mapping[str, Any]], tokens: int, is_cut: bool) -> bool:
        room = leased.config.compaction.get_compaction_threshold(get_window(self.llm) or self.window)
        about: dict[str, Any] = {"room": room, "count": self.token_counter, "tokens": tokens, "compacting": is_cut}
        with leased as memory:
            opened = open_flush(memory, leased.session or Session(), self.window)
            # The detector has decided that a flush is due.
            return flush(opened, self.llm, messages, **about, flushed=False) is not None

    def _run(self, work: Callable[[], None]) -> None:
        """Run a flush: at once, or in a thread where it would block an event loop."""
        if is_in_event_loop():
            self._background.begin(work)
        else:
            work()


def _get_memories_key(choice: Any) -> object:
    """Return a value that is equal for handlers which save to the same memories."""
    if isinstance(choice, Memory):
        return choice.workspace.root
    return (choice.memories.root, choice.template) if hasattr(choice, "template") else choice


def get_reported_tokens(response: Any) -> int:
    """Return the tokens of a call that a response reports; 0 if none."""
    totals = (_number(place, name) for place in _list_usages(response) for name in _TOTALS)
    return max(sum(get_reported_usage(response)), *totals, 0)


def get_reported_usage(response: Any) -> tuple[int, int]:
    """Return the input and output tokens that a response reports; (0, 0) if none."""
    counts = (
        (sum(_number(place, name) for name in read), _number(place, output))
        for place in _list_usages(response)
        for read, output in _INPUT_AND_OUTPUT
    )
    return max(counts, key=sum, default=(0, 0))


def _list_usages(response: Any) -> list[Any]:
    """List the objects of a response that may report tokens."""
    if response is None:
        return []
    message = getattr(response, "message", None)
    holders = (response.raw, response.additional_kwargs, getattr(message, "additional_kwargs", {}))
    return [*holders, *(_get(holder, name) for holder in holders for name in _PLACES)]


def _number(usage: Any, name: str) -> int:
    value = _get(usage, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
