"""How patiently an embedding service is asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Deadlines, tries and waits; all times in seconds. The numbers are OpenClaw's.

    At most `concurrency` requests run at once. Of one that fails in passing there are `tries`, with waits from
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
