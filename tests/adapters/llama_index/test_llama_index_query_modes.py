"""Every mode of a query, and what it may be restricted to."""

import numpy as np
import pytest
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters, VectorStoreQuery
from llama_index_openclaw_memory import OpenClawVectorStore
from some_nodes import FACTS, WORDS, WordEmbedding, asking, facts, one_filter

from openclaw_memory.errors import EmbedderError, QueryError


def test_a_store_in_which_nothing_is_finds_nothing(memory, static_memory):
    for mode in ("default", "hybrid", "sparse", "mmr"):
        assert OpenClawVectorStore(memory).query(asking("mill", mode=mode, embedding=WORDS)).nodes == []
        assert OpenClawVectorStore(static_memory).query(asking("mill", mode=mode, embedding=WORDS)).nodes == []
    note = static_memory.workspace.root / "MEMORY.md"
    note.write_text("Anna's boat is called Zeppelin.\n")
    static_memory.sync()
    assert OpenClawVectorStore(static_memory).query(asking("Zeppelin", embedding=WORDS)).ids == []


def test_the_question_is_embedded_where_no_vector_comes_with_it(own):
    with_vector = own.query(asking("the old mill", embedding=own.embedding))
    assert own.query(asking("the old mill")) == with_vector
    assert with_vector.ids[0] == "venue"
    with pytest.raises(QueryError, match="query_embedding"):
        own.query(VectorStoreQuery())


def test_people_s_notes_are_found_by_vectors_of_the_memorys_own_model(own, note):
    found = own.query(asking("Anna's boat is called Zeppelin.", 3))
    assert found.ids[0] == note
    assert found.nodes[0].ref_doc_id == "memory/boat.md"
    assert found.similarities == sorted(found.similarities, reverse=True)
    assert found.similarities[0] > 0.9
    assert len(set(found.ids)) == 3


def test_people_s_notes_are_not_compared_with_vectors_of_another_model(static_memory, note):
    store = OpenClawVectorStore(static_memory, embed_model=WordEmbedding(dims=256), include_notes=True)
    assert store.query(asking("Zeppelin", 9)).ids == []
    store.add(facts(store.embedding))
    assert set(store.query(asking("Zeppelin", 9)).ids) == set(FACTS)
    assert store.query(asking("Zeppelin", 9, mode="text_search")).ids == [note]


@pytest.mark.parametrize("mode", ["default", "text_search", "sparse", "hybrid", "semantic_hybrid", "mmr"])
@pytest.mark.parametrize("alpha", [None, 0.5])
@pytest.mark.sampled(4)
def test_restrictions_hold_in_every_mode(own, note, mode, alpha):
    def ids(**fields):
        return set(
            own.query(asking("the launch of the ferry, the mill, Piotr, Zeppelin", 9, mode, alpha=alpha, **fields)).ids
        )

    assert ids() == {*FACTS, note} == ids(node_ids=[], doc_ids=[], filters=MetadataFilters(filters=[]))
    assert ids(node_ids=["venue", "nobody"]) == {"venue"}
    assert ids(doc_ids=["party"]) == {"venue", "cook"}
    assert ids(doc_ids=["memory/boat.md"]) == {note}
    assert ids(doc_ids=["party"], node_ids=["cook", "launch"]) == {"cook"}
    assert ids(filters=one_filter(n=1)) == {"again"}
    nested = MetadataFilters(filters=[one_filter(n=1), one_filter(ref_doc_id="party")], condition=FilterCondition.OR)
    assert ids(filters=nested) == {"again", "venue", "cook"}


def test_words_are_searched_by_as_many_as_are_asked_for(own):
    assert len(own.query(asking("the", 2, "text_search")).ids) <= 2
    assert own.query(asking("launch ferry", 2, "text_search")).ids == own.query(asking("launch ferry", 2, "sparse")).ids
    assert len(own.query(asking("launch ferry", 2, "sparse", sparse_top_k=1)).ids) == 1
    with pytest.raises(QueryError, match="query_str"):
        own.query(VectorStoreQuery([1.0], mode="sparse"))


@pytest.mark.usefixtures("note")
def test_hybrid_is_the_memorys_own_search(own, static_memory):
    question = "When is the launch of the ferry, and what is the boat called?"
    expected = static_memory.search(question, max_results=5, min_score=0.0)
    found = own.query(asking(question, 2, "hybrid", hybrid_top_k=5))
    by_path = {one.path: one.id for one in static_memory.documents.get(list(FACTS))}
    assert found.ids[: len(expected)] == [by_path.get(one.path, one.citation) for one in expected]
    assert found.similarities[: len(expected)] == pytest.approx([one.score for one in expected])
    assert len(own.query(asking(question, 2, "semantic_hybrid")).ids) == 2


def test_alpha_leads_from_the_order_of_words_to_that_of_vectors(own):
    question = "When is the launch, Piotr?"
    by_words = own.query(asking(question, 4, "sparse"))
    by_vectors = own.query(asking(question, 4))
    assert own.query(asking(question, 4, "hybrid", alpha=0)).ids == by_words.ids
    assert own.query(asking(question, 4, "hybrid", alpha=1)).ids == by_vectors.ids
    between = own.query(asking(question, 4, "hybrid", alpha=0.5))
    scaled = []
    for found in (by_words, by_vectors):
        least, largest = min(found.similarities), max(found.similarities)
        scaled.append(
            {one: (score - least) / (largest - least) for one, score in zip(found.ids, found.similarities, strict=True)}
        )
    for node_id, score in zip(between.ids, between.similarities, strict=True):
        assert score == pytest.approx(sum(0.5 * leg.get(node_id, 0.0) for leg in scaled))
    assert between.similarities == sorted(between.similarities, reverse=True)


def test_of_zeros_every_node_is_as_near_and_no_count_finds_nothing(given):
    for node_ids, zeros in ((None, [0.0] * 64), ([*FACTS], np.zeros(64)), ([*FACTS], np.zeros(64, np.float32))):
        found = given.query(VectorStoreQuery(zeros, 9, node_ids=node_ids))
        assert (set(found.ids), found.similarities) == (set(FACTS), [0.0] * len(FACTS))
    for mode in ("default", "hybrid", "text_search", "mmr"):
        assert given.query(asking("mill", 0, mode, WORDS)).ids == []


def test_what_is_no_query_is_refused_with_what_to_ask(given):
    plain = {"query_embedding": WORDS.vector("mill"), "similarity_top_k": 2, "query_str": "mill"}
    for query, said in (
        *[({"mode": "hybrid", "alpha": share}, r"alpha.*from 0 to 1") for share in (-0.1, "half", True)],
        *[({"mode": "mmr", "mmr_threshold": share}, r"mmr_threshold.*from 0 to 1") for share in (1.1, "half", True)],
        ({"mode": "svm"}, r"svm.*default.*text_search.*hybrid.*mmr"),
        ({"mode": "nearest"}, r"'nearest' is not a mode.*default"),
        ({"mode": "sparse", "query_str": None}, "'sparse' searches by words"),
        *[({"similarity_top_k": k}, "similarity_top_k") for k in (-1, None, 1.5, True)],
        *[({"query_embedding": vector}, "vector") for vector in ([float("nan")] * 64, ["one"] * 64, "one")],
        ({"query_embedding": [1.0, 0.0, 0.0]}, r"query vector has shape \(3,\).*64 dimensions"),
        *[({name: "venue"}, rf"{name} must be a list.*\['venue'\]") for name in ("node_ids", "doc_ids")],
    ):
        for more in ({}, {"node_ids": ["venue"]}):
            with pytest.raises((EmbedderError, QueryError), match=said):
                given.query(VectorStoreQuery(**(plain | more | query)))


@pytest.mark.parametrize("mode", ["default", "text_search", "hybrid", "mmr"])
@pytest.mark.parametrize("text", [None, "", " "], ids=["none", "empty", "blank"])
@pytest.mark.sampled(4)
def test_filters_alone_find_the_first_that_pass(given, text, mode):
    def ids(k=9, **fields):
        found = given.query(VectorStoreQuery(None, k, query_str=text, mode=mode, **fields))
        assert found.similarities == [0.0] * len(found.ids)
        return found.ids

    assert ids(filters=one_filter(ref_doc_id="boat")) == ["again", "launch"]
    assert ids(1, filters=one_filter(ref_doc_id="boat")) == ["again"]
    assert ids(doc_ids=["party"]) == ["cook", "venue"]
    assert ids(node_ids=["venue", "nobody", "again"]) == ["venue", "again"]
    assert ids(node_ids=["venue", "again"], filters=one_filter(n=1)) == ["again"]
