"""The flush for agents: save memories just before a middleware compacts the conversation."""

# No `from __future__ import annotations`: LangGraph reads the annotations of hooks at run time.

import copy
import logging
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Self, TypeAlias

from langchain.agents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from langchain_openclaw_memory._flush import PendingFlush, asave, can_save, check_memory, find_session, get_window, save
from langchain_openclaw_memory._flush_model import Model, load_chat_model
from langchain_openclaw_memory._messages import find_first, get_reported_tokens, is_summary, read_message
from langchain_openclaw_memory._session import (
    WarnOnce,
    get_run_config,
    get_run_kind,
    get_thread,
    lease_run_memory,
    refuse,
    remember,
)
from openclaw_memory import MemoryConfig
from openclaw_memory.aio import run_in_thread
from openclaw_memory.conversation import is_overflow
from openclaw_memory.errors import ConfigError
from openclaw_memory.flush import ConversationDetector
from openclaw_memory.runs import MemoryChoice, RunMemory

_log = logging.getLogger(__name__)

_WAITING = 4096  # conversations at once that wait for the model that is to be asked
_FULL = 0.9  # of its window: a summary waits no longer then
_DEPRECATED = ("max_tokens_before_summary", "messages_to_keep")  # arguments of LangChain's that it still takes
_KINDS = frozenset({"tokens", "messages", "fraction"})

# ("tokens", 4000), ("messages", 50) or ("fraction", 0.8); {"tokens": 4000, "messages": 10} wants both; of a list, any.
Clause: TypeAlias = tuple[str, float] | Mapping[str, float]
Trigger: TypeAlias = Clause | Sequence[Clause]


class OpenClawSummarizationMiddleware(SummarizationMiddleware[Any, Any]):
    """Summarise a long conversation as `SummarizationMiddleware` does, and save memories of the removed messages first.

    The messages that are about to be cut are shown to a model, which writes lasting facts into today's note, before
    the state changes. The turn is silent: no stream sees it, and the conversation is not changed by it. A flush that
    fails never breaks the run; the messages are then kept verbatim in the transcript of the session, and
    `memory.status()` reports it. If the memory cannot be written at all, the summary waits until it can, or until nine
    tenths of the window of `model` are full, or the agent's model refuses the conversation as too long. A summary that
    fails changes nothing. Where the memory's `compaction.enabled` is off,
    neither happens. Runs with `configurable={"run_kind":
    "heartbeat"}` or `"cli"` are not flushed.

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
        self.memory, self.session_key = check_memory(memory, session_key), session_key
        self.flush_model = load_chat_model(flush_model or self.model)
        # The conversations whose summary waits, and whether their model refused them as too long since.
        self._postponed: OrderedDict[tuple[Path, str], bool] = OrderedDict()
        _warn_without_trigger(self)

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise if that is due, and save memories of the messages that the summary replaces."""
        messages = state["messages"]
        leased, place, may_wait = self._locate(messages)  # a run that chooses none is told before a summary is paid
        if not leased.config.compaction.enabled:
            return None
        if may_wait and place in self._postponed and not can_save(leased, self.session_key, messages):
            return None
        update = super().before_model(state, runtime)
        lost = _find_removed(messages, update)
        outcome = save(self._plan(leased, lost, may_wait=may_wait)) if lost else None
        return self._settle(place, update, postpone=may_wait and outcome == "lost")

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise as `before_model` does, with awaited models and files in a thread."""
        messages = state["messages"]
        leased, place, may_wait = self._locate(messages)
        if not leased.config.compaction.enabled:
            return None
        waits = may_wait and place in self._postponed
        if waits and not await run_in_thread(can_save, leased, self.session_key, messages):
            return None
        update = await super().abefore_model(state, runtime)
        lost = _find_removed(messages, update)
        outcome = await asave(self._plan(leased, lost, may_wait=may_wait)) if lost else None
        return self._settle(place, update, postpone=may_wait and outcome == "lost")

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask again with a summary if the model refuses a conversation as too long that waits for its summary."""
        try:
            return handler(request)
        except Exception as error:
            if not (is_overflow(error) and self._end_wait(request)):
                raise
            return handler(_with_update(request, super().before_model(request.state, request.runtime)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Ask again as `wrap_model_call` does, with awaited models."""
        try:
            return await handler(request)
        except Exception as error:
            if not (is_overflow(error) and self._end_wait(request)):
                raise
            return await handler(_with_update(request, await super().abefore_model(request.state, request.runtime)))

    def _plan(self, leased: RunMemory, lost: list[AnyMessage], *, may_wait: bool) -> PendingFlush:
        session = find_session(self.session_key, lost)
        return PendingFlush(leased, session, self.flush_model, lost, self.token_counter, cut=True, may_wait=may_wait)

    def _locate(self, messages: Sequence[AnyMessage]) -> tuple[RunMemory, tuple[Path, str], bool]:
        """Return the memory of this run, folder and session of its conversation, and whether it has room to wait."""
        leased = lease_run_memory(self.memory, get_run_config())
        place = leased.folder, find_session(self.session_key, messages).key
        window, is_refused = get_window(self.model), self._postponed.get(place, False)
        if window is None or is_refused:
            return leased, place, not is_refused
        return leased, place, max(self.token_counter(messages), get_reported_tokens(messages)) < _FULL * window

    def _settle(
        self, place: tuple[Path, str], update: dict[str, Any] | None, *, postpone: bool
    ) -> dict[str, Any] | None:
        """Return an update, or None if it is postponed."""
        if postpone:
            remember(self._postponed, place, False, _WAITING)
            return None
        if update is not None:
            self._postponed.pop(place, None)
        return update

    def _end_wait(self, request: ModelRequest[Any]) -> bool:
        """Have the conversation of a refused request wait no longer; return whether it did."""
        _, place, _ = self._locate(request.state["messages"])
        if is_waiting := place in self._postponed:
            self._postponed[place] = True
        return is_waiting


class MemoryFlushMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Let a model write memories down before another middleware shortens the messages of the state.

    For LangChain's own summarization, take `OpenClawSummarizationMiddleware`, or make this with `before`. Place it
    before the middleware that compacts. The turn is silent, and a flush that fails never breaks the run, as there.

    The flush is due from `window - reserve - soft threshold` tokens on (176,000 of 200,000, see
    `memory.config.compaction`), when `trigger` is reached, or when the agent's model refuses the conversation as too
    long; again once more than half of the conversation is new. A conversation has as many tokens as `token_counter`
    counts, or as the provider reported at the last reply, whichever is more.

    Args:
        memory: Where to save, as for `OpenClawSummarizationMiddleware`.
        model: The chat model that writes the memories, or its name as `init_chat_model` takes it; None means the one
            that the agent asks.
        window: The model's context window in tokens, by default from its profile.
        token_counter: Counts the tokens of messages.
        trigger: Another limit from which the flush is due, written like that of `SummarizationMiddleware`: best that of
            the middleware that compacts.
        session_key: The session to save under, by default the thread of the run; without a thread, each conversation is
            a session.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError: An argument is invalid, or the window is unknown and there is no `trigger`.
        InvalidInputError: `session_key` is empty.
    """

    def __init__(
        self,
        memory: MemoryChoice,
        model: Model | str | None = None,
        *,
        window: int | None = None,
        token_counter: Callable[..., int] = count_tokens_approximately,
        trigger: Trigger | None = None,
        session_key: str | None = None,
    ) -> None:
        super().__init__()
        self.memory, self.session_key = check_memory(memory, session_key), session_key
        self.window, self.token_counter = window, token_counter
        self.model = load_chat_model(model) if model is not None else None
        self.trigger, self._clauses = trigger, _read_trigger(trigger) if trigger is not None else []
        self._summarization: SummarizationMiddleware[Any, Any] | None = None
        self._detectors: dict[object, ConversationDetector[BaseMessage]] = {}
        self._get_detector(window, MemoryConfig())  # a wrong window is an error now, and not in the first run
        self._waiting: OrderedDict[tuple[Path, str | None, str], list[AnyMessage]] = OrderedDict()
        self._first: OrderedDict[tuple[Path, str], str | None] = OrderedDict()
        self._warn_once = WarnOnce(_log)
        if self.model is not None and (words := self._describe_window(self.model)):
            raise ConfigError(words)

    @classmethod
    def before(
        cls,
        summarization: SummarizationMiddleware[Any, Any],
        memory: MemoryChoice,
        model: Model | str | None = None,
        *,
        session_key: str | None = None,
    ) -> Self:
        """Return middleware that flushes the messages which `summarization` replaces, just before it does.

        Place it directly before `summarization` in the list of middleware: a cut that is due only by messages which
        another middleware adds in between is not foreseen. Which messages a summary takes is asked of a copy of
        `summarization` that makes none, so that there is one summary, and `summarization` may serve other agents too.

        Args:
            summarization: The summarization of the agent.
            memory: Where to save, as for the class.
            model: The chat model that writes the memories, by default the one of `summarization`.
            session_key: The session to save under, as for the class.

        Raises:
            ConfigError: `summarization` is not a `SummarizationMiddleware`.

        Warns:
            UserWarning: The summarization has no trigger, so that no summary and no flush would come.
        """
        if not isinstance(summarization, SummarizationMiddleware):
            raise ConfigError(
                f"{type(summarization).__name__} is not LangChain's SummarizationMiddleware: pass "
                "MemoryFlushMiddleware.before(summarization, memory). For another that shortens the messages of the "
                "state, use MemoryFlushMiddleware(memory, model, trigger=...); where the state keeps them all and the "
                "model alone is shown less, run the agent with OpenClawFlushCallback(memory, model)"
            )
        check_memory(memory, session_key)
        _warn_without_trigger(summarization)
        middleware = cls(memory, token_counter=summarization.token_counter, session_key=session_key)
        middleware.model, middleware._summarization = load_chat_model(model or summarization.model), summarization
        return middleware

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Flush if it is due."""
        if flush := self._look(state, runtime):
            save(flush)

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Flush if it is due. Files are read in a thread."""
        if flush := await run_in_thread(self._look, state, runtime):
            await asave(flush)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Flush with the agent's own model if no other is given, and if the model refuses the prompt as too long."""
        if flush := self._take_waiting(request):
            save(flush)
        try:
            return handler(request)
        except Exception as error:
            if is_overflow(error) and (flush := self._plan_after_refusal(request)):
                save(flush)
            raise

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Flush as `wrap_model_call` does, with awaited models."""
        if flush := self._take_waiting(request):
            await asave(flush)
        try:
            return await handler(request)
        except Exception as error:
            if is_overflow(error) and (flush := self._plan_after_refusal(request)):
                await asave(flush)
            raise

    def _look(self, state: AgentState[Any], runtime: Runtime[Any]) -> PendingFlush | None:
        messages: list[AnyMessage] = state["messages"]
        leased = lease_run_memory(self.memory, get_run_config())
        if (summarization := self._summarization) is not None:
            return self._try(lambda: self._plan_before_cut(leased, messages, summarization, state, runtime))
        if (model := self.model) is not None:
            return self._try(lambda: self._plan_if_due(leased, messages, model))
        # Which model this run asks is known only when it is called. A compaction may have taken the messages by then.
        last = messages[-1].id if messages else None
        if last and remember(self._waiting, (leased.folder, get_thread(get_run_config()), last), messages, _WAITING):
            words = f"more than {_WAITING} conversations wait for their model at once, and not all are flushed"
            self._warn_once("waiting", f"{words}: pass MemoryFlushMiddleware a model")
        return None

    def _try(self, look: Callable[[], PendingFlush | None]) -> PendingFlush | None:
        try:
            return look()
        except Exception as error:  # noqa: BLE001 - a counter, a file: no flush ever breaks the turn of the user
            words = f"could not determine whether a flush is due: {type(error).__name__}: {error}"
            self._warn_once(type(error).__name__, words)
            return None

    def _plan_before_cut(
        self,
        leased: RunMemory,
        messages: Sequence[AnyMessage],
        summarization: SummarizationMiddleware[Any, Any],
        state: AgentState[Any],
        runtime: Runtime[Any],
    ) -> PendingFlush | None:
        probe = copy.copy(summarization)
        probe.trim_tokens_to_summarize = 0  # of nothing no model is asked for a summary
        vars(probe)["_create_summary"] = lambda _messages: ""  # a system prompt at the beginning is never trimmed
        lost = _find_removed(messages, probe.before_model(state, runtime))
        self._warn_of_order(leased, messages, lost)
        model = self.model or summarization.model
        session = find_session(self.session_key, lost)
        return PendingFlush(leased, session, model, lost, self.token_counter, cut=True) if lost else None

    def _warn_of_order(self, leased: RunMemory, messages: Sequence[AnyMessage], lost: Sequence[AnyMessage]) -> None:
        """Warn once if a summary came that was not seen to come: it took messages that no flush was shown."""
        thread, first = get_thread(get_run_config()), find_first(messages)
        if thread is None or first is None:
            return
        if is_summary(first) and self._first.pop((leased.folder, thread), None) not in {None, first.id}:
            self._warn_once(
                "order",
                f"the conversation of thread {thread!r} was summarised before its memories were saved: place "
                "MemoryFlushMiddleware before the SummarizationMiddleware, or take OpenClawSummarizationMiddleware",
            )
        remember(self._first, (leased.folder, thread), None if lost else first.id, _WAITING)

    def _take_waiting(self, request: ModelRequest[Any]) -> PendingFlush | None:
        """Return the flush that waited for this call of the model."""
        if self.model is not None:
            return None
        leased, thread = lease_run_memory(self.memory, get_run_config()), get_thread(get_run_config())
        # A compaction keeps the latest message, and others may have added some.
        places = ((leased.folder, thread, message.id or "") for message in reversed(request.state["messages"]))
        before = next((self._waiting.pop(place) for place in places if place in self._waiting), None)
        if before is None:
            return None
        if words := self._describe_window(request.model):
            self._warn_once("window", words)
        return self._try(lambda: self._plan_if_due(leased, before, request.model))

    def _plan_after_refusal(self, request: ModelRequest[Any]) -> PendingFlush | None:
        """Return the flush of a conversation that the model refused; a summarization has not cut it yet."""
        if self._summarization is not None:
            return None
        leased = lease_run_memory(self.memory, get_run_config())
        model, messages = self.model or request.model, request.state["messages"]
        return self._try(lambda: self._plan_if_due(leased, messages, model, overflow=True))

    def _plan_if_due(
        self, leased: RunMemory, messages: Sequence[AnyMessage], model: Model, *, overflow: bool = False
    ) -> PendingFlush | None:
        if get_run_kind(get_run_config()) != "chat":
            return None
        window = self.window or get_window(model)
        session = find_session(self.session_key, messages)
        tokens = max(self.token_counter(messages) if self._clauses else 0, get_reported_tokens(messages))
        sizes = {"messages": len(messages), "tokens": tokens, "fraction": tokens / window if window else 0.0}
        reached = any(all(sizes[kind] >= limit for kind, limit in clause.items()) for clause in self._clauses)
        on_end = self._get_detector(window, leased.config).begin_flush(
            f"{leased.folder}\n{session.key}", messages, tokens=tokens, compacting=overflow or reached
        )
        if on_end is None:
            return None
        return PendingFlush(leased, session, model, messages, self.token_counter, window, tokens, on_end=on_end)

    def _get_detector(self, window: int | None, config: MemoryConfig) -> ConversationDetector[BaseMessage]:
        rules = config.compaction
        return self._detectors.get((window, rules)) or self._detectors.setdefault(
            (window, rules), ConversationDetector(read_message, rules=rules, window=window, count=self.token_counter)
        )

    def _describe_window(self, model: Model) -> str | None:
        """Return why no flush would ever be due with this model, or None."""
        if self.window or get_window(model) or any("fraction" not in clause for clause in self._clauses):
            return None
        return (
            f"unknown context window of {type(model).__name__}, so no flush would be due: pass "
            'window=200_000, trigger=("tokens", 100_000), a model with profile={"max_input_tokens": 200_000}, or '
            "make it with MemoryFlushMiddleware.before(summarization, memory=...)"
        )


def _with_update(request: ModelRequest[Any], update: Mapping[str, Any] | None) -> ModelRequest[Any]:
    """Return a request with the messages that an update of the state leaves."""
    messages = (update or {}).get("messages", request.messages)
    return request.override(messages=[message for message in messages if not isinstance(message, RemoveMessage)])


def _warn_without_trigger(summarization: SummarizationMiddleware[Any, Any]) -> None:
    if not summarization.trigger:
        words = f"the {type(summarization).__name__} has no trigger and never makes a summary: give it one"
        warnings.warn(f'{words}, for example trigger=("fraction", 0.8)', UserWarning, stacklevel=3)


def _find_removed(messages: Sequence[AnyMessage], update: Mapping[str, Any] | None) -> list[AnyMessage]:
    """Return the messages that an update takes from the state; none if it takes no more than an earlier summary."""
    if not (changed := (update or {}).get("messages")):
        return []
    removed = {message.id for message in changed if isinstance(message, RemoveMessage)}
    present = {message.id for message in changed if not isinstance(message, RemoveMessage)}
    lost = [
        message
        for message in messages
        if message.id not in present and (message.id in removed or REMOVE_ALL_MESSAGES in removed)
    ]
    return lost if any(not isinstance(message, SystemMessage) and not is_summary(message) for message in lost) else []


def _read_trigger(trigger: Trigger) -> list[dict[str, float]]:
    """Return the clauses of a trigger: all limits of a clause must be reached."""
    alone = isinstance(trigger, Mapping) or (isinstance(trigger, tuple) and isinstance(next(iter(trigger), None), str))
    conditions: Any = [trigger] if alone else trigger
    try:
        clauses = [dict(clause if isinstance(clause, Mapping) else [clause]) for clause in conditions]
    except (TypeError, ValueError):
        clauses = [{}]
    if not all(clause and all(map(_is_limit, clause, clause.values())) for clause in clauses):
        raise ConfigError(
            f'{trigger!r} is not a trigger: pass ("tokens", 100_000), ("messages", 50), ("fraction", 0.8), '
            "a mapping of these that must all be reached, or a list of which one must"
        )
    return clauses


def _is_limit(kind: Any, value: Any) -> bool:
    if kind not in _KINDS or not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 < value <= 1 if kind == "fraction" else value > 0
