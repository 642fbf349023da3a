"""What one request may hold: what its service says, or less, as its answers taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from openclaw_memory.embeddings._failures import Meaning

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


class LearntLimits:
    """The limits that hold `now`: those of the service, or less for a while."""

    def __init__(self, said: Limits) -> None:
        self.now = self._said = said
        self._answers = 0

    def refused(self, meaning: Meaning, weights: Sequence[int]) -> None:
        """Ask for no more than half of what was too much: texts of `weights` that were answered in parts."""
        now, half = self.now, max(SHORTEST_PIECE, sum(weights) // 2)
        if meaning is Meaning.TOO_MANY:
            self.now = replace(now, items=max(1, min(now.items, len(weights) // 2)))
        elif meaning is Meaning.TOO_LARGE and len(weights) > 1:
            self.now = replace(now, request_tokens=min(now.request_tokens, half))
        elif meaning is Meaning.TOO_LARGE:
            self.now = replace(now, input_tokens=min(now.input_tokens, half))
        self._answers = 0

    def answered(self) -> None:
        """Count an answer; after enough of them, try twice as much."""
        self._answers += 1
        if self._answers >= ANSWERS_UNTIL_MORE and self.now != self._said:
            now, said, self._answers = self.now, self._said, 0
            self.now = Limits(
                min(said.items, 2 * now.items),
                min(said.input_tokens, 2 * now.input_tokens),
                min(said.request_tokens, 2 * now.request_tokens),
            )
