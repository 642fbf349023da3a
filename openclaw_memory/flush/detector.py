"""Decide when to flush a conversation of which only the model calls can be watched."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, NamedTuple, TypeAlias, TypeVar
from xml.sax.saxutils import escape

from openclaw_memory import _forks
from openclaw_memory._log import warn
from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.window import check_window, find_flush_reason, is_overflow

_CONVERSATIONS = 256  # remembered at once; the one that was silent longest is forgotten first
_RUNS = 1024  # calls under way at once: frameworks do not report that a call was cancelled
_RECENT = 4  # of one conversation: a chain may ask a model other things in between

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")
# Prepares a flush, given the key of the conversation, its messages, their tokens, and whether a compaction comes next.
# Calling the result runs the flush; it returns False where no turn could be held.
Saving: TypeAlias = Callable[[str, Sequence[M], int, bool], Callable[[], bool]]


class Reading(NamedTuple, Generic[M]):
    """How to read a framework's message: its role and its text."""

    role: Callable[[M], Hashable]
    text: Callable[[M], str]

    def fingerprint(self, message: M) -> int:
        """Identify a message by what it says, since its id may differ from call to call.

        Args:
            message: A message of the framework.
        """
        return hash((self.role(message), self.text(message)))


@dataclass(slots=True)
class Run(Generic[M]):
    """A call of the model under way in conversation `key`; `tokens` is what the provider reported so far."""

    key: str
    messages: Sequence[M]
    tokens: int = 0


@dataclass(slots=True)
class Conversation(Generic[M]):
    """The latest calls by the fingerprints of their messages, and the fingerprints of what each flush was shown.

    A call takes the place of those that it continues: conversations that begin alike are kept apart.
    """

    flushed: deque[tuple[int, ...]]
    recent: OrderedDict[tuple[int, ...], Sequence[M]] = field(default_factory=OrderedDict)
    turn: threading.Lock = field(default_factory=_forks.lock)  # held during a flush


class ConversationDetector(Generic[M]):
    """Run a flush when watched model calls show that a conversation is about to be compacted.

    That is after a reply that brought it to the flush threshold, before a summary of it is made, and after a call that
    was refused as too long. A flush that is due by the threshold waits until more than half of the conversation is new
    since the last one. Messages that a program drops below the threshold are not noticed.

    All methods may be called from several threads; only `run` waits for a flush.

    Args:
        reading: How to read a message.
        saving: Prepares a flush; not needed for `due`.
        rules: The compaction settings, or a function of the key of a conversation that returns them.
        window: The size in tokens at which the conversation is cut.
        count: Counts the tokens of messages.
        run: Runs a prepared flush, by default at once.
        parallel: How many conversations may be interleaved under one key.

    Raises:
        ConfigError: The window is not a number of tokens.
    """

    def __init__(
        self,
        reading: Reading[M],
        saving: Saving[M] = lambda *_: lambda: False,
        *,
        rules: CompactionConfig | Callable[[str], CompactionConfig],
        window: int | None,
        count: Callable[[Sequence[M]], int],
        run: Callable[[Callable[[], None]], None] = lambda work: work(),
        parallel: int = 1,
    ) -> None:
        check_window(window)
        self.reading, self.rules, self.window = reading, rules, window
        self.runs: OrderedDict[Hashable, Run[M]] = OrderedDict()
        self.known: OrderedDict[str, Conversation[M]] = OrderedDict()
        self._saving, self._run, self._count = saving, run, count
        self._recent = _RECENT * parallel
        self._lock = _forks.rlock()
        self._has_warned = self._has_dropped = False

    def began(self, run_id: Hashable, key: str, messages: Sequence[M]) -> None:
        """Remember the messages of a call that began.

        Args:
            run_id: Identifies the call.
            key: The key of the conversation.
            messages: What the model is asked with; at least one message.
        """
        with self._lock:
            if len(self.runs) >= _RUNS and not self._has_dropped:
                self._has_dropped = True
                warn(
                    f"more than {_RUNS} calls of a model are under way or were cancelled: of those that began first, "
                    "it is not noticed that a flush is due until the next call of the conversation; use more handlers"
                )
            _keep(self.runs, run_id, Run(key, messages), _RUNS)

    def summary_started(self, key: str, request: Sequence[M]) -> None:
        """Flush the conversation that is about to be summarised, or the request itself if that is unknown.

        Args:
            key: The key of the conversation.
            request: The messages that ask for the summary.
        """
        prompt = "\n".join(map(self.reading.text, request))
        with self._lock:
            conversation = self._conversation(key)
            messages, lost = self._summarised(conversation, prompt) or (request, request)
            new = {id(message) for message in self._new(conversation, messages)}
        if any(id(message) in new for message in lost):
            self._flush(key, messages, compacting=True)

    def counted(self, run_id: Hashable, tokens: int) -> None:
        """Note how many tokens the provider has reported for a call so far.

        Args:
            run_id: The call.
            tokens: The count so far.
        """
        with self._lock:
            if run := self.runs.get(run_id):
                run.tokens = max(run.tokens, tokens)

    def ended(self, run_id: Hashable, reply: M | None, tokens: int = 0) -> None:
        """Flush if a conversation, with this reply, has reached the threshold.

        Args:
            run_id: The call that ended.
            reply: What the model said, or None.
            tokens: The size of the whole call as counted by the provider; 0 if not reported.
        """
        if (run := self._taken(run_id)) is None:
            return
        messages = run.messages if reply is None else [*run.messages, reply]
        with self._lock:
            conversation, prints = self._conversation(run.key), self._prints(messages)
            for before in [known for known in conversation.recent if prints[: len(known)] == known]:
                del conversation.recent[before]
            if len(conversation.recent) >= self._recent:
                self._forgotten(run.key, conversation, prints)
            _keep(conversation.recent, prints, messages, self._recent)
        self._flush(run.key, messages, tokens=max(tokens, run.tokens))

    def failed(self, run_id: Hashable, error: BaseException) -> None:
        """Flush if a call was refused as too long; forget calls that failed otherwise.

        Args:
            run_id: The call that failed.
            error: What it raised.
        """
        run = self._taken(run_id)
        if run is not None and is_overflow(error):
            self._flush(run.key, run.messages, compacting=True)

    def finished(self, key: str | None = None) -> None:
        """Flush what no flush was shown of a conversation that is over.

        Args:
            key: The key of the conversation; None means all of them.
        """
        with self._lock:
            over = [(name, known) for name, known in self.known.items() if key in {None, name}]
            calls = [(name, list(known.flushed), list(known.recent.items())) for name, known in over]
        for name, shown, recent in calls:
            # In one flush: agents that rewrite their history leave calls that none continues.
            new: list[M] = []
            for prints, messages in recent:
                known = {at for mark in shown for at in _run_in(prints, mark)}
                new += [message for at, message in enumerate(messages) if at not in known]
                shown.append(prints)
            if new:
                self._flush(name, new, compacting=True, marks=[prints for prints, _ in recent])

    def asks_for(self, key: str, prompt: str) -> bool:
        """Return whether a prompt contains all messages of a call under way, written as text.

        Args:
            key: The key of the conversation.
            prompt: The prompt to look at.
        """
        with self._lock:
            calls = [run.messages for run in self.runs.values() if run.key == key]
        texts = ([self.reading.text(message).strip() for message in messages] for messages in calls)
        return any(any(said) and all(text in prompt for text in said) for said in texts)

    def due(
        self,
        key: str,
        messages: Sequence[M],
        *,
        tokens: int = 0,
        compacting: bool = False,
        most: bool = True,
        marks: Sequence[tuple[int, ...]] = (),
    ) -> Callable[[bool], None] | None:
        """Return None if no flush of a conversation is due; else mark it as flushed.

        Args:
            key: The key of the conversation.
            messages: The conversation.
            tokens: Its size as counted by the provider; 0 if not reported.
            compacting: Whether a compaction comes next.
            most: Whether most of it must be new since the last flush, and not just any message.
            marks: The fingerprints of what counts as shown from then on, by default those of the messages.

        Returns:
            What to call with whether a turn was held: if not, the marks are removed.
        """
        counted = self._count(messages)
        rules = self.rules(key) if callable(self.rules) else self.rules
        if find_flush_reason(rules, window=self.window, tokens=max(tokens, counted), compacting=compacting) is None:
            return None
        with self._lock:
            conversation = self._conversation(key)
            new = self._new(conversation, messages)
            if not new or (most and 2 * self._count(new) <= counted):
                return None
            # Marked before it is done: calls that end meanwhile show the same messages once more.
            added = marks or [self._prints(messages)]
            conversation.flushed.extend(added)

        def ended(held: bool) -> None:
            with self._lock:
                for mark in added if not held else ():
                    if mark in conversation.flushed:
                        conversation.flushed.remove(mark)

        return ended

    def _flush(
        self,
        key: str,
        messages: Sequence[M],
        *,
        tokens: int = 0,
        compacting: bool = False,
        marks: Sequence[tuple[int, ...]] = (),
    ) -> None:
        """Flush messages if that is due and they are new: half of them, or any if a compaction comes next."""
        most = not compacting
        ended = self.due(key, messages, tokens=tokens, compacting=compacting, most=most, marks=marks)
        if ended is None:
            return
        save = self._saving(key, messages, max(tokens, self._count(messages)), compacting)
        conversation = self._conversation(key)

        def work() -> None:
            held = False
            try:
                with conversation.turn:
                    held = save()
            finally:
                ended(held)

        self._run(work)

    def _new(self, conversation: Conversation[M], messages: Sequence[M]) -> list[M]:
        """Return the messages that no flush was shown at their place.

        A message counts as shown with those before it: what follows a question is another answer in another
        conversation. Of a history whose beginning was cut off or summarised, the rest is known by its first message.
        """
        prints = self._prints(messages)
        with self._lock:
            flushed = list(conversation.flushed)
        known = {at for mark in flushed for at in _run_in(prints, mark)}
        return [message for at, message in enumerate(messages) if at not in known]

    def _summarised(self, conversation: Conversation[M], prompt: str) -> tuple[Sequence[M], Sequence[M]] | None:
        """Forget the call that a prompt shows most of; return its messages, and those that are in the prompt."""

        def shown(begin: tuple[int, ...]) -> dict[int, str]:
            texts = enumerate(map(self.reading.text, conversation.recent[begin]))
            return {at: text for at, text in texts if text and (text in prompt or escape(text) in prompt)}

        most = max(reversed(conversation.recent), key=lambda begin: sum(map(len, shown(begin).values())), default=None)
        if most is None or not (places := shown(most)):
            return None
        messages = conversation.recent.pop(most)
        return messages, [messages[at] for at in places]

    def _forgotten(self, key: str, conversation: Conversation[M], latest: tuple[int, ...]) -> None:
        """Warn once that the conversation which was silent longest is forgotten before all of it was flushed."""
        oldest, *others = conversation.recent
        messages = conversation.recent[oldest]
        # A history whose beginning a program cuts off goes on in the calls after it.
        ends = [oldest[at:] for at in range(1, len(oldest) - 1)]
        goes_on = any(prints[: len(end)] == end for prints in (*others, latest) for end in ends)
        # Of a conversation, unlike other questions to a model, there is more than one question.
        if not self._has_warned and len(oldest) > 2 and not goes_on and self._new(conversation, messages):
            self._has_warned = True
            session = key.partition("\n")[0] or "main"
            warn(
                f"more than {self._recent} conversations go on at once in session {session!r}, and the "
                "one that was silent longest is no longer watched: what it loses before its size makes a flush due is "
                "not saved; name the thread or session of each call"
            )

    def _prints(self, messages: Sequence[M]) -> tuple[int, ...]:
        return tuple(map(self.reading.fingerprint, messages))

    def _taken(self, run_id: Hashable) -> Run[M] | None:
        with self._lock:
            return self.runs.pop(run_id, None)

    def _conversation(self, key: str) -> Conversation[M]:
        with self._lock:
            known = self.known.get(key) or Conversation(deque(maxlen=self._recent))
            return _keep(self.known, key, known, _CONVERSATIONS)


def _run_in(prints: Sequence[int], mark: Sequence[int]) -> range:
    """Return where the longest run is that a flush was shown, from the first message on that it was shown at all."""
    shown = set(mark)
    start = next((at for at, one in enumerate(prints) if one in shown), len(prints))
    places = [at for at, one in enumerate(mark) if start < len(prints) and one == prints[start]]
    alike = (takewhile(lambda pair: pair[0] == pair[1], zip(prints[start:], mark[at:], strict=False)) for at in places)
    return range(start, start + max((sum(1 for _ in pairs) for pairs in alike), default=0))


def _keep(kept: OrderedDict[K, V], key: K, value: V, most: int) -> V:
    """Keep a value as the latest one; forget the oldest of more than `most`."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
    return value
