"""What tests of embedders may use besides: the embedding server under a short name."""

import pytest
from embedding_server import EmbeddingServer


@pytest.fixture
def server(embedding_server: EmbeddingServer) -> EmbeddingServer:
    return embedding_server
