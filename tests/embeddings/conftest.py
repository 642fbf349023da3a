"""What tests of embedders may use besides: the embedding server under a short name, and embedders that ask it."""

from collections.abc import Callable
from typing import Any

import pytest

from openclaw_memory.embeddings import load_embedder
from openclaw_memory.embeddings.remote.client import RemoteEmbedder
from openclaw_memory.embeddings.remote.service import RetryPolicy

QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.002, busy_first_wait=0.001, busy_longest_wait=0.002)
WAITS = {"first_wait": 0.01, "longest_wait": 0.02, "busy_first_wait": 0.01, "busy_longest_wait": 0.02}


@pytest.fixture
def server(embedding_server):
    return embedding_server


@pytest.fixture
def load_from(server):
    """Embedders of a provider that ask the server with a key; they are closed after the test."""
    made: list[RemoteEmbedder] = []

    def load_from(provider: str, key: str) -> Callable[..., RemoteEmbedder]:
        def load(model: str | None = None, **options: object) -> RemoteEmbedder:
            known = {"api_key": key, "base_url": server.base_url(provider), "retry": QUICK}
            embedder = load_embedder(provider, model, **{**known, **options})
            assert isinstance(embedder, RemoteEmbedder)
            made.append(embedder)
            return embedder

        return load

    yield load_from
    for embedder in made:
        embedder.close()


@pytest.fixture
def connect(server):
    """An OpenAI embedder of the server: `connect(max_items=2, retry={...})`; numbers of the pace are given by name."""
    made: list[RemoteEmbedder] = []

    def connect(pace: dict[str, float] | None = None, **options: object) -> RemoteEmbedder:
        numbers: dict[str, Any] = WAITS | (pace or {})
        embedder = load_embedder("openai", base_url=server.base_url("openai"), retry=RetryPolicy(**numbers), **options)
        assert isinstance(embedder, RemoteEmbedder)
        made.append(embedder)
        return embedder

    yield connect
    for embedder in made:
        embedder.close()


@pytest.fixture
def embedder(connect):
    return connect()


@pytest.fixture(scope="session")
def work():
    """What one of a service's functions for batch jobs gives back."""

    def work(embedder: RemoteEmbedder, name: str, *args: object) -> object:
        return getattr(embedder.service.batch, name)(*args)

    return work
