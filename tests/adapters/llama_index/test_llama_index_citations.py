"""A search finds nodes as they were added, and the store says where their text stands."""

from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import Document, ImageNode, MetadataMode, TextNode
from llama_index_openclaw_memory import OpenClawRetriever
from some_nodes import asking, node

MODES = ["default", "hybrid", "text_search", "sparse", "mmr"]


def test_what_is_found_cites_the_lines_where_its_text_is(own, static_memory):
    own.add([node("poem", "The heron waits.\n\nThe heron waits still.", page=3)])
    for mode in MODES:
        (found,) = own.query(asking("The heron waits", 1, mode)).nodes
        path, _, lines = found.source_node.metadata["citation"].partition("#L")
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
        (found,) = own.query(asking("The otter dives", node_ids=["own"])).nodes
        assert (found.metadata, found.hash, found.get_content(MetadataMode.LLM)) == (
            one.metadata,
            one.hash,
            one.get_content(MetadataMode.LLM),
        )


def fuse(*retrievers):
    return QueryFusionRetriever(
        retrievers, MockLLM(), mode=FUSION_MODES.RECIPROCAL_RANK, similarity_top_k=30, num_queries=1, use_async=False
    )


def test_fused_with_the_retriever_each_node_comes_once_with_its_citation(own, static_memory, note):
    long = " ".join(f"The gander walks to mill {n}, and back." for n in range(300))
    own.add([node("plain", "The gander swims."), node("long", long, n=1)])
    question = "What does the gander do, and how is Anna's boat called?"
    for mode in MODES:
        index = own.as_index().as_retriever(vector_store_query_mode=mode, similarity_top_k=30)
        found = fuse(OpenClawRetriever(static_memory, 30, 0.0), index).retrieve(question)
        ids = [one.node_id for one in found]
        assert len(ids) == len({*ids})
        assert {"plain", "long", note} <= {*ids}
        for one in found:
            path = one.node.source_node.metadata["citation"].partition("#")[0]
            assert path == (f"memory/notes/{one.node_id}.md" if one.node_id != note else "memory/boat.md")
