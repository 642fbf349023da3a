"""Vectors as OpenAI and Voyage send them: rows with an index, each a list of numbers or float32 in base64."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from openclaw_memory.errors import EmbedderError


def in_order(answer: Any, count: int, origin: str) -> list[Any]:
    """The vectors of an answer in the order of its indexes, as arrays, or as the lists that were sent.

    Raises:
        EmbedderError: it has no rows, or not one for each index from 0 to `count` - 1; `origin` says who sent it.
    """
    import numpy as np

    rows = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        # Not cut here: half of a key could not be told any more from ordinary words.
        said = " ".join(str(answer).split())
        raise EmbedderError(f"{origin} sent an answer without a list of embeddings; check base_url and model: {said}")
    by_index = {row.get("index"): row.get("embedding") for row in rows}
    if len(rows) != count or set(by_index) != set(range(count)):
        raise EmbedderError(
            f"{origin} sent {len(rows)} embeddings with {len(by_index)} different indexes for {count} texts; "
            "each text must have one"
        )
    vectors = [by_index[index] for index in range(count)]
    return [np.frombuffer(b64decode(v, validate=True), "<f4") if isinstance(v, str) else v for v in vectors]
