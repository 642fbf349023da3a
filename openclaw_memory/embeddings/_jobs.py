"""Batch APIs: many texts handed over at once, cheaper, and answered minutes or hours later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

# What a number takes at most in an answer that is JSON.
CHARACTERS_PER_NUMBER = 20
# Services take files of 1 GB and more; one of ours is held in memory.
FILE_BYTES = 32 * 2**20


class JobState(Enum):
    """Where a job stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    UNKNOWN = "unknown to the service"


@dataclass(frozen=True, slots=True)
class Jobs:
    """A service's batch API.

    `submit` takes pairs of a key (1 to 64 letters and digits) and a text, and returns the job's name; the others take
    that name. `results` maps the keys that were answered, also before a job expired, to their vectors: one that is
    missing failed. `cancel` ends a job that nobody waits for any more. All raise what the service's SDK raises.
    """

    submit: Callable[[Sequence[tuple[str, str]]], Awaitable[str]]
    state: Callable[[str], Awaitable[JobState]]
    results: Callable[[str], Awaitable[Mapping[str, Any]]]
    max_items: int
    max_bytes: int
    cancel: Callable[[str], Awaitable[Any]] | None = None


def items_within(answer_bytes: int, dimensions: int) -> int:
    """How many texts a job may have for its answer, of vectors as decimal fractions, to stay within so many bytes."""
    return answer_bytes // (CHARACTERS_PER_NUMBER * dimensions)
