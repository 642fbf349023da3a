"""Summarise a conversation, and save memories of the messages that the summary replaces."""

# No `from __future__ import annotations`: LangGraph reads the annotations of hooks at run time.

import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from inspect import signature
from typing import Any, Self

from langchain.agents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware.types import AgentState, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from langchain_openclaw_memory._flush import PendingFlush, asave, can_save, check_memory, get_window, lease_chat, save
from langchain_openclaw_memory._flush_model import Model, load_chat_model
from langchain_openclaw_memory._messages import convert_messages, get_reported_tokens, is_summary
from langchain_openclaw_memory._session import get_run_config, refuse
from openclaw_memory.aio import run_in_thread
from openclaw_memory.conversation import is_overflow
from openclaw_memory.errors import ConfigError
from openclaw_memory.runs import MemoryChoice, RunMemory, keep_recent

_WAITING = 4096  # conversations at once whose summary waits
_FULL = 0.9  # of its window: a summary waits no longer then
_DEPRECATED = ("max_tokens_before_summary", "messages_to_keep")  # arguments of LangChain's that it still takes


class OpenClawSummarizationMiddleware(SummarizationMiddleware[Any, Any]):
    """Summarise a long conversation as `SummarizationMiddleware` does, and save memories of the removed messages first.

    The messages that are about to be cut are shown to a model, which writes lasting facts into today's note, before
    the state changes. The turn is silent: no stream sees it, and the conversation is not changed by it. A flush that
    fails never breaks the run; the messages are then kept verbatim in the transcript of the session, and
    `memory.status()` reports it. If the memory cannot be written at all, the summary waits until it can, or until nine
    tenths of the window of `model` are full, or the agent's model refuses the conversation as too long. A summary that
    fails changes nothing. Answers of tools whose call the cut takes away go with it. Where the memory's
    `compaction.enabled` is off, neither happens. Runs with `configurable={"run_kind": "heartbeat"}` or `"cli"` are not
    flushed.

    Args:
        model: The chat model that writes the summaries, or its name as `init_chat_model` takes it.
        memory: Where to save, or a selector of one for each run: see `memory_tools`.
        flush_model: The chat model that writes the memories, or its name, by default `model`.
        session_key: The session to save under, by default the thread of the run; without a thread, each conversation is
            a session.
        **options: The other arguments of `SummarizationMiddleware`, such as `trigger` and `keep`.

    Raises:
        TypeError: `memory` is not a memory, or `SummarizationMiddleware` does not take one of the options.
        ConfigError: `flush_model` does not exist, or a package that it needs is missing.
        InvalidInputError: `session_key` is empty.

    Warns:
        UserWarning: There is no trigger, so that no summary and no flush would come.
    """

    def __init__(
        self,
        model: str | BaseChatModel,
        memory: MemoryChoice,
        *,
        flush_model: Model | str | None = None,
        session_key: str | None = None,
        **options: Any,
    ) -> None:
        accepted = {*signature(SummarizationMiddleware).parameters, *_DEPRECATED}
        refuse(options.keys() - accepted, type(self).__name__, accepted - {"model", "deprecated_kwargs", *_DEPRECATED})
        super().__init__(model, **options)
        self._save_with(memory, flush_model, session_key)
        self._summarize, self._asummarize = super().before_model, super().abefore_model

    @classmethod
    def of(
        cls,
        summarization: SummarizationMiddleware[Any, Any],
        memory: MemoryChoice,
        *,
        flush_model: Model | str | None = None,
        session_key: str | None = None,
    ) -> Self:
        """Return middleware that takes the place of a summarization made elsewhere, and makes its summaries.

        Give the agent the returned one alone; `summarization` is not changed, and may serve other agents.

        Args:
            summarization: A `SummarizationMiddleware`, or one of a class based on it, of which `before_model` and
                `abefore_model` are called.
            memory: Where to save, as for the class.
            flush_model: The chat model that writes the memories, by default the one of `summarization`.
            session_key: The session to save under, as for the class.

        Raises:
            ConfigError: `summarization` is not a `SummarizationMiddleware`.
        """
        if not isinstance(summarization, SummarizationMiddleware):
            raise ConfigError(
                f"{type(summarization).__name__} is not LangChain's SummarizationMiddleware: for another that shortens "
                "the messages, run the agent with OpenClawFlushCallback(memory, model)"
            )
        middleware = cls.__new__(cls)
        vars(middleware).update(vars(summarization))
        middleware._save_with(memory, flush_model, session_key)
        middleware._summarize, middleware._asummarize = summarization.before_model, summarization.abefore_model
        return middleware

    def _save_with(self, memory: MemoryChoice, flush_model: Model | str | None, session_key: str | None) -> None:
        self.memory, self.session_key = check_memory(memory, session_key), session_key
        self.flush_model = load_chat_model(flush_model or self.model)
        # The conversations whose summary waits, and whether their model refused them as too long since.
        self._postponed: OrderedDict[RunMemory, bool] = OrderedDict()
        if not self.trigger:
            words = f"the {type(self).__name__} has no trigger and never makes a summary: give it one"
            warnings.warn(f'{words}, for example trigger=("fraction", 0.8)', UserWarning, stacklevel=3)

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise if that is due, and save memories of the messages that the summary replaces."""
        messages = state["messages"]
        leased, may_wait = self._locate(messages)  # a run that chooses none is told before a summary is paid
        if not leased.config.compaction.enabled:
            return None
        if may_wait and leased in self._postponed and not can_save(leased):
            return None
        update = _drop_orphans(self._summarize(state, runtime))
        lost = _find_removed(messages, update)
        outcome = save(self._plan(leased, lost, update, may_wait=may_wait)) if lost else None
        return self._settle(leased, update, postpone=may_wait and outcome == "lost")

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise as `before_model` does, with awaited models and files in a thread."""
        messages = state["messages"]
        leased, may_wait = self._locate(messages)
        if not leased.config.compaction.enabled:
            return None
        waits = may_wait and leased in self._postponed
        if waits and not await run_in_thread(can_save, leased):
            return None
        update = _drop_orphans(await self._asummarize(state, runtime))
        lost = _find_removed(messages, update)
        outcome = await asave(self._plan(leased, lost, update, may_wait=may_wait)) if lost else None
        return self._settle(leased, update, postpone=may_wait and outcome == "lost")

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask again with a summary if the model refuses a conversation as too long that waits for its summary."""
        try:
            return handler(request)
        except Exception as error:
            if not (is_overflow(error) and self._end_wait(request)):
                raise
            return handler(_with_update(request, self._summarize(request.state, request.runtime)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Ask again as `wrap_model_call` does, with awaited models."""
        try:
            return await handler(request)
        except Exception as error:
            if not (is_overflow(error) and self._end_wait(request)):
                raise
            return await handler(_with_update(request, await self._asummarize(request.state, request.runtime)))

    def _plan(
        self, leased: RunMemory, lost: list[AnyMessage], update: dict[str, Any] | None, *, may_wait: bool
    ) -> PendingFlush:
        count, model = self.token_counter, self.flush_model
        messages, left = list(convert_messages(lost)), count(_get_messages(update))
        return PendingFlush(leased, model, messages, count, tokens=left, cut=True, may_wait=may_wait)

    def _locate(self, messages: Sequence[AnyMessage]) -> tuple[RunMemory, bool]:
        """Return the memory of this run with its conversation, and whether that has room to wait."""
        leased = lease_chat(self.memory, self.session_key, get_run_config(), messages)
        window, is_refused = get_window(self.model), self._postponed.get(leased, False)
        if window is None or is_refused:
            return leased, not is_refused
        return leased, max(self.token_counter(messages), get_reported_tokens(messages)) < _FULL * window

    def _settle(self, leased: RunMemory, update: dict[str, Any] | None, *, postpone: bool) -> dict[str, Any] | None:
        """Return an update, or None if it is postponed."""
        if postpone:
            keep_recent(self._postponed, leased, False, _WAITING)
            return None
        if update is not None:
            self._postponed.pop(leased, None)
        return update

    def _end_wait(self, request: ModelRequest[Any]) -> bool:
        """Have the conversation of a refused request wait no longer; return whether it did."""
        leased, _ = self._locate(request.state["messages"])
        if is_waiting := leased in self._postponed:
            self._postponed[leased] = True
        return is_waiting


def _with_update(request: ModelRequest[Any], update: dict[str, Any] | None) -> ModelRequest[Any]:
    """Return a request with the messages that an update of the state leaves."""
    return request if update is None else request.override(messages=_get_messages(_drop_orphans(update)))


def _get_messages(update: dict[str, Any] | None) -> list[AnyMessage]:
    """Return the messages that an update of the state leaves."""
    return [message for message in (update or {}).get("messages", ()) if not isinstance(message, RemoveMessage)]


def _drop_orphans(update: dict[str, Any] | None) -> dict[str, Any] | None:
    """Remove the answers of tools without their calls from an update: providers refuse them."""
    changed: list[AnyMessage] = (update or {}).get("messages") or []
    if not any(message.id == REMOVE_ALL_MESSAGES for message in changed):
        return update
    whole: list[AnyMessage] = []
    called: set[str | None] = set()
    for message in changed:
        if isinstance(message, AIMessage):
            called |= {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}
        if not isinstance(message, ToolMessage) or message.tool_call_id in called:
            whole.append(message)
    return {**(update or {}), "messages": whole}


def _find_removed(messages: Sequence[AnyMessage], update: dict[str, Any] | None) -> list[AnyMessage]:
    """Return the messages that an update takes from the state; none if it takes no more than an earlier summary."""
    if not (changed := (update or {}).get("messages")):
        return []
    removed = {message.id for message in changed if isinstance(message, RemoveMessage)}
    present = {message.id for message in _get_messages(update)}
    lost = [
        message
        for message in messages
        if message.id not in present and (message.id in removed or REMOVE_ALL_MESSAGES in removed)
    ]
    return lost if any(not isinstance(message, SystemMessage) and not is_summary(message) for message in lost) else []
