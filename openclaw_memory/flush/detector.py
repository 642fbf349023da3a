"""Decide when to flush a conversation, from the calls of its model alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import dropwhile
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

from msgspec import Struct, field

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.messages import Message, estimate_tokens, get_text, read_calls, strip_recalled
from openclaw_memory.conversation.thresholds import check_window, find_flush_reason, is_overflow

_MOST = 1_024  # conversations, and calls under way: frameworks do not report that one was cancelled
_MAX_MESSAGES = 10_000  # of a conversation, flushed or not
_TELLING_CHARS = 8  # of a text by which its conversation is known, in a call or quoted in a prompt

_Marked: TypeAlias = tuple[int, Message]  # a message with what identifies it
# Flushes messages of a conversation, given its key, its tokens, and whether they are about to be lost; returns False if
# no turn could be held.
Save = Callable[[Any, Sequence[Message], int, bool], bool]


class Run(Struct):
    """A call of the model under way: its conversation, its messages, and the tokens reported so far."""

    key: Hashable
    messages: Sequence[Message]
    tokens: int = 0


class _Conversation(Struct):
    """Keep the marks of messages that a flush has seen, and the others: of the conversation, and of other calls."""

    flushed: OrderedDict[int, None] = field(default_factory=OrderedDict)
    pending: list[_Marked] = field(default_factory=list)
    extras: list[_Marked] = field(default_factory=list)
    latest: list[str] = field(default_factory=list)  # the last texts of the latest call
    turn: threading.Lock = field(default_factory=threading.Lock)  # held during a flush


class ConversationDetector:
    """Flush when watched model calls show that messages of a conversation are, or are about to be, out of its sight.

    That is once a call leaves out messages that no flush has seen, after a reply that brought the conversation to the
    flush threshold, before a summary of it is made, and after a call that was refused as too long. By the threshold, a
    flush waits until more than half of the conversation is new since the last one. A flush is shown what none has
    seen. Calls that share no message with the conversation, such as one for a title, do not belong to it; they are
    flushed once they reach the threshold together. A prompt that quotes the conversation is none at all.

    All methods may be called from several threads.

    Args:
        save: Flushes messages: see `Save`.
        rules: Returns the compaction settings for the key of a conversation.
        window: The size in tokens at which the conversation is cut.
        run: Runs the function that flushes, by default at once.

    Raises:
        ConfigError: The window is not a number of tokens.
    """

    def __init__(
        self,
        save: Save,
        *,
        rules: Callable[[Any], CompactionConfig],
        window: int | None,
        run: Callable[[Callable[[], None]], None] = lambda save: save(),
    ) -> None:
        check_window(window)
        self.window = window
        self.runs: OrderedDict[Hashable, Run] = OrderedDict()
        self._conversations: OrderedDict[Hashable, _Conversation] = OrderedDict()
        self._save, self._rules, self._run = save, rules, run
        self._lock = threading.RLock()

    def begin_call(self, run_id: Hashable, key: Hashable, messages: Sequence[Message], tokens: int = 0) -> None:
        """Remember the messages of a call that began.

        Args:
            run_id: Identifies the call.
            key: The key of the conversation.
            messages: The messages that the model is shown; at least one.
            tokens: Their size as the caller counts it; by default four characters a token.
        """
        with self._lock:
            keep_recent(self.runs, run_id, Run(key, messages, tokens or estimate_tokens(messages)), _MOST)

    def count_tokens(self, run_id: Hashable, tokens: int) -> None:
        """Note the tokens that the provider has reported for a call so far.

        Args:
            run_id: The call.
            tokens: The count so far.
        """
        with self._lock:
            if run := self.runs.get(run_id):
                run.tokens = max(run.tokens, tokens)

    def end_call(self, run_id: Hashable, reply: Message | None, tokens: int = 0) -> None:
        """Flush if a call left out messages, or a conversation, with this reply, has reached the threshold.

        Args:
            run_id: The call that ended.
            reply: The reply of the model, or None.
            tokens: The size of the whole call as counted by the provider; 0 if not reported.
        """
        with self._lock:
            run = self.runs.pop(run_id, None)
        if run is not None:
            replies = [] if reply is None else [reply]
            self._follow(run.key, [*run.messages, *replies], max(tokens, run.tokens + estimate_tokens(replies)))

    def fail_call(self, run_id: Hashable, error: BaseException) -> None:
        """Flush if a call was refused as too long; forget calls that failed otherwise.

        Args:
            run_id: The call that failed.
            error: The error that it raised.
        """
        with self._lock:
            run = self.runs.pop(run_id, None)
        if run is not None and is_overflow(error):
            self._follow(run.key, run.messages, run.tokens, is_refused=True)

    def _follow(self, key: Hashable, messages: Sequence[Message], tokens: int, *, is_refused: bool = False) -> None:
        """Add the new messages of a call to its conversation, and flush if it is due."""
        marked = [(_mark(message), message) for message in messages]
        with self._lock:
            conversation = self._get(key)
            flushed, extras = conversation.flushed, {mark for mark, _ in conversation.extras}
            history = flushed.keys() | {mark for mark, _ in conversation.pending}
            # Replies such as "ok" are the same in any conversation.
            telling = [mark for mark, message in marked if _is_telling(message)]
            is_own = not history or not history.isdisjoint(telling)
            if not is_own and (len(messages) <= 2 or extras.isdisjoint(telling)):
                if _is_quoting(messages, conversation.latest):
                    return
                batch = conversation.extras = [*conversation.extras, *marked][-_MAX_MESSAGES:]
                is_cut, tokens = is_refused, max(tokens, _count(batch))
            else:
                if not is_own:  # a call for something else went on: it is the conversation now
                    conversation.pending, conversation.extras = [*conversation.pending, *conversation.extras], []
                # What is new above what is known, such as a summary, is made of it.
                first = next((at for at, (mark, _) in enumerate(marked) if mark in history), 0) if is_own else 0
                new = list(dropwhile(lambda pair: pair[0] in flushed, marked[first:]))
                left_out = _find_left_out(conversation.pending, new)
                if left_out and left_out[0] is not conversation.pending[0]:  # steps of an agent, which are shown once
                    conversation.extras, left_out = [*conversation.extras, *left_out][-_MAX_MESSAGES:], []
                batch = conversation.pending = [*left_out, *new][-_MAX_MESSAGES:]
                is_cut = is_refused or bool(left_out)
                if not is_cut and len(batch) < len(marked) and 2 * _count(batch) <= _count(marked):
                    batch = []
            conversation.latest = [get_text(message) for message in messages[-2:]]
        self._flush(key, batch, tokens, is_cut=is_cut)

    def begin_summary(self, key: Hashable, request: Sequence[Message]) -> None:
        """Save the messages of a conversation before a summary, or the request for it if they are unknown.

        Args:
            key: The key of the conversation.
            request: The messages that ask for the summary.
        """
        with self._lock:
            conversation = self._get(key)
            marked = conversation.pending
            if not (marked or conversation.flushed):
                marked = [(_mark(message), message) for message in request]
        self._flush(key, marked, is_cut=True)

    def finish(self, key: Hashable = None) -> None:
        """Flush, of a conversation that is over, the messages that no flush was shown.

        Args:
            key: The key of the conversation; None for all of them.
        """
        with self._lock:
            conversations = dict(self._conversations) if key is None else {key: self._get(key)}
        for name, conversation in conversations.items():
            self._flush(name, [*conversation.pending, *conversation.extras], is_cut=True)

    def is_call_prompt(self, key: Hashable, prompt: str) -> bool:
        """Return whether a prompt contains all messages of a call under way, written as text.

        Args:
            key: The key of the conversation.
            prompt: The prompt.
        """
        with self._lock:
            under_way = [run.messages for run in self.runs.values() if run.key == key]
        return any(all(get_text(message) in prompt for message in messages) for messages in under_way)

    def _flush(self, key: Hashable, marked: Sequence[_Marked], tokens: int = 0, *, is_cut: bool = False) -> None:
        """Flush messages if a flush is due, and take them for flushed unless no turn could be held."""
        if not marked or not find_flush_reason(self._rules(key), window=self.window, tokens=tokens, compacting=is_cut):
            return
        with self._lock:
            conversation = self._get(key)
            # Marked before it is done: calls that end meanwhile show the same messages once more.
            marks = [mark for mark, _ in marked if mark not in conversation.flushed]
            if not marks:
                return
            for mark in marks:
                keep_recent(conversation.flushed, mark, None, _MAX_MESSAGES)
            taken = set(map(id, marked))
            conversation.pending = [pair for pair in conversation.pending if id(pair) not in taken]
            conversation.extras = [pair for pair in conversation.extras if id(pair) not in taken]

        def save() -> None:
            is_held = False
            try:
                with conversation.turn:
                    is_held = self._save(key, [message for _, message in marked], tokens, is_cut)
            finally:
                if not is_held:
                    with self._lock:
                        conversation.pending = [*marked, *conversation.pending]
                        for mark in marks:
                            conversation.flushed.pop(mark, None)

        self._run(save)

    def _get(self, key: Hashable) -> _Conversation:
        conversation = self._conversations.get(key) or _Conversation()
        keep_recent(self._conversations, key, conversation, _MOST)
        return conversation


def _mark(message: Message) -> int:
    """Identify a message by its words: its id may differ from call to call, and so may recalled text in it."""
    calls = [(name, arguments) for _, name, arguments in read_calls(message)]
    return hash((message.get("role"), strip_recalled(get_text(message)), str(calls) if calls else ""))


def _count(marked: Sequence[_Marked]) -> int:
    return estimate_tokens(message for _, message in marked)


def _is_telling(message: Message) -> bool:
    """Return whether a message tells a conversation from others."""
    return message.get("role") == "user" or len(get_text(message)) >= _TELLING_CHARS


def _find_left_out(pending: Sequence[_Marked], new: Sequence[_Marked]) -> list[_Marked]:
    """Return the pending messages that a call does not show any more."""
    marks, visible = [mark for mark, _ in pending], [mark for mark, _ in new]
    for at in range(len(marks)):
        if marks[at] in visible[:1] and marks[at:] == visible[: len(marks) - at]:
            return list(pending[:at])
    return [pair for pair in pending if pair[0] not in {*visible}]


def _is_quoting(messages: Sequence[Message], texts: Sequence[str]) -> bool:
    """Return whether a call is a prompt that was made of a conversation, to rewrite its last question for example."""
    prompt = get_text(messages[0])
    quoted = (text for text in texts if len(text) >= _TELLING_CHARS and not prompt.startswith(text))
    return len(messages) <= 2 and any(text in prompt or escape(text) in prompt for text in quoted)


def keep_recent(cache: OrderedDict[Any, Any], key: Hashable, value: Any, most: int) -> None:
    """Put a value into a cache as the latest one, and drop the oldest of more than `most`.

    Args:
        cache: The cache.
        key: The key of the value.
        value: The value.
        most: How many values are kept.
    """
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)
