"""What a search finds of nodes that were added says where its text stands, and is stored without that."""

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import MetadataMode, NodeRelationship, TextNode
from llama_index_openclaw_memory import OpenClawRetriever
from some_nodes import FACTS, asking, node

MODES = ["default", "hybrid", "text_search", "sparse", "mmr"]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_found_cites_the_lines_where_its_text_is(own, static_memory, mode):
    own.add([node("poem", "The heron waits.\n\nThe heron waits still.", page=3)])
    (found,) = own.query(asking("The heron waits", 1, mode)).nodes
    path, _, lines = found.metadata["citation"].partition("#L")
    start, end = (int(number) for number in lines.split("-L"))
    assert static_memory.get(path, start=start, lines=end - start + 1).text == found.text
    assert (path, found.metadata["page"]) == ("memory/notes/poem.md", 3)


def test_it_cites_them_where_a_person_has_moved_them(own, static_memory):
    notes = static_memory.workspace.root / "memory" / "notes"
    text = (notes / "cook.md").read_text()
    (notes / "cook.md").unlink()
    (notes / "kitchen.md").write_text(text.replace("---\nPiotr", "---\n\nKitchen\nPiotr"))
    static_memory.sync()
    (found,) = own.query(asking("Piotr cooks", 1, "hybrid")).nodes
    above = (notes / "kitchen.md").read_text().splitlines().index("", 1)
    assert found.metadata["citation"] == f"memory/notes/kitchen.md#L{above + 1}-L{above + 3}"


@pytest.mark.parametrize("mode", list(MetadataMode))
def test_no_model_is_shown_a_citation_of_what_was_added(own, mode):
    (found,) = own.query(asking("Piotr cooks", 1)).nodes
    (added,) = own.get_nodes(["cook"])
    shown = mode is MetadataMode.ALL
    assert (found.get_content(mode) == added.get_content(mode)) is not shown
    assert "citation" not in added.metadata


def test_a_citation_is_not_stored_with_what_was_found(own):
    before = own.get_nodes()
    own.add(own.query(asking("Piotr cooks", 9)).nodes)
    assert own.get_nodes() == before
    (found,) = own.query(asking("Piotr cooks", 1)).nodes
    part = TextNode(
        id_="part",
        text="Piotr",
        metadata=found.metadata,
        excluded_embed_metadata_keys=found.excluded_embed_metadata_keys,
        excluded_llm_metadata_keys=found.excluded_llm_metadata_keys,
        relationships={NodeRelationship.SOURCE: found.as_related_node_info()},
    )
    own.add([part])
    (stored,) = own.get_nodes(["part"])
    assert stored.metadata == {"n": 3}
    assert "citation" not in stored.source_node.metadata


@pytest.mark.parametrize("excluded", [[], ["citation"]])
@pytest.mark.parametrize("citation", ["Smith 2021, p. 4", "memory/2026-11-21.md#L3", 7])
def test_a_citation_of_the_nodes_own_stays(own, citation, excluded):
    one = TextNode(id_="own", text="The otter dives.", metadata={"citation": citation, "path": "a.md"})
    one.excluded_llm_metadata_keys = one.excluded_embed_metadata_keys = excluded
    own.add([one])
    assert own.get_nodes(["own"]) == [one]
    assert own.query(asking("The otter dives", node_ids=["own"])).nodes == [one]


def test_a_citation_engine_says_where_an_added_node_is(own):
    response = CitationQueryEngine.from_args(own.as_index(), llm=MockLLM()).query("Who cooks for forty people?")
    assert response.source_nodes[0].metadata["citation"].startswith("memory/notes/cook.md#L")


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
