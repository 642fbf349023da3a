"""The codes of tokens: few bits for the vector of each word of a text, which keep the angle to the token of a query.

A vector is projected by a seeded random rotation, and the signs are kept. The token of a query keeps its numbers, which
estimates a cosine better than comparing signs with signs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from openclaw_memory.errors import CorruptIndexError
from openclaw_memory.text.terms import locate_words, select_content_words, stem_word

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from openclaw_memory.types import Matrix
    from openclaw_memory.types.index import TokenVectors

# Raise it when the same text comes to have other codes: indexes with codes are then built again.
CODES_VERSION = 1
# Bits of a token: more found no more (benchmarks/EXPERIMENTS.md).
BITS = 128
SEED = 7
# OpenBLAS shares a product of more multiplications among threads and waits for them: while a model keeps the processors
# busy, ten times as long as one thread takes for the tokens of a text.
UNSHARED = 1 << 18
# A share of a word's weight that is rounding alone.
NOTHING = 1e-6


def pack_tokens(text: str, tokens: TokenVectors | None) -> bytes:
    """Return the codes of the tokens of a text, line by line, without those of stop words; b"" without tokens.

    First comes the number of codes of each line, then the codes; `unpack_tokens` reads them.
    """
    import numpy as np

    if tokens is None:
        return b""
    vectors, spans = tokens
    words = dict.fromkeys(map(stem_word, select_content_words(text)), 1.0)
    heavy = np.flatnonzero(weigh_tokens(text, spans, words) > NOTHING)
    heavy = heavy[np.argsort(spans[heavy, 0], kind="stable")]
    breaks = np.array([at for at, sign in enumerate(text) if sign == "\n"], np.int64)
    lines = np.searchsorted(breaks, spans[heavy, 0])
    counts = np.bincount(lines, minlength=len(breaks) + 1).astype("<u2")
    signs = rotate(vectors[heavy]) > 0
    return counts.tobytes() + np.packbits(signs, axis=1).tobytes()


def unpack_tokens(codes: bytes, lines: int) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Return the codes of a text of so many lines, shape (n, BITS / 8), and how many each line has; none of b"".

    Raises:
        CorruptIndexError: They are not a result of `pack_tokens` for such a text.
    """
    import numpy as np

    if not codes:
        return np.zeros((0, BITS // 8), np.uint8), np.zeros(lines, np.intp)
    counts = np.frombuffer(codes[: 2 * lines].ljust(2 * lines, b"\0"), "<u2").astype(np.intp)
    if len(codes) != 2 * lines + counts.sum() * BITS // 8:
        raise CorruptIndexError("the index holds codes of tokens that are damaged; sync to build it again")
    return np.frombuffer(codes, np.uint8, offset=2 * lines).reshape(-1, BITS // 8), counts


def rotate(vectors: Matrix) -> Matrix:
    """Return vectors of shape (n, dims) in the space of the codes, with length 1; shape (n, BITS)."""
    import numpy as np

    rotation, numbers = _make_rotation(vectors.shape[1]), np.asarray(vectors, np.float32)
    size = max(1, UNSHARED // rotation.size)
    rows = np.concatenate([numbers[at : at + size] @ rotation for at in range(0, len(numbers) or 1, size)])
    unit: Matrix = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-10)
    return unit


def weigh_tokens(text: str, spans: NDArray[np.int64], weights: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the weight of each token: its share, by characters, in the weights of the words that it is part of.

    Args:
        text: The text of the tokens.
        spans: Where each token is in it, shape (n, 2).
        weights: The weights of words by their stems; others have none.
    """
    import numpy as np

    shares = np.zeros(len(text) + 1)
    for start, end, word in locate_words(text):
        shares[start + 1 : end + 1] += weights.get(stem_word(word), 0.0) / (end - start)
    total = np.cumsum(shares)
    inside = np.clip(spans, 0, len(text))
    sums: NDArray[np.float64] = total[inside[:, 1]] - total[inside[:, 0]]
    return sums


@lru_cache(maxsize=4)
def _make_rotation(dims: int) -> Any:
    """Return the random rotation, shape (dims, BITS), the same on every machine; orthogonal if dims suffice."""
    import numpy as np

    rows = np.random.RandomState(SEED).standard_normal((dims, max(BITS, dims))).T[:BITS].copy()
    for at, own in enumerate(rows if dims >= BITS else ()):  # Gram-Schmidt, without BLAS and its threads
        rows[at] = unit = own / np.sqrt((own**2).sum())
        rows[at + 1 :] -= np.outer(np.einsum("ij,j->i", rows[at + 1 :], unit), unit)
    return rows.T.astype(np.float32)
