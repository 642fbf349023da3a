"""What is seen of conversations where only the calls of a model can be watched, and which of it is to be flushed."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from operator import eq
from typing import Generic, NamedTuple, TypeAlias, TypeVar
from xml.sax.saxutils import escape

from openclaw_memory.config.sections import CompactionConfig
from openclaw_memory.conversation.overflow import is_overflow
from openclaw_memory.conversation.thresholds import flush_due

_CONVERSATIONS = 256  # that are kept in mind at once; the one that was silent longest is forgotten first
_RUNS = 256  # calls that are under way at once; of one that was cancelled nobody says that it ended
_VIEWS = 4  # of one talk: a chain may ask a model other things in between

M = TypeVar("M")
# What has a talk saved, given the key of its conversation, the talk, its size in tokens, and whether a compaction comes
# next. Calling it holds the flush; it returns False where no turn was held.
Saving: TypeAlias = Callable[[str, Sequence[M], int, bool], Callable[[], bool]]


class Reading(NamedTuple, Generic[M]):
    """How a message of a framework is read: its role, its text, and whether it is what a model replied."""

    role: Callable[[M], Hashable]
    text: Callable[[M], str]
    is_reply: Callable[[M], bool]

    def print_of(self, message: M) -> int:
        """What tells a message from others."""
        # By what it says, for a message may have another id in each call. One that says the same as another puts a
        # flush off to the next call at worst.
        return hash((self.role(message), self.text(message)))

    def prints_of(self, talk: Sequence[M]) -> list[int]:
        """The messages, but for a reply at the end: it may come back without its id, or not at all."""
        asked = talk[:-1] if len(talk) > 1 and self.is_reply(talk[-1]) else talk
        return [self.print_of(message) for message in asked]


class View(NamedTuple, Generic[M]):
    """The messages of a call, with its reply, and what tells them from others."""

    messages: Sequence[M]
    prints: list[int]


class Dropped(NamedTuple, Generic[M]):
    """A view whose first `at` messages the conversation no longer has."""

    view: Sequence[M]
    at: int
    is_summarised: bool


@dataclass(slots=True)
class Run(Generic[M]):
    """A call of the model that is under way, in the conversation `key`; `tokens` is what the provider said so far."""

    key: str
    messages: Sequence[M]
    prints: list[int]
    tokens: int = 0


class _Mark(NamedTuple):
    """What a flush was shown: all of it, and the latest that was no reply."""

    shown: frozenset[int]
    last: int


@dataclass(slots=True)
class Conversation(Generic[M]):
    """What was seen of one conversation; `talks` may go on in it at once, each told by how it begins.

    `enough` messages alike tell a shorter history where what follows them differs; None: nothing may differ.
    `lock` is held while it is looked at, and `turn` while it is flushed.
    """

    reading: Reading[M]
    talks: int = 1
    enough: int | None = None
    views: OrderedDict[int, View[M]] = field(default_factory=OrderedDict)
    marks: deque[_Mark] = field(default_factory=deque)
    begun: list[_Mark] = field(default_factory=list)  # of flushes that are not over: nobody knows if a turn is held
    lock: threading.Lock = field(default_factory=threading.Lock)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def see(self, messages: Sequence[M]) -> None:
        """Keep the messages of a call in mind, instead of those that began like them."""
        begin = self.reading.print_of(messages[0])
        self.views[begin] = View(messages, self.reading.prints_of(messages))
        self.views.move_to_end(begin)
        while len(self.views) > _VIEWS * self.talks:
            self.views.popitem(last=False)

    def dropped_by(self, talk: Sequence[M]) -> Dropped[M] | None:
        """The view that `talk` goes on with, but for its beginning; it is let go, for `talk` takes its place."""
        said = self.reading.prints_of(talk)
        for begin, view in self.views.items():
            if all(map(eq, said, view.prints)):
                continue
            for new in (0, 1):  # where the beginning was, there is nothing, or a summary of it
                if at := _dropped(view.prints, said[new:], at_least=new + 1, enough=self.enough):
                    del self.views[begin]
                    return Dropped(view.messages, at, is_summarised=new == 1)
        return None

    def summarised_by(self, prompt: str) -> Sequence[M]:
        """The view that `prompt` asks to summarise, which is let go; empty where it shows nothing of any."""
        shown = {begin: self._chars_in(prompt, view.messages) for begin, view in self.views.items()}
        most = max(shown, key=shown.__getitem__, default=None)
        return self.views.pop(most).messages if most is not None and shown[most] else ()

    def had_its_flush(self, talk: Sequence[M]) -> bool:
        """Whether these messages are of a cycle that was flushed, or hold nothing that was not."""
        first, *others = prints = self.reading.prints_of(talk)
        return any(
            # A summary may stand at the beginning: it is new, and says nothing that is.
            mark.shown.issuperset(others or prints) or (first in mark.shown and mark.last in prints)
            for mark in (*self.marks, *self.begun)
        )

    def not_flushed(self, dropped: Dropped[M]) -> Sequence[M]:
        """What is to be flushed now that a beginning was dropped: all that never was, if any of that is dropped.

        A summary ends a cycle, which has one flush. A chain that only shortens its history has no cycles, and may do
        so at any length.
        """
        if dropped.is_summarised:
            return dropped.view
        return self.not_shown(dropped.view) if self.not_shown(dropped.view[: dropped.at]) else ()

    def not_shown(self, talk: Sequence[M]) -> Sequence[M]:
        """The messages that no flush was shown."""
        shown = frozenset[int]().union(*(mark.shown for mark in (*self.marks, *self.begun)))
        return [message for message in talk if self.reading.print_of(message) not in shown]

    def flush_begins(self, talk: Sequence[M]) -> _Mark:
        """Mark a talk as flushed, until it is told with this mark how that ended."""
        mark = _Mark(frozenset(map(self.reading.print_of, talk)), self.reading.prints_of(talk)[-1])
        self.begun.append(mark)
        return mark

    def flush_ended(self, mark: _Mark, *, held: bool) -> None:
        """Keep the mark of a flush that was held, in the place of an older one; forget one of which nothing came."""
        with self.lock:
            self.begun.remove(mark)
            if held:
                self.marks.append(mark)
                while len(self.marks) > self.talks:
                    self.marks.popleft()

    def _chars_in(self, prompt: str, view: Sequence[M]) -> int:
        """How much of a view a prompt shows, as it is or as XML."""
        texts = set(map(self.reading.text, view))
        return sum(len(text) for text in texts if text in prompt or escape(text) in prompt)


class Conversations(Generic[M]):
    """Has what is about to be lost of conversations saved, as the calls of a model show it.

    A flush comes after a reply that brought a conversation to the threshold of its `window` (tokens), before a summary
    of it is made, where a call was refused as too long, and where a call leaves out the beginning of the one before it;
    once in a cycle. Conversations are known by a key, calls by any id. `count` says how many tokens a talk takes.
    `saving` makes what holds the flush, and `run` is handed what calls that: by default it does so at once.
    All methods may be called by several threads; none waits for a flush but by `run`.

    `talks` and `enough` are those of each `Conversation`.
    """

    def __init__(
        self,
        reading: Reading[M],
        saving: Saving[M],
        *,
        rules: CompactionConfig,
        window: int | None,
        count: Callable[[Sequence[M]], int],
        run: Callable[[Callable[[], None]], None] = lambda work: work(),
        talks: int = 1,
        enough: int | None = None,
    ) -> None:
        self.reading, self.rules, self.window = reading, rules, window
        self.runs: OrderedDict[Hashable, Run[M]] = OrderedDict()
        self.known: OrderedDict[str, Conversation[M]] = OrderedDict()
        self._saving, self._run, self._count = saving, run, count
        self._new = partial(Conversation, reading, talks, enough)
        self._lock = threading.Lock()

    def began(self, run_id: Hashable, key: str, talk: Sequence[M]) -> None:
        """A call began, with at least one message: flush what it no longer shows, and remember what it does."""
        conversation = self._conversation(key)
        with conversation.lock:
            dropped = conversation.dropped_by(talk)
            lost = conversation.not_flushed(dropped) if dropped else ()
            work = self._due(key, conversation, lost, of=dropped.view, compacting=True) if dropped and lost else None
        self._watch(run_id, Run(key, talk, self.reading.prints_of(talk)))
        self._do(work)

    def summarises(self, key: str, talk: Sequence[M]) -> None:
        """A call began that asks for a summary: flush what it is of, or where that is not known, the call itself."""
        prompt = "\n".join(map(self.reading.text, talk))
        conversation = self._conversation(key)
        with conversation.lock:
            work = self._due(key, conversation, conversation.summarised_by(prompt) or talk, compacting=True)
        self._do(work)

    def counted(self, run_id: Hashable, tokens: int) -> None:
        """The provider said how many tokens a call takes so far."""
        with self._lock:
            if run := self.runs.get(run_id):
                run.tokens = max(run.tokens, tokens)

    def ended(self, run_id: Hashable, reply: M | None, tokens: int = 0) -> None:
        """A call ended: flush where the conversation, with this reply, has come near the end of the window.

        `tokens` is what the whole call took by the provider's count, 0 where it does not say.
        """
        if (run := self._over(run_id)) is None:
            return
        messages = run.messages if reply is None else [*run.messages, reply]
        conversation = self._conversation(run.key)
        with conversation.lock:
            conversation.see(messages)
            work = self._due(run.key, conversation, messages, tokens=max(tokens, run.tokens))
        self._do(work)

    def failed(self, run_id: Hashable, error: BaseException) -> None:
        """A call failed: flush where it was refused as too long; of other failures nothing is kept."""
        run = self._over(run_id)
        if run is None or not is_overflow(error):
            return
        conversation = self._conversation(run.key)
        with conversation.lock:
            work = self._due(run.key, conversation, run.messages, compacting=True)
        self._do(work)

    def over(self, key: str | None = None) -> None:
        """A conversation is over, or where none is named all are: flush what was never shown to a flush."""
        with self._lock:
            over = {name: known for name, known in self.known.items() if key in {None, name}}
        for name, conversation in over.items():
            with conversation.lock:
                due = [
                    self._due(name, conversation, left, of=view.messages, compacting=True)
                    for view in conversation.views.values()
                    if (left := conversation.not_shown(view.messages))
                ]
            for work in due:
                self._do(work)

    def asks_for(self, key: str, prompt: str) -> bool:
        """Whether a prompt is how a call of a conversation that is under way is put as text."""
        with self._lock:
            talks = [run.messages for run in self.runs.values() if run.key == key]
        texts = ([self.reading.text(message).strip() for message in talk] for talk in talks)
        return any(any(told) and all(text in prompt for text in told) for told in texts)

    def _due(
        self,
        key: str,
        conversation: Conversation[M],
        talk: Sequence[M],
        *,
        of: Sequence[M] = (),
        tokens: int = 0,
        compacting: bool = False,
    ) -> Callable[[], None] | None:
        """What has `talk` saved, with which all `of` that view was; None where no flush is due."""
        tokens = max(tokens, self._count(talk))
        if flush_due(self.rules, window=self.window, tokens=tokens, compacting=compacting) is None:
            return None
        if conversation.had_its_flush(talk):
            return None
        save = self._saving(key, talk, tokens, compacting)
        # Marked before it is done: what comes meanwhile shows the same messages once more.
        mark = conversation.flush_begins(of or talk)

        def hold() -> None:
            held = False
            try:
                with conversation.turn:
                    held = save()
            finally:
                conversation.flush_ended(mark, held=held)

        return hold

    def _do(self, work: Callable[[], None] | None) -> None:
        if work is not None:
            self._run(work)

    def _watch(self, run_id: Hashable, run: Run[M]) -> None:
        """Remember a call, instead of one that it goes on with: that one failed unseen, or this one says it again."""
        with self._lock:
            for other in [known for known, seen in self.runs.items() if _goes_on(run, seen)]:
                del self.runs[other]
            self.runs[run_id] = run
            while len(self.runs) > _RUNS:
                self.runs.popitem(last=False)

    def _over(self, run_id: Hashable) -> Run[M] | None:
        with self._lock:
            return self.runs.pop(run_id, None)

    def _conversation(self, key: str) -> Conversation[M]:
        with self._lock:
            conversation = self.known.setdefault(key, self._new())
            self.known.move_to_end(key)
            while len(self.known) > _CONVERSATIONS:
                self.known.popitem(last=False)
            return conversation


def _goes_on(run: Run[M], other: Run[M]) -> bool:
    return run.key == other.key and run.prints[: len(other.prints)] == other.prints


def _dropped(seen: list[int], kept: list[int], *, at_least: int, enough: int | None) -> int:
    """How many messages lack at the beginning of `seen`, where `kept` is the rest of it and more; 0 where it is not.

    So it is too where the first messages of `kept`, `enough` of them, are the same as those there, and others follow.
    """
    at = at_least if enough else max(at_least, len(seen) - len(kept) + 1)
    with suppress(ValueError):  # once there is no further place where it could begin
        while kept:
            at = seen.index(kept[0], at)
            alike = sum(takewhile(bool, map(eq, islice(seen, at, None), kept)))
            wanted = len(seen) - at if enough is None else min(enough, len(seen) - at)
            if wanted <= alike < len(kept):
                return at
            at += 1
    return 0
