"""Embedders in both directions between LangChain and a memory."""

import copy
import pickle
from typing import Any, ClassVar

import pytest
from contract_search import EmbedderContract
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_openclaw_memory import OpenClawEmbeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests
from pydantic import BaseModel, SecretStr

from openclaw_memory import load_embedder
from openclaw_memory.embeddings import CustomEmbedder
from openclaw_memory.errors import ConfigError


class TestOursAsTheirsByTheirIntegrationTests(EmbeddingsIntegrationTests):
    embeddings_class, embedding_model_params = OpenClawEmbeddings, {"embedder": load_embedder("hashing")}


class TestOursAsTheirsByTheirUnitTests(EmbeddingsUnitTests):
    embeddings_class, embedding_model_params = OpenClawEmbeddings, {"embedder": "static"}


class Service(BaseModel, Embeddings):
    """What an integration package's embeddings look like."""

    model: str = "small"
    base_url: str = "https://me:hunter2@host.example/v1?sig=abc"
    api_key: SecretStr = SecretStr("sk-0123456789abcdefghij")
    default_headers: dict[str, str] = {"Authorization": "Bearer 0123456789abcdef"}
    dimensions: int = 4
    timeout: float = 5.0
    model_kwargs: dict[str, Any] = {"device": "cpu", "api_token": "0123456789"}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(len(text)), *map(float, range(1, self.dimensions))]


class Answering(Embeddings):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def embed_documents(self, texts: list[str]) -> Any:
        return self.answer(texts)

    def embed_query(self, text: str) -> Any:
        return self.answer([text])[0]


class Around(Embeddings):
    def __init__(self, inner: Embeddings) -> None:
        self.underlying = inner

    embed_documents = embed_query = None


class TestTheirsAsOurs(EmbedderContract):
    provider, embedder, ours = "langchain", CustomEmbedder, OpenClawEmbeddings
    service, answering, around = Service, Answering, Around
    that_count: ClassVar = {
        "model": "large", "dimensions": 5, "base_url": "https://other.example/v1", "model_kwargs": {"device": "x"}
    }  # fmt: skip
    that_do_not: ClassVar = {
        "api_key": SecretStr("sk-another"), "base_url": "https://you:other@host.example/v1?sig=def", "default_headers": {},
        "timeout": 60.0, "model_kwargs": {"device": "cpu", "api_token": "9"},
    }  # fmt: skip

    def test_what_are_no_embeddings_or_no_name_is_refused(self):
        for names in ({"model": ""}, {"identity": ""}):
            with pytest.raises(ConfigError):
                self.embedder(self.service(), **names)

    @staticmethod
    def size(dims: int) -> Embeddings:
        return DeterministicFakeEmbedding(size=dims)


@pytest.mark.parametrize(
    "wrong", [{"embedder": "none"}, {"embedder": None}, {"embedder": load_embedder("hashing"), "model": "x"}]
)
def test_embeddings_need_an_embedder(wrong):
    with pytest.raises(ConfigError):
        OpenClawEmbeddings(**wrong)


def of_a_service():
    pytest.importorskip("openai")
    return OpenClawEmbeddings("openai", "text-embedding-3-small", api_key="sk-of-a-test")


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda one: pickle.loads(pickle.dumps(one))}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize(
    "make",
    [
        OpenClawEmbeddings,
        lambda: OpenClawEmbeddings("hashing", dims=32),
        of_a_service,
        lambda: OpenClawEmbeddings(load_embedder("static")),
    ],
    ids=["static", "options", "service", "handed in"],
)
@pytest.mark.sampled(2)
def test_embeddings_are_copied_by_their_settings(make, how):
    ours = make()
    again = COPIES[how](ours)
    assert again is not ours
    assert again.embedder.identity == ours.embedder.identity
    assert (again.embedder is ours.embedder) is (how != "pickle")
