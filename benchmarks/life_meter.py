"""Hold the scripted model of `lives.py` for every agent, and count what it is shown and what a turn takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import life_model
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from life_model import Call, Message


class Meter:
    """Count tokens and CPU time from the last `restart` on."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what was counted."""
        self._turns = self._tokens = 0
        self._seconds = self._scripted = 0.0

    @contextmanager
    def turns(self, count: int) -> Iterator[None]:
        """Count the CPU time of so many turns."""
        started = time.process_time()
        yield
        self._seconds += time.process_time() - started
        self._turns += count

    def ask(self, messages: Sequence[Message], tools: Sequence[str]) -> str | Call:
        """Ask the scripted model."""
        started = time.thread_time()
        self._tokens += count_tokens_approximately([HumanMessage(message.text) for message in messages])
        reply = life_model.reply(messages, tools)
        self._scripted += time.thread_time() - started
        return reply

    def figures(self) -> dict[str, float]:
        """Return the tokens and the milliseconds of a turn."""
        milliseconds = (self._seconds - self._scripted) * 1000
        return {"tokens": self._tokens / self._turns, "ms": milliseconds / self._turns}
