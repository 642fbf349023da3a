"""What tests of embedders may use besides: the embedding server under a short name, and embedders that ask it."""

from collections.abc import Callable, Iterator

import pytest
from embedding_server import EmbeddingServer

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings._pace import Pace
from openclaw_memory.embeddings._remote import RemoteEmbedder

QUICK = Pace(first_wait=0.001, longest_wait=0.002, busy_first_wait=0.001, busy_longest_wait=0.002)


@pytest.fixture
def server(embedding_server: EmbeddingServer) -> EmbeddingServer:
    return embedding_server


@pytest.fixture
def load_from(server: EmbeddingServer) -> Iterator[Callable[[str, str], Callable[..., RemoteEmbedder]]]:
    """Embedders of a provider that ask the server with a key; they are closed after the test."""
    made: list[RemoteEmbedder] = []

    def load_from(provider: str, key: str) -> Callable[..., RemoteEmbedder]:
        def load(model: str | None = None, **options: object) -> RemoteEmbedder:
            known = {"api_key": key, "base_url": server.base_url(provider), "pace": QUICK}
            embedder = load_embedder(provider, model, **{**known, **options})
            assert isinstance(embedder, RemoteEmbedder)
            made.append(embedder)
            return embedder

        return load

    yield load_from
    for embedder in made:
        embedder.close()


@pytest.fixture(scope="session")
def work() -> Callable[..., object]:
    """What one of a service's functions for batch jobs gives back."""

    def work(embedder: RemoteEmbedder, name: str, *args: object) -> object:
        return embedder._background.run(getattr(embedder.service.jobs, name)(*args)).result(20)

    return work
