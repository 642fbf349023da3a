"""Cut words into the pieces of a static model, which are looked up in the bytes of its file."""

from __future__ import annotations

import math
from bisect import bisect_left

from openclaw_memory.embeddings.static_file import ModelFile, read_costs, read_pieces

WORD_START = "\u2581"
# An unknown character costs 10 nats more than the rarest piece: kUnkPenalty of SentencePiece and Hugging Face.
UNKNOWN_PENALTY = 10 * 1024
# Above every byte of UTF-8: what begins with a prefix is less than the prefix and this.
ABOVE = b"\xff"
# The cache takes about 40 MB when full.
MAX_CACHED_RANGES = 200_000


class PieceCutter:
    """Cuts words into the pieces of a model. Safe to use from several threads.

    The pieces of a file are sorted, so those that begin with some characters are a range of them, and every further
    character narrows it. Ranges are kept: most words begin as others do.
    """

    def __init__(self, model: ModelFile) -> None:
        self._costs = read_costs(model)
        self._offsets, self._pieces = read_pieces(model)
        self._least, self._unknown = min(self._costs), max(self._costs) + UNKNOWN_PENALTY
        self._numbers = range(len(self._costs))
        # By the characters: the first piece that begins with them, the end, and whether they are a piece.
        self._ranges: dict[str, tuple[int, int, bool]] = {}

    def cut(self, word: str) -> list[int]:
        """Return the numbers of the pieces that spell a word at the lowest cost, without unknown characters.

        Viterbi over the unigram costs; of two ways that cost the same the one found first wins, as in Hugging Face's
        Unigram.
        """
        costs, ranges, size = self._costs, self._ranges, len(word)
        cheapest = [0.0, *[math.inf] * size]
        came_by: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
        for start in range(size):
            so_far = cheapest[start]
            if so_far + self._least >= cheapest[size]:
                continue
            low, high = 0, len(costs)
            for end in range(start + 1, size + 1):
                characters = word[start:end]
                low, high, is_piece = ranges.get(characters) or self._narrow(characters, low, high)
                if low == high:
                    break
                if is_piece and so_far + costs[low] < cheapest[end]:
                    cheapest[end], came_by[end] = so_far + costs[low], (start, low)
            # Dearer than any piece: it stands only where no piece of one character does.
            if so_far + self._unknown < cheapest[start + 1]:
                cheapest[start + 1], came_by[start + 1] = so_far + self._unknown, (start, None)
        backwards: list[int] = []
        while size:
            size, piece = came_by[size]
            if piece is not None:
                backwards.append(piece)
        return backwards[::-1]

    def _narrow(self, characters: str, low: int, high: int) -> tuple[int, int, bool]:
        """Return the range of the pieces that begin with these characters, within that of all but the last."""
        if len(self._ranges) > MAX_CACHED_RANGES:
            self._ranges.clear()
        prefix = characters.encode("utf-8", "surrogatepass")
        low = bisect_left(self._numbers, prefix, low, high, key=self._get_piece)
        first = self._get_piece(low) if low < high else b""
        if first.startswith(prefix):
            high = bisect_left(self._numbers, prefix + ABOVE, low, high, key=self._get_piece)
        else:
            high = low
        self._ranges[characters] = narrowed = low, high, first == prefix
        return narrowed

    def _get_piece(self, number: int) -> bytes:
        return self._pieces[self._offsets[number] : self._offsets[number + 1]]
