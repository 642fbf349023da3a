"""A small embedder for tests and examples: words hashed to signed dimensions, the same on every machine."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING

from openclaw_memory.embeddings.vectors import normalize, quote_name
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openclaw_memory.types import Matrix, Vector

WORD = re.compile(r"\w+")
# An odd number, so that the signs of one word never cancel out.
DIMENSIONS_PER_WORD = 3


def create(model: str | None = None, *, dims: int = 64) -> HashingEmbedder:
    """Return a `HashingEmbedder`; raise EmbedderError if a model is named, or `dims` is not positive."""
    if model is not None:
        raise EmbedderError(f"the hashing embedder has no model {quote_name(model)}; leave the model out")
    return HashingEmbedder(dims)


class HashingEmbedder:
    """Texts are alike as far as they share lower-cased words. A text without words has the zero vector."""

    provider = "hashing"
    model = "signed-words"
    leaves_machine = False

    def __init__(self, dims: int = 64) -> None:
        if dims < 1:
            raise EmbedderError(f"dims must be 1 or more, not {dims}")
        self.dims = dims
        self.identity = f"{self.provider}:{self.model}:{dims}"

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        sums = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, text in zip(sums, texts, strict=True):
            for word in WORD.findall(text.lower()):
                digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4 * DIMENSIONS_PER_WORD).digest()
                for number in memoryview(digest).cast("I"):
                    row[(number >> 1) % self.dims] += 1 if number & 1 else -1
        return normalize(sums)

    def close(self) -> None:
        """Do nothing: nothing is open."""
