"""The static embedder that ships: a text's vector is the sum of its pieces' vectors, looked up in one mapped file."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from openclaw_memory import _forks
from openclaw_memory.embeddings.static_file import (
    ModelFile,
    all_pieces,
    check_bytes,
    costs_of,
    open_model,
    piece_at,
    rows_of,
    scales_of,
    unpacked,
)
from openclaw_memory.embeddings.vectors import named, normalised
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix, Vector

    # From a word and where to begin in it to each piece found there, the shortest first: its end, and its number.
    Finder = Callable[[str, int], Iterable[tuple[int, int]]]

T = TypeVar("T")

MODEL = "multilingual-static-256"
# Of the whole file that ships. The one in its header is part of what could be exchanged.
SHA256 = "033f310d4a8a21d3dbc4377b27de2e4ba08a02cac2f6022f8c1cdda0ca916f79"
DATA = Path(__file__).parent.parent / "data"

# An unknown character costs 10 nats more than the rarest piece: kUnkPenalty of SentencePiece and Hugging Face.
UNKNOWN_PENALTY = 10 * 1024

# The cache takes about 20 MB when full. A word longer than this is a URL or a run of CJK and seldom comes twice.
MAX_CACHED_WORDS = 100_000
MAX_CACHED_CHARS = 40
# A dictionary of all pieces takes about as long to make as it saves while so many characters are looked up.
CHARS_BEFORE_DICTIONARY = 20_000
# Pieces that are summed at a time: 8 MB of float32 however long the text is.
BLOCK_PIECES = 8192
# Hardly any word has more.
MAX_PIECES_TOGETHER = 16

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


def create(model: str | None = None, *, path: str | Path | None = None) -> StaticEmbedder:
    """Return the model that ships, or the one in the file `path`; raise EmbedderError if there is no such model."""
    if path is None and model not in (None, MODEL):
        raise EmbedderError(f"unknown static model {named(model)}; use {MODEL!r}, or name a model file with path=")
    return StaticEmbedder(path)


class StaticEmbedder:
    """Vectors of `dims` (256) float32 without a network, a fraction of a millisecond a text, from any thread.

    Making one maps the file and checks its header; the rest is read where a text needs it. A text of which the model
    knows nothing has the zero vector. `identity` covers every byte of the file, by the digest in its header. All bytes
    of the file that ships are checked before the first vectors of documents are made, since those are kept; a question
    does not wait for that (11 ms).
    """

    provider = "static"
    leaves_machine = False

    def __init__(self, path: str | Path | None = None) -> None:
        self._file = open_model(DATA / f"{MODEL}.oms" if path is None else Path(path))
        self._is_checked = path is not None
        self.dims = self._file.layout.dims
        self.model = self._file.path.stem
        self.identity = f"{self.provider}:{self.model}:{self.dims}:{self._file.layout.digest}"
        self._pieces_by_word: dict[str, tuple[int, ...]] = {}
        self._chars_asked = 0

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embedded([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not self._is_checked:
            check_bytes(self._file, SHA256)
            self._is_checked = True
        return self._embedded(texts)

    def _embedded(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        sums = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, pieces in zip(sums, self._pieces_of_each(texts), strict=True):
            row[:] = self._sum(pieces)
        return normalised(sums)

    def close(self) -> None:
        """Do nothing: the mapped file is freed with this object."""

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        """Return the sum of each word's pieces, as after a space; shape (len(words), dims), float32, not normalised.

        The length of a row is the word's weight in a text: a frequent word's is short.
        """
        known = self._pieces_by_word
        # What was once cut out of a text in ASCII is cut out of itself as it is.
        found = [known.get(word) if word.isascii() else None for word in words]
        new = [word for word, pieces in zip(words, found, strict=True) if pieces is None]
        cut = self._pieces_of_each(new)
        return self._sums([next(cut) if pieces is None else pieces for pieces in found])

    def _pieces_of_each(self, texts: Sequence[str]) -> Iterator[list[int]]:
        # Counted before the first is cut, so that many texts at once begin with the dictionary.
        self._chars_asked += sum(map(len, texts))
        return map(self._pieces_of, texts)

    def _pieces_of(self, text: str) -> list[int]:
        """Return the numbers of a text's known pieces, in their order."""
        pieces: list[int] = []
        for word in words_of(text):
            known = self._pieces_by_word.get(word)
            if known is None:
                known = self._segmented(word)
                _remember(self._pieces_by_word, word, known, MAX_CACHED_WORDS)
            pieces += known
        return pieces

    def _segmented(self, word: str) -> tuple[int, ...]:
        find = self._find_in_file if self._chars_asked <= CHARS_BEFORE_DICTIONARY else self._find_in_dictionary
        pieces = cheapest_pieces(WORD_START + word, find, self._costs, self._unknown_cost)
        return () if pieces == [self._bare_start] else tuple(pieces)

    def _sum(self, pieces: Sequence[int]) -> Vector:
        import numpy as np

        total = np.zeros(self.dims, dtype=np.float32)
        for start in range(0, len(pieces), BLOCK_PIECES):
            scales, rows = self._rows(pieces[start : start + BLOCK_PIECES])
            total += scales @ rows.astype(np.float32)
        return total

    def _sums(self, words: Sequence[Sequence[int]]) -> Matrix:
        """Return the sum of each word's pieces; words of as many pieces are added up together."""
        import numpy as np

        sums = np.zeros((len(words), self.dims), dtype=np.float32)
        by_count: dict[int, list[int]] = {}
        for at, pieces in enumerate(words):
            by_count.setdefault(len(pieces), []).append(at)
        for count, places in by_count.items():
            if count > MAX_PIECES_TOGETHER:
                for at in places:
                    sums[at] = self._sum(words[at])
                continue
            # Piece by piece, so that a word's vector is the same to the last bit in any company.
            total = np.zeros((len(places), self.dims), dtype=np.float32)
            for pieces in zip(*(words[at] for at in places), strict=True):
                scales, rows = self._rows(pieces)
                total += rows * scales[:, None]
            sums[places] = total
        return sums

    def _rows(self, pieces: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Return scales (k,) and rows (k, dims) of these pieces."""
        scales, rows = self._tables
        return scales.take(pieces), unpacked(rows.take(pieces, axis=0), self._file.layout.bits)

    @_forks.cached_property
    def _tables(self) -> tuple[NDArray[np.float32], NDArray[np.integer]]:
        return scales_of(self._file), rows_of(self._file)

    @_forks.cached_property
    def _costs(self) -> array[int]:
        return costs_of(self._file)

    @_forks.cached_property
    def _unknown_cost(self) -> int:
        return max(self._costs) + UNKNOWN_PENALTY

    @_forks.cached_property
    def _bare_start(self) -> int | None:
        """Return the number of the piece that is a word's start and nothing else."""
        return next((number for _, number in self._find_in_file(WORD_START, 0)), None)

    @_forks.cached_property
    def _find_in_file(self) -> Finder:
        return mapped_finder(self._file)

    @_forks.cached_property
    def _find_in_dictionary(self) -> Finder:
        return dictionary_finder(all_pieces(self._file))


def _remember(cache: dict[str, T], word: str, value: T, limit: int) -> None:
    """Keep `value` unless the word is long; a full cache is emptied first."""
    if len(word) <= MAX_CACHED_CHARS:
        if len(cache) >= limit:
            cache.clear()
        cache[word] = value


# --- a text in pieces --------------------------------------------------------------------------------------------


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
    """Find pieces in the mapped file itself: nothing is made ready first, and a character takes some 5 us.

    The pieces are sorted, so those that begin with the characters read so far are a range of them, and every character
    narrows it. Ranges are kept: most words begin as others do.
    """
    numbers = range(model.layout.pieces)
    ranges: dict[str, tuple[int, int, bool]] = {}  # by the characters: first piece, end, and if they are a piece

    def piece(number: int) -> bytes:
        return piece_at(model, number)

    def find(word: str, start: int) -> Iterator[tuple[int, int]]:
        low, high = 0, len(numbers)
        for end in range(start + 1, len(word) + 1):
            known = ranges.get(characters := word[start:end])
            if known is None:
                prefix = characters.encode("utf-8", "surrogatepass")
                low = bisect_left(numbers, prefix, low, high, key=piece)
                first = piece(low) if low < high else b""
                high = bisect_left(numbers, prefix + ABOVE, low, high, key=piece) if first.startswith(prefix) else low
                known = ranges[characters] = low, high, first == prefix
            low, high, is_piece = known
            if low == high:
                return
            if is_piece:
                yield end, low

    return find


def dictionary_finder(pieces: Sequence[str]) -> Finder:
    """Find pieces in a dictionary of them all: a character takes some 2 us, making it 70 ms."""
    number = dict(zip(pieces, range(len(pieces)), strict=True)).get
    reach: dict[str, int] = {}  # how long the longest piece is that begins with a character
    for piece in pieces:
        if len(piece) > reach.get(piece[0], 0):
            reach[piece[0]] = len(piece)

    def find(word: str, start: int) -> Iterable[tuple[int, int]]:
        last = min(start + reach.get(word[start], 0), len(word))
        return [(end, at) for end in range(start + 1, last + 1) if (at := number(word[start:end])) is not None]

    return find
