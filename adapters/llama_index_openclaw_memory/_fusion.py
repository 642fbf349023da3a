"""Rankings of LlamaIndex's: two legs fused by their scores, and maximal marginal relevance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from openclaw_memory.errors import EmbedderError
from openclaw_memory.types import Document

if TYPE_CHECKING:
    from openclaw_memory.types import Vector

Scored: TypeAlias = Sequence[tuple[Document, float]]


def fused(dense: Scored, sparse: Scored, alpha: float) -> list[tuple[Document, float]]:
    """Both legs in one, best first: `alpha` times the score of the first plus `1 - alpha` times that of the second.

    The scores of each leg are scaled to 0..1 by its least and its largest (relative score fusion, as other hybrid
    stores of LlamaIndex do it); what a leg lacks has 0 there.
    """
    total: dict[str, tuple[Document, float]] = {}
    for leg, weight in ((dense, alpha), (sparse, 1 - alpha)):
        for (document, _), share in zip(leg, _scaled(score for _, score in leg), strict=True):
            before = total.get(document.id, (document, 0.0))[1]
            total[document.id] = (document, before + weight * share)
    return sorted(total.values(), key=lambda pair: -pair[1])


def _scaled(scores: Iterable[float]) -> list[float]:
    """Scores from 0, the least, to 1, the largest; 1 each where they are the same."""
    some = list(scores)
    least, largest = min(some, default=0.0), max(some, default=0.0)
    return [(one - least) / (largest - least) if largest > least else 1.0 for one in some]


def by_cosine(vector: Sequence[float], rows: Sequence[tuple[Document, Vector]]) -> list[tuple[Document, float]]:
    """Documents with unit vectors, shape (dims,), nearest to a vector first, with their cosines.

    Raises:
        EmbedderError: it has other dimensions than they have.
    """
    import numpy as np

    asked = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(asked))
    if wrong := [len(row) for _, row in rows if row.shape != asked.shape]:
        raise EmbedderError(
            f"the query vector has shape {asked.shape}, the nodes have vectors of {wrong[0]} dimensions"
        )
    found = [(document, float(row @ asked) / length if length else 0.0) for document, row in rows]
    return sorted(found, key=lambda pair: -pair[1])


def marginal(vector: Sequence[float], rows: Sequence[Vector], k: int, threshold: float) -> list[tuple[int, float]]:
    """The numbers of k rows that are near and repeat nothing, in the order they are chosen, with their scores.

    Each is the one of the rest with the largest `threshold * nearness - (1 - threshold) * likeness`, by cosines, where
    the likeness is that to the row chosen just before, as in LlamaIndex's `get_top_k_mmr_embeddings`; the first goes by
    nearness alone. `rows` are unit vectors, shape (dims,).
    """
    import numpy as np

    if not rows:
        return []
    matrix = np.asarray(rows, dtype=np.float64)
    asked = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(asked))
    near = matrix @ (asked / length if length else asked) * threshold
    score = near.copy()
    left = np.ones(len(rows), dtype=bool)
    chosen: list[tuple[int, float]] = []
    while len(chosen) < min(k, len(rows)):
        at = int(np.argmax(np.where(left, score, -np.inf)))
        chosen.append((at, float(score[at])))
        left[at] = False
        score = near - (1 - threshold) * (matrix @ matrix[at])
    return chosen
