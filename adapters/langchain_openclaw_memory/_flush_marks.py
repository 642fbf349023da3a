"""Recognise which part of a conversation was flushed by the content of its messages: ids do not outlive every run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_openclaw_memory._messages import is_summary, without_system

NO_SUMMARY = "none"


class Mark(NamedTuple):
    """What the latest flush was shown: how the conversation began, how it ended, and how many messages it had."""

    first: str
    last: str
    shown: int


class Fingerprints(NamedTuple):
    """The fingerprints of a conversation without its system prompts: its beginning, and each place in it."""

    first: str
    places: list[str]
    summarised: bool

    @property
    def mark(self) -> Mark:
        """Return what a flush of this conversation leaves behind."""
        return Mark(self.first, self.places[-1], len(self.places))

    def had_its_flush(self, mark: Mark, taken: int = 0) -> bool:
        """Return whether this is still the cycle of `mark`; `taken` messages go into a summary next.

        A new cycle begins when the last message that the flush was shown is gone, or when a summary takes messages that
        it was not shown. If the conversation begins differently, a new cycle also begins with a summary there, and when
        half of the messages are new: of a window that slides with each turn, each half is flushed once.
        """
        begins_alike = self.first == mark.first and self.places[mark.shown - 1 : mark.shown] == [mark.last]
        shown = self.places.index(mark.last) + 1 if mark.last in self.places else 0
        if shown < max(1, taken):
            return False
        return begins_alike or (not self.summarised and 2 * shown > len(self.places))


def fingerprints_of(messages: Iterable[BaseMessage]) -> Fingerprints | None:
    """Return the fingerprints of a conversation; None for an empty one."""
    conversation = without_system(messages)
    if not conversation:
        return None
    prints = [_print(message) for message in conversation]
    # Messages may read the same: what comes before distinguishes them.
    return Fingerprints(prints[0], [before + at for before, at in pairwise(["", *prints])], is_summary(conversation[0]))


def summary_of(messages: Sequence[BaseMessage]) -> str:
    """Return the id of the summary that a conversation begins with; `none` if it does not begin with one."""
    first = next((message for message in messages if not isinstance(message, SystemMessage)), None)
    return first.id or _print(first) if first is not None and is_summary(first) else NO_SUMMARY


def _print(message: BaseMessage) -> str:
    call = message.tool_call_id if isinstance(message, ToolMessage) else ""
    said = message.text or (str(message.content) if isinstance(message, HumanMessage) else "")  # a picture has no text
    text = f"{message.type}\n{call}\n{said}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
