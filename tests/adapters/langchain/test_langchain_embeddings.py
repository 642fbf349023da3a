"""Embedders in both directions between LangChain and a memory."""

import asyncio
import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_openclaw_memory import LangChainEmbedder, OpenClawEmbeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests
from pydantic import BaseModel, SecretStr

from openclaw_memory import Memory
from openclaw_memory.embeddings import load_embedder
from openclaw_memory.errors import ConfigError, EmbedderError
from openclaw_memory.testing import check_embedder


class TestOursAsTheirsByTheirUnitTests(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return OpenClawEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"embedder": "static"}


class TestOursAsTheirsByTheirIntegrationTests(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return OpenClawEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"embedder": load_embedder("hashing")}


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


class Plain(Embeddings):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def embed_documents(self, texts: list[str]) -> Any:
        return self.answer(texts) if callable(self.answer) else self.answer

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def test_theirs_keep_the_contract_of_an_embedder():
    check_embedder(LangChainEmbedder(DeterministicFakeEmbedding(size=24)))


def test_ours_through_theirs_are_the_same_vectors():
    inner = load_embedder("static")
    there_and_back = LangChainEmbedder(OpenClawEmbeddings(inner))
    texts = ["The mill is on the river.", "Anna sails."]
    np.testing.assert_allclose(there_and_back.embed_documents(texts), inner.embed_documents(texts), atol=1e-6)
    np.testing.assert_allclose(there_and_back.embed_query("mill"), inner.embed_query("mill"), atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "large"},
        {"dimensions": 5},
        {"base_url": "https://other.example/v1"},
        {"model_kwargs": {"device": "x"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_may_change_a_vector_changes_the_identity(change):
    assert LangChainEmbedder(Service(**change)).identity != LangChainEmbedder(Service()).identity


@pytest.mark.parametrize(
    "change",
    [
        {"api_key": SecretStr("sk-another")},
        {"base_url": "https://you:other@host.example/v1?sig=def"},
        {"default_headers": {}},
        {"timeout": 60.0},
        {"model_kwargs": {"device": "cpu", "api_token": "9"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_secrets_and_time_limits_are_no_part_of_the_identity(change):
    assert LangChainEmbedder(Service(**change)).identity == LangChainEmbedder(Service()).identity


def test_a_user_names_model_and_identity():
    embedder = LangChainEmbedder(Service(), model="mine", identity="house-7")
    assert (embedder.provider, embedder.model, embedder.identity) == ("langchain", "mine", "langchain:house-7")


def test_embeddings_around_others_are_kept_apart_by_those_inside():
    class Around(Embeddings):
        def __init__(self, inner: Embeddings) -> None:
            self.underlying = inner

        embed_documents = embed_query = None

    one, other = (LangChainEmbedder(Around(Service(model=name))).identity for name in ("small", "large"))
    assert one != other


def test_ours_through_theirs_are_kept_apart_by_their_model():
    one, other = (LangChainEmbedder(OpenClawEmbeddings(name)).identity for name in ("static", "hashing"))
    assert one != other


@pytest.mark.parametrize(
    "answer",
    [[[1.0, 2.0]], [], None, "words", [["a"], ["b"]], [[0.0, 0.0], [0.0, 0.0]]],
    ids=["too few", "none", "None", "a string", "no numbers", "zeros"],
)
def test_what_is_no_vector_for_each_text_is_refused(answer):
    with pytest.raises(EmbedderError):
        LangChainEmbedder(Plain(answer)).embed_documents(["one", "two"])


def test_an_error_of_theirs_is_reported_as_ours():
    def fails(_texts):
        raise RuntimeError("out of quota")

    with pytest.raises(EmbedderError, match="out of quota"):
        LangChainEmbedder(Plain(fails)).embed_query("one")


def test_lone_surrogates_do_not_reach_a_service():
    def answer(texts):
        return [[float(len(text.encode())), 1.0] for text in texts]

    assert LangChainEmbedder(Plain(answer)).embed_documents(["a \ud800 b"]).shape == (1, 2)


@pytest.mark.parametrize("wrong", [lambda: LangChainEmbedder("openai"), lambda: LangChainEmbedder(Service(), model="")])
def test_what_are_no_embeddings_or_no_name_is_refused(wrong):
    with pytest.raises(ConfigError):
        wrong()


@pytest.mark.parametrize("wrong", [{"embedder": "none"}, {"embedder": load_embedder("hashing"), "model": "x"}])
def test_embeddings_need_an_embedder(wrong):
    with pytest.raises(ConfigError):
        OpenClawEmbeddings(**wrong)


def test_two_instances_of_one_class_never_share_vectors(tmp_path):
    (tmp_path / "MEMORY.md").write_text("Anna sails on Sundays.\n")
    for size in (8, 12):
        with Memory.open(tmp_path, embedder=LangChainEmbedder(DeterministicFakeEmbedding(size=size))) as memory:
            memory.sync()
            assert memory.search("When does Anna sail?").mode == "hybrid"
            assert memory.status().vector.dims == size


def test_theirs_count_as_sent_elsewhere_unless_the_caller_vouches():
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=8)).leaves_machine
    assert not LangChainEmbedder(DeterministicFakeEmbedding(size=8), local=True).leaves_machine
    assert not LangChainEmbedder(OpenClawEmbeddings(load_embedder("static"))).leaves_machine


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
def test_embeddings_are_copied_by_their_settings(make, how):
    ours = make()
    again = COPIES[how](ours)
    assert again is not ours
    assert again.embedder.identity == ours.embedder.identity
    assert (again.embedder is ours.embedder) is (how != "pickle")


def test_an_embedder_without_a_name_is_not_pickled():
    wrapped = OpenClawEmbeddings(LangChainEmbedder(Service(), identity="mine"))
    with pytest.raises((ConfigError, EmbedderError)):
        pickle.dumps(wrapped)


def test_in_an_event_loop_nothing_is_loaded_before_it_is_used(monkeypatch):
    threads = []

    def load(*_args, **_options):
        threads.append(threading.current_thread())
        return load_embedder("hashing")

    monkeypatch.setattr("langchain_openclaw_memory.embeddings.load_embedder", load)

    async def use():
        ours = OpenClawEmbeddings("local")
        assert not threads
        await ours.aembed_query("walrus")

    asyncio.run(use())
    assert [one is threading.main_thread() for one in threads] == [False]
