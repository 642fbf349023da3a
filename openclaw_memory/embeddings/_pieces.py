"""How texts are parted into requests, and how the vectors of a long text's pieces become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from openclaw_memory.embeddings import normalised

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")


def weight(text: str) -> int:
    """An upper bound of a text's tokens: its UTF-8 bytes, since no tokenizer makes two tokens of one byte."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def encodable(text: str) -> str:
    """The text with lone surrogates, which no request can carry, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def packs(items: Iterable[T], max_items: int, max_weight: int, weigh: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in their order, in lists of at most `max_items` that weigh at most `max_weight` together.

    An item that weighs more by itself is a list of its own. An item is taken from `items` no sooner than needed.
    """
    pack: list[T] = []
    total = 0
    for item in items:
        size = weigh(item)
        if pack and total + size > max_weight:
            yield pack
            pack, total = [], 0
        pack.append(item)
        total += size
        if len(pack) >= max_items:
            yield pack
            pack, total = [], 0
    if pack:
        yield pack


def joined(vectors: Matrix, weights: Sequence[int]) -> Vector:
    """One unit vector, shape (dims,), for a text whose pieces have `vectors`, shape (n, dims): their weighted mean."""
    import numpy as np

    mean = np.average(vectors, axis=0, weights=weights)
    whole: Vector = normalised(mean[None, :])[0]
    return whole
