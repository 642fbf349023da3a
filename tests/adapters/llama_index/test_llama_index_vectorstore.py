"""LlamaIndex's vector store over a memory: every mode, whose vectors, and what only Markdown can promise."""

import pickle
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from contract_stores import VectorStoreContract
from llama_index.core import VectorStoreIndex
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQuery
from llama_index_openclaw_memory import OpenClawVectorStore
from some_nodes import FACTS, WORDS, asking, facts, node, one_filter

from openclaw_memory.errors import ConfigError, InvalidInputError, PathNotAllowedError, WorkspaceError


class TestContract(VectorStoreContract):
    of = partial(OpenClawVectorStore, include_notes=True)
    modes = "default", "hybrid", "text_search", "mmr"
    diverse: ClassVar = {"mode": "mmr", "mmr_threshold": 0.3}

    def add(self, store, texts, about):
        store.add([node(name, text, **about[name]) for name, text in texts.items()])

    def get(self, store, ids):
        return {one.node_id: (one.get_content(), one.metadata) for one in store.get_nodes(ids)}

    def find(self, store, question, k, mode="default", wanted=None, **settings):
        filters = one_filter(**wanted) if isinstance(wanted, dict) else wanted
        return {
            one.node_id: one.text for one in store.query(asking(question, k, mode, filters=filters), **settings).nodes
        }

    def delete(self, store, ids):
        store.delete_nodes(ids)

    def clear(self, store):
        store.clear()


# --- as LlamaIndex sees it


def test_what_is_no_memory_or_no_embedding_is_refused(memory):
    with pytest.raises(TypeError, match=r"Memory\.open"):
        OpenClawVectorStore("notes")
    with pytest.raises(ConfigError, match="embed_model"):
        OpenClawVectorStore(memory, embed_model="local")
    with pytest.raises(TypeError, match="collection_name"):
        OpenClawVectorStore(memory, collection_name="notes")


def test_a_store_is_not_pickled_and_goes_on_after_the_attempt(given):
    for holder in (given, VectorStoreIndex.from_vector_store(given, embed_model=WORDS)):
        with pytest.raises(TypeError, match="hand over its path"):
            pickle.dumps(holder)
    assert given.query(asking(FACTS["cook"], 1, embedding=WORDS)).ids == ["cook"]


def test_a_memory_without_an_embedder_has_no_embedding_and_says_what_to_do(memory):
    for call in (lambda store: store.embedding, lambda store: store.as_index()):
        with pytest.raises(ConfigError, match=r'embedder="static".*embed_model='):
            call(OpenClawVectorStore(memory))
    assert OpenClawVectorStore(memory, embed_model=WORDS).embedding is WORDS


async def test_what_a_call_has_no_use_for_is_logged(given, caplog):
    for call, arguments in (("add", [[]]), ("delete", ["x"]), ("delete_nodes", [["x"]]), ("clear", [])):
        getattr(given, call)(*arguments, fitler=1)
        await getattr(given, {"add": "async_add"}.get(call, f"a{call}"))(*arguments, fitler=1)
        assert [record.getMessage() for record in caplog.records[-2:]] == [f"{call} uses no fitler"] * 2


def test_filters_that_say_nothing_delete_nothing(given):
    before = given.get_nodes()
    with pytest.raises(InvalidInputError, match="None"):
        given.delete(None)
    with pytest.raises(InvalidInputError, match=r"clear\(\)"):
        given.delete_nodes()
    for filters in ([], [MetadataFilters(filters=[])], [MetadataFilters(filters=[MetadataFilters(filters=[])])]):
        for condition in ("and", "or", "not"):
            with pytest.raises(InvalidInputError, match="node_ids or filters"):
                given.delete_nodes(filters=MetadataFilters(filters=filters, condition=condition))
    assert before
    assert given.get_nodes() == before


def test_a_store_over_a_folder_makes_it(tmp_path):
    store = OpenClawVectorStore.from_params(tmp_path / "new" / "notes", embed_model=WORDS)
    store.add([node("new", "The band plays.")])
    assert store.query(asking("The band plays.", 1, embedding=WORDS)).ids == ["new"]
    store.memory.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="file"):
        OpenClawVectorStore.from_params(tmp_path / "file")


def test_people_s_notes_are_left_out_unless_they_are_asked_for(own, static_memory, note):
    alone = OpenClawVectorStore(static_memory)
    for mode in ("default", "hybrid", "text_search", "mmr"):
        asked = asking("Anna's boat is called Zeppelin.", 9, mode)
        assert note in own.query(asked).ids
        assert note not in alone.query(asked).ids
    assert alone.get_nodes([note, "cook"]) == own.get_nodes(["cook"])


def test_the_mode_default_goes_by_vectors_alone_as_in_llamaindex(own):
    asked = asking("Who cooks on Friday?", 4, embedding=own.embedding)
    by_cosines = own.query(VectorStoreQuery(asked.query_embedding, 4))
    assert own.query(asked) == by_cosines
    assert own.query(asking("Who cooks on Friday?", 4, "hybrid")) != by_cosines
    made = VectorStoreIndex.from_vector_store(own, embed_model=own.embedding).as_retriever(similarity_top_k=4)
    assert [one.node_id for one in made.retrieve("Who cooks on Friday?")] == by_cosines.ids


def test_nodes_come_with_the_vectors_they_came_with_on_request(given):
    (plain,), (whole,) = given.get_nodes(["cook"]), given.get_nodes(["cook"], with_embeddings=True)
    assert plain.embedding is None
    vector = np.array(WORDS.get_text_embedding(FACTS["cook"]))
    assert whole.embedding == pytest.approx(vector / np.linalg.norm(vector), abs=1e-6)


# --- deleting
def test_deleting_a_source_deletes_its_nodes_alone(given, tmp_path):
    (tmp_path / "report.md").write_text("elsewhere")
    source = f"{tmp_path}/report.md_part_0"  # as a reader names it after a file elsewhere
    given.add([node("part", source=source, embedding=WORDS.vector("part"), odd=float("nan"), deep=[float("inf")])])
    assert given.get_nodes(["part"])[0].metadata == {"odd": None, "deep": [None]}
    given.delete(source)
    given.delete("party")
    given.delete("nobody")
    given.delete("launch")  # the id of a node is none of a source
    assert [one.node_id for one in given.get_nodes()] == ["again", "launch"]
    assert given.add([]) == []


def test_a_persons_lines_are_never_deleted(own, static_memory, note):
    path = note.partition("#")[0]
    for call in (
        lambda: own.delete(path),
        lambda: own.delete(note),
        lambda: own.delete_nodes(["venue", path]),
        lambda: own.delete_nodes([note], one_filter(source="memory")),
    ):
        with pytest.raises(PathNotAllowedError, match=r"boat\.md"):
            call()
    assert "Zeppelin" in static_memory.get("memory/boat.md").text
    assert own.get_nodes(["venue"])


# --- beside each other
async def test_in_an_event_loop_both_twins_work(given):
    nodes = facts(WORDS)
    question = asking("the old mill", embedding=WORDS)
    assert await given.async_add(nodes) == given.add(nodes)
    assert await given.aquery(question) == given.query(question)
    diverse = asking("the ferry", mode="mmr", embedding=WORDS)
    assert await given.aquery(diverse, mmr_threshold=1) == given.query(diverse, mmr_threshold=1)
    assert await given.aget_nodes(["venue"]) == given.get_nodes(["venue"])
    await given.adelete("party")
    await given.adelete_nodes(filters=one_filter(n=0))
    assert [one.node_id for one in given.get_nodes()] == ["again"]
    await given.aclear()
    assert given.get_nodes() == []
