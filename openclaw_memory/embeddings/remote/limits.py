"""What one request may hold: what its service says, or less, as its answers taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

from openclaw_memory.embeddings.remote.errors import FailureKind

# No model reads less than so many bytes: a text is not parted further where it is still too large.
SHORTEST_PIECE = 256
# After so many answers twice as much is tried again: a proxy that is in trouble refuses what would fit, too.
ANSWERS_UNTIL_MORE = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold: `items` texts of `request_tokens` together, each of `input_tokens` at most.

    Tokens are estimated from above, one for each UTF-8 byte; a longer text is embedded in pieces.
    """

    items: int
    input_tokens: int
    request_tokens: int = 8000


class AdaptiveLimits:
    """The limits that hold `now`: those of the service, or less for a while. Safe to use from several threads."""

    def __init__(self, given: Limits) -> None:
        self.now = self._given = given
        self._answers = 0
        self._lock = Lock()

    def refused(self, kind: FailureKind, weights: Sequence[int]) -> None:
        """Ask for no more than half of what was too much: texts of `weights` that were answered in parts."""
        with self._lock:
            now, half = self.now, max(SHORTEST_PIECE, sum(weights) // 2)
            if kind is FailureKind.TOO_MANY:
                self.now = replace(now, items=max(1, min(now.items, len(weights) // 2)))
            elif kind is FailureKind.TOO_LARGE and len(weights) > 1:
                self.now = replace(now, request_tokens=min(now.request_tokens, half))
            elif kind is FailureKind.TOO_LARGE:
                self.now = replace(now, input_tokens=min(now.input_tokens, half))
            self._answers = 0

    def answered(self) -> None:
        """Count an answer; after enough of them, try twice as much."""
        with self._lock:
            self._answers += 1
            if self._answers < ANSWERS_UNTIL_MORE or self.now == self._given:
                return
            now, given, self._answers = self.now, self._given, 0
            self.now = Limits(
                min(given.items, 2 * now.items),
                min(given.input_tokens, 2 * now.input_tokens),
                min(given.request_tokens, 2 * now.request_tokens),
            )
