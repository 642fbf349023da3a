"""Whose the vectors of nodes are, and which of them may meet in a search."""

import pytest
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import ImageNode, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index_openclaw_memory import LlamaIndexEmbedder, OpenClawEmbedding, OpenClawVectorStore
from some_nodes import FACTS, WORDS, WordEmbedding, asking, facts, identity, node

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, EmbedderError


@pytest.mark.parametrize(
    ("embed_model", "made_by"), [(None, None), (WORDS, WORDS), (None, WORDS), (None, WordEmbedding(dims=256))]
)
def test_vectors_have_the_identity_of_the_model_that_makes_them_or_are_given(static_memory, embed_model, made_by):
    store = OpenClawVectorStore(static_memory, embed_model)
    store.add(facts(made_by or OpenClawEmbedding(static_memory.embedder)))
    expected = "given" if embed_model is None else LlamaIndexEmbedder(WORDS).identity
    assert identity(static_memory) == (static_memory.embedder.identity if made_by is None else expected)
    assert store.query(asking("Piotr cooks", 1, embedding=made_by)).ids == ["cook"]


@pytest.mark.parametrize("mode", ["embed", "none"])
def test_they_may_be_of_the_text_with_the_metadata_or_without(static_memory, mode):
    store = OpenClawVectorStore(static_memory)
    nodes = [node("a", "The venue is the old mill.", title="Everything about the celebration of the year")]
    nodes[0].embedding = [3 * one for one in store.embedding.get_text_embedding(nodes[0].get_content(mode))]
    store.add(nodes)
    assert identity(static_memory) == static_memory.embedder.identity


def test_vectors_of_other_dimensions_or_another_model_are_refused_and_nothing_is_written(given, memory):
    other = OpenClawVectorStore(memory, embed_model=MockEmbedding(embed_dim=64))
    with pytest.raises(EmbedderError, match=r"given.*cannot be compared"):
        other.add([node("new", embedding=[1.0] * 64)])
    with pytest.raises(EmbedderError, match=r"7 dimensions.*64"):
        given.add([node("new", embedding=[1.0] * 7)])
    with pytest.raises(EmbedderError, match="64"):
        given.query(VectorStoreQuery([1.0] * 7, 1))
    assert given.get_nodes(["new"]) == []


@pytest.mark.usefixtures("given")
def test_a_model_that_is_named_later_makes_the_vectors_again(memory):
    store = OpenClawVectorStore(memory, embed_model=WORDS)
    with pytest.raises(EmbedderError, match=r"not named.*reembed"):
        store.query(asking("Piotr cooks", 1))
    assert store.reembed() == len(FACTS)
    assert store.query(asking("Piotr cooks", 1)).ids == ["cook"]
    store.as_index().insert_nodes([node("new", "The band plays.")])
    store.add([node("embedded", "The heron waits.", embedding=WORDS.vector("The heron waits."))])
    assert store.query(asking("The band plays.", 9)).ids[0] == "new"
    assert len(store.query(asking("The band plays.", 9)).ids) == len(FACTS) + 2
    assert memory.documents.list_problems() == []


@pytest.mark.parametrize("call", ["query", "as_index"])
def test_a_model_that_did_not_make_them_is_refused_with_what_to_do(given, memory, call):
    other = OpenClawVectorStore(memory, embed_model=Backwards())
    with pytest.raises(EmbedderError, match=r"not named.*Backwards.*add them again"):
        other.query(asking("cook")) if call == "query" else other.as_index()
    assert given.query(asking("Piotr cooks", 1, embedding=WORDS)).ids == ["cook"]


def test_nothing_is_written_where_some_lack_vectors_that_no_one_can_make(memory):
    store = OpenClawVectorStore(memory)
    with pytest.raises(EmbedderError, match=r"'lacks' came without an embedding.*embed_model"):
        store.add([*facts(WORDS), node("lacks")])
    assert store.get_nodes() == []


# --- what tells nothing of its model ---

TELLS_NOTHING = [
    TextNode(id_="odd", text=""),
    TextNode(id_="odd", text=" \n"),
    TextNode(id_="odd", text="\u16a0\u16db\u16c7"),  # whose vector by the model that ships is of zeros
    ImageNode(id_="odd", image="aGk="),
]


def test_a_node_that_says_nothing_of_its_model_does_not_decide_for_the_others(static_memory):
    store = OpenClawVectorStore(static_memory)
    for odd in TELLS_NOTHING:
        odd.embedding = store.embedding.get_text_embedding(odd.get_content("embed"))
        assert not any(odd.embedding)
        store.add([odd])
        store.add([odd, *facts(store.embedding)])
        store.add([odd])
        assert identity(static_memory) == static_memory.embedder.identity
        found = store.query(asking("Piotr cooks", 9))
        assert found.ids[0] == "cook"
        assert dict(zip(found.ids, found.similarities, strict=True))["odd"] == 0.0
        store.clear()


# --- which vectors may meet
@pytest.fixture
def without_a_key(tmp_path, monkeypatch):
    """A memory whose embedder cannot be had."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Memory.open(tmp_path, embedder="openai") as opened:
        with pytest.raises(EmbedderError, match="OPENAI_API_KEY"):
            _ = opened.embedder
        yield opened


@pytest.mark.parametrize("embed_model", [None, WORDS], ids=["unnamed", "named"])
def test_an_embedder_that_cannot_be_had_is_not_needed_for_other_vectors(without_a_key, embed_model):
    store = OpenClawVectorStore(without_a_key, embed_model)
    store.add(facts(WORDS))
    for mode in ("default", "mmr", "hybrid", "sparse"):
        assert store.query(asking("Piotr cooks", 1, mode, WORDS)).ids == ["cook"]


def test_where_it_is_needed_it_says_what_to_do(without_a_key):
    store = OpenClawVectorStore(without_a_key)
    for call in (lambda: store.add(facts()), lambda: store.query(asking("mill")), store.as_index):
        with pytest.raises(EmbedderError, match="OPENAI_API_KEY"):
            call()
    assert store.get_nodes() == []


class Backwards(WordEmbedding):
    """A model with as many dimensions, and other vectors."""

    def vector(self, text):
        return super().vector(text)[::-1]


def test_a_search_by_another_model_than_the_one_that_was_named_is_refused(memory):
    OpenClawVectorStore(memory, embed_model=WORDS).add(facts(WORDS))
    other = OpenClawVectorStore(memory, embed_model=Backwards())
    for asked in ({"mode": "default"}, {"mode": "mmr"}, {"mode": "hybrid", "alpha": 0.5}, {"node_ids": ["cook"]}):
        for embedding in (None, Backwards()):  # made here, or one that came
            with pytest.raises(EmbedderError, match=r"Backwards.*WordEmbedding.*cannot be compared"):
                other.query(asking("Who cooks?", embedding=embedding, **asked))


def test_a_search_by_another_model_than_the_memory_has_now_is_refused(tmp_path):
    with Memory.open(tmp_path, embedder=LlamaIndexEmbedder(WORDS)) as memory:
        OpenClawVectorStore(memory).add(facts(WORDS))
    with Memory.open(tmp_path, embedder=LlamaIndexEmbedder(Backwards())) as memory:
        memory.sync()
        store = OpenClawVectorStore(memory)
        for call in (lambda: store.query(asking("Piotr cooks")), store.as_index):
            with pytest.raises(EmbedderError, match=r"Backwards.*WordEmbedding.*add them again"):
                call()
        assert store.query(asking("Piotr cooks", 1, embedding=WORDS)).ids == ["cook"], "whose vector is not known"


def test_without_an_alpha_hybrid_is_the_memorys_own_search_where_vectors_cannot_be_compared(memory, given):
    expected = [(one.id, score) for one, score in memory.documents.search("the old mill", 3)]
    for store, fields in ((given, {}), (OpenClawVectorStore(memory, Backwards()), {"embedding": WORDS})):
        found = store.query(asking("the old mill", 3, "hybrid", **fields))
        assert list(zip(found.ids, found.similarities, strict=True)) == expected


def test_an_index_is_not_made_over_vectors_of_another_model(own, static_memory):
    assert own.as_index() is not None
    with pytest.raises(EmbedderError, match="cannot be compared"):
        OpenClawVectorStore(static_memory, embed_model=WORDS).as_index()
    own.clear()
    assert OpenClawVectorStore(static_memory, embed_model=WORDS).as_index() is not None


def test_vectors_that_the_model_that_was_named_does_not_make_are_refused(memory):
    store = OpenClawVectorStore(memory, embed_model=WORDS)
    for _ in range(2):  # before the first nodes, and after them
        with pytest.raises(EmbedderError, match=r"'launch'.*WordEmbedding.*does not make of its text.*store.embedding"):
            store.add(facts(Backwards()))
        assert {one.id for one in memory.documents.iterate()} in (set(), {"seen"})
        store.add([node("seen", "The heron waits.", embedding=WORDS.vector("The heron waits."))])


def test_nodes_move_to_another_model_and_stay_what_they_are(static_memory):
    OpenClawVectorStore(static_memory, embed_model=WORDS).add(facts(WORDS))
    store = OpenClawVectorStore(static_memory)
    before = [one.model_dump() for one in store.get_nodes()]
    assert store.reembed() == len(FACTS)
    assert identity(static_memory) == static_memory.embedder.identity
    assert [one.model_dump() for one in store.get_nodes()] == before
    assert store.as_index().as_retriever(similarity_top_k=1).retrieve("Piotr cooks")[0].node_id == "cook"
    assert store.reembed() == 0


def test_without_a_model_nothing_is_embedded_again(memory):
    with pytest.raises(ConfigError, match="keywords alone"):
        OpenClawVectorStore(memory).reembed()
