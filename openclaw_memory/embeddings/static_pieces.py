"""Cut words into the pieces of a static model, which are looked up in the bytes of its file."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

from openclaw_memory.embeddings.static_file import ModelFile, read_costs, read_pieces

WORD_START = "\u2581"
# An unknown character costs 10 nats more than the rarest piece: kUnkPenalty of SentencePiece and Hugging Face.
UNKNOWN_PENALTY = 10 * 1024
# Above every byte of UTF-8: what begins with a prefix is less than the prefix and this.
ABOVE = b"\xff"
# The cache takes about 40 MB when full.
MAX_CACHED_RANGES = 200_000


def make_cutter(model: ModelFile) -> Callable[[str], list[int]]:
    """Return a function that cuts a word into pieces, and returns the numbers of the known ones in their order.

    The pieces of a file are sorted, so those that begin with some characters are a range of them, and every further
    character narrows it. Ranges are kept: most words begin as others do.
    """
    costs, (offsets, block) = read_costs(model), read_pieces(model)
    least, unknown = min(costs), max(costs) + UNKNOWN_PENALTY
    numbers = range(len(costs))
    ranges: dict[str, tuple[int, int, bool]] = {}  # by the characters: first piece, end, and if they are a piece

    def get_piece(number: int) -> bytes:
        return block[offsets[number] : offsets[number + 1]]

    def narrow(characters: str, low: int, high: int) -> tuple[int, int, bool]:
        prefix = characters.encode("utf-8", "surrogatepass")
        low = bisect_left(numbers, prefix, low, high, key=get_piece)
        first = get_piece(low) if low < high else b""
        high = bisect_left(numbers, prefix + ABOVE, low, high, key=get_piece) if first.startswith(prefix) else low
        ranges[characters] = found = low, high, first == prefix
        return found

    def cut(word: str) -> list[int]:
        """Find the pieces of the lowest cost; of two ways that cost the same, the first one found wins.

        This is Viterbi over the unigram costs, as in Hugging Face's Unigram.
        """
        if len(ranges) > MAX_CACHED_RANGES:
            ranges.clear()
        size = len(word)
        cheapest = [0.0, *[math.inf] * size]
        came_by: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
        for start in range(size):
            so_far = cheapest[start]
            if so_far + least >= cheapest[size]:
                continue
            low, high = 0, len(numbers)
            for end in range(start + 1, size + 1):
                characters = word[start:end]
                low, high, is_piece = ranges.get(characters) or narrow(characters, low, high)
                if low == high:
                    break
                if is_piece and so_far + costs[low] < cheapest[end]:
                    cheapest[end], came_by[end] = so_far + costs[low], (start, low)
            # Dearer than any piece: it stands only where no piece of one character does.
            if so_far + unknown < cheapest[start + 1]:
                cheapest[start + 1], came_by[start + 1] = so_far + unknown, (start, None)
        backwards: list[int] = []
        while size:
            size, piece = came_by[size]
            if piece is not None:
                backwards.append(piece)
        return backwards[::-1]

    return cut
