"""Searches go before syncs in one process: Python runs one thread at a time, and nobody waits for a sync."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# A sync waits no longer than this at a time, so that it gets on under searches without end.
LONGEST_WAIT_SECONDS = 0.1


def no_hurry() -> None:
    """Wait for nobody."""


class Courtesy:
    """Counts the searches that run, and lets a sync wait until there are none."""

    def __init__(self) -> None:
        self._searches = 0
        self._changed = threading.Condition()

    @contextmanager
    def first(self) -> Iterator[None]:
        """Go before every sync that gives way, for as long as the block runs."""
        with self._changed:
            self._searches += 1
        try:
            yield
        finally:
            with self._changed:
                self._searches -= 1
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait while searches run, for a short time at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._searches, LONGEST_WAIT_SECONDS)
