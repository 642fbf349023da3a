"""Read the file of a static model, format `oms2`, out of its mapped bytes, and cut words into its pieces.

The file holds, in this order, all numbers little-endian:

1. 128 bytes of JSON padded with spaces, last byte a newline: `{"magic": "oms2", "n": N, "dim": D, "bits": 8 or 4,
   "pieces": BYTES, "digest": "16 hex digits"}`; the digest is BLAKE2b, 8 bytes, of all that follows the header;
2. BYTES bytes: the N pieces in UTF-8, in the order of their bytes, end to end; U+2581 marks the start of a word;
3. zeros up to a multiple of 4, then N + 1 uint32: where each piece begins in that block, and where the last one ends;
4. N uint16: -1024 times the natural logarithm of each piece's unigram probability, its cost;
5. N float16: the scale of each row;
6. zeros up to a multiple of 64, then the rows: N x D int8; or with 4 bits N x D / 2 bytes of two values each, the
   first in the low half, as value + 8. The vector of piece i is row i times scale i.

A text is cut in NFKC and lower case, word by word; white space and `static.PUNCTUATION` part words and are left
out.
"""

from __future__ import annotations

import json
import math
import mmap
import re
import sys
from array import array
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REMEDY = "install openclaw_memory again, or give the path of another model file"

MAGIC = "oms2"
HEADER_BYTES = 128
ALIGNMENT = 64
BITS = (8, 4)
WORD_START = "\u2581"
# An unknown character costs 10 nats more than the rarest piece: kUnkPenalty of SentencePiece and Hugging Face.
UNKNOWN_PENALTY = 10 * 1024
# Above every byte of UTF-8: what begins with a prefix is less than the prefix and this.
ABOVE = b"\xff"
# The cache takes about 40 MB when full.
MAX_CACHED_RANGES = 200_000

_DIGEST = re.compile("[0-9a-f]{16}")


class Layout(NamedTuple):
    """The fields of the header, and the place of each part in bytes from the start of the file."""

    pieces: int
    dims: int
    bits: int
    pieces_bytes: int
    digest: str
    offsets_at: int
    costs_at: int
    scales_at: int
    rows_at: int
    row_bytes: int
    size: int


class ModelFile(NamedTuple):
    """A model file, mapped: its bytes are read from the disk when they are first looked at."""

    path: Path
    data: mmap.mmap
    layout: Layout


def make_layout(*, pieces: int, dims: int, bits: int, pieces_bytes: int, digest: str) -> Layout:
    """Return the layout of a file with so many pieces, of so many bytes together, and as many rows."""
    offsets_at = HEADER_BYTES + pieces_bytes + -pieces_bytes % 4
    costs_at = offsets_at + 4 * (pieces + 1)
    scales_at = costs_at + 2 * pieces
    rows_at = -(-(scales_at + 2 * pieces) // ALIGNMENT) * ALIGNMENT
    row_bytes = dims * bits // 8
    size = rows_at + pieces * row_bytes
    return Layout(pieces, dims, bits, pieces_bytes, digest, offsets_at, costs_at, scales_at, rows_at, row_bytes, size)


def open_model(path: Path) -> ModelFile:
    """Map a model file and check its header against its size, or raise EmbedderError.

    All of it is not read, which takes longer than the first answer: it finds a file of another kind, or one cut short.
    """
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise EmbedderError(f"{path} cannot be read as a static model: {error}; {REMEDY}") from error
    return ModelFile(path, data, _read_layout(path, data))


def check_bytes(model: ModelFile, sha256: str) -> None:
    """Raise EmbedderError unless the file as a whole has this SHA-256, in hex."""
    import hashlib

    actual = hashlib.sha256(model.data).hexdigest()
    if actual != sha256:
        raise EmbedderError(f"{model.path} is not this version's file: its SHA-256 is {actual}, not {sha256}; {REMEDY}")


def read_pieces(model: ModelFile) -> tuple[array[int], bytes]:
    """Return where each piece begins and the last one ends, and all pieces; raise EmbedderError if they are damaged."""
    import numpy as np

    layout = model.layout
    offsets = _read_numbers("I", model.data[layout.offsets_at : layout.offsets_at + 4 * (layout.pieces + 1)])
    ends = np.frombuffer(offsets, np.uint32)
    if (ends[1:] <= ends[:-1]).any() or ends[-1] > layout.pieces_bytes:
        raise EmbedderError(f"{model.path} has pieces that do not follow each other; {REMEDY}")
    return offsets, model.data[HEADER_BYTES : HEADER_BYTES + layout.pieces_bytes]


def read_costs(model: ModelFile) -> array[int]:
    """Return the cost of each piece: -1024 times the natural logarithm of its probability."""
    return _read_numbers("H", model.data[model.layout.costs_at : model.layout.scales_at])


def read_scales(model: ModelFile) -> NDArray[np.float32]:
    """Return the scale of each row, shape (n,); raise EmbedderError if one is not a number."""
    import numpy as np

    layout = model.layout
    scales = np.frombuffer(model.data, "<f2", layout.pieces, layout.scales_at).astype(np.float32)
    if not np.isfinite(scales).all():
        raise EmbedderError(f"{model.path} has a scale that is not a number; {REMEDY}")
    return scales


def map_rows(model: ModelFile) -> NDArray[np.integer[Any]]:
    """Return the rows as they lie in the file, not copied: int8 (n, dims), or with 4 bits uint8 (n, dims / 2)."""
    import numpy as np

    layout = model.layout
    kind: type[np.integer[Any]] = np.int8 if layout.bits == 8 else np.uint8
    values = np.frombuffer(model.data, kind, layout.pieces * layout.row_bytes, layout.rows_at)
    return values.reshape(layout.pieces, layout.row_bytes)


def unpack(rows: NDArray[np.integer[Any]], bits: int) -> NDArray[np.int8]:
    """Return the values, int8 (k, dims), of some rows as they lie in the file."""
    import numpy as np

    if bits == 8:
        return rows.view(np.int8)
    values = np.empty((len(rows), 2 * rows.shape[1]), np.int8)
    np.bitwise_and(rows, 15, out=values[:, 0::2], casting="unsafe")
    np.right_shift(rows, 4, out=values[:, 1::2], casting="unsafe")
    values -= 8
    return values


def _read_layout(path: Path, data: mmap.mmap) -> Layout:
    try:
        header = json.loads(data[:HEADER_BYTES])
        magic, digest = header["magic"], header["digest"]
        pieces, dims, bits, pieces_bytes = (header[key] for key in ("n", "dim", "bits", "pieces"))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise EmbedderError(f"{path} has no static model's header ({error!r}); {REMEDY}") from error
    numbers = all(type(number) is int and number > 0 for number in (pieces, dims, bits, pieces_bytes))
    if magic != MAGIC or not numbers or bits not in BITS or dims * bits % 8 or not _DIGEST.fullmatch(str(digest)):
        raise EmbedderError(f"{path} has a header that is not of format {MAGIC}: {header}; {REMEDY}")
    layout = make_layout(pieces=pieces, dims=dims, bits=bits, pieces_bytes=pieces_bytes, digest=digest)
    if len(data) != layout.size:
        raise EmbedderError(f"{path} has {len(data)} bytes where {layout.size} belong; {REMEDY}")
    return layout


def _read_numbers(code: str, data: bytes) -> array[int]:
    numbers = array(code, data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


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

    def is_piece(self, characters: str) -> bool:
        """Return whether these characters are one piece."""
        return (self._ranges.get(characters) or self._narrow(characters, 0, len(self._costs)))[2]

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
