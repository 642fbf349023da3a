"""Processor time of a call on a busy machine, where a core that others use too makes a single measurement too long."""

import time
from collections.abc import Callable

TRIES = 20
PAUSE = 0.1  # seconds between two tries: a machine that is slow now is so for a while


def least_seconds(
    call: Callable[[], object], enough: float, clock: Callable[[], float] = time.thread_time, tries: int = TRIES
) -> float:
    """Return the least processor time of several calls; one that takes less than `enough` is the last."""
    least = float("inf")
    for _ in range(tries):
        started = clock()
        call()
        least = min(least, clock() - started)
        if least < enough:
            break
        time.sleep(PAUSE)
    return least
