"""A search that is confined to a few documents is asked of the index: right among many others, and without reading them."""

import numpy as np
import pytest

from openclaw_memory import Memory
from openclaw_memory.documents import Documents
from openclaw_memory.types import Document, VectorSource

GIVEN = VectorSource("given", "given")
OTHERS = 300
FOLDER = "memory/notes/"


def vectors_of(count, first=0):
    return np.random.default_rng(first).normal(size=(count, 8)).astype(np.float32)


def filled(folder):
    """A memory with documents of others, which say the same as the own three, and a person's note that does."""
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "mill.md").write_text("# Mill\n\nThe common mill of a person.\n")
    memory = Memory.open(folder, embedder="hashing")
    parts = [
        Document(f"o{at}", f"The common mill {at}.", {"tenth": at % 10}, fields={"part_of": f"whole {at // 10}"})
        for at in range(OTHERS)
    ]
    memory.documents.get_collection("others").add(parts, vectors_of(OTHERS), GIVEN)
    own = [Document(f"own{at}", f"The common mill of mine, {at}.", {"tenth": at}) for at in range(3)]
    memory.documents.get_collection("own").add(own, vectors_of(3, first=1), GIVEN)
    return memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with filled(tmp_path_factory.mktemp("agent")) as memory:
        yield memory


def searches(memory, documents):
    vector, own = vectors_of(1)[0], memory.embedder.embed_query("common mill")
    yield lambda k, where: documents.search("common mill", k, where=where)
    yield lambda k, where: documents.search_keywords("common mill", k, where=where)
    yield lambda k, where: documents.search_vector(vector, k, identity="given", where=where)
    yield lambda k, where: documents.search_vector(own, k, where=where)


def ids_of(found):
    return {document.id for document, _ in found}


def test_in_a_small_collection_its_documents_are_found_with_their_scores(memory):
    documents = memory.documents.get_collection("own")
    for search in searches(memory, documents):
        assert ids_of(search(3, None)) == {"own0", "own1", "own2"}
        assert ids_of(search(9, None)) == {"own0", "own1", "own2"}
        assert ids_of(search(9, Documents.Filter({"tenth": 1}))) == {"own1"}
    assert all(score > 0 for _, score in documents.search("common mill", 3))


@pytest.mark.parametrize(
    ("narrow", "ids"),
    [
        ({"ids": ["o70", "o131", "none", " "]}, {"o70", "o131"}),
        ({"ids": ["own0"]}, set()),
        ({"ids": []}, set()),
        ({"parts_of": ["whole 20"]}, {f"o{at}" for at in range(200, 210)}),
        ({"parts_of": ["whole 20", "whole 3"]}, {f"o{at}" for at in (*range(200, 210), *range(30, 40))}),
        ({"parts_of": ["none"]}, set()),
        ({"parts_of": ["whole 20"], "ids": ["o200", "o1"]}, {"o200"}),
        ({"parts_of": ["whole 20"], "metadata": {"tenth": 3}}, {"o203"}),
        ({"parts_of": ["whole 20"], "tests": [lambda document: document.id > "o207"]}, {"o208", "o209"}),
    ],
)
def test_what_is_named_is_found_among_many_others(memory, narrow, ids):
    for search in searches(memory, memory.documents.get_collection("others")):
        assert ids_of(search(30, Documents.Filter(**narrow))) == ids


@pytest.mark.parametrize(
    ("narrow", "ids"),
    [
        ({"ids": ["memory/mill.md#L1-L3"]}, {"memory/mill.md#L1-L3"}),
        ({"ids": ["memory/mill.md#L1-L3", "o1"]}, {"memory/mill.md#L1-L3"}),
        ({"parts_of": ["memory/mill.md"]}, {"memory/mill.md#L1-L3"}),
        ({"folder": FOLDER}, set()),
    ],
)
@pytest.mark.sampled(4)
def test_lines_of_a_person_are_named_by_their_citation_or_their_file(memory, narrow, ids):
    found = memory.documents.search("common mill of a person", 9, where=Documents.Filter(**narrow))
    assert ids_of(found) == ids


def test_a_filter_of_ids_is_a_function_of_a_document_too():
    one = Document("a", "text", {"x": 1}, f"{FOLDER}a.md", {"part_of": "w"})
    lines = Document("memory/b.md#L1", "text", {"citation": "memory/b.md#L1", "path": "memory/b.md"}, "memory/b.md")
    assert [Documents.Filter(ids=["a"])(document) for document in (one, lines)] == [True, False]
    assert [Documents.Filter(parts_of=["w"])(document) for document in (one, lines)] == [True, False]
    assert [Documents.Filter(parts_of=["memory/b.md"])(document) for document in (one, lines)] == [False, True]
    assert [Documents.Filter(folder=FOLDER)(document) for document in (one, lines)] == [True, False]
    assert [Documents.Filter({"x": 2}, ids=["a"])(document) for document in (one, lines)] == [False, False]


def test_a_document_that_a_person_moves_stays_in_its_collection_and_its_whole(memory):
    folder = memory.workspace.root / FOLDER
    (folder / "others" / "o140.md").rename(folder / "moved.md")
    memory.sync()
    for narrow in ({"ids": ["o140"]}, {"parts_of": ["whole 14"], "ids": ["o140"]}):
        for search in searches(memory, memory.documents.get_collection("others")):
            assert ids_of(search(3, Documents.Filter(**narrow))) == {"o140"}
