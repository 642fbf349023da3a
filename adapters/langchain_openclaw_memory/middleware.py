"""The flush for agents: memories are saved just before a middleware compacts the conversation."""

# No `from __future__ import annotations`: LangGraph reads the annotations of the state at run time.

import asyncio
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, Self

from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT, SummarizationMiddleware
from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately, get_buffer_string
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import coerce_to_runnable
from langgraph.runtime import Runtime
from langgraph.types import Command

from langchain_openclaw_memory._flushing import Wanted, asave, compacted, save, say, window_of
from langchain_openclaw_memory._messages import NO_SUMMARY, cycle_of, reported_tokens
from langchain_openclaw_memory._session import run_config, session_of, thread_of
from langchain_openclaw_memory._trigger import Moment, Trigger, latest_tokens, moment_before, reached
from openclaw_memory.errors import ConfigError
from openclaw_memory.sessions import flush_due, flush_threshold, is_overflow

if TYPE_CHECKING:
    from openclaw_memory import Memory

_REMEMBERED = 256  # conversations whose latest flush is remembered where no graph state holds it


class MemoryFlushState(AgentState[Any]):
    """What the flush keeps in the state of the graph, apart from its input and output.

    `memory_flush_marker` is the cycle that had its flush, `memory_flush_seen` the latest one seen: each the id of the
    summary that the cycle began with, `none` before the first.
    """

    memory_flush_marker: NotRequired[Annotated[str | None, PrivateStateAttr]]
    memory_flush_seen: NotRequired[Annotated[str | None, PrivateStateAttr]]


class _Look(NamedTuple):
    """What a look at the conversation found: its cycle, the flush that is due, if any, and what the state is told."""

    cycle: str
    conversation: tuple[str, str]
    wanted: Wanted | None
    update: dict[str, Any]


class MemoryFlushMiddleware(AgentMiddleware[MemoryFlushState, Any, Any]):
    """Has a model write memories down before the conversation is compacted, once between two compactions.

    Place it before the middleware that compacts. The turn is silent: no stream and no callback of the run sees it, and
    the conversation is not changed. A flush that fails never breaks the run; the messages are then kept verbatim in
    the transcript of the session, and `memory.status()` says so.

    `model` writes the memories; None means the one that the agent asks. The flush is due from
    `window - reserve - soft threshold` tokens on (of 200,000: 176,000; see `memory.config.compaction`), or where
    `trigger` is reached, which is written as that of `SummarizationMiddleware`. `window` is in tokens, by default what
    the profile of the model says. The conversation has as many tokens as `token_counter` counts, or the provider said
    at the last reply, whichever is more. The session is `session_key`, by default the thread of the run, or `main`.

    Raises:
        ConfigError: nobody knows the window, and there is no `trigger`.
    """

    state_schema = MemoryFlushState

    def __init__(
        self,
        memory: "Memory",
        model: BaseChatModel | None = None,
        *,
        window: int | None = None,
        token_counter: Callable[..., int] = count_tokens_approximately,
        trigger: Trigger | None = None,
        session_key: str | None = None,
    ) -> None:
        super().__init__()
        self.memory, self.model, self.window = memory, model, window
        self.token_counter, self.trigger, self.session_key = token_counter, trigger, session_key
        self._last_moment: Moment | None = None
        self._learned: BaseChatModel | None = None
        self._flushed: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._warned = False
        if model is not None:
            self._check_window(model)

    @classmethod
    def before(
        cls,
        summarization: Any,
        memory: "Memory",
        model: BaseChatModel | None = None,
        *,
        window: int | None = None,
        trigger: Trigger | None = None,
        session_key: str | None = None,
    ) -> Self:
        """The flush that comes just before `summarization` (a `SummarizationMiddleware`) makes a summary.

        Its trigger and token counter are taken over, and its model where none is given. With `window` or `trigger` it
        may come earlier. Place it before `summarization` in the list of middleware.

        Warns:
            UserWarning: the flush would come too late, or never: the summarization has no trigger, one beyond the
                window of the model, or one that is reached before `window` or `trigger` is.
        """
        writer = model or summarization.model
        made = cls(
            memory,
            model=None,
            window=window,
            token_counter=summarization.token_counter,
            trigger=trigger,
            session_key=session_key,
        )
        made.model = writer
        if summarization.trigger is None:
            warnings.warn(
                "the SummarizationMiddleware has no trigger and never makes a summary: give it one, for example "
                'trigger=("fraction", 0.8); the flush goes by the size of the window alone',
                UserWarning,
                stacklevel=2,
            )
            made._check_window(writer)
            return made
        made._last_moment = moment_before(summarization)
        if words := made._too_late(summarization):
            warnings.warn(words, UserWarning, stacklevel=2)
        return made

    def before_model(self, state: MemoryFlushState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Flush where it is due; the state is told of it."""
        look = self._look(state)
        if look.wanted is None or not save(look.wanted):
            return look.update or None
        return look.update | self._marked(look)

    async def abefore_model(self, state: MemoryFlushState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Flush where it is due; the state is told of it."""
        look = self._look(state)
        if look.wanted is None or not await asave(look.wanted):
            return look.update or None
        return look.update | self._marked(look)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Learn which model the agent asks; where the conversation is too long for it, flush before that is told."""
        look = self._first_look(request)
        update = self._marked(look) if look and look.wanted and save(look.wanted) else None
        try:
            response = handler(request)
        except Exception as error:
            if is_overflow(error) and (last := self._last_look(request)).wanted and save(last.wanted):
                self._remember(last)
            raise
        return _with_update(response, update)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Learn which model the agent asks; where the conversation is too long for it, flush before that is told."""
        look = self._first_look(request)
        update = self._marked(look) if look and look.wanted and await asave(look.wanted) else None
        try:
            response = await handler(request)
        except Exception as error:
            if is_overflow(error) and (last := self._last_look(request)).wanted and await asave(last.wanted):
                self._remember(last)
            raise
        return _with_update(response, update)

    def _look(self, state: Mapping[str, Any], *, overflow: bool = False) -> _Look:
        messages: list[AnyMessage] = state["messages"]
        cycle, config = cycle_of(messages), run_config()
        key, thread = session_of(self.session_key, config) or "main", thread_of(config)
        # A thread that is used again for another conversation begins with another message.
        conversation = (key, (messages[0].id if messages else None) or "")
        update = self._compacted(state, cycle, key, thread)
        marker = state.get("memory_flush_marker")
        if marker == cycle or self._flushed.get(conversation) == cycle or not messages:
            return _Look(cycle, conversation, None, update)
        counted = self.token_counter(messages)
        tokens = max(counted, reported_tokens(messages))
        window = self._window()
        compacting = overflow or self._compacts(messages, counted, tokens)
        reason = flush_due(self.memory.config.compaction, window=window, tokens=tokens, compacting=compacting)
        writer = self.model or self._learned
        if reason is None or (writer is None and not compacting):
            return _Look(cycle, conversation, None, update)
        wanted = Wanted(
            self.memory, key, writer, messages, window, tokens, self.token_counter, compacting, session_id=thread
        )
        return _Look(cycle, conversation, wanted, update)

    def _first_look(self, request: ModelRequest[Any]) -> _Look | None:
        """Where the model was not known before this call, the look that could not be taken before it."""
        known, self._learned = self._learned, request.model
        if self.model is not None or known is not None:
            return None
        self._check_window(request.model)
        return self._look({**request.state, "messages": request.messages})

    def _last_look(self, request: ModelRequest[Any]) -> _Look:
        return self._look({**request.state, "messages": request.messages}, overflow=True)

    def _compacts(self, messages: list[AnyMessage], counted: int, tokens: int) -> bool:
        """Whether this is the last moment before a summary, or the one that was asked for."""
        if self._last_moment is not None and self._last_moment(messages, counted):
            return True
        window = self.window or window_of(self.model or self._learned)
        return self.trigger is not None and reached(self.trigger, len(messages), tokens, window)

    def _compacted(self, state: Mapping[str, Any], cycle: str, key: str, thread: str | None) -> dict[str, Any]:
        """What the state is told where the conversation was compacted since the latest look."""
        seen = state.get("memory_flush_seen") or NO_SUMMARY
        if cycle == seen:
            return {}
        if cycle != NO_SUMMARY:
            compacted(self.memory, key, thread)
            if self.memory.config.compaction.flush and state.get("memory_flush_marker") != seen and not self._warned:
                self._warned = True
                say(
                    f"the conversation of session {key!r} was summarised before its memories were saved: place "
                    "MemoryFlushMiddleware before the SummarizationMiddleware, and make it with "
                    "MemoryFlushMiddleware.before(summarization, memory=...)"
                )
        return {"memory_flush_seen": cycle}

    def _marked(self, look: _Look) -> dict[str, Any]:
        if thread_of(run_config()) is None:  # what a run without a thread keeps in its state is gone with the run
            self._remember(look)
        return {"memory_flush_marker": look.cycle}

    def _remember(self, look: _Look) -> None:
        if not look.conversation[1]:
            return
        self._flushed[look.conversation] = look.cycle
        while len(self._flushed) > _REMEMBERED:
            self._flushed.popitem(last=False)

    def _window(self) -> int | None:
        if self.window is None and self._last_moment is not None:
            return None
        return self.window or window_of(self.model or self._learned)

    def _check_window(self, model: BaseChatModel) -> None:
        if self.trigger is None and self._last_moment is None and self.window is None and window_of(model) is None:
            raise ConfigError(
                f"nobody knows how many tokens {type(model).__name__} can read, so that no flush would be due: give "
                'window=200_000, trigger=("tokens", 100_000), a model with profile={"max_input_tokens": 200_000}, or '
                "make it with MemoryFlushMiddleware.before(summarization, memory=...)"
            )

    def _too_late(self, summarization: Any) -> str | None:
        window = window_of(summarization.model)
        limit = latest_tokens(summarization.trigger, window)
        rules = self.memory.config.compaction
        wanted = [flush_threshold(self.window, rules), latest_tokens(self.trigger, self.window or window)]
        if limit is not None and window is not None and limit > window:
            self.window = self.window or window
            return (
                f"the flush would come too late: the trigger of the SummarizationMiddleware, {limit:,} tokens, lies "
                f"beyond the {window:,} tokens that its model can read: lower it; the flush goes by the window instead"
            )
        own = [tokens for tokens in wanted if tokens is not None]
        if limit is not None and own and min(own) >= limit:
            return (
                f"the flush would come too late: it is due from {min(own):,} tokens on, and SummarizationMiddleware "
                f"makes its summary from {limit:,} on; it will come just before the summary instead: leave out window= "
                "and trigger=, or lower them"
            )
        return None


def _with_update(
    response: ModelResponse[Any], update: dict[str, Any] | None
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    return ExtendedModelResponse(model_response=response, command=Command(update=update)) if update else response


def flushing_summarizer(
    summarizer: BaseChatModel | Runnable[list[AnyMessage], str] | Callable[[list[AnyMessage]], Any],
    memory: "Memory",
    model: BaseChatModel | None = None,
    *,
    token_counter: Callable[..., int] = count_tokens_approximately,
    session_key: str | None = None,
    summary_prompt: str = DEFAULT_SUMMARY_PROMPT,
) -> Runnable[list[AnyMessage], str]:
    """A summarizer for `SummarizationMiddleware(model, summarizer=...)` that saves memories before it summarises.

    It is shown exactly the messages that are about to be lost: give the middleware `trim_tokens_to_summarize=None`, or
    it shows the latest 4,000 tokens of them alone. `summarizer` is a chat model, which is given `summary_prompt`, or
    what takes the messages and returns their summary. `model` writes the memories, by default the summarizer's.

    Raises:
        ConfigError: the installed version of LangChain has no such hook, or `model` is missing.
    """
    if "summarizer" not in inspect.signature(SummarizationMiddleware.__init__).parameters:
        raise ConfigError(
            f"langchain {version('langchain')} has no SummarizationMiddleware(summarizer=...): install a newer one, or "
            "use MemoryFlushMiddleware.before(summarization, memory=...), which needs no such hook"
        )
    writer = model or (summarizer if isinstance(summarizer, BaseChatModel) else None)
    if writer is None:
        raise ConfigError(f"{summarizer!r} is no chat model, so that nobody can write the memories: give model=")
    summarise = _prompted(summarizer, summary_prompt) if isinstance(summarizer, BaseChatModel) else summarizer
    inner: Runnable[list[AnyMessage], str] = coerce_to_runnable(summarise)

    def wanted(messages: list[AnyMessage]) -> Wanted:
        config = run_config()
        key = session_of(session_key, config) or "main"
        tokens = token_counter(messages)
        return Wanted(memory, key, writer, messages, None, tokens, token_counter, session_id=thread_of(config))

    def flush_then_summarise(messages: list[AnyMessage], config: RunnableConfig) -> str:
        due = wanted(messages)
        save(due)
        summary = inner.invoke(messages, config)
        compacted(memory, due.key, due.session_id)
        return summary

    async def aflush_then_summarise(messages: list[AnyMessage], config: RunnableConfig) -> str:
        due = wanted(messages)
        await asave(due)
        summary = await inner.ainvoke(messages, config)
        await asyncio.to_thread(compacted, memory, due.key, due.session_id)
        return summary

    return RunnableLambda(flush_then_summarise, afunc=aflush_then_summarise, name="flushing_summarizer")


def _prompted(model: BaseChatModel, prompt: str) -> Runnable[list[AnyMessage], str]:
    def request(messages: list[AnyMessage]) -> str:
        return prompt.format(messages=get_buffer_string(messages, format="xml")).rstrip()

    return RunnableLambda(request) | model.with_retry() | StrOutputParser()
