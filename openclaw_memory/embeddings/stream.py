"""Texts in, vectors out as they become ready: what a sync reads from whatever embedder it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from openclaw_memory.embeddings.remote.errors import ServiceError
from openclaw_memory.embeddings.selection import unguarded
from openclaw_memory.embeddings.token_codes import packed
from openclaw_memory.embeddings.vectors import checked_vectors, own_errors, packs, weight
from openclaw_memory.errors import EmbedderError
from openclaw_memory.types.protocols import PreparingEmbedder, ServiceEmbedder, TokenEmbedder

if TYPE_CHECKING:
    from openclaw_memory.embeddings.remote.client import RemoteEmbedder
    from openclaw_memory.embeddings.remote.pipeline import Answer
    from openclaw_memory.store.embedding_cache import EmbeddingCache
    from openclaw_memory.types import Embedder, Matrix, Store

    Wanted: TypeAlias = tuple[str, str]  # the key of a vector, and the text to embed

# Texts handed at once to an embedder that asks no service: it bounds what a run that is killed does twice.
TEXTS_PER_CALL = 256
# Requests that are ready or under way, for each that may run at once: a free slot never waits for files to be read.
REQUESTS_AHEAD = 4
# How far others may overtake a request that is tried again: files are written in their order, and wait in memory.
OVERTAKING = 64


class Embedded(NamedTuple):
    """What came of some texts, named by their keys: their vectors, or the error that kept them back.

    `isolated` says that the error lies in these texts: others were, or will be, asked for nonetheless. `tokens` were
    sent, estimated from above. `token_codes` has the codes of the tokens of each text, if the embedder gives tokens.
    """

    keys: list[str]
    vectors: Matrix | None
    error: EmbedderError | None = None
    isolated: bool = False
    tokens: int = 0
    token_codes: list[bytes] | None = None


def stream(embedder: Embedder | EmbedderError, wanted: Iterable[Wanted]) -> Iterator[Embedded]:
    """Embed texts as documents; yields what is ready, in no order, and takes from `wanted` only as far ahead as needed.

    After an error that does not lie in the texts, the rest is not asked for and shares that error; in place of an
    embedder there may be such an error from the beginning.
    """
    asked = remote(embedder)
    return _from_calls(embedder, wanted) if asked is None else _from_service(asked, wanted)


def known_vectors(
    store: Store,
    keys: Iterable[str],
    identity: str,
    embedder: Embedder | EmbedderError | None,
    cache: EmbeddingCache | None = None,
) -> set[str]:
    """Return the keys that the embedder need not be asked for: their vectors are stored, and all that comes with them.

    Args:
        store: The store. It gets the vectors that are cached.
        keys: The keys of texts.
        identity: The model of the vectors.
        embedder: What would be asked.
        cache: What all workspaces of the user have had embedded.
    """
    texts = list(keys)
    if not texts:
        return set()
    with_token_codes = isinstance(unguarded(embedder), TokenEmbedder)
    options = {"with_token_codes": True} if with_token_codes else {}
    stored = store.known_vectors(texts, identity, **options)
    missing = [key for key in texts if key not in stored]
    if cache is not None and (cached := cache.load(identity, missing, with_token_codes=with_token_codes)) is not None:
        restored, vectors, codes = cached
        add_vectors(store, Embedded(restored, vectors, token_codes=codes), identity)
        stored |= set(restored)
    return stored


def add_vectors(store: Store, embedded: Embedded, identity: str, cache: EmbeddingCache | None = None) -> None:
    """Store what came of some texts, whose `vectors` are there. Raises EmbedderError as `Store.add_vectors`."""
    if embedded.vectors is None:
        return
    options = {} if embedded.token_codes is None else {"token_codes": embedded.token_codes}
    store.add_vectors(embedded.keys, embedded.vectors, identity, **options)
    if cache is not None:
        cache.save(identity, embedded.keys, embedded.vectors, embedded.token_codes)


def is_unheard(embedder: Embedder | None) -> bool:
    """Return whether texts are embedded by a service that has never answered this process."""
    asked = remote(embedder)
    return asked is not None and not asked.has_answered


def asks_service(embedder: Embedder | EmbedderError | None) -> bool:
    """Return whether texts are embedded elsewhere, several requests at once, while this process goes on."""
    return remote(embedder) is not None


def remote(embedder: Embedder | EmbedderError | None) -> RemoteEmbedder | None:
    """Return the embedder itself, without its circuit breaker, where it asks a service in the background."""
    inner = unguarded(embedder)
    if isinstance(inner, PreparingEmbedder):
        inner = inner.inner
    if not isinstance(inner, ServiceEmbedder):  # what it takes to ask services need not be imported
        return None
    from openclaw_memory.embeddings.remote.client import RemoteEmbedder

    return inner if isinstance(inner, RemoteEmbedder) else None


def _from_calls(embedder: Embedder | EmbedderError, wanted: Iterable[Wanted]) -> Iterator[Embedded]:
    failed = embedder if isinstance(embedder, EmbedderError) else None
    for pack in packs(wanted, TEXTS_PER_CALL, TEXTS_PER_CALL, lambda _: 1):
        keys, texts = [key for key, _ in pack], [text for _, text in pack]
        if failed is None and not isinstance(embedder, EmbedderError):
            try:
                origin = f"embedder {embedder.provider} {embedder.model}".strip()
                raw, codes = _embedded(embedder, texts)
                vectors = checked_vectors(raw, len(texts), origin)
            except EmbedderError as error:
                failed = error
            else:
                yield Embedded(keys, vectors, tokens=sum(map(weight, texts)), token_codes=codes)
                continue
        yield Embedded(keys, None, failed)


def _embedded(embedder: Embedder, texts: list[str]) -> tuple[Matrix, list[bytes] | None]:
    """Return the vectors of texts, and the codes of their tokens if the embedder gives tokens."""
    inner = unguarded(embedder)
    if not isinstance(inner, TokenEmbedder):
        return embedder.embed_documents(texts), None
    with own_errors(f"the embedder {inner.provider} {inner.model} failed"):
        vectors, tokens = inner.embed_document_tokens(texts)
        return vectors, [packed(text, found) for text, found in zip(texts, tokens, strict=True)]


def _from_service(embedder: RemoteEmbedder, wanted: Iterable[Wanted]) -> Iterator[Embedded]:
    pending: dict[Future[list[Answer]], tuple[int, list[Wanted]]] = {}
    limits = embedder.service.limits
    # Closing ends this, also where it finds no request to cancel: the next would open a new connection.
    since = embedder.closings
    failed: EmbedderError | None = None

    def drained(at_least: int) -> Iterator[Embedded]:
        """What is done; waits until no more than so many are pending, and none is overtaken too often."""
        nonlocal failed
        while pending and failed is None:
            oldest = next(iter(pending))
            overtaken = number - pending[oldest][0] >= OVERTAKING
            patient = overtaken or len(pending) > at_least
            for embedded in _finished(pending, [oldest] if overtaken else pending, None if patient else 0):
                failed = failed or (None if embedded.isolated else embedded.error)
                yield embedded
            if not patient:
                break
        if failed is not None:  # what is under way would fail as well, after all its tries
            for future, (_, pack) in pending.items():
                future.cancel()
                yield Embedded([key for key, _ in pack], None, failed)
            pending.clear()

    number = 0
    try:
        for number, pack in enumerate(packs(wanted, limits.items, limits.request_tokens, lambda item: weight(item[1]))):
            if failed is None:
                pending[embedder.submit([text for _, text in pack], since)] = number, pack
                yield from drained(REQUESTS_AHEAD * embedder.policy.concurrency - 1)
            else:
                yield Embedded([key for key, _ in pack], None, failed)
        yield from drained(0)
    finally:
        for future in pending:
            future.cancel()


def _finished(
    pending: dict[Future[list[Answer]], tuple[int, list[Wanted]]],
    awaited: Iterable[Future[list[Answer]]],
    timeout: float | None,
) -> Iterator[Embedded]:
    """Take out of `pending` what is done, after waiting up to `timeout` for the first of `awaited`.

    Vectors that came at the same time are yielded together: each group is stored in a transaction of its own.
    """
    import numpy as np

    wait(awaited, timeout, FIRST_COMPLETED)
    good: dict[int, list[Embedded]] = {}  # by dimensions: one service may send two kinds, of which the index takes one
    for future in [future for future in pending if future.done()]:
        _, pack = pending.pop(future)
        try:
            answers = future.result()
        except CancelledError:
            yield Embedded([key for key, _ in pack], None, EmbedderError("the embedder was closed; sync again"))
            continue
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest of the index must be written
            yield Embedded([key for key, _ in pack], None, EmbedderError(f"asking failed: {error!r}"))
            continue
        for answer in answers:
            chosen = [pack[place] for place in answer.places]
            isolated = isinstance(answer.error, ServiceError) and answer.error.isolated
            tokens = sum(weight(text) for _, text in chosen)
            embedded = Embedded([key for key, _ in chosen], answer.vectors, answer.error, isolated, tokens)
            if embedded.vectors is None:
                yield embedded
            else:
                good.setdefault(embedded.vectors.shape[1], []).append(embedded)
    for parts in good.values():
        keys = [key for part in parts for key in part.keys]
        vectors = np.concatenate([part.vectors for part in parts if part.vectors is not None])
        yield Embedded(keys, vectors, tokens=sum(part.tokens for part in parts))
