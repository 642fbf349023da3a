"""Texts in, vectors out as they become ready: what a sync reads from whatever embedder it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from openclaw_memory.embeddings import checked_vectors
from openclaw_memory.embeddings._pieces import packs, weight
from openclaw_memory.errors import EmbedderError

if TYPE_CHECKING:
    from openclaw_memory.embeddings._remote import Answer, RemoteEmbedder
    from openclaw_memory.types import Embedder, Matrix

    Wanted: TypeAlias = tuple[str, str]  # the key of a vector, and the text to embed

# Texts handed at once to an embedder that asks no service: it bounds what a run that is killed does twice.
TEXTS_PER_CALL = 256
# Requests that are ready or under way, for each that may run at once: a free slot never waits for files to be read.
REQUESTS_AHEAD = 4


class Embedded(NamedTuple):
    """What came of some texts, named by their keys: their vectors, or the error that kept them back.

    `isolated` says that the error lies in these texts: others were, or will be, asked for nonetheless. `tokens` were
    sent, estimated from above.
    """

    keys: list[str]
    vectors: Matrix | None
    error: EmbedderError | None = None
    isolated: bool = False
    tokens: int = 0


def stream(embedder: Embedder | EmbedderError, wanted: Iterable[Wanted]) -> Iterator[Embedded]:
    """Embed texts as documents; yields what is ready, in no order, and takes from `wanted` only as far ahead as needed.

    After an error that does not lie in the texts, the rest is not asked for and shares that error; in place of an
    embedder there may be such an error from the beginning.
    """
    if isinstance(embedder, EmbedderError):
        return _refused(wanted, embedder)
    if asks_service(embedder):
        service: Any = getattr(embedder, "inner", embedder)
        return _from_service(service, wanted)
    return _from_calls(embedder, wanted)


def asks_service(embedder: object) -> bool:
    """Whether texts are embedded elsewhere, several requests at once, while this process goes on."""
    return hasattr(getattr(embedder, "inner", embedder), "submit")


def _refused(wanted: Iterable[Wanted], error: EmbedderError) -> Iterator[Embedded]:
    for key, _ in wanted:
        yield Embedded([key], None, error)


def _from_calls(embedder: Embedder, wanted: Iterable[Wanted]) -> Iterator[Embedded]:
    origin = f"embedder {embedder.provider} {embedder.model}".strip()
    failed: EmbedderError | None = None
    for pack in packs(wanted, TEXTS_PER_CALL, TEXTS_PER_CALL, lambda _: 1):
        keys, texts = [key for key, _ in pack], [text for _, text in pack]
        if failed is None:
            try:
                vectors = checked_vectors(embedder.embed_documents(texts), len(texts), origin)
            except EmbedderError as error:
                failed = error
            else:
                yield Embedded(keys, vectors, tokens=sum(map(weight, texts)))
                continue
        yield Embedded(keys, None, failed)


def _from_service(embedder: RemoteEmbedder, wanted: Iterable[Wanted]) -> Iterator[Embedded]:
    pending: dict[Future[list[Answer]], list[Wanted]] = {}
    limits = embedder.service.limits
    failed: EmbedderError | None = None
    try:
        for pack in packs(wanted, limits.items, limits.request_tokens, lambda item: weight(item[1])):
            if failed is not None:
                yield Embedded([key for key, _ in pack], None, failed)
                continue
            pending[embedder.submit([text for _, text in pack])] = pack
            full = len(pending) >= REQUESTS_AHEAD * embedder.concurrency
            for embedded in _finished(pending, timeout=None if full else 0):
                failed = failed or (None if embedded.isolated else embedded.error)
                yield embedded
        while pending:
            yield from _finished(pending, timeout=None)
    finally:
        for future in pending:
            future.cancel()


def _finished(pending: dict[Future[list[Answer]], list[Wanted]], timeout: float | None) -> Iterator[Embedded]:
    """Take out of `pending` what is done, after waiting up to `timeout` for the first."""
    done, _ = wait(pending, timeout, FIRST_COMPLETED)
    for future in done:
        pack = pending.pop(future)
        try:
            answers = future.result()
        except CancelledError:
            yield Embedded([key for key, _ in pack], None, EmbedderError("the embedder was closed; sync again"))
            continue
        for answer in answers:
            chosen = [pack[place] for place in answer.places]
            isolated = getattr(answer.error, "isolated", False)
            tokens = sum(weight(text) for _, text in chosen)
            yield Embedded([key for key, _ in chosen], answer.vectors, answer.error, isolated, tokens)
