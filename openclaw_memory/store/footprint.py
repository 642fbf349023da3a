"""Estimate how much memory the searches of an index take."""

from __future__ import annotations

# What was asked for is kept up to these limits: exact vectors, chunks, and postings, these for each chunk of the index.
EXACT_BYTES, MAX_CHUNKS, POSTING_BYTES = 8 << 20, 12_000, 256
BYTES_OF_TEXT = 1500  # of a chunk that was asked for, about
BYTES_OF_CHUNK = 39  # of any chunk but for its code: id, length, source and so on


def estimate_bytes(chunks: int, dims: int) -> int:
    """Return how much memory an index of so many chunks may come to take, with some room to grow."""
    of_chunks = chunks * (dims + BYTES_OF_CHUNK + POSTING_BYTES) * 9 // 8
    return of_chunks + min(EXACT_BYTES, chunks * 4 * dims) + min(chunks, MAX_CHUNKS) * BYTES_OF_TEXT
