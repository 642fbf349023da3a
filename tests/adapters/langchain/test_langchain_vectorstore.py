"""LangChain's vector store over a memory: its own standard suite, and what only Markdown can promise."""

from datetime import UTC, date, datetime
from typing import ClassVar
from uuid import UUID

import pytest
from contract_stores import FACTS, VectorStoreContract
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_openclaw_memory import OpenClawEmbeddings, OpenClawVectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests
from pydantic import PrivateAttr

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, InvalidInputError, QueryError


class TestByTheirStandardSuite(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        with Memory.open(tmp_path, embedder=self.get_embeddings()) as memory:
            yield OpenClawVectorStore(memory)


class TestContract(VectorStoreContract):
    of = OpenClawVectorStore
    modes = "similarity_search", "max_marginal_relevance_search"
    diverse: ClassVar = {"mode": "max_marginal_relevance_search", "lambda_mult": 0.2}

    def add(self, store, texts, about):
        store.add_texts([*texts.values()], [about[name] for name in texts], ids=[*texts])

    def get(self, store, ids):
        return {one.id: (one.page_content, one.metadata) for one in store.get_by_ids(ids)}

    def find(self, store, question, k, mode="similarity_search", wanted=None, **settings):
        return {one.id: one.page_content for one in getattr(store, mode)(question, k=k, filter=wanted, **settings)}

    def delete(self, store, ids):
        store.delete(ids)

    def clear(self, store):
        store.delete()


@pytest.fixture
def make_own():
    def make(folder):
        about = [{"n": n, "of": name} for n, name in enumerate(FACTS)]
        with Memory.open(folder) as memory:
            OpenClawVectorStore(memory).add_texts(list(FACTS.values()), about, ids=list(FACTS))

    return make


@pytest.fixture
def own(static_memory):
    return OpenClawVectorStore(static_memory)


def ids(documents):
    return [document.id for document in documents]


def test_a_store_is_made_of_texts_and_embeddings_in_a_folder_of_its_own(tmp_path):
    embeddings = DeterministicFakeEmbedding(size=16)
    texts, folder = list(FACTS.values()), tmp_path / "made" / "here"
    store = OpenClawVectorStore.from_texts(texts, embeddings, ids=list(FACTS), workspace=folder)
    with store.memory:
        assert ids(store.similarity_search("old mill venue", k=1)) == ["venue"]
        assert store.embeddings is embeddings
        assert len(list((folder / "memory" / "notes").glob("*.md"))) == 4
        vector = embeddings.embed_query(FACTS["venue"])
        assert ids(store.similarity_search_by_vector(vector, k=2))[0] == "venue"
    with OpenClawVectorStore.from_texts(
        ["one"], OpenClawEmbeddings("hashing"), workspace=tmp_path / "ours"
    ).memory as ours:
        assert ours.embedder.provider == "hashing", "embeddings of ours are not wrapped twice"


def test_what_does_not_fit_together_is_refused(own):
    for given, said in (
        ((["one", "two"], [{}]), "2 texts"), ((["one", "two"], None, ["a"]), "2 texts"), (("One text.",), "give a list of texts"),
        ((["good", "bad"], [{}, {"when": {"at": object()}}]), r"metadata\['when'\]\['at'\]"),
    ):  # fmt: skip
        texts, metadatas, ids = (*given, None, None)[:3]
        with pytest.raises(InvalidInputError, match=said):
            own.add_texts(texts, metadatas, ids=ids)
    with pytest.raises(ConfigError, match="workspace=PATH"):
        OpenClawVectorStore.from_texts(["one"], DeterministicFakeEmbedding(size=4))


def test_a_filter_compares_dates_and_uuids_as_they_are(own):
    noon, name = datetime(2026, 11, 21, 12, tzinfo=UTC), UUID(int=7)
    own.add_texts(["The band plays."], [{"day": noon.date(), "at": noon, "by": name}], ids=["new"])
    for condition in (
        {"by": name}, {"by": {"$in": [name]}}, {"day": noon.date()}, {"at": noon}, {"day": {"$gte": date(2026, 11, 20)}},
        {"at": {"$lt": datetime(2026, 11, 21, 13, tzinfo=UTC)}},
    ):  # fmt: skip
        assert ids(own.similarity_search("Who plays?", filter=condition)) == ["new"]
    for condition in ({"by": UUID(int=8)}, {"day": {"$lt": noon.date()}}):
        assert own.similarity_search("Who plays?", filter=condition) == []


def test_the_same_text_without_an_id_is_there_once(own):
    before = len(own.similarity_search("Who?", k=99))
    added = [own.add_texts(["The band plays."]) for _ in range(3)] + [own.add_documents([Document("The band plays.")])]
    assert len({name for names in added for name in names}) == 1
    other = own.add_texts(["The band plays.", "The band plays."], [{"page": 1}, {"page": 2}])
    assert len({*other, *added[0]}) == 3
    assert len(own.similarity_search("Who?", k=99)) == before + 3


def test_an_operator_that_is_unknown_is_named_though_nothing_could_match(static_memory):
    store = OpenClawVectorStore(static_memory)
    for _ in range(2):
        with pytest.raises(QueryError, match=r"\$near.*use a function"):
            store.similarity_search("anything", filter={"of": "nobody", "n": {"$near": 1}})
        store.add_texts(["one"])


@pytest.mark.parametrize("embedder", ["default", None])
def test_marginal_relevance_takes_the_same_arguments_with_vectors_and_without(tmp_path, embedder):
    with Memory.open(tmp_path, embedder=embedder) as memory:
        store = OpenClawVectorStore(memory)
        store.add_texts(list(FACTS.values()), ids=list(FACTS))
        if embedder is None:  # keywords alone answer
            assert store.embeddings is None
            assert ids(store.similarity_search("old mill", k=1)) == ["venue"]
            assert ids(store.max_marginal_relevance_search("old mill", k=1)) == ["venue"]
            assert len(store.similarity_search("old mill", k=3)) == 3
        question = FACTS["venue"]
        assert ids(store.max_marginal_relevance_search(question, k=2, min_score=0.8)) == ["venue"]
        assert store.max_marginal_relevance_search(question, k=2, source="sessions") == []
        assert len(store.max_marginal_relevance_search(question, k=2, source="memory")) == 2
        with pytest.raises(QueryError, match="source"):
            store.max_marginal_relevance_search(question, source="notes")
        with pytest.raises(TypeError, match="fitler"):
            store.max_marginal_relevance_search(question, fitler={})


class Counting(DeterministicFakeEmbedding):
    _embedded: list[str] = PrivateAttr(default_factory=list)

    def embed_documents(self, texts):
        self._embedded.extend(texts)
        return super().embed_documents(texts)


@pytest.mark.sqlite_only
def test_stores_with_different_embeddings_do_not_build_each_others_index_again(tmp_path):
    one, other = Counting(size=8), Counting(size=16)
    with Memory.open(tmp_path) as memory:
        memory.append("Anna's boat is called Zeppelin.", date="2026-11-21")
        memory.sync()
        stores = [
            OpenClawVectorStore.from_texts([f"text {number}"], embedding, workspace=tmp_path, ids=[str(number)])
            for number, embedding in enumerate([one, other])
        ]
        shared = OpenClawVectorStore.from_texts(["shared"], OpenClawEmbeddings(), workspace=tmp_path)
        assert shared.memory.index_path == memory.index_path
        assert len({store.memory.index_path for store in [*stores, shared]}) == 3
        for embedding in (one, other):
            embedding._embedded.clear()
        for number, store in enumerate(stores):
            store.add_texts(["new"], ids=[f"new {number}"])
            assert ids(store.similarity_search("text 0", k=1)) == ["0"]
        assert not memory.sync().rebuilt
        assert memory.search("Zeppelin").mode == "hybrid"
        assert (len(one._embedded), len(other._embedded)) == (3, 2), "what is new to each, and nothing twice"
        for store in [*stores, shared]:
            store.memory.close()
    with Memory.open(tmp_path, embedder=one, index_path=stores[0].memory.index_path) as again:
        one._embedded.clear()
        again.sync()
        assert not any("text" in text for text in one._embedded)


async def test_as_a_retriever_every_search_type_works(own):
    for kind, wishes, expected in (
        ("similarity", {"k": 1}, 1), ("mmr", {"k": 2, "fetch_k": 4}, 2),
        ("similarity_score_threshold", {"k": 4, "score_threshold": 0.3}, 2),
    ):  # fmt: skip
        retriever = own.as_retriever(search_type=kind, search_kwargs=wishes)
        found = retriever.invoke("When is the launch of the ferry?")
        assert (len(found), found[0].id in {"launch", "again"}) == (expected, True)
        assert await retriever.ainvoke("When is the launch of the ferry?") == found


def docs(*numbers, changed=()):
    return [
        Document(f"text {n}{' changed' if n in changed else ''}", metadata={"source": f"s{n % 2}"}) for n in numbers
    ]


def counts(result):
    return result["num_added"], result["num_skipped"], result["num_deleted"]


async def test_the_indexing_api_adds_skips_and_deletes(static_memory):
    store, records = OpenClawVectorStore(static_memory), InMemoryRecordManager("ns")
    records.create_schema()
    options = {"source_id_key": "source", "key_encoder": "sha256"}

    def run(documents, cleanup):
        return counts(index(documents, records, store, cleanup=cleanup, batch_size=9, **options))

    def texts():
        return sorted(one.page_content for one in store.similarity_search("text", k=10))

    assert run(docs(0, 1, 2), "incremental") == (3, 0, 0)
    assert run(docs(0, 1, 2), "incremental") == (0, 3, 0)
    assert run(docs(0, 1, 2, changed=[1]), "incremental") == (1, 2, 1)
    assert texts() == ["text 0", "text 1 changed", "text 2"]
    assert run(docs(2, 3), "full") == (1, 1, 2)
    assert texts() == ["text 2", "text 3"]
    assert counts(await aindex(docs(2, 3), records, store, cleanup="full", **options)) == (0, 2, 0)
