"""A search finds nodes as they were added, and the store says where their text stands."""

import pytest
from llama_index.core.schema import Document, ImageNode, MetadataMode, TextNode
from llama_index_openclaw_memory import OpenClawRetriever
from some_nodes import FACTS, asking, node

MODES = ["default", "hybrid", "text_search", "sparse", "mmr"]


def test_what_is_found_cites_the_lines_where_its_text_is(own, static_memory):
    own.add([node("poem", "The heron waits.\n\nThe heron waits still.", page=3)])
    for mode in MODES:
        (found,) = own.query(asking("The heron waits", 1, mode)).nodes
        path, _, lines = own.get_citation(found).partition("#L")
        start, end = (int(number) for number in lines.split("-L"))
        assert static_memory.get(path, start=start, lines=end - start + 1).text == found.text
        assert (path, found.metadata["page"]) == ("memory/notes/poem.md", 3)


def test_nodes_that_were_added_are_found_with_the_hash_they_came_with(own):
    added = [
        node("date", "The gander swims.", day="2026-01-02", tags=["a", None], deep={"n": 1.5}),
        Document(id_="page", text="The gander walks.", metadata={"file_name": "a.md", "source": "s", "path": "p"}),
        ImageNode(id_="image", text="A gander.", image="aGVsbG8="),
    ]
    before = {one.node_id: one.hash for one in added}
    own.add(added)
    for mode in MODES:
        found = own.query(asking("The gander", 30, mode)).nodes
        assert {one.node_id: one.hash for one in found if one.node_id in before} == before
    assert {one.node_id: one.hash for one in own.get_nodes([*before])} == before


def test_a_citation_of_the_nodes_own_stays(own):
    for citation, excluded in (("Smith 2021, p. 4", []), ("memory/2026-11-21.md#L3", ["citation"]), (7, [])):
        one = TextNode(id_="own", text="The otter dives.", metadata={"citation": citation, "path": "a.md"})
        one.excluded_llm_metadata_keys = one.excluded_embed_metadata_keys = excluded
        own.add([one])
        assert own.get_nodes(["own"]) == [one]
        assert own.query(asking("The otter dives", node_ids=["own"])).nodes == [one]


@pytest.mark.usefixtures("own", "note")
def test_the_retriever_says_what_the_metadata_of_added_nodes_say(static_memory):
    found = {one.metadata["path"]: one for one in OpenClawRetriever(static_memory, min_score=0.0).retrieve("Anna cook")}
    added, a_persons = found["memory/notes/cook.md"], found["memory/boat.md"]
    assert added.metadata["n"] == 3
    assert added.node_id == added.metadata["citation"]
    assert FACTS["cook"] in added.text
    assert "n" not in a_persons.metadata
    assert f"\n[{added.node_id} " in added.get_content(MetadataMode.LLM)
    assert f"]\n{added.text}\n</" in added.get_content(MetadataMode.LLM)
