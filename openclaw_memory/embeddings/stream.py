"""Embed the texts of a sync, and yield their vectors as they become ready."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from openclaw_memory.embeddings.selection import get_inner
from openclaw_memory.embeddings.token_codes import pack_tokens
from openclaw_memory.embeddings.vectors import check_vectors, count_bytes, pack, translate_errors
from openclaw_memory.errors import EmbedderError
from openclaw_memory.types.protocols import PreparingEmbedder, ServiceEmbedder, TokenEmbedder

if TYPE_CHECKING:
    from concurrent.futures import Future

    from openclaw_memory.embeddings.remote import Embeddings, RemoteEmbedder
    from openclaw_memory.store.embedding_cache import EmbeddingCache
    from openclaw_memory.types import Embedder, Matrix, Store

    KeyedText: TypeAlias = tuple[str, str]  # the key of a vector, and the text to embed

# Texts in one call of an embedder that asks no service.
TEXTS_PER_CALL = 256
# Requests under way or ready, for each that may run at once: a free slot never waits for files to be read.
REQUESTS_AHEAD = 4


class Embedded(NamedTuple):
    """The vectors of some texts by their keys, or the error that prevents them.

    An `isolated` error lies in these texts alone: the rest is embedded nonetheless. `tokens` were sent, estimated from
    above. `token_codes` has the codes of the tokens of each text, if the embedder gives tokens.
    """

    keys: list[str]
    vectors: Matrix | None
    error: EmbedderError | None = None
    isolated: bool = False
    tokens: int = 0
    token_codes: list[bytes] | None = None


def stream(embedder: Embedder | EmbedderError, texts: Iterable[KeyedText]) -> Iterator[Embedded]:
    """Embed texts as documents, reading no further ahead than needed.

    After an error that is not isolated, the rest is not embedded and shares it.

    Args:
        embedder: The embedder, or the error of one that cannot be used.
        texts: The texts with their keys.
    """
    service = find_service(embedder)
    return _call(embedder, texts) if service is None else _ask(service, texts)


def find_vectors(
    store: Store,
    keys: Iterable[str],
    identity: str,
    embedder: Embedder | EmbedderError | None,
    cache: EmbeddingCache | None = None,
) -> set[str]:
    """Return the keys of the vectors that are stored with their codes, or come from the cache.

    Args:
        store: The store. It gets the vectors that are cached.
        keys: The keys of texts.
        identity: The model of the vectors.
        embedder: The embedder of the others.
        cache: The cache of all workspaces of the user.
    """
    texts = list(keys)
    if not texts:
        return set()
    with_token_codes = isinstance(get_inner(embedder), TokenEmbedder)
    options = {"with_token_codes": True} if with_token_codes else {}
    stored = store.find_keys(texts, identity, **options)
    missing = [key for key in texts if key not in stored]
    if cache is not None and (cached := cache.load(identity, missing, with_token_codes=with_token_codes)) is not None:
        restored, vectors, codes = cached
        add_vectors(store, Embedded(restored, vectors, token_codes=codes), identity)
        stored |= set(restored)
    return stored


def add_vectors(store: Store, embedded: Embedded, identity: str, cache: EmbeddingCache | None = None) -> None:
    """Store vectors, in the cache too. Raises EmbedderError as `Store.add_vectors`."""
    if embedded.vectors is None:
        return
    options = {} if embedded.token_codes is None else {"token_codes": embedded.token_codes}
    store.add_vectors(embedded.keys, embedded.vectors, identity, **options)
    if cache is not None:
        cache.save(identity, embedded.keys, embedded.vectors, embedded.token_codes)


def find_service(embedder: Embedder | EmbedderError | None) -> RemoteEmbedder | None:
    """Return the embedder without its circuit breaker if it asks a service, else None."""
    inner = get_inner(embedder)
    if isinstance(inner, PreparingEmbedder):
        inner = inner.inner
    if not isinstance(inner, ServiceEmbedder):  # httpx and asyncio need not be imported
        return None
    from openclaw_memory.embeddings.remote import RemoteEmbedder

    return inner if isinstance(inner, RemoteEmbedder) else None


def _call(embedder: Embedder | EmbedderError, texts: Iterable[KeyedText]) -> Iterator[Embedded]:
    failure = embedder if isinstance(embedder, EmbedderError) else None
    for some in pack(texts, TEXTS_PER_CALL, TEXTS_PER_CALL, lambda _: 1):
        keys, batch = [key for key, _ in some], [text for _, text in some]
        if failure is None and not isinstance(embedder, EmbedderError):
            try:
                raw, codes = _embed(embedder, batch)
                vectors = check_vectors(raw, len(batch), f"embedder {embedder.provider} {embedder.model}".strip())
            except EmbedderError as error:
                failure = error
            else:
                yield Embedded(keys, vectors, tokens=sum(map(count_bytes, batch)), token_codes=codes)
                continue
        yield Embedded(keys, None, failure)


def _embed(embedder: Embedder, texts: list[str]) -> tuple[Matrix, list[bytes] | None]:
    """Return the vectors of texts, and the codes of their tokens if the embedder gives tokens."""
    inner = get_inner(embedder)
    if not isinstance(inner, TokenEmbedder):
        return embedder.embed_documents(texts), None
    with translate_errors(f"the embedder {inner.provider} {inner.model} failed"):
        vectors, tokens = inner.embed_document_tokens(texts)
        return vectors, [pack_tokens(text, own) for text, own in zip(texts, tokens, strict=True)]


def _ask(service: RemoteEmbedder, texts: Iterable[KeyedText]) -> Iterator[Embedded]:
    limits, ahead = service.service.limits, REQUESTS_AHEAD * service.policy.concurrency
    pending: deque[tuple[list[KeyedText], Future[Embeddings]]] = deque()
    failure: EmbedderError | None = None

    def collect(most: int) -> Iterator[Embedded]:
        """Yield finished requests in their order; wait until at most `most` are pending."""
        nonlocal failure
        while pending and (len(pending) > most or pending[0][1].done()):
            ready = [pending.popleft()]
            while pending and pending[0][1].done():
                ready.append(pending.popleft())
            for embedded in _read(ready):
                failure = failure or (None if embedded.isolated else embedded.error)
                yield embedded
            if failure is not None:  # the others would fail too, after all their tries
                for some, future in pending:
                    future.cancel()
                    yield Embedded([key for key, _ in some], None, failure)
                pending.clear()

    try:
        for some in pack(texts, limits.items, limits.request_tokens, lambda item: count_bytes(item[1])):
            if failure is not None:
                yield Embedded([key for key, _ in some], None, failure)
                continue
            pending.append((some, service.submit([text for _, text in some])))
            yield from collect(ahead - 1)
        yield from collect(0)
    finally:
        for _, future in pending:
            future.cancel()


def _read(requests: Iterable[tuple[list[KeyedText], Future[Embeddings]]]) -> Iterator[Embedded]:
    """Yield the vectors of requests together, as they are stored in one transaction, then their errors."""
    import numpy as np

    keys: list[str] = []
    matrices: list[Matrix] = []
    tokens = 0
    failed: list[Embedded] = []
    for some, future in requests:
        errors: Mapping[int, EmbedderError]
        try:
            vectors, errors = future.result()
        except CancelledError:
            vectors, errors = (
                None,
                dict.fromkeys(range(len(some)), EmbedderError("the embedder was closed; sync again")),
            )
        good = [place for place in range(len(some)) if place not in errors]
        if good and vectors is not None:
            matrices.append(vectors[good])
            keys += [some[place][0] for place in good]
            tokens += sum(count_bytes(some[place][1]) for place in good)
        for place, error in errors.items():
            failed.append(Embedded([some[place][0]], None, error, getattr(error, "is_isolated", False)))
    if keys:
        yield Embedded(keys, np.concatenate(matrices), tokens=tokens)
    yield from failed
