"""What a service offers to embed many texts later: its batch API, and how far a job of it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

# What a number takes at most in an answer that is JSON.
CHARACTERS_PER_NUMBER = 20
# Services take files of 1 GB and more; one of ours is held in memory.
FILE_BYTES = 32 * 2**20


class JobState(Enum):
    """How far a job is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"


# What OpenAI and Voyage call them; any other state is one of a job that runs.
STATES_OF_OPENAI = {"completed": JobState.DONE, "failed": JobState.FAILED, "cancelled": JobState.FAILED}
STATES_OF_OPENAI |= {"cancelling": JobState.FAILED, "expired": JobState.EXPIRED}


@dataclass(frozen=True, slots=True)
class BatchApi:
    """A service's batch API.

    `submit` takes pairs of a key (1 to 64 letters and digits) and a text, and returns the job's name; the others take
    that name. `results` maps the keys that were answered, also before a job expired, to their vectors: one that is
    missing failed. `cancel` ends a job that is not waited for any more. All raise what the service's client
    raises: `state` too, where the service does not know the job.
    """

    submit: Callable[[Sequence[tuple[str, str]]], str]
    state: Callable[[str], JobState]
    results: Callable[[str], Mapping[str, Any]]
    cancel: Callable[[str], Any]
    max_items: int
    max_bytes: int


def items_within(answer_bytes: int, dimensions: int) -> int:
    """Return how many texts a job may have for its answer, vectors as decimal fractions, to fit so many bytes."""
    return answer_bytes // (CHARACTERS_PER_NUMBER * dimensions)
