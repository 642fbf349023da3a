"""How patiently an embedding service is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from openclaw_memory.embeddings.remote.errors import FailureKind, ServiceError

T = TypeVar("T")

# Of a wait, so that clients that failed together do not come back together; OpenClaw's number.
JITTER = 0.2


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Deadlines, tries and waits; all times in seconds. The numbers are OpenClaw's.

    At most `concurrency` requests run at once. A request that fails in passing has `tries`, with waits from
    `first_wait` doubling up to `longest_wait`; while documents are embedded, a service that is asked too often is
    given `busy_tries` with longer waits, and the wait it asks for. A question has one deadline for all its tries.
    """

    concurrency: int = 4
    query_seconds: float = 60.0
    request_seconds: float = 120.0
    tries: int = 3
    first_wait: float = 0.5
    longest_wait: float = 8.0
    busy_tries: int = 5
    busy_first_wait: float = 5.0
    busy_longest_wait: float = 60.0


def retried(
    policy: RetryPolicy, sleep: Callable[[float], None], call: Callable[[], T], *, as_query: bool, tries: int | None
) -> T:
    """Return what `call` returns, called as often as the policy allows, or `tries` times.

    Raises:
        ServiceError: the last try failed.
    """
    from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential_jitter

    def failed(state: RetryCallState) -> tuple[bool, float | None]:
        """Return whether the service is asked too often, and the wait that it asked for."""
        error = state.outcome.exception() if state.outcome is not None else None
        busy = not as_query and isinstance(error, ServiceError) and error.kind is FailureKind.BUSY
        return busy, error.retry_after if busy and isinstance(error, ServiceError) else None

    def enough(state: RetryCallState) -> bool:
        return state.attempt_number >= (tries or (policy.busy_tries if failed(state)[0] else policy.tries))

    def wait(state: RetryCallState) -> float:
        busy, asked_for = failed(state)
        first = policy.busy_first_wait if busy else policy.first_wait
        longest = policy.busy_longest_wait if busy else policy.longest_wait
        backoff = wait_exponential_jitter(first, longest, jitter=JITTER * first)
        return min(backoff(state) if asked_for is None else asked_for, longest)

    def passes(error: BaseException) -> bool:
        return isinstance(error, ServiceError) and error.kind in {FailureKind.PASSING, FailureKind.BUSY}

    return Retrying(retry=retry_if_exception(passes), stop=enough, wait=wait, sleep=sleep, reraise=True)(call)
