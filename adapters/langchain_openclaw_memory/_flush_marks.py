"""Which part of a conversation was flushed, by what its messages say: their ids do not outlive every run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_openclaw_memory._messages import is_summary

NO_SUMMARY = "none"


class Mark(NamedTuple):
    """What the latest flush was shown: how the conversation began, how it ended, and how many messages it had."""

    first: str
    last: str
    shown: int


class Talk(NamedTuple):
    """A conversation without its system prompts, as fingerprints: its beginning, and each place in it."""

    first: str
    places: list[str]
    summarised: bool

    @property
    def mark(self) -> Mark:
        """What a flush of this conversation leaves behind."""
        return Mark(self.first, self.places[-1], len(self.places))

    def had_its_flush(self, mark: Mark, taken: int = 0) -> bool:
        """Whether this is still the cycle that `mark` was left in; `taken` messages go into a summary next.

        Another begins where what the flush was shown last is gone, or a summary takes what it was not shown. Where the
        beginning is another one, so it does with a summary there, and where half of the messages are new: of a window
        that slides with each turn, each half is flushed once.
        """
        begins_alike = self.first == mark.first and self.places[mark.shown - 1 : mark.shown] == [mark.last]
        shown = self.places.index(mark.last) + 1 if mark.last in self.places else 0
        if shown < max(1, taken):
            return False
        return begins_alike or (not self.summarised and 2 * shown > len(self.places))


def talk_of(messages: Iterable[BaseMessage]) -> Talk | None:
    """The fingerprints of a conversation; None for an empty one."""
    talk = without_system(messages)
    if not talk:
        return None
    prints = [_print(message) for message in talk]
    # Messages may read the same: what they follow tells them apart.
    return Talk(prints[0], [before + at for before, at in pairwise(["", *prints])], is_summary(talk[0]))


def without_system(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """The messages that are no system prompts."""
    return [message for message in messages if not isinstance(message, SystemMessage)]


def summary_of(messages: Sequence[BaseMessage]) -> str:
    """The id of the summary that a conversation begins with, `none` where it does not."""
    first = next((message for message in messages if not isinstance(message, SystemMessage)), None)
    return first.id or _print(first) if first is not None and is_summary(first) else NO_SUMMARY


def _print(message: BaseMessage) -> str:
    call = message.tool_call_id if isinstance(message, ToolMessage) else ""
    said = message.text or (str(message.content) if isinstance(message, HumanMessage) else "")  # a picture has no text
    text = f"{message.type}\n{call}\n{said}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
