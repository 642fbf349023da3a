"""How texts are divided into requests, and how vectors come back from them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory.embeddings.vectors import normalised
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

T = TypeVar("T")


def weight(text: str) -> int:
    """Return an upper bound of a text's tokens: its UTF-8 bytes, since no tokenizer makes two tokens of one byte."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def encodable(text: str) -> str:
    """Return the text with lone surrogates, which no request can carry, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def packs(items: Iterable[T], max_items: int, max_weight: int, weigh: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in their order, in lists of at most `max_items` that weigh at most `max_weight` together.

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
    """Return the unit vector, shape (dims,), of a text whose pieces have `vectors`, shape (n, dims)."""
    import numpy as np

    mean = np.average(vectors, axis=0, weights=weights)
    whole: Vector = normalised(mean[None, :])[0]
    return whole


def in_order(answer: Any, count: int, origin: str) -> list[Any]:
    """Return the vectors of an answer of OpenAI or Voyage in the order of its indexes, as arrays or lists.

    Raises:
        EmbedderError: it has no rows, or not one for each index from 0 to `count` - 1; `origin` says who sent it.
    """
    import numpy as np

    rows = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        # Not cut here: half of a key looks like ordinary words.
        sent = " ".join(str(answer).split())
        raise EmbedderError(f"{origin} sent an answer without a list of embeddings; check base_url and model: {sent}")
    by_index = {row.get("index"): row.get("embedding") for row in rows}
    if len(rows) != count or set(by_index) != set(range(count)):
        raise EmbedderError(
            f"{origin} sent {len(rows)} embeddings with {len(by_index)} different indexes for {count} texts; "
            "each text must have one"
        )
    vectors = [by_index[index] for index in range(count)]
    return [np.frombuffer(b64decode(v, validate=True), "<f4") if isinstance(v, str) else v for v in vectors]


def results_of(lines: Iterable[Any], origin: str) -> dict[str, Any]:
    """Return the vectors of a job of OpenAI or Voyage by key; a line of its file for each text, failed ones left out.

    Raises:
        EmbedderError: a line has no vector though it says so; `origin` says who sent it.
    """
    answers = ((line["custom_id"], line.get("response") or {}) for line in lines)
    return {key: in_order(answer["body"], 1, origin)[0] for key, answer in answers if answer.get("status_code") == 200}
