"""The flush for agents: save memories just before a middleware compacts the conversation."""

# No `from __future__ import annotations`: LangGraph reads the annotations of the state at run time.

import logging
import warnings
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, Self

from langchain.agents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime
from langgraph.types import Command

from langchain_openclaw_memory._flush import (
    Wanted,
    asave,
    compacted,
    save,
    transcript_growth,
    window_of,
)
from langchain_openclaw_memory._flush_marks import NO_SUMMARY, Mark, fingerprints_of, summary_of
from langchain_openclaw_memory._flush_model import Model, chat_model
from langchain_openclaw_memory._messages import last_reply, reported_tokens, without_system
from langchain_openclaw_memory._session import flushed_session, kind_of, run_config
from langchain_openclaw_memory._trigger import (
    Moment,
    Trigger,
    clauses_of,
    latest_tokens,
    moment_before,
    needs_window,
    reached,
)
from openclaw_memory.aio import in_thread
from openclaw_memory.conversation import flush_due, is_overflow
from openclaw_memory.errors import ConfigError
from openclaw_memory.tools import checked_memory

if TYPE_CHECKING:
    from openclaw_memory import Memory

_log = logging.getLogger(__name__)

_REMEMBERED = 256  # flushes that are kept in mind for where no graph state holds their marks
_WAITING = 64  # conversations at once that wait for the model that is to be asked


class MemoryFlushState(AgentState[Any]):
    """What the flush keeps in the state of the graph, apart from its input and output; streams of states show it.

    `memory_flush_marker` is the mark of the latest flush, empty once a summary came. `memory_flush_seen` is the id of
    the summary that was seen last, `none` before the first, and the id of the last reply at that time.
    """

    memory_flush_marker: NotRequired[Annotated[list[Any], PrivateStateAttr]]
    memory_flush_seen: NotRequired[Annotated[list[str], PrivateStateAttr]]


class _Look(NamedTuple):
    """The outcome of a look at the conversation: the flush that is due, its mark, and what is written to the state."""

    wanted: Wanted | None = None
    mark: Mark | None = None
    update: Mapping[str, Any] = {}
    key: str = ""


class MemoryFlushMiddleware(AgentMiddleware[MemoryFlushState, Any, Any]):
    """Let a model write memories down before the conversation is compacted, once between two compactions.

    Place it before the middleware that compacts. The turn is silent: no stream and no callback of the run sees it, and
    the conversation is not changed. A flush that fails never breaks the run; the messages are then kept verbatim in the
    transcript of the session, and `memory.status()` reports it.

    The flush is due from `window - reserve - soft threshold` tokens on (176,000 of 200,000), when the transcript of the
    session has grown by 2 MiB (see `memory.config.compaction` for both), or when `trigger` is reached. A conversation
    has as many tokens as `token_counter` counts, or as the provider reported at the last reply, whichever is more. Runs
    with `configurable={"run_kind": "heartbeat"}` or `"cli"` are not flushed.

    Args:
        memory: Where to save.
        model: The chat model that writes the memories, or its name as `init_chat_model` takes it; None means the one
            that the agent asks.
        window: The model's context window in tokens, by default what its profile says.
        token_counter: Counts the tokens of messages.
        trigger: Another limit from which the flush is due, written like that of `SummarizationMiddleware`.
        session_key: The session to save under, by default the thread of the run; without a thread, each conversation is
            a session.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError: An argument is invalid, or the window is unknown and there is no `trigger`.
        InvalidInputError: `session_key` is empty.
    """

    state_schema = MemoryFlushState

    def __init__(
        self,
        memory: "Memory",
        model: Model | str | None = None,
        *,
        window: int | None = None,
        token_counter: Callable[..., int] = count_tokens_approximately,
        trigger: Trigger | None = None,
        session_key: str | None = None,
    ) -> None:
        super().__init__()
        _check(memory, window, trigger)
        self.memory, self.window = memory, window
        self.model = chat_model(model) if model is not None else None
        self.token_counter, self.trigger, self.session_key = token_counter, trigger, session_key
        if session_key is not None:
            memory.flush(session_key)  # an empty one is refused here
        self._last_moment: Moment | None = None
        self._waiting: OrderedDict[str, list[AnyMessage]] = OrderedDict()
        self._marks: deque[tuple[str, Mark]] = deque(maxlen=_REMEMBERED)
        self._reported: set[str] = set()
        if self.model is not None and (words := self._unknown_window(self.model)):
            raise ConfigError(words)

    @classmethod
    def before(
        cls,
        summarization: SummarizationMiddleware[Any, Any],
        memory: "Memory",
        model: Model | str | None = None,
        *,
        session_key: str | None = None,
    ) -> Self:
        """Return the flush that comes just before `summarization` makes a summary.

        Place it before `summarization` in the list of middleware.

        Args:
            summarization: Its trigger and token counter are taken over.
            memory: Where to save.
            model: The chat model that writes the memories, by default the one of `summarization`.
            session_key: The session to save under, by default the thread of the run.

        Raises:
            ConfigError: `summarization` is not a `SummarizationMiddleware`; or the window is unknown, and it has no
                trigger.

        Warns:
            UserWarning: The summarization has no trigger, or one beyond the window of its model, so that no summary
                would come. The flush then goes by the window.
        """
        if not isinstance(summarization, SummarizationMiddleware):
            raise ConfigError(
                f"{type(summarization).__name__} is not LangChain's SummarizationMiddleware: pass "
                "MemoryFlushMiddleware.before(summarization, memory). For another that shortens the messages of the "
                "state, use MemoryFlushMiddleware(memory, model, trigger=...); where the state keeps them all and the "
                "model alone is shown less, run the agent with MemoryFlushCallback(memory, model)"
            )
        checked_memory(memory)
        writer, counter = chat_model(model or summarization.model), summarization.token_counter
        window = window_of(summarization.model) or window_of(writer)
        if words := _without_summary(summarization, window):
            warnings.warn(words, UserWarning, stacklevel=2)
            return cls(memory, writer, window=window, token_counter=counter, session_key=session_key)
        made = cls(memory, token_counter=counter, session_key=session_key)
        made.model, made._last_moment = writer, moment_before(summarization)
        return made

    def before_model(self, state: MemoryFlushState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Flush if it is due, and mark it in the state."""
        look = self._look(state)
        return self._update(look, look.wanted is not None and save(look.wanted))

    async def abefore_model(self, state: MemoryFlushState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Flush if it is due, and mark it in the state. Files are read in a thread."""
        look = await in_thread(self._look, state)
        return self._update(look, look.wanted is not None and await asave(look.wanted))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Flush with the agent's own model if no other is given, and if the model refuses the prompt as too long."""
        look = self._waited(request)
        update = self._update(look, look.wanted is not None and save(look.wanted))
        try:
            response = handler(request)
        except Exception as error:
            if is_overflow(error):
                last = self._due(request.state, self.model or request.model, overflow=True)
                self._update(last, last.wanted is not None and save(last.wanted))
            raise
        return _with_update(response, update)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Flush with the agent's own model if no other is given, and if the model refuses the prompt as too long."""
        look = await in_thread(self._waited, request) if self.model is None else _Look()
        update = self._update(look, look.wanted is not None and await asave(look.wanted))
        try:
            response = await handler(request)
        except Exception as error:
            if is_overflow(error):
                last = await in_thread(self._due, request.state, self.model or request.model, overflow=True)
                self._update(last, last.wanted is not None and await asave(last.wanted))
            raise
        return _with_update(response, update)

    def _look(self, state: Mapping[str, Any]) -> _Look:
        messages: list[AnyMessage] = state["messages"]
        seen = self._seen(state)
        if self.model is not None:
            look = self._due(state, self.model)
            return look._replace(update={**seen, **look.update})
        # Which model this run asks is known only when it is called. A summary may have taken the messages by then.
        if messages and messages[-1].id:
            self._waiting[messages[-1].id] = messages
            while len(self._waiting) > _WAITING:
                self._waiting.popitem(last=False)
        return _Look(update=seen)

    def _waited(self, request: ModelRequest[Any]) -> _Look:
        """Return the look at what waited for this call of the model."""
        if self.model is not None:
            return _Look()
        # A summary keeps the latest message, and others may have added some.
        ids = (message.id or "" for message in reversed(request.state["messages"]))
        before = next((self._waiting.pop(known) for known in ids if known in self._waiting), None)
        if before is None:
            return _Look()
        if words := self._unknown_window(request.model):
            self._warn_once("window", words)
            return _Look()
        return self._due({**request.state, "messages": before}, request.model)

    def _due(self, state: Mapping[str, Any], model: Model, *, overflow: bool = False) -> _Look:
        """Return the flush that is due; none, with a warning, if that cannot be determined."""
        try:
            return self._wanted(state["messages"], state, model, overflow=overflow)
        except Exception as error:  # noqa: BLE001 - a counter, a file: no flush ever breaks the turn of the user
            self._reported.add("order")  # this warning explains why a summary may come first
            words = f"could not determine whether a flush is due: {type(error).__name__}: {error}"
            self._warn_once(type(error).__name__, words)
            return _Look()

    def _wanted(self, messages: list[AnyMessage], state: Mapping[str, Any], model: Model, *, overflow: bool) -> _Look:
        config, rules = run_config(), self.memory.config.compaction
        key, thread = flushed_session(self.session_key, config)
        counted = self.token_counter(messages)
        tokens = max(counted, reported_tokens(messages, outdated=_outdated(messages, state)))
        taken = self._last_moment(messages, counted) if self._last_moment is not None else 0
        window = self.window if self._last_moment is not None else self.window or window_of(model)
        triggered = self.trigger is not None and reached(self.trigger, len(messages), tokens, window)
        compacting = overflow or taken > 0 or triggered
        is_named = bool(thread or self.session_key)
        grown = transcript_growth(self.memory, key, thread) if is_named and rules.force_flush_bytes else 0
        due = flush_due(
            rules, window=window, tokens=tokens, transcript_bytes=grown, compacting=compacting, kind=kind_of(config)
        )
        conversation = fingerprints_of(messages) if due is not None else None
        if conversation is None:
            return _Look()
        marker = state.get("memory_flush_marker")
        marks = [Mark(*marker)] if marker else [mark for known, mark in self._marks.copy() if known == key]
        lost = len(without_system(messages[:taken]))
        had = next((mark for mark in marks if conversation.had_its_flush(mark, lost)), None)
        if had is not None:  # the state has no mark of a flush whose run failed
            return _Look(update={} if marker else {"memory_flush_marker": list(had)})
        # Conversations without a thread may run at once: none of them waits for the flush of another.
        name = key if is_named else f"{key}:{conversation.first}"
        wanted = Wanted(self.memory, name, model, messages, window, tokens, self.token_counter, compacting, thread)
        return _Look(wanted, conversation.mark, key=key)

    def _seen(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to write to the state if the conversation was compacted since the latest look, which is noted."""
        messages: list[AnyMessage] = state["messages"]
        summary, seen = summary_of(messages), state.get("memory_flush_seen")
        if seen and seen[0] == summary:
            return {}
        reply = last_reply(messages) if seen else None
        reported = {"memory_flush_seen": [summary, (reply.id if reply else None) or ""]}
        # Without a state that outlives the run it is unknown when the summary was made.
        if not seen or summary == NO_SUMMARY:
            return reported
        config = run_config()
        key, thread = flushed_session(self.session_key, config)
        if thread or self.session_key:
            compacted(self.memory, key, thread)
        wanted = self.memory.config.compaction.flush and kind_of(config) == "chat"
        if wanted and not state.get("memory_flush_marker") and self.memory.workspace.can_be_written:
            self._warn_once(
                "order",
                f"the conversation of session {key!r} was summarised before its memories were saved: place "
                "MemoryFlushMiddleware before the SummarizationMiddleware, and make it with "
                "MemoryFlushMiddleware.before(summarization, memory=...)",
            )
        return {**reported, "memory_flush_marker": []}

    def _update(self, look: _Look, held: bool) -> dict[str, Any] | None:
        """Return what to write to the state after a look, whose flush was `held` or not."""
        update = dict(look.update)
        if look.wanted is not None and look.mark is not None and held:
            self._marks.append((look.key, look.mark))  # a state may be gone with its run
            update["memory_flush_marker"] = list(look.mark)
        elif look.wanted is not None and not self.memory.workspace.can_be_written:
            self._warn_once(
                "read-only",
                f"no memories can be saved before a compaction: {self.memory.workspace.root} is read-only; give this "
                "process the right to write to its folder memory/",
            )
        return update or None

    def _warn_once(self, topic: str, words: str) -> None:
        if topic not in self._reported:
            self._reported.add(topic)
            _log.warning(words)

    def _unknown_window(self, model: Model) -> str | None:
        """Return why no flush would ever be due with this model, or None."""
        if self.window or window_of(model) or (self.trigger is not None and not needs_window(self.trigger)):
            return None
        return (
            f"unknown context window of {type(model).__name__}, so no flush would be due: pass "
            'window=200_000, trigger=("tokens", 100_000), a model with profile={"max_input_tokens": 200_000}, or '
            "make it with MemoryFlushMiddleware.before(summarization, memory=...)"
        )


def _check(memory: Any, window: Any, trigger: Any) -> None:
    checked_memory(memory)
    if window is not None and (not isinstance(window, int) or isinstance(window, bool) or window <= 0):
        raise ConfigError(f"window={window!r} is not a number of tokens: pass a whole number above 0, such as 200_000")
    if trigger is not None:
        clauses_of(trigger)


def _without_summary(summarization: Any, window: int | None) -> str | None:
    """Return why this summarization never makes a summary, or None."""
    if not summarization.trigger:
        return (
            "the SummarizationMiddleware has no trigger and never makes a summary: give it one, for example "
            'trigger=("fraction", 0.8); the flush goes by the size of the window alone'
        )
    limit = latest_tokens(summarization.trigger, window)
    if limit is None or window is None or limit <= window:
        return None
    return (
        f"the flush would come too late: the trigger of the SummarizationMiddleware, {limit:,} tokens, lies "
        f"beyond the {window:,} tokens that its model can read: lower it; the flush goes by the window instead"
    )


def _outdated(messages: list[AnyMessage], state: Mapping[str, Any]) -> str | None:
    """Return the id of the reply that was there when the latest summary was first seen.

    Its token count may be outdated: whether it is from before or after the summary is unknown.
    """
    seen = state.get("memory_flush_seen")
    if not seen:
        return None
    if seen[0] == summary_of(messages):
        return seen[1] or None
    reply = last_reply(messages)
    return reply.id if reply else None


def _with_update(
    response: ModelResponse[Any], update: dict[str, Any] | None
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    return ExtendedModelResponse(model_response=response, command=Command(update=update)) if update else response
