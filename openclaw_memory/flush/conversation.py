"""Hold a conversation with a model in a loop of one's own: logged, flushed, compacted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from openclaw_memory._safe import warn
from openclaw_memory.conversation.compaction import compact, load_conversation, prune
from openclaw_memory.conversation.messages import (
    Message,
    drop_recalled,
    estimate_tokens,
    format_messages,
    get_text,
    prepare_for_model,
    read_calls,
)
from openclaw_memory.conversation.snapshots import drop_unanswered
from openclaw_memory.conversation.thresholds import is_overflow
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.events import run_values
from openclaw_memory.flush.driver import FlushModel, ModelReply, run_flush
from openclaw_memory.flush.flush import Flush
from openclaw_memory.types import Tool

MAX_ROUNDS = 20  # of the model for one message
_SUMMARISE = "Summarise this conversation for the one who goes on with it: goals, decisions, facts, open tasks.\n\n"

Model: TypeAlias = Callable[[list[dict[str, Any]], Sequence[Tool]], Message | str]


class Conversation:
    """Hold a conversation with a model. It is kept on disk: another object or process can go on with it.

    Attributes:
        flush: The flush of the session.
        log: Its transcript.
    """

    def __init__(self, flush: Flush, model: Model, tools: Sequence[Tool] = ()) -> None:
        """Go on with the conversation of a session; see `Memory.sessions.open_conversation`.

        Args:
            flush: The flush of the session.
            model: Replies to messages, given the tools that it may call.
            tools: The tools.
        """
        self.flush, self.log = flush, flush.log
        self._model, self._tools = model, {tool.name: tool for tool in tools}

    @property
    def messages(self) -> list[Message]:
        """The messages that the model is shown: no call without an answer, and after a compaction its summary first."""
        return drop_unanswered(load_conversation(self.log))

    def send(self, text: str) -> str:
        """Send a message of the user, run the tools that the model calls, and return its reply.

        Memories are saved, in a silent turn, before the conversation is compacted: after a reply that leaves less free
        than the settings reserve, or when the model finds it too long. A compaction that fails after the reply is
        logged, and tried again after the next. The model is asked 20 times at most, as often as by an agent of
        LlamaIndex.

        Args:
            text: The text of the user.

        Raises:
            RecursionError: The model went on calling tools. Their answers are in the conversation, which can go on.
            InvalidInputError: The model returned something else than a message or a text.
            WriteError: The message could not be written to the transcript.
            Exception: Whatever the model or a tool raises, such as that even a compacted conversation is too long.
        """
        self.log.append_message({"role": "user", "content": text})
        for _ in range(MAX_ROUNDS):
            messages = self.messages
            self._save(messages, estimate_tokens(messages))
            reply = self._get_reply(messages)
            if not (calls := read_calls(reply)):
                return get_text(reply)
            for call_id, name, arguments in calls:
                answer = self._run_tool(name, arguments)
                self.log.append_message({"role": "tool", "tool_call_id": call_id, "name": name, "content": answer})
        raise RecursionError(f"the model was asked {MAX_ROUNDS} times and still calls tools: ask it for less at once")

    def _run_tool(self, name: str, arguments: Any) -> str:
        if name not in self._tools:
            return f"there is no tool {name!r}"
        if not isinstance(arguments, dict):
            return f"the arguments of {name} are not a JSON object, or end early: send them again"
        with run_values(session_key=self.flush.session):
            return self._tools[name](arguments)

    def _get_reply(self, messages: list[Message]) -> Message:
        """Log the reply of the model; shorten the conversation if it is too long, for the model or with the reply."""
        window, rules = self.flush.window, self.flush.rules
        view = prune(messages, window=window) if window else messages
        try:
            reply = self._ask(view, [*self._tools.values()])
        except Exception as error:
            if not is_overflow(error):
                raise
            # The model has counted: its window is smaller than this conversation, whatever the estimate is.
            tokens = estimate_tokens(messages)
            if reason := self._compact(messages, min(window or tokens, tokens)):
                error.add_note(reason)
                raise
            view = self.messages
            reply = self._ask(view, [*self._tools.values()])
        size, spoken = estimate_tokens(view), estimate_tokens([reply])
        self.flush.add_tokens(size, spoken, size + spoken)
        reply, threshold = self.log.append_message(reply), rules.get_compaction_threshold(window)
        if rules.enabled and threshold is not None and size + spoken > threshold:
            try:
                self._compact(self.messages, window)
            except Exception as error:  # noqa: BLE001 - the reply is there
                warn(f"the conversation of session {self.flush.session.key!r} was not compacted: {error}")
        return reply

    def _compact(self, messages: list[Message], window: int | None) -> str:
        """Save memories and put a summary in place of older messages; return why not, "" if it is done."""
        outcome = compact(messages, self._summarise, self.flush.rules, window=window, log=self.log, before=self._save)
        if outcome.summary is not None:
            self.flush.record_compaction(outcome.tokens_after)
        return outcome.reason

    def _save(self, messages: Sequence[Message], tokens: int | None = None) -> None:
        """Flush the messages since the latest flush if it is due; without `tokens`, before a cut."""
        ids = {message.get("id") for message in messages}
        new = self.log.read_messages_since(self.flush.state.flushed_bytes)
        if any(message["id"] in ids for message in new):
            is_cut = tokens is None
            run_flush(self.flush, new, self._bind, tokens=tokens, compacting=is_cut, flushed=False if is_cut else None)

    def _ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        reply = self._model(prepare_for_model(messages), tools)
        if isinstance(reply, str):
            return {"role": "assistant", "content": reply}
        if not isinstance(reply, Mapping):
            raise InvalidInputError(f"the model returned {reply!r:.80}: return a message, or its text")
        return reply

    def _bind(self, tool: Tool) -> FlushModel:
        def ask(request: Sequence[Message]) -> ModelReply:
            reply = self._ask(request, [tool])
            return ModelReply(reply, get_text(reply), read_calls(reply), [reply])

        return FlushModel(ask=ask, room=self.flush.rules.get_compaction_threshold(self.flush.window))

    def _summarise(self, messages: Sequence[Message]) -> str:
        prompt = _SUMMARISE + format_messages(drop_recalled(messages))
        return get_text(self._ask([{"role": "user", "content": prompt}], ()))
