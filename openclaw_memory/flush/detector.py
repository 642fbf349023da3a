"""Decide when to flush a conversation, from the calls of its model alone."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar
from xml.sax.saxutils import escape

from msgspec import Struct, field

from openclaw_memory._log import warn
from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.window import check_window, find_flush_reason, is_overflow

_MAX_CONVERSATIONS = 256  # the one that was silent longest is dropped first
_MAX_RUNS = 1024  # frameworks do not report that a call was cancelled
_MAX_FINGERPRINTS = 20_000  # of flushed messages in a conversation
_MAX_CALLS = 4  # of one conversation: a chain may ask a model other things in between

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")
# Flushes messages, given the key of the conversation, the messages, their tokens, and whether a compaction comes next.
# Returns False if no turn could be held.
Save: TypeAlias = Callable[[str, Sequence[M], int, bool], bool]


class Reading(Struct, Generic[M], frozen=True):
    """Functions that read the role and the text of a framework's message."""

    role: Callable[[M], Hashable]
    text: Callable[[M], str]


class Run(Struct, Generic[M]):
    """A call of the model under way: its conversation, its messages, and the tokens reported so far."""

    key: str
    messages: Sequence[M]
    tokens: int = 0


class _Conversation(Struct, Generic[M]):
    """The fingerprints of flushed messages, and the latest calls by the fingerprints of their messages.

    A call takes the place of those that it continues.
    """

    flushed: OrderedDict[int, None] = field(default_factory=OrderedDict)
    calls: OrderedDict[tuple[int, ...], Sequence[M]] = field(default_factory=OrderedDict)
    turn: threading.Lock = field(default_factory=threading.Lock)  # held during a flush


class ConversationDetector(Generic[M]):
    """Flush when watched model calls show that a conversation is about to be compacted.

    That is after a reply that brought it to the flush threshold, before a summary of it is made, and after a call that
    was refused as too long. By the threshold, a flush waits until more than half of the conversation is new since the
    last one. Messages that a program drops below the threshold are not noticed.

    All methods may be called from several threads.

    Args:
        reading: Reads a message.
        save: Flushes messages; not needed for `begin_flush`.
        rules: The compaction settings, or a function of the key of a conversation that returns them.
        window: The size in tokens at which the conversation is cut.
        count: Counts the tokens of messages.
        run: Runs the function that flushes, by default at once.
        parallel: How many conversations may be interleaved under one key.

    Raises:
        ConfigError: The window is not a number of tokens.
    """

    def __init__(
        self,
        reading: Reading[M],
        save: Save[M] = lambda *_: False,
        *,
        rules: CompactionConfig | Callable[[str], CompactionConfig],
        window: int | None,
        count: Callable[[Sequence[M]], int],
        run: Callable[[Callable[[], None]], None] = lambda save: save(),
        parallel: int = 1,
    ) -> None:
        check_window(window)
        self.rules, self.window = rules, window
        self.runs: OrderedDict[Hashable, Run[M]] = OrderedDict()
        self._conversations: OrderedDict[str, _Conversation[M]] = OrderedDict()
        self._reading, self._save, self._run, self._count = reading, save, run, count
        self._max_calls = _MAX_CALLS * parallel
        self._lock = threading.RLock()
        self._has_warned = False

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
            conversation, prints = self._get(run.key), self._hash_messages(messages)
            for call in [call for call in conversation.calls if prints[: len(call)] == call]:
                del conversation.calls[call]
            if len(conversation.calls) >= self._max_calls:
                self._warn_of_loss(run.key, conversation, prints)
            _put(conversation.calls, prints, messages, self._max_calls)
        self._flush(run.key, messages, tokens=max(tokens, run.tokens))

    def fail_call(self, run_id: Hashable, error: BaseException) -> None:
        """Flush if a call was refused as too long; forget calls that failed otherwise.

        Args:
            run_id: The call that failed.
            error: The error that it raised.
        """
        with self._lock:
            run = self.runs.pop(run_id, None)
        if run is not None and is_overflow(error):
            self._flush(run.key, run.messages, compacting=True)

    def begin_summary(self, key: str, request: Sequence[M]) -> None:
        """Flush the conversation that is about to be summarised, or the request itself if that is unknown.

        Args:
            key: The key of the conversation.
            request: The messages that ask for the summary.
        """
        prompt = "\n".join(map(self._reading.text, request))

        def find_quoted(messages: Sequence[M]) -> list[M]:
            texts = ((message, self._reading.text(message)) for message in messages)
            return [message for message, text in texts if text and (text in prompt or escape(text) in prompt)]

        with self._lock:
            conversation = self._get(key)
            messages, lost, best = request, list(request), 0
            for call in reversed(conversation.calls):
                quoted = find_quoted(conversation.calls[call])
                if (size := sum(len(self._reading.text(message)) for message in quoted)) > best:
                    messages, lost, best = conversation.calls[call], quoted, size
            if best:
                del conversation.calls[self._hash_messages(messages)]
            new = set(map(id, self._find_new(conversation.flushed, messages)))
        if any(id(message) in new for message in lost):
            self._flush(key, messages, compacting=True)

    def finish(self, key: str | None = None) -> None:
        """Flush, of a conversation that is over, the messages that no flush was shown.

        Args:
            key: The key of the conversation; None for all of them.
        """
        with self._lock:
            ended = [
                (name, set(conversation.flushed), list(conversation.calls.values()))
                for name, conversation in self._conversations.items()
                if key in {None, name}
            ]
        for name, flushed, calls in ended:
            # In one flush: agents that rewrite their history leave calls that none continues.
            messages: list[M] = []
            for call in calls:
                messages += self._find_new(flushed, call)
                flushed.update(self._hash_messages(call))
            if messages:
                self._flush(name, messages, compacting=True, marks=flushed)

    def is_call_prompt(self, key: str, prompt: str) -> bool:
        """Return whether a prompt contains all messages of a call under way, written as text.

        Args:
            key: The key of the conversation.
            prompt: The prompt.
        """
        with self._lock:
            calls = [run.messages for run in self.runs.values() if run.key == key]
        for messages in calls:
            texts = [self._reading.text(message).strip() for message in messages]
            if any(texts) and all(text in prompt for text in texts):
                return True
        return False

    def begin_flush(
        self,
        key: str,
        messages: Sequence[M],
        *,
        tokens: int = 0,
        compacting: bool = False,
        most: bool = True,
        marks: Iterable[int] | None = None,
    ) -> Callable[[bool], None] | None:
        """Mark a conversation as flushed if a flush is due; None if not.

        Args:
            key: The key of the conversation.
            messages: The conversation.
            tokens: Its size as counted by the provider; 0 if not reported.
            compacting: Whether a compaction comes next.
            most: Whether most of it must be new since the last flush, and not just any message.
            marks: The fingerprints of the messages that count as flushed from then on, by default those of `messages`.

        Returns:
            A function to call with whether a turn was held: if not, the marks are removed.
        """
        counted = self._count(messages)
        rules = self.rules(key) if callable(self.rules) else self.rules
        if not find_flush_reason(rules, window=self.window, tokens=max(tokens, counted), compacting=compacting):
            return None
        with self._lock:
            flushed = self._get(key).flushed
            new = self._find_new(flushed, messages)
            if not new or (most and 2 * self._count(new) <= counted):
                return None
            # Marked before it is done: calls that end meanwhile show the same messages once more.
            added = [mark for mark in marks or self._hash_messages(messages) if mark not in flushed]
            for mark in added:
                _put(flushed, mark, None, _MAX_FINGERPRINTS)

        def end(is_held: bool) -> None:
            with self._lock:
                for mark in () if is_held else added:
                    flushed.pop(mark, None)

        return end

    def _flush(
        self,
        key: str,
        messages: Sequence[M],
        *,
        tokens: int = 0,
        compacting: bool = False,
        marks: Iterable[int] | None = None,
    ) -> None:
        """Flush messages if a flush is due and most are new, or any is and a compaction comes next."""
        end = self.begin_flush(key, messages, tokens=tokens, compacting=compacting, most=not compacting, marks=marks)
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

    def _find_new(self, flushed: Container[int], messages: Sequence[M]) -> list[M]:
        """Return the messages that no flush was shown.

        After a flushed message, all messages from the first new one on are new: the same words after another question
        are another answer. Before the first flushed message there may be a summary.
        """
        is_flushed = [mark in flushed for mark in self._hash_messages(messages)]
        first = is_flushed.index(True) if True in is_flushed else len(messages)
        gap = next((at for at in range(first, len(messages)) if not is_flushed[at]), len(messages))
        return [*messages[:first], *messages[gap:]]

    def _warn_of_loss(self, key: str, conversation: _Conversation[M], latest: tuple[int, ...]) -> None:
        """Warn once that a conversation is dropped before it was flushed."""
        oldest, *later = conversation.calls
        # A history whose beginning a program cuts off goes on in a later call. One question is not a conversation.
        ends = [oldest[at:] for at in range(1, len(oldest) - 1)]
        goes_on = any(call[: len(end)] == end for call in (*later, latest) for end in ends)
        is_lost = len(oldest) > 2 and not goes_on and self._find_new(conversation.flushed, conversation.calls[oldest])
        if is_lost and not self._has_warned:
            self._has_warned = True
            session = key.partition("\n")[0] or "main"
            warn(
                f"more than {self._max_calls} conversations go on at once in session {session!r}, and the "
                "one that was silent longest is no longer watched: its messages are not saved before its size makes a "
                "flush due; name the thread or session of each call"
            )

    def _hash_messages(self, messages: Sequence[M]) -> tuple[int, ...]:
        """Identify messages by role, text and occurrence: their ids may differ from call to call."""
        counts: Counter[tuple[Hashable, str]] = Counter()
        prints: list[int] = []
        for message in messages:
            content = self._reading.role(message), self._reading.text(message)
            counts[content] += 1
            prints.append(hash((content, counts[content])))
        return tuple(prints)

    def _get(self, key: str) -> _Conversation[M]:
        with self._lock:
            conversation = self._conversations.get(key) or _Conversation()
            return _put(self._conversations, key, conversation, _MAX_CONVERSATIONS)


def _put(cache: OrderedDict[K, V], key: K, value: V, most: int) -> V:
    """Keep a value as the latest one; drop the oldest of more than `most`."""
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)
    return value
