"""The static embedder that ships: a text's vector is the sum of its pieces' vectors, looked up in one mapped file.

The file (`data/*.oms`) holds, in this order, all numbers little-endian:

1. 128 bytes of JSON padded with spaces, last byte a newline: `{"magic": "oms1", "n": N, "dim": D, "pieces": BYTES}`;
2. BYTES bytes: the N pieces in UTF-8, joined by newlines; U+2581 stands for the start of a word;
3. N uint16: -1024 times the natural logarithm of each piece's unigram probability, its cost;
4. N float16: the scale of each row;
5. zeros up to a multiple of 64 bytes;
6. N x D int8: the rows. The vector of piece i is row i times scale i; frequency weights are already inside.
"""

from __future__ import annotations

import json
import math
import mmap
import unicodedata
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from openclaw_memory.embeddings import named, normalised
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")

MODEL = "multilingual-static-256"
DATA = Path(__file__).parent.parent / "data"
REMEDY = "reinstall openclaw-memory-index, or give the path of another model file"

MAGIC = "oms1"
HEADER_BYTES = 128
ALIGNMENT = 64
WORD_START = "\u2581"
# The piece that stands for what the vocabulary lacks; the same characters in a note are only characters.
UNKNOWN_PIECE = "<unk>"
# An unknown character costs 10 nats more than the rarest piece: kUnkPenalty of SentencePiece and Hugging Face.
UNKNOWN_PENALTY = 10 * 1024

# Either cache takes about 20 MB when full. A word longer than this is a URL or a run of CJK and seldom comes twice.
MAX_CACHED_WORDS = 100_000
MAX_CACHED_VECTORS = 20_000
MAX_CACHED_CHARS = 40
# Pieces that are summed at a time: 8 MB of float32 however long the text is.
BLOCK_PIECES = 8192
# Hardly any word has more.
MAX_PIECES_TOGETHER = 16


def create(model: str | None = None, *, path: str | Path | None = None) -> StaticEmbedder:
    """The model that ships, or the one in the file `path`.

    Raises:
        EmbedderError: `model` is not the one that ships, or the file is missing or damaged.
    """
    if path is None and model not in (None, MODEL):
        raise EmbedderError(f"unknown static model {named(model)}; use {MODEL!r}, or name a model file with path=")
    return StaticEmbedder(path)


class StaticEmbedder:
    """Vectors of `dims` (256) float32 without a network, a fraction of a millisecond a text, from any thread.

    Making one maps the file and checks its header; its tables are read at first use. A text of which the model knows
    nothing but the spaces has the zero vector. `identity` covers the file up to its rows.
    """

    provider = "static"

    def __init__(self, path: str | Path | None = None) -> None:
        """Map the model file at `path`; the one that ships when None.

        Raises:
            EmbedderError: the file is missing, is no such model, or is cut short.
        """
        self._path = DATA / f"{MODEL}.oms" if path is None else Path(path)
        self._file = _mapped(self._path)
        self._layout = _layout(self._path, self._file)
        self.dims = self._layout.dims
        self.model = self._path.stem
        # The rows are left out, reading 15 MB costs too much; their scales change with them.
        digest = blake2b(self._file[: self._layout.rows_at], digest_size=8).hexdigest()
        self.identity = f"{self.provider}:{self.model}:{self.dims}:{digest}"
        self._pieces_by_word: dict[str, tuple[int, ...]] = {}
        self._vectors_by_word: dict[str, bytes] = {}

    def embed_query(self, text: str) -> Vector:
        """The unit vector of `text`, shape (dims,), float32.

        Raises:
            EmbedderError: the model file is damaged.
        """
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """The unit vectors of `texts`, shape (len(texts), dims), float32; each is the same in any company.

        Raises:
            EmbedderError: the model file is damaged.
        """
        import numpy as np

        sums = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, text in zip(sums, texts, strict=True):
            row[:] = self._sum(self._pieces_of(text))
        return normalised(sums)

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        """The sum of each word's pieces, as after a space; shape (len(words), dims), float32, not normalised.

        The length of a row is the word's weight in a text: a frequent word's is short.

        Raises:
            EmbedderError: the model file is damaged.
        """
        import numpy as np

        rows = {word: self._vectors_by_word.get(word) for word in words}
        fresh = [word for word, row in rows.items() if row is None]
        for word, vector in zip(fresh, self._sums([self._pieces_of(word) for word in fresh]), strict=True):
            rows[word] = vector.tobytes()
            _remember(self._vectors_by_word, word, vector.tobytes(), MAX_CACHED_VECTORS)
        # Joining bytes takes a fifth of the time that copying arrays row by row does.
        joined = bytearray().join([rows[word] or b"" for word in words])
        return np.frombuffer(joined, dtype=np.float32).reshape(len(words), self.dims)

    def _pieces_of(self, text: str) -> list[int]:
        """The ids of a text's known pieces, in their order."""
        pieces: list[int] = []
        for word in unicodedata.normalize("NFKC", text).replace(WORD_START, " ").split():
            known = self._pieces_by_word.get(word)
            if known is None:
                known = self._segmented(word)
                _remember(self._pieces_by_word, word, known, MAX_CACHED_WORDS)
            pieces += known
        return pieces

    def _segmented(self, word: str) -> tuple[int, ...]:
        # Knowing how far each character's pieces reach pays on runs of CJK and costs more than it saves on words.
        reach = self._reach if len(word) > MAX_CACHED_CHARS else {}
        pieces = _segment(WORD_START + word, self._tables, reach)
        return () if pieces == [self._tables.ids.get(WORD_START)] else tuple(pieces)

    def _sum(self, pieces: Sequence[int]) -> Vector:
        import numpy as np

        total = np.zeros(self.dims, dtype=np.float32)
        scales, rows = self._tables.scales, self._tables.rows
        for start in range(0, len(pieces), BLOCK_PIECES):
            block = pieces[start : start + BLOCK_PIECES]
            total += scales.take(block) @ rows.take(block, axis=0).astype(np.float32)
        return total

    def _sums(self, words: Sequence[Sequence[int]]) -> Matrix:
        """The sum of each word's pieces; words of as many pieces are added up together."""
        import numpy as np

        sums = np.zeros((len(words), self.dims), dtype=np.float32)
        by_count: dict[int, list[int]] = {}
        for at, pieces in enumerate(words):
            by_count.setdefault(len(pieces), []).append(at)
        scales, rows = self._tables.scales, self._tables.rows
        for count, places in by_count.items():
            if count > MAX_PIECES_TOGETHER:
                for at in places:
                    sums[at] = self._sum(words[at])
                continue
            # Piece by piece, so that a word's vector is the same to the last bit in any company.
            total = np.zeros((len(places), self.dims), dtype=np.float32)
            for pieces in np.array([words[at] for at in places], dtype=np.intp).T:
                total += rows.take(pieces, axis=0) * scales.take(pieces)[:, None]
            sums[places] = total
        return sums

    @cached_property
    def _tables(self) -> _Tables:
        return _tables(self._path, self._file, self._layout)

    @cached_property
    def _reach(self) -> dict[str, int]:
        """How long the longest piece is that begins with a character."""
        reach: dict[str, int] = {}
        for piece in self._tables.ids:
            if len(piece) > reach.get(piece[:1], 0):
                reach[piece[:1]] = len(piece)
        return reach


class _Layout(NamedTuple):
    """What the header says: how many pieces and dimensions; and where costs and rows begin, in bytes."""

    pieces: int
    dims: int
    costs_at: int
    rows_at: int


class _Tables(NamedTuple):
    """A model in use: ids by piece; by id its cost, scale (n,) float32 and row (n, dims) int8."""

    ids: Mapping[str, int]
    costs: Sequence[int]
    unknown_cost: int
    least_cost: int
    longest: int
    scales: NDArray[np.float32]
    rows: NDArray[np.int8]


def _segment(word: str, tables: _Tables, reach: Mapping[str, int]) -> list[int]:
    """The ids of the cheapest way to write `word` in pieces, unknown characters left out.

    Viterbi over the unigram costs; of two equals stands the one found first, as in Hugging Face's Unigram. `reach`
    bounds the pieces that begin with a character; the longest piece bounds those of a character it does not hold.
    """
    find, costs, longest = tables.ids.get, tables.costs, tables.longest
    size = len(word)
    cheapest = [0.0, *[math.inf] * size]
    least = tables.least_cost
    came_by: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
    for start in range(size):
        so_far = cheapest[start]
        # At least one more piece is to come: from here the end cannot be reached for less.
        if so_far + least >= cheapest[size]:
            continue
        for end in range(start + 1, min(start + reach.get(word[start], longest), size) + 1):
            if (piece := find(word[start:end])) is not None:
                cost = so_far + costs[piece]
                if cost < cheapest[end]:
                    cheapest[end], came_by[end] = cost, (start, piece)
        # Dearer than any piece: it stands only where no piece of one character does.
        if so_far + tables.unknown_cost < cheapest[start + 1]:
            cheapest[start + 1], came_by[start + 1] = so_far + tables.unknown_cost, (start, None)
    pieces: list[int] = []
    while size:
        size, piece = came_by[size]
        if piece is not None:
            pieces.append(piece)
    return pieces[::-1]


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise EmbedderError(f"{path} cannot be read as a static model: {error}; {REMEDY}") from error


def _layout(path: Path, file: mmap.mmap) -> _Layout:
    """The header, checked against the size of the file."""
    try:
        header = json.loads(file[:HEADER_BYTES])
        magic, count, dims, pieces = (header[key] for key in ("magic", "n", "dim", "pieces"))
    except (ValueError, TypeError, KeyError) as error:
        raise EmbedderError(f"{path} has no static model's header ({error!r}); {REMEDY}") from error
    if magic != MAGIC or not all(type(number) is int and number > 0 for number in (count, dims, pieces)):
        raise EmbedderError(f"{path} has a header that is not of format {MAGIC}: {header}; {REMEDY}")
    costs_at = HEADER_BYTES + pieces
    rows_at = -(-(costs_at + 4 * count) // ALIGNMENT) * ALIGNMENT
    if len(file) != rows_at + count * dims:
        raise EmbedderError(f"{path} has {len(file)} bytes where {rows_at + count * dims} belong; {REMEDY}")
    return _Layout(count, dims, costs_at, rows_at)


def _tables(path: Path, file: mmap.mmap, layout: _Layout) -> _Tables:
    import numpy as np

    count, costs_at = layout.pieces, layout.costs_at
    try:
        pieces = file[HEADER_BYTES:costs_at].decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise EmbedderError(f"{path} has pieces that are not UTF-8: {error}; {REMEDY}") from error
    costs = np.frombuffer(file, "<u2", count, costs_at)
    scales = np.frombuffer(file, "<f2", count, costs_at + 2 * count).astype(np.float32)
    if len(pieces) != count or not np.isfinite(scales).all():
        raise EmbedderError(f"{path} has {len(pieces)} pieces of {count}, or a scale that is no number; {REMEDY}")
    ids = dict(zip(pieces, range(count), strict=True))
    ids.pop(UNKNOWN_PIECE, None)
    return _Tables(
        ids=ids,
        costs=costs.tolist(),
        unknown_cost=int(costs.max()) + UNKNOWN_PENALTY,
        least_cost=int(costs.min()),
        longest=max(map(len, pieces)),
        scales=scales,
        rows=np.frombuffer(file, np.int8, count * layout.dims, layout.rows_at).reshape(count, layout.dims),
    )


def _remember(cache: dict[str, T], word: str, value: T, limit: int) -> None:
    """Keep `value` unless the word is long; a full cache is emptied first."""
    if len(word) <= MAX_CACHED_CHARS:
        if len(cache) >= limit:
            cache.clear()
        cache[word] = value
