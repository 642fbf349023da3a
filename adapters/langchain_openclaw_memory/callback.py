"""The flush for everything that is no agent: a callback handler that watches the calls of a chat model."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from operator import eq
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from xml.sax.saxutils import escape

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, LLMResult

from langchain_openclaw_memory._cycles import without_system
from langchain_openclaw_memory._flushing import Wanted, save, window_of
from langchain_openclaw_memory._messages import SUMMARY_SOURCE
from langchain_openclaw_memory._turn import Model, chat_model
from openclaw_memory.errors import ConfigError
from openclaw_memory.sessions import FLUSH_TAG, flush_due, is_overflow

if TYPE_CHECKING:
    from openclaw_memory import Memory

_CONVERSATIONS = 256  # that are kept in mind at once; the one that was silent longest is forgotten first
_VIEWS = 4  # of one conversation
_RUNS = 256  # calls that are under way at once; of one that was cancelled nobody says that it ended


class _View(NamedTuple):
    """The messages of a call, with its reply, and what tells them from others."""

    messages: Sequence[BaseMessage]
    prints: list[int]


@dataclass(slots=True)
class _Conversation:
    """What was seen of one conversation since its latest compaction.

    `views` are those of the latest calls, by how they begin: a chain may ask a model other things in between.
    """

    views: OrderedDict[int, _View] = field(default_factory=OrderedDict)
    flushed: frozenset[int] = frozenset()
    last_flushed: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def see(self, messages: Sequence[BaseMessage]) -> None:
        begin = _print(messages[0])
        self.views[begin] = _View(messages, _prints(messages))
        self.views.move_to_end(begin)
        while len(self.views) > _VIEWS:
            self.views.popitem(last=False)

    def dropped_by(self, talk: Sequence[BaseMessage]) -> _Dropped | None:
        """The view that `talk` goes on with, but for its beginning; it is let go, for `talk` takes its place."""
        said = _prints(talk)
        for begin, view in self.views.items():
            if all(map(eq, said, view.prints)):
                continue
            for new in (0, 1):  # where the beginning was, there is nothing, or a summary of it
                if at := _dropped(view.prints, said[new:], at_least=new + 1):
                    del self.views[begin]
                    return _Dropped(view.messages, at, is_summarised=new == 1)
        return None

    def summarised_by(self, prompt: str) -> Sequence[BaseMessage]:
        """The view that `prompt` asks to summarise, which is let go; empty where it shows nothing of any."""
        shown = {begin: _chars_in(prompt, view.messages) for begin, view in self.views.items()}
        most = max(shown, key=shown.__getitem__, default=None)
        return self.views.pop(most).messages if most is not None and shown[most] else ()

    def had_its_flush(self, talk: Sequence[BaseMessage]) -> bool:
        """Whether these messages are of a cycle that was flushed, or hold nothing that was not."""
        prints = _prints(talk)
        if prints[-1] in self.flushed:
            return True
        return prints[0] in self.flushed and self.last_flushed in prints

    def not_flushed(self, dropped: _Dropped) -> Sequence[BaseMessage]:
        """What is to be flushed now that a beginning was dropped: all that never was, if any of that is dropped.

        A summary ends a cycle, which has one flush. A chain that only shortens its history has no cycles, and may do
        so at any length.
        """
        if dropped.is_summarised:
            return dropped.view
        new = [message for message in dropped.view if _print(message) not in self.flushed]
        return new if any(_print(message) not in self.flushed for message in dropped.view[: dropped.at]) else ()

    def was_flushed(self, talk: Sequence[BaseMessage]) -> None:
        self.flushed, self.last_flushed = frozenset(map(_print, talk)), _prints(talk)[-1]


class _Dropped(NamedTuple):
    """A view whose first `at` messages the conversation no longer has."""

    view: Sequence[BaseMessage]
    at: int
    is_summarised: bool


class _Run(NamedTuple):
    """A call of the model that is under way, in the conversation `key` that begins with `begin`."""

    key: str
    begin: int
    messages: Sequence[BaseMessage]


class MemoryFlushCallback(BaseCallbackHandler):
    """Has `model` write memories down once a conversation nears the end of its window, before it is compacted.

    Hand it to what talks with the user: `model.invoke(messages, config={"callbacks": [callback]})`, or to an agent. It
    flushes after a reply that brought the conversation to `window - reserve - soft threshold` tokens (`window` by
    default from the profile of `model`; see `memory.config.compaction`), where a summary by `SummarizationMiddleware`
    comes next, and where the provider refuses the conversation as too long; once between two compactions, which it
    knows by the conversation's beginning being another one. Where a request leaves out the beginning of the one before
    it, as `trim_messages` does, it first flushes what was never flushed. It sees and never changes the conversation;
    agents are served better by `MemoryFlushMiddleware`, which keeps its mark with the conversation.

    A conversation is told from others by the thread of its run; without threads, give each a callback of its own. The
    session is `session_key`, by default the thread, or `main`.

    `model` is a chat model, or the name of one as `init_chat_model` takes it (`openai:gpt-5-mini`).

    Raises:
        ConfigError: nobody knows the window, or the model.
    """

    raise_error = False
    # In an asynchronous run, its work is done in a thread that the run waits for: nothing else stands still meanwhile.
    run_inline = False

    def __init__(
        self,
        memory: Memory,
        model: Model | str,
        *,
        window: int | None = None,
        token_counter: Callable[..., int] = count_tokens_approximately,
        session_key: str | None = None,
    ) -> None:
        self.memory, self.model, self.session_key = memory, chat_model(model), session_key
        self.window, self.token_counter = window or window_of(self.model), token_counter
        if self.window is None:
            raise ConfigError(
                f"nobody knows how many tokens {type(self.model).__name__} can read, so that no flush would be due: "
                'give window=200_000, or a model with profile={"max_input_tokens": 200_000}'
            )
        self._runs: OrderedDict[UUID, _Run] = OrderedDict()
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Remember what the model is shown; where it is to make a summary, flush what was shown before."""
        self._started(messages[0] if messages else [], run_id, tags, metadata)

    def on_llm_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        prompts: list[str],
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Remember what a model that takes text is shown."""
        self._started([HumanMessage(prompt) for prompt in prompts], run_id, tags, metadata)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Flush where the conversation, with this reply, has come near the end of the window."""
        with self._lock:
            run = self._runs.pop(run_id, None)
        if run is None:
            return
        reply, reported = _reply(response)
        messages = [*run.messages, reply]
        conversation = self._conversation(run.key)
        with conversation.lock:
            conversation.see(messages)
            self._flush(run.key, conversation, messages, reported=reported)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Flush where the provider refused the conversation as too long; of other failures nothing is kept."""
        with self._lock:
            run = self._runs.pop(run_id, None)
        if run is not None and is_overflow(error):
            conversation = self._conversation(run.key)
            with conversation.lock:
                self._flush(run.key, conversation, run.messages, compacting=True)

    def _started(
        self, messages: Sequence[BaseMessage], run_id: UUID, tags: list[str] | None, metadata: dict[str, Any] | None
    ) -> None:
        talk = without_system(messages)
        if FLUSH_TAG in (tags or ()) or not talk:
            return
        told = metadata or {}
        key = _key(told)
        conversation = self._conversation(key)
        if told.get("lc_source") == SUMMARY_SOURCE:
            prompt = "\n".join(message.text for message in talk)
            with conversation.lock:
                lost = conversation.summarised_by(prompt) or talk
                self._flush(key, conversation, lost, compacting=True)
            return
        with conversation.lock:
            if (dropped := conversation.dropped_by(talk)) and (lost := conversation.not_flushed(dropped)):
                self._flush(key, conversation, lost, of=dropped.view, compacting=True)
        self._watch(run_id, _Run(key, _print(talk[0]), talk))

    def _watch(self, run_id: UUID, run: _Run) -> None:
        """Remember a call, instead of one that began like it: that one has failed unseen, or this one says it again."""
        with self._lock:
            for other in [known for known, seen in self._runs.items() if seen[:2] == run[:2]]:
                del self._runs[other]
            self._runs[run_id] = run
            while len(self._runs) > _RUNS:
                self._runs.popitem(last=False)

    def _conversation(self, key: str) -> _Conversation:
        with self._lock:
            conversation = self._conversations.setdefault(key, _Conversation())
            self._conversations.move_to_end(key)
            while len(self._conversations) > _CONVERSATIONS:
                self._conversations.popitem(last=False)
            return conversation

    def _flush(
        self,
        key: str,
        conversation: _Conversation,
        talk: Sequence[BaseMessage],
        *,
        of: Sequence[BaseMessage] = (),
        reported: int = 0,
        compacting: bool = False,
    ) -> None:
        """Have `talk` saved if it is due, with which all `of` that view was."""
        tokens = max(reported, self.token_counter(talk))
        rules = self.memory.config.compaction
        if flush_due(rules, window=self.window, tokens=tokens, compacting=compacting) is None:
            return
        if conversation.had_its_flush(talk):
            return
        name = self.session_key or key.partition("\n")[0] or "main"
        if save(Wanted(self.memory, name, self.model, talk, self.window, tokens, self.token_counter, compacting)):
            conversation.was_flushed(of or talk)


def _key(metadata: dict[str, Any]) -> str:
    """Which conversation a call is of: its thread, and how deep in nested graphs it was made."""
    thread = metadata.get("thread_id")
    depth = str(metadata.get("langgraph_checkpoint_ns") or "").count("|")
    return f"{'' if thread is None else thread}\n{depth}"


def _print(message: BaseMessage) -> int:
    # By what it says, for a message may have another id in each call. One that says the same as another puts a flush
    # off to the next call at worst.
    return hash((message.type, message.text))


def _prints(talk: Sequence[BaseMessage]) -> list[int]:
    """The messages, but for a reply at the end: it may come back without its id, or not at all."""
    asked = talk[:-1] if len(talk) > 1 and isinstance(talk[-1], AIMessage) else talk
    return [_print(message) for message in asked]


def _dropped(seen: list[int], kept: list[int], *, at_least: int) -> int:
    """How many messages lack at the beginning of `seen`, where `kept` is the rest of it and more; 0 where it is not."""
    at = max(at_least, len(seen) - len(kept) + 1)
    with suppress(ValueError):  # once there is no further place where it could begin
        while kept:
            at = seen.index(kept[0], at)
            if all(map(eq, islice(seen, at, None), kept)):
                return at
            at += 1
    return 0


def _chars_in(prompt: str, view: Sequence[BaseMessage]) -> int:
    """How much of a view a prompt shows, as it is or as XML."""
    texts = {message.text for message in view}
    return sum(len(text) for text in texts if text in prompt or escape(text) in prompt)


def _reply(response: LLMResult) -> tuple[BaseMessage, int]:
    """What the model said, and how many tokens the whole call took by the provider's count; 0 if it does not say."""
    generation = response.generations[0][0]
    message = generation.message if isinstance(generation, ChatGeneration) else AIMessage(generation.text)
    if isinstance(message, AIMessage) and message.usage_metadata:
        return message, message.usage_metadata["total_tokens"]
    usage = (response.llm_output or {}).get("token_usage") or {}
    return message, int(usage.get("total_tokens") or 0)
