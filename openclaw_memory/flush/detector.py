"""Decide when to flush a conversation, from the calls of its model alone."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Hashable, Sequence
from typing import Generic, TypeVar
from xml.sax.saxutils import escape

from msgspec import Struct, field

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.thresholds import check_window, find_flush_reason, is_overflow

_MAX_CONVERSATIONS = 256  # the one that was silent longest is dropped first
_MAX_RUNS = 1024  # frameworks do not report that a call was cancelled
_MAX_MESSAGES = 10_000  # of a conversation, flushed or not

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")


class Run(Struct, Generic[M]):
    """A call of the model under way: its conversation, its messages, and the tokens reported so far."""

    key: str
    messages: Sequence[M]
    tokens: int = 0


class _Conversation(Struct, Generic[M]):
    """The marks of flushed messages, and the messages that no flush was shown, by their marks."""

    flushed: OrderedDict[int, None] = field(default_factory=OrderedDict)
    pending: OrderedDict[int, M] = field(default_factory=OrderedDict)
    turn: threading.Lock = field(default_factory=threading.Lock)  # held during a flush


class ConversationDetector(Generic[M]):
    """Flush when watched model calls show that a conversation is about to be compacted.

    That is after a reply that brought it to the flush threshold, before a summary of it is made, and after a call that
    was refused as too long. By the threshold, a flush waits until more than half of the conversation is new since the
    last one. Messages that a program drops below the threshold are not noticed.

    All methods may be called from several threads.

    Args:
        read: Reads a message: returns its role, or whatever tells it from others of the same text, and its text.
        save: Flushes messages, given the key of the conversation, the messages, their tokens, and whether a compaction
            comes next; returns False if no turn could be held. Not needed for `begin_flush`.
        rules: The compaction settings, or a function of the key of a conversation that returns them.
        window: The size in tokens at which the conversation is cut.
        count: Counts the tokens of messages.
        run: Runs the function that flushes, by default at once.

    Raises:
        ConfigError: The window is not a number of tokens.
    """

    def __init__(
        self,
        read: Callable[[M], tuple[Hashable, str]],
        save: Callable[[str, Sequence[M], int, bool], bool] = lambda *_: False,
        *,
        rules: CompactionConfig | Callable[[str], CompactionConfig],
        window: int | None,
        count: Callable[[Sequence[M]], int],
        run: Callable[[Callable[[], None]], None] = lambda save: save(),
    ) -> None:
        check_window(window)
        self.rules, self.window = rules, window
        self.runs: OrderedDict[Hashable, Run[M]] = OrderedDict()
        self._conversations: OrderedDict[str, _Conversation[M]] = OrderedDict()
        self._read, self._save, self._run, self._count = read, save, run, count
        self._lock = threading.RLock()

    def begin_call(self, run_id: Hashable, key: str, messages: Sequence[M]) -> None:
        """Remember the messages of a call that began.

        Args:
            run_id: Identifies the call.
            key: The key of the conversation.
            messages: The messages that the model is shown; at least one.
        """
        with self._lock:
            _put(self.runs, run_id, Run(key, messages), _MAX_RUNS)

    def count_tokens(self, run_id: Hashable, tokens: int) -> None:
        """Note the tokens that the provider has reported for a call so far.

        Args:
            run_id: The call.
            tokens: The count so far.
        """
        with self._lock:
            if run := self.runs.get(run_id):
                run.tokens = max(run.tokens, tokens)

    def end_call(self, run_id: Hashable, reply: M | None, tokens: int = 0) -> None:
        """Flush if a conversation, with this reply, has reached the threshold.

        Args:
            run_id: The call that ended.
            reply: The reply of the model, or None.
            tokens: The size of the whole call as counted by the provider; 0 if not reported.
        """
        with self._lock:
            if (run := self.runs.pop(run_id, None)) is None:
                return
            messages = run.messages if reply is None else [*run.messages, reply]
            conversation, marks = self._get(run.key), self._mark(messages)
            for at in _find_new(conversation.flushed, marks):
                _put(conversation.pending, marks[at], messages[at], _MAX_MESSAGES)
        self._flush(run.key, messages, marks, tokens=max(tokens, run.tokens))

    def fail_call(self, run_id: Hashable, error: BaseException) -> None:
        """Flush if a call was refused as too long; forget calls that failed otherwise.

        Args:
            run_id: The call that failed.
            error: The error that it raised.
        """
        with self._lock:
            run = self.runs.pop(run_id, None)
        if run is not None and is_overflow(error):
            self._flush(run.key, run.messages, self._mark(run.messages), compacting=True)

    def begin_summary(self, key: str, request: Sequence[M]) -> None:
        """Flush the messages that a summary takes, or the request itself if the conversation is unknown.

        Args:
            key: The key of the conversation.
            request: The messages that ask for the summary.
        """
        prompt = "\n".join(self._read(message)[1] for message in request)
        with self._lock:
            conversation = self._get(key)
            messages, marks = list(conversation.pending.values()), tuple(conversation.pending)
            is_known = bool(messages or conversation.flushed)
        texts = [self._read(message)[1] for message in messages]
        quoted = [at for at, text in enumerate(texts, 1) if text and (text in prompt or escape(text) in prompt)]
        if quoted:  # a prompt may be trimmed at its beginning
            self._flush(key, messages[: quoted[-1]], marks[: quoted[-1]], compacting=True)
        elif not is_known:
            self._flush(key, request, self._mark(request), compacting=True)

    def finish(self, key: str | None = None) -> None:
        """Flush, of a conversation that is over, the messages that no flush was shown.

        Args:
            key: The key of the conversation; None for all of them.
        """
        with self._lock:
            ended = [(name, talk.pending.copy()) for name, talk in self._conversations.items() if key in {None, name}]
        for name, pending in ended:
            if pending:
                self._flush(name, list(pending.values()), tuple(pending), compacting=True)

    def is_call_prompt(self, key: str, prompt: str) -> bool:
        """Return whether a prompt contains all messages of a call under way, written as text.

        Args:
            key: The key of the conversation.
            prompt: The prompt.
        """
        with self._lock:
            calls = [run.messages for run in self.runs.values() if run.key == key]
        for messages in calls:
            texts = [self._read(message)[1].strip() for message in messages]
            if any(texts) and all(text in prompt for text in texts):
                return True
        return False

    def begin_flush(
        self, key: str, messages: Sequence[M], *, tokens: int = 0, compacting: bool = False
    ) -> Callable[[bool], None] | None:
        """Mark a conversation as flushed if a flush is due and most messages are new; None if not.

        Args:
            key: The key of the conversation.
            messages: The conversation.
            tokens: Its size as counted by the provider; 0 if not reported.
            compacting: Whether a compaction comes next.

        Returns:
            A function to call with whether a turn was held: if not, the marks are removed.
        """
        return self._begin(key, messages, self._mark(messages), tokens, compacting=compacting, most=True)

    def _begin(
        self, key: str, messages: Sequence[M], marks: tuple[int, ...], tokens: int, *, compacting: bool, most: bool
    ) -> Callable[[bool], None] | None:
        counted = self._count(messages)
        rules = self.rules(key) if callable(self.rules) else self.rules
        if not find_flush_reason(rules, window=self.window, tokens=max(tokens, counted), compacting=compacting):
            return None
        with self._lock:
            conversation = self._get(key)
            new = _find_new(conversation.flushed, marks)
            if not new or (most and 2 * self._count([messages[at] for at in new]) <= counted):
                return None
            # Marked before it is done: calls that end meanwhile show the same messages once more.
            added = [mark for mark in marks if mark not in conversation.flushed]
            pending = {mark: conversation.pending.pop(mark) for mark in marks if mark in conversation.pending}
            for mark in added:
                _put(conversation.flushed, mark, None, _MAX_MESSAGES)

        def end(is_held: bool) -> None:
            if not is_held:
                with self._lock:
                    conversation.pending.update(pending)
                    for mark in added:
                        conversation.flushed.pop(mark, None)

        return end

    def _flush(
        self, key: str, messages: Sequence[M], marks: tuple[int, ...], *, tokens: int = 0, compacting: bool = False
    ) -> None:
        """Flush messages if a flush is due and most are new, or any is and a compaction comes next."""
        end = self._begin(key, messages, marks, tokens, compacting=compacting, most=not compacting)
        if end is None:
            return
        turn = self._get(key).turn

        def save() -> None:
            is_held = False
            try:
                with turn:
                    is_held = self._save(key, messages, max(tokens, self._count(messages)), compacting)
            finally:
                end(is_held)

        self._run(save)

    def _mark(self, messages: Sequence[M]) -> tuple[int, ...]:
        """Identify messages by role, text and occurrence: their ids may differ from call to call."""
        counts: Counter[tuple[Hashable, str]] = Counter()
        marks: list[int] = []
        for message in messages:
            content = self._read(message)
            counts[content] += 1
            marks.append(hash((content, counts[content])))
        return tuple(marks)

    def _get(self, key: str) -> _Conversation[M]:
        with self._lock:
            conversation = self._conversations.get(key) or _Conversation()
            return _put(self._conversations, key, conversation, _MAX_CONVERSATIONS)


def _find_new(flushed: Container[int], marks: Sequence[int]) -> list[int]:
    """Return the places of messages that no flush was shown.

    After a flushed message, all messages from the first new one on are new: the same words after another question are
    another answer. Before the first flushed message there may be a summary.
    """
    is_flushed = [mark in flushed for mark in marks]
    first = is_flushed.index(True) if True in is_flushed else len(marks)
    gap = next((at for at in range(first, len(marks)) if not is_flushed[at]), len(marks))
    return [*range(first), *range(gap, len(marks))]


def _put(cache: OrderedDict[K, V], key: K, value: V, most: int) -> V:
    """Keep a value as the latest one; drop the oldest of more than `most`."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)
    return value
