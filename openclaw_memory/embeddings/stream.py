"""Embed the texts of a sync, and yield their vectors as they become ready."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from openclaw_memory._limited import run_in_own_thread
from openclaw_memory.embeddings.selection import get_inner
from openclaw_memory.embeddings.token_codes import pack_tokens
from openclaw_memory.embeddings.vectors import check_vectors, count_bytes, pack, translate_errors
from openclaw_memory.errors import EmbedderError
from openclaw_memory.types.protocols import PreparingEmbedder, TokenEmbedder

if TYPE_CHECKING:
    from openclaw_memory.embeddings.remote import RemoteEmbedder
    from openclaw_memory.store.embedding_cache import EmbeddingCache
    from openclaw_memory.types import Embedder, Matrix, Store, Vector

    KeyedText: TypeAlias = tuple[str, str]  # the key of a vector, and the text to embed

# Texts in one call of an embedder that asks no service.
TEXTS_PER_CALL = 64
# Requests whose vectors are stored together, for each that may run at once.
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
    """Return the keys of the vectors that are stored with their codes, or come from the cache."""
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
    inner = inner.inner if isinstance(inner, PreparingEmbedder) else inner
    # By its method: httpx and asyncio need not be imported.
    return cast("RemoteEmbedder", inner) if hasattr(inner, "embed_requests") else None


def _call(embedder: Embedder | EmbedderError, texts: Iterable[KeyedText]) -> Iterator[Embedded]:
    # A model that gives tokens, which takes long, reads the next texts while those before are packed and stored.
    ahead = int(isinstance(get_inner(embedder), TokenEmbedder))
    running, turn = deque[Callable[[], Embedded]](), Lock()
    for some in chain(pack(texts, TEXTS_PER_CALL >> ahead, 0, lambda _: 0), ([],)):
        if some:
            work = partial(_embed, embedder, some, turn)
            running.append(run_in_own_thread(work).result if ahead else work)
        while len(running) > (ahead if some else 0):
            embedded = running.popleft()()
            embedder = embedded.error or embedder
            yield embedded


def _embed(embedder: Embedder | EmbedderError, batch: list[KeyedText], turn: Lock) -> Embedded:
    """Embed texts in one call, at its turn, and pack their tokens if the embedder gives tokens."""
    keys, texts, inner, codes = [key for key, _ in batch], [text for _, text in batch], get_inner(embedder), None
    if isinstance(embedder, EmbedderError):
        return Embedded(keys, None, embedder)
    try:
        if isinstance(inner, TokenEmbedder):
            with translate_errors(f"the embedder {inner.provider} {inner.model} failed"):
                with turn:
                    raw, tokens = inner.embed_document_tokens(texts)
                codes = [pack_tokens(text, own) for text, own in zip(texts, tokens, strict=True)]
        else:
            raw = embedder.embed_documents(texts)
        vectors = check_vectors(raw, len(texts), f"embedder {embedder.provider} {embedder.model}".strip())
    except EmbedderError as error:
        return Embedded(keys, None, error)
    return Embedded(keys, vectors, tokens=sum(map(count_bytes, texts)), token_codes=codes)


def _ask(service: RemoteEmbedder, texts: Iterable[KeyedText]) -> Iterator[Embedded]:
    """Yield the vectors of some requests together, as they are stored in one transaction, then their errors."""
    import numpy as np

    limits, ahead = service.service.limits, REQUESTS_AHEAD * service.policy.concurrency
    requests = pack(texts, limits.items, limits.request_tokens, lambda item: count_bytes(item[1]))
    failure: EmbedderError | None = None
    while some := list(islice(requests, ahead)):
        if failure is not None:
            yield from (Embedded([key for key, _ in request], None, failure) for request in some)
            continue
        keys: list[str] = []
        rows: list[Vector] = []
        tokens = 0
        failed: list[Embedded] = []
        answers = service.embed_requests([[text for _, text in request] for request in some])
        for request, (vectors, errors) in zip(some, answers, strict=True):
            for place, (key, text) in enumerate(request):
                if (error := errors.get(place)) is None:
                    keys.append(key)
                    rows.append(vectors[place])
                    tokens += count_bytes(text)
                else:
                    failed.append(Embedded([key], None, error, error.is_isolated))
                    failure = failure or (None if error.is_isolated else error)
        if keys:
            yield Embedded(keys, np.stack(rows), tokens=tokens)
        yield from failed
