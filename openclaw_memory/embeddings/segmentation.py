"""The words of a text, the cheapest way to write one in a model's pieces, and how pieces are found in it."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from typing import TYPE_CHECKING

from openclaw_memory.embeddings.static_file import piece_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from openclaw_memory.embeddings.static_file import ModelFile

    # From a word and where to begin in it to each piece found there, the shortest first: its end, and its number.
    Finder = Callable[[str, int], Iterator[tuple[int, int]]]

# What parts words and has no vector: punctuation, currencies, arrows and the like, so that **boiler** and (boiler) are
# boilers, and l'eau is eau. In the form of a character class, for `re` and for the regular expressions of Hugging
# Face's tokenizers: the model is trained on texts that are cut by it, so that a change here needs a new model file.
PUNCTUATION = (
    "!-/:-@\\[-`{-~\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    "\u2010-\u205e\u20a0-\u20bf\u2190-\u2bff\u3001-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30fb"
)
WORD = re.compile(rf"[^\s{PUNCTUATION}]+")
# Soft hyphens, joiners, marks of direction and order: nothing of a word that one can see.
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe0f\ufeff]")
WORD_START = "\u2581"

# Above every byte of UTF-8: what begins with a prefix is less than the prefix and this.
ABOVE = b"\xff"


def words_of(text: str) -> list[str]:
    """The words of a text in NFKC and lower case, without the punctuation between them."""
    found: list[str] = WORD.findall(INVISIBLE.sub("", unicodedata.normalize("NFKC", text).lower()))
    return found


def cheapest_pieces(word: str, find: Finder, costs: Sequence[int], unknown_cost: int) -> list[int]:
    """The numbers of the pieces that `word` is written in at the lowest cost, unknown characters left out.

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
        size, known = came_by[size]
        if known is not None:
            backwards.append(known)
    return backwards[::-1]


def mapped_finder(model: ModelFile) -> Finder:
    """Find pieces in the mapped file itself: nothing is made ready first, and a character takes some 30 us.

    The pieces are sorted, so those that begin with the characters read so far are a range of them, and every character
    narrows it.
    """
    numbers = range(model.layout.pieces)

    def piece(number: int) -> bytes:
        return piece_at(model, number)

    def find(word: str, start: int) -> Iterator[tuple[int, int]]:
        low, high, prefix = 0, len(numbers), b""
        for end in range(start + 1, len(word) + 1):
            prefix += word[end - 1].encode("utf-8", "surrogatepass")
            low = bisect_left(numbers, prefix, low, high, key=piece)
            high = bisect_left(numbers, prefix + ABOVE, low, high, key=piece)
            if low == high:
                return
            if piece(low) == prefix:
                yield end, low

    return find


def dictionary_finder(pieces: Sequence[str]) -> Finder:
    """Find pieces in a dictionary of them all: a character takes some 2 us, making it 30 ms."""
    numbers = dict(zip(pieces, range(len(pieces)), strict=True))
    reach: dict[str, int] = {}  # how long the longest piece is that begins with a character
    for piece in pieces:
        if len(piece) > reach.get(piece[0], 0):
            reach[piece[0]] = len(piece)

    def find(word: str, start: int) -> Iterator[tuple[int, int]]:
        last = min(start + reach.get(word[start], 0), len(word))
        for end in range(start + 1, last + 1):
            if (number := numbers.get(word[start:end])) is not None:
                yield end, number

    return find
