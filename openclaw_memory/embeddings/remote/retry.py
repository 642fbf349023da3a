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
    policy: RetryPolicy,
    sleep: Callable[[float], None],
    call: Callable[[], T],
    *,
    as_query: bool,
    tries: int | None = None,
) -> T:
    """Return what `call` returns, called as often as the policy allows, or `tries` times.

    Raises:
        ServiceError: the last try failed.
    """
    from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential, wait_random

    def error_of(state: RetryCallState) -> BaseException | None:
        return state.outcome.exception() if state.outcome is not None else None

    def is_busy(state: RetryCallState) -> bool:
        return not as_query and _kind(error_of(state)) is FailureKind.BUSY

    def enough(state: RetryCallState) -> bool:
        allowed = policy.busy_tries if is_busy(state) else policy.tries
        return state.attempt_number >= (allowed if tries is None else tries)

    def wait(state: RetryCallState) -> float:
        busy, error = is_busy(state), error_of(state)
        first, longest = (
            (policy.busy_first_wait, policy.busy_longest_wait) if busy else (policy.first_wait, policy.longest_wait)
        )
        if busy and isinstance(error, ServiceError) and error.retry_after is not None:
            return min(error.retry_after, longest)
        backoff = wait_exponential(multiplier=first, max=longest) + wait_random(0, JITTER * first)
        return min(backoff(state), longest)

    passing = {FailureKind.PASSING, FailureKind.BUSY}
    again = retry_if_exception(lambda error: _kind(error) in passing)
    return Retrying(retry=again, stop=enough, wait=wait, sleep=sleep, reraise=True)(call)


def _kind(error: BaseException | None) -> FailureKind | None:
    return error.kind if isinstance(error, ServiceError) else None
