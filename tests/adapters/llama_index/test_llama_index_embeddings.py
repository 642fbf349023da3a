"""Embedders in both directions between LlamaIndex and a memory."""

import asyncio
import copy
import json
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest
from contract_search import EmbedderContract
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index_openclaw_memory import LlamaIndexEmbedder, OpenClawEmbedding
from pydantic import BaseModel, Field, PrivateAttr, SecretStr, ValidationError

from openclaw_memory import Memory, load_embedder
from openclaw_memory.embeddings import CustomEmbedder
from openclaw_memory.errors import ConfigError, OpenClawMemoryError

TEXTS = ["The mill is on the river.", "Anna sails on Sundays.", "The boiler is serviced in October."]


@pytest.fixture(scope="module")
def static():
    return load_embedder("static")


def nodes() -> list[TextNode]:
    return [TextNode(id_=str(number), text=text) for number, text in enumerate(TEXTS)]


# ours as theirs


async def test_vectors_are_those_of_the_embedder_as_plain_numbers_in_a_loop_and_without(static):
    ours = OpenClawEmbedding(static)
    np.testing.assert_array_equal(ours.get_text_embedding_batch(TEXTS), static.embed_documents(TEXTS))
    np.testing.assert_array_equal(ours.get_query_embedding("mill"), static.embed_query("mill"))
    assert {type(number) for number in ours.get_query_embedding("mill")} == {float}
    assert ours.get_text_embedding_batch([]) == []
    assert await ours.aget_text_embedding_batch(TEXTS) == ours.get_text_embedding_batch(TEXTS)
    assert await ours.aget_text_embedding(TEXTS[0]) == ours.get_text_embedding(TEXTS[0])
    assert [node.embedding for node in await ours.acall(nodes())] == [node.embedding for node in ours(nodes())]


async def test_an_embedder_is_asked_for_all_texts_at_once_and_a_slow_one_does_not_hold_up_the_loop():
    turned, loop, asked = asyncio.Event(), asyncio.get_running_loop(), []

    def waits(texts):  # the loop must turn for this to be answered
        asyncio.run_coroutine_threadsafe(turned.wait(), loop).result(timeout=60)
        asked.append(len(texts))
        return [[1.0]] * len(texts)

    ours = OpenClawEmbedding(CustomEmbedder(waits, model="waits"))
    texts = ["one"] * 300
    calls = [ours.aget_query_embedding("one"), ours.aget_text_embedding("one"), ours.aget_text_embedding_batch(texts)]
    loop.call_soon(turned.set)
    assert await asyncio.gather(*calls) == [[1.0], [1.0], [[1.0]] * 300]
    assert sorted(asked) == [1, 1, 300]


def test_a_dump_is_plain_names_and_makes_the_same_again(static):
    ours = OpenClawEmbedding(static, embed_batch_size=7)
    reported = json.loads(json.dumps(ours.to_dict()))
    assert reported["class_name"] == "OpenClawEmbedding"
    names = tuple(reported[name] for name in ("provider", "model_name", "identity"))
    assert names == ("static", static.model, static.identity)
    again = OpenClawEmbedding.from_dict(reported)
    assert (again.identity, again.embed_batch_size) == (ours.identity, 7)
    assert again.get_query_embedding("mill") == ours.get_query_embedding("mill")
    pickled = pickle.dumps(ours)
    assert len(pickled) < 2_000  # the vectors of the static model take megabytes
    assert pickle.loads(pickled).get_text_embedding_batch(TEXTS) == ours.get_text_embedding_batch(TEXTS)


def test_no_option_is_part_of_a_dump():
    ours = OpenClawEmbedding("openai", "mine", api_key="sk-0123456789abcdefghij", base_url="http://127.0.0.1:9/v1")
    # Older versions of LlamaIndex have no payloads.
    payload = str(ours.to_payload()) if hasattr(ours, "to_payload") else ""
    for reported in (ours.to_json(), repr(ours), payload):
        assert "sk-0123456789" not in reported
    # In another process there would be no such embedder: it is told before it gets there.
    with pytest.raises(ConfigError, match=r"(?s)hand over the embedder(?!.*sk-)"):
        pickle.dumps(ours)


def test_what_its_names_do_not_lead_back_to_is_reported_and_can_be_handed_over():
    def embed(texts):
        return [[1.0, float(len(text))] for text in texts]

    embedder = CustomEmbedder(embed, model="lengths")
    reported = OpenClawEmbedding(embedder).to_dict()
    with pytest.raises(ConfigError, match=r"hand over the embedder that makes the vectors of 'callable:lengths'"):
        OpenClawEmbedding.from_dict(reported)
    assert OpenClawEmbedding.from_dict(reported, embedder=embedder).embedder is embedder
    with pytest.raises(ConfigError, match="'callable:others' makes others"):
        OpenClawEmbedding.from_dict(reported, embedder=CustomEmbedder(embed, model="others"))
    with pytest.raises(ConfigError, match="hashing:other"):
        OpenClawEmbedding.from_dict(OpenClawEmbedding("hashing").to_dict() | {"identity": "hashing:other"})


def test_a_copy_shares_the_embedder(static):
    ours = OpenClawEmbedding(static)
    for other in (copy.copy(ours), copy.deepcopy(ours), ours.model_copy(deep=True)):
        assert other is not ours
        assert other.embedder is static


def test_what_makes_no_embedding_is_refused_with_what_to_name(static, memory):
    for wrong, said in (
        ({"embedder": "none"}, "none"), ({"embedder": memory.embedder}, "searches by keywords alone has none: name a provider"),
        ({"embedder": "static", "model": "?"}, r"\?"), ({"embedder": static, "dims": 3}, "takes no model and no options"),
    ):  # fmt: skip
        with pytest.raises(OpenClawMemoryError, match=said):
            OpenClawEmbedding(**wrong)
    with pytest.raises(ValidationError, match="embed_batch_size"):
        OpenClawEmbedding(static, embed_batch_size=0)


# theirs as ours


class Options(BaseModel):
    """What services keep their options in."""

    task: str = "retrieval"
    api_key: SecretStr = SecretStr("sk-0123456789abcdefghij")


class Service(BaseEmbedding):
    """What an integration package's embedding looks like."""

    model_name: str = "small"
    api_base: str = "https://me:hunter2@host.example/v1?sig=abc"
    api_key: str = "sk-0123456789abcdefghij"
    default_headers: dict[str, str] | None = Field(default_factory=lambda: {"Authorization": "Bearer 0123456789abcdef"})
    dimensions: int = 4
    timeout: float = 5.0
    additional_kwargs: dict[str, Any] = Field(default_factory=lambda: {"pooling": "mean"})
    options: Options = Options()
    answer: Any = None
    _inner: Any = PrivateAttr(default=None)

    def _get_text_embedding(self, text):
        return [float(len(text.encode())), *map(float, range(1, self.dimensions))]

    def _get_text_embeddings(self, texts):
        if self.answer is not None:
            return self.answer(texts)
        return super()._get_text_embeddings(texts)

    def _get_query_embedding(self, query):
        return self._get_text_embeddings([query])[0]

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def around(inner):
    outer = Service()
    outer._inner = inner
    return outer


class TestTheirsAsOurs(EmbedderContract):
    provider, embedder, ours = "llama-index", LlamaIndexEmbedder, OpenClawEmbedding
    service, size, around = Service, MockEmbedding, staticmethod(around)
    that_count: ClassVar = {
        "model_name": "large", "dimensions": 5, "api_base": "https://other.example/v1", "additional_kwargs": {"pooling": "cls"},
        "options": Options(task="clustering"),
    }  # fmt: skip
    that_do_not: ClassVar = {
        "api_key": "sk-another", "options": Options(api_key=SecretStr("sk-another")), "default_headers": None, "timeout": 60.0,
        "api_base": "https://you:other@host.example/v1?sig=def", "embed_batch_size": 3, "num_workers": 2,
        "embeddings_cache": SimpleKVStore(), "callback_manager": CallbackManager([LlamaDebugHandler(print_trace_on_end=False)]),
    }  # fmt: skip

    @staticmethod
    def answering(answer):
        return Service(answer=answer)

    def test_ours_through_theirs_have_the_same_identity(self, static):
        there_and_back = LlamaIndexEmbedder(OpenClawEmbedding(static))
        assert (there_and_back.identity, there_and_back.model) == (static.identity, static.model)


def test_a_memory_takes_an_embedding_of_theirs(tmp_path):
    with Memory.open(tmp_path, embedder=MockEmbedding(8)) as memory:
        assert memory.embedder.identity == LlamaIndexEmbedder(MockEmbedding(8)).identity
