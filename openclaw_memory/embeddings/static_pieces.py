"""Cut words into the pieces of a static model: one by one from the mapped file, or many together by a table."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from openclaw_memory.embeddings.static_file import HEADER_BYTES, ModelFile, get_piece, read_offsets

if TYPE_CHECKING:
    from mmap import mmap
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    # From a word and a place in it to each piece that begins there, the shortest first: its end, and its number.
    Finder: TypeAlias = Callable[[str, int], Iterable[tuple[int, int]]]
    Integers: TypeAlias = NDArray[np.int64]
    Hashes: TypeAlias = NDArray[np.uint64]

# Above every byte of UTF-8: what begins with a prefix is less than the prefix and this.
ABOVE = b"\xff"

# Words are cut together in blocks of so many characters, which bounds the memory: some 30 MB.
BLOCK_CHARS = 20_000
# A longer word takes a round of its own for every character.
MAX_CHARS_TOGETHER = 200
# Buckets of the table: of the model that ships, a bucket has two pieces, and its numbers are written in 0.3 MB.
BUCKET_BITS = 16
# Hashes are made of so many runs at a time: what a block needs stays in the processor's cache, and is memory that the
# block before had. A process that has just begun pays more for each new page of memory than for the hashes in it.
BLOCK_RUNS = 8_192
# Odd numbers of many ones and zeros, from the hash functions SplitMix64 and MurmurHash3.
FIRST_FACTOR, SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
WINDOW = 8  # bytes that are hashed at a time
# A cost and the number of a way in one integer: the least of several is the cheapest way, and of equals the first.
WAY_BITS = 24


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
    """Find pieces in the mapped file itself: nothing is made ready first, and a character takes some 4 us.

    The pieces are sorted, so those that begin with the characters read so far are a range of them, and every character
    narrows it. Ranges are kept: most words begin as others do.
    """
    numbers = range(model.layout.pieces)
    ranges: dict[str, tuple[int, int, bool]] = {}  # by the characters: first piece, end, and if they are a piece
    get = partial(get_piece, model)

    def find(word: str, start: int) -> Iterator[tuple[int, int]]:
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


class PieceTable:
    """Every piece of a model by a hash of its bytes: making it takes some 10 ms, and a character of many words 1 us.

    Two strings have the same 64 bits by chance once in 10**19 pairs: the hash alone is compared.
    """

    def __init__(self, model: ModelFile, unknown_cost: int) -> None:
        import numpy as np

        layout, offsets = model.layout, read_offsets(model)
        sizes = np.diff(offsets)
        # The pieces where they are mapped; the file goes on behind them, for more than a window.
        hashes = _hash_runs(model.data, HEADER_BYTES, offsets[:-1], sizes)
        buckets = _get_buckets(hashes)
        self._numbers = np.argsort(buckets, kind="stable").astype(np.int32)
        self._hashes = hashes[self._numbers]
        # Where the hashes of each bucket begin: a bucket is what they begin with.
        counts = np.bincount(buckets, minlength=1 << BUCKET_BITS)
        self._firsts = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=self._firsts[1:])
        self._most = int(counts.max())
        self._longest = int(sizes.max())
        self._costs = np.frombuffer(model.data, "<u2", layout.pieces, layout.costs_at).astype(np.int64)
        self._unknown_cost = unknown_cost

    def cut(self, words: Sequence[str]) -> Iterator[list[int]]:
        """Yield the pieces of each word, as `find_cheapest_pieces` does; no word is empty."""
        block: list[str] = []
        chars = 0
        for word in words:
            if block and chars + len(word) > BLOCK_CHARS:
                yield from self._cut(block)
                block, chars = [], 0
            block.append(word)
            chars += len(word)
        if block:
            yield from self._cut(block)

    def _cut(self, words: Sequence[str]) -> Iterator[list[int]]:
        import numpy as np

        sizes = np.fromiter(map(len, words), np.int64, len(words))
        ends = np.cumsum(sizes)
        firsts, word = ends - sizes, np.repeat(np.arange(len(words)), sizes)
        source, target, pieces = self._find("".join(words), ends[word])
        # The ways from one place in a word to a later one: by a piece, or past a character as an unknown one. The
        # places are numbered through all words, one more than there are characters in each.
        chars = np.arange(len(word))
        source, target = np.concatenate([source, chars]), np.concatenate([target, chars + 1])
        costs = np.concatenate([self._costs[pieces], np.full(len(chars), self._unknown_cost)])
        pieces = np.concatenate([pieces, np.full(len(chars), -1)])
        steps = source - firsts[word[source]]
        order = np.argsort(steps.astype(np.uint16), kind="stable")
        source, target, pieces, costs, steps = (ways[order] for ways in (source, target, pieces, costs, steps))
        of_word = word[source]
        source, target = source + of_word, target + of_word
        starts, places = firsts + np.arange(len(words)), ends + np.arange(len(words))
        best = np.full(len(chars) + len(words), np.iinfo(np.int64).max)
        best[starts] = 0
        bounds = np.searchsorted(steps, np.arange(int(steps[-1]) + 2)).tolist()
        for low, high in pairwise(bounds):  # the first places of all words, the second ones, ...
            so_far = (best[source[low:high]] >> WAY_BITS) + costs[low:high]
            np.minimum.at(best, target[low:high], so_far << WAY_BITS | np.arange(low, high))
        # Back from the ends of all words together.
        taken, takers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        takers_left = np.arange(len(words))
        while len(takers_left):
            ways = best[places] & ((1 << WAY_BITS) - 1)
            taken.append(pieces[ways])
            takers.append(takers_left)
            places = source[ways]
            is_under_way = places != starts[takers_left]
            places, takers_left = places[is_under_way], takers_left[is_under_way]
        path, owners = np.concatenate(taken[::-1]), np.concatenate(takers[::-1])
        path, owners = path[path >= 0], owners[path >= 0]
        flat = path[np.argsort(owners, kind="stable")].tolist()
        last = np.cumsum(np.bincount(owners, minlength=len(words))).tolist()
        return (flat[begin:end] for begin, end in zip([0, *last[:-1]], last, strict=True))

    def _find(self, text: str, ends: Integers) -> tuple[Integers, Integers, Integers]:
        """Find the pieces in the words of a text; return their first characters, their ends and their numbers.

        Args:
            text: The words, end to end.
            ends: Where the word of each character ends.
        """
        import numpy as np

        data = text.encode("utf-8", "surrogatepass")
        is_first = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80  # the first byte of its character
        at = np.append(np.flatnonzero(is_first), len(data))
        chars = np.arange(len(text))
        within = np.searchsorted(at, at[:-1] + self._longest, side="right") - 1
        counts = np.maximum(np.minimum(ends, within) - chars, 0)
        source = np.repeat(chars, counts)
        target = source + np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        hashes = _hash_runs(data + bytes(WINDOW), 0, at[source], at[target] - at[source])
        buckets = _get_buckets(hashes)
        places, bounds = self._firsts[buckets], self._firsts[buckets.astype(np.int32) + 1]
        looked, pieces = np.arange(len(source)), np.full(len(source), -1)
        for _ in range(self._most):
            is_left = places < bounds
            looked, places, bounds = looked[is_left], places[is_left], bounds[is_left]
            is_there = self._hashes[places] == hashes[looked]
            pieces[looked[is_there]] = self._numbers[places[is_there]]
            looked, places, bounds = looked[~is_there], places[~is_there] + 1, bounds[~is_there]
        is_piece = pieces >= 0
        return source[is_piece], target[is_piece], pieces[is_piece]


def _hash_runs(data: bytes | mmap, offset: int, starts: Integers, sizes: Integers) -> Hashes:
    """Return a hash of each run of bytes.

    Args:
        data: The bytes, at least `WINDOW` more than the runs take.
        offset: Where in `data` to count from.
        starts: Where each run starts.
        sizes: How many bytes it has, at least 1.
    """
    import numpy as np

    block = np.frombuffer(data, np.uint8)
    windows: NDArray[np.void] = np.ndarray((len(block) - WINDOW + 1,), f"V{WINDOW}", block.data, 0, (1,))
    masks = np.array([(1 << 8 * size) - 1 for size in range(WINDOW + 1)], np.uint64)
    hashes = sizes.astype(np.uint64)
    for low in range(0, len(starts), BLOCK_RUNS):
        runs = slice(low, low + BLOCK_RUNS)
        _hash_block(windows, masks, starts[runs] + offset, sizes[runs], hashes[runs])
    return hashes


def _hash_block(windows: NDArray[np.void], masks: Hashes, starts: Integers, sizes: Integers, hashes: Hashes) -> None:
    """Put the hash of each run into `hashes`, which hold their sizes."""
    import numpy as np

    hashes *= np.uint64(FIRST_FACTOR)
    left = np.arange(len(starts))
    for first in range(0, int(sizes.max(initial=0)), WINDOW):
        left = left[sizes[left] > first]
        some = windows[starts[left] + first].view("<u8") & masks[np.minimum(sizes[left] - first, WINDOW)]
        mixed = (hashes[left] ^ some) * np.uint64(FIRST_FACTOR)
        hashes[left] = (mixed ^ mixed >> np.uint64(29)) * np.uint64(SECOND_FACTOR)
    hashes ^= hashes >> np.uint64(32)


def _get_buckets(hashes: Hashes) -> NDArray[np.uint16]:
    import numpy as np

    return (hashes >> np.uint64(64 - BUCKET_BITS)).astype(np.uint16)  # numbers of 16 bits are sorted by their digits
