"""Cut words into the pieces of a static model, which are found in the mapped file."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from openclaw_memory.embeddings.static_file import ModelFile, get_piece

# From a word and a place in it to each piece that begins there, the shortest first: its end, and its number.
Finder: TypeAlias = Callable[[str, int], Iterable[tuple[int, int]]]

# Above every byte of UTF-8: what begins with a prefix is less than the prefix and this.
ABOVE = b"\xff"
# The cache takes about 40 MB when full.
MAX_CACHED_RANGES = 200_000


def find_cheapest_pieces(word: str, find: Finder, costs: Sequence[int], unknown_cost: int) -> list[int]:
    """Return the numbers of the pieces that spell `word` at the lowest cost, without unknown characters.

    Viterbi over the unigram costs; of two equals the one found first wins, as in Hugging Face's Unigram.
    """
    size = len(word)
    cheapest = [0.0, *[math.inf] * size]
    came_by: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
    for start in range(size):
        so_far = cheapest[start]
        if so_far >= cheapest[size]:
            continue
        for end, piece in find(word, start):
            cost = so_far + costs[piece]
            if cost < cheapest[end]:
                cheapest[end], came_by[end] = cost, (start, piece)
        # Dearer than any piece: it stands only where no piece of one character does.
        if so_far + unknown_cost < cheapest[start + 1]:
            cheapest[start + 1], came_by[start + 1] = so_far + unknown_cost, (start, None)
    backwards: list[int] = []
    while size:
        size, piece_or_none = came_by[size]
        if piece_or_none is not None:
            backwards.append(piece_or_none)
    return backwards[::-1]


def make_finder(model: ModelFile) -> Finder:
    """Find pieces in the mapped file itself: nothing is made ready first, and a character takes some 2 us.

    The pieces are sorted, so those that begin with the characters read so far are a range of them, and every character
    narrows it. Ranges are kept: most words begin as others do.
    """
    numbers = range(model.layout.pieces)
    ranges: dict[str, tuple[int, int, bool]] = {}  # by the characters: first piece, end, and if they are a piece
    get = partial(get_piece, model)

    def find(word: str, start: int) -> Iterator[tuple[int, int]]:
        if len(ranges) > MAX_CACHED_RANGES:
            ranges.clear()
        low, high = 0, len(numbers)
        for end in range(start + 1, len(word) + 1):
            piece_range = ranges.get(characters := word[start:end])
            if piece_range is None:
                prefix = characters.encode("utf-8", "surrogatepass")
                low = bisect_left(numbers, prefix, low, high, key=get)
                first = get(low) if low < high else b""
                high = bisect_left(numbers, prefix + ABOVE, low, high, key=get) if first.startswith(prefix) else low
                piece_range = ranges[characters] = low, high, first == prefix
            low, high, is_piece = piece_range
            if low == high:
                return
            if is_piece:
                yield end, low

    return find
