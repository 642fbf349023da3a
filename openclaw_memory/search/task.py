"""How near each result is to the task at hand, and what that brings to its score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.search.prepared import Lexicon
from openclaw_memory.search.query import Query
from openclaw_memory.search.ranking import TASK
from openclaw_memory.types import SearchResult, Store, StoredChunk

if TYPE_CHECKING:
    from openclaw_memory.types import Vector


@dataclass(frozen=True, slots=True)
class Task:
    """What the asker is at work on: its text, parsed, with the rarity of its words, and its vector.

    Without a `vector` it is compared by its words.
    """

    query: Query
    vector: Vector | None


def with_task(
    answers: Sequence[SearchResult],
    task: Task,
    weight: float,
    chunks: Sequence[StoredChunk],
    store: Store,
    lexicon: Lexicon,
) -> list[SearchResult]:
    """Return the results with new scores, in which their likeness to the task counts; their order stays.

    The likeness, 0..1, is that of the nearest chunk that a result has lines of. It counts as a share of the best score,
    which no new score is above: a task makes no result of a search that has found nothing good.

    Args:
        answers: The results, before age and threshold.
        task: The task.
        weight: How much the likeness counts, 0..1; the score of before counts the rest.
        chunks: The chunks that the results are from.
        store: Holds their vectors.
        lexicon: Knows their words.
    """
    by_path: dict[str, list[StoredChunk]] = {}
    for stored in chunks:
        by_path.setdefault(stored.path, []).append(stored)
    own = [[one.id for one in by_path.get(answer.path, ()) if _overlap(answer, one)] for answer in answers]
    below = set().union(*own)
    wanted = {stored.id: stored for stored in chunks if stored.id in below}
    near = _by_words(task.query, wanted, lexicon) if task.vector is None else _by_vectors(task.vector, wanted, store)
    best = max((answer.score for answer in answers), default=0.0)
    parts = [weight * best * max((near.get(at, 0.0) for at in of_one), default=0.0) for of_one in own]
    return [
        replace(answer, score=(1 - weight) * answer.score + part, parts={**answer.parts, TASK: part})
        for answer, part in zip(answers, parts, strict=True)
    ]


def _overlap(answer: SearchResult, stored: StoredChunk) -> bool:
    return stored.chunk.start_line <= answer.end_line and answer.start_line <= stored.chunk.end_line


def _by_vectors(vector: Vector, chunks: Mapping[int, StoredChunk], store: Store) -> dict[int, float]:
    """Return the cosine of the task and each chunk, 0 where it is below; chunks without a vector are left out."""
    vectors = store.vectors(sorted(chunks))
    return {at: float(np.clip(one @ vector, 0, 1)) for at, one in vectors.items()}


def _by_words(task: Query, chunks: Mapping[int, StoredChunk], lexicon: Lexicon) -> dict[int, float]:
    """Return the share of the task's words that each chunk holds, where a rare word counts more."""
    weights = dict(zip(task.stems, task.weights, strict=True))
    whole = sum(weights.values())
    if not whole:
        return {}
    held = zip(chunks, lexicon.stems_of([*chunks.values()]), strict=True)
    numbers = lexicon.stem_numbers  # of the words that were read so far, those of the chunks among them
    of_task = {numbers[stem]: weight for stem, weight in weights.items() if stem in numbers}
    return {at: sum(weight for stem, weight in of_task.items() if stem in stems) / whole for at, stems in held}
