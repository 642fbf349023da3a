"""Late interaction (MaxSim): a line is as near to a query as the nearest of its tokens to each token of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.embeddings.token_codes import BITS, NOTHING, rotate, token_weights, unpack_tokens
from openclaw_memory.search.lines import Line
from openclaw_memory.search.prepared import REACH_OF_WORDS, Neighbourhood
from openclaw_memory.search.query import Query
from openclaw_memory.types import StoredChunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.types.index import TokenVectors

    Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The tokens of a query in the space of the codes, shape (n, BITS), and their shares in its meaning, shape (n,)."""

    vectors: Floats
    shares: Floats


def query_tokens(query: Query, tokens: TokenVectors) -> QueryTokens | None:
    """Return the tokens of the words that count, weighted by the rarity of these words; None where there are none."""
    vectors, spans = tokens
    weights = token_weights(query.text, spans, dict(zip(query.stems, query.weights, strict=True)))
    kept = np.flatnonzero(weights > NOTHING)
    if not len(kept):
        return None
    shares = (weights[kept] / weights[kept].sum()).astype(np.float32)
    return QueryTokens(rotate(vectors[kept]), shares)


def token_matches(
    query: QueryTokens,
    chunks: Sequence[StoredChunk],
    lines: Sequence[Line],
    neighbourhood: Neighbourhood,
) -> tuple[Floats, list[float]]:
    """Return how near each line is to the tokens of the query, and each chunk; 0..1.

    A line counts its own tokens and, faded, those of its neighbours; a chunk also those of its context.

    Args:
        query: The tokens of the query.
        chunks: The candidates, with their codes.
        lines: Their lines.
        neighbourhood: The distances between the lines.
    """
    best, of_chunk, places = _best_by_row(query, chunks)
    at = np.array([places.get((line.path, line.start_char), -1) for line in lines])
    own = np.where((at >= 0)[:, None], best[at], np.float32(0))
    near: Floats = np.einsum("ij,j->i", neighbourhood.strongest(own, REACH_OF_WORDS), query.shares)
    starts = np.searchsorted(of_chunk, np.arange(len(chunks)))
    whole = np.einsum("ij,j->i", np.maximum.reduceat(best, starts, axis=0), query.shares)
    return near, whole.tolist()


def _best_by_row(
    query: QueryTokens, chunks: Sequence[StoredChunk]
) -> tuple[Floats, NDArray[np.intp], dict[tuple[str, int], int]]:
    """Return the best cosine of any token, for each row and token of the query; the rows are the lines of all texts.

    Also the chunk of each row, and the row at each place (path and offset) in a file.
    """
    tokens, counts, of_chunk = [], [], []
    places: dict[tuple[str, int], int] = {}
    row = 0
    for number, stored in enumerate(chunks):
        chunk = stored.chunk
        rows = chunk.embedding_text.count("\n") + 1
        found, each = unpack_tokens(stored.token_codes, rows)
        tokens.append(found)
        counts.append(each)
        of_chunk += [number] * rows
        start, own = chunk.start_char, chunk.text.split("\n")
        for at, text in enumerate(own, row + rows - len(own)):
            places.setdefault((stored.path, start), at)
            start += len(text) + 1
        row += rows
    filled = np.concatenate(counts)
    best = np.zeros((row, len(query.shares)), np.float32)
    used = np.flatnonzero(filled)
    if len(used):
        cosines = _cosines(query.vectors, np.concatenate(tokens))
        starts = (np.cumsum(filled) - filled)[used]
        best[used] = np.maximum.reduceat(cosines, starts, axis=1).T
    return np.maximum(best, 0), np.array(of_chunk, np.intp), places


def _cosines(vectors: Floats, codes: NDArray[np.uint8]) -> Floats:
    """Return the estimated cosines of vectors of length 1 with tokens, shape (vectors, codes).

    The product of the numbers with signs is twice that with bits, less the sum of the numbers.
    """
    bits = np.unpackbits(codes, axis=1).astype(np.float32)
    products = np.einsum("ij,kj->ik", vectors, bits)
    found: Floats = (2 * products - vectors.sum(axis=1)[:, None]) / np.float32(np.sqrt(BITS))
    return found
