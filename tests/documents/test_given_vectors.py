"""A vector that nobody can make again outlives whatever is done to its document as it is shown."""

import dataclasses

import pytest

from openclaw_memory import Memory
from openclaw_memory.types import Document, Maker

GIVEN = Maker("given", "given")
PATH = "memory/notes/a.md"


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.documents.add([Document("a", "The old mill.", {"n": 1})], [[1.0, 0.0]], GIVEN)
        yield memory


def found(memory):
    memory.sync()
    assert memory.documents.damaged(look=True) == []
    return [
        (one.text, one.metadata) for one, cosine in memory.documents.precomputed.nearest([1, 0], 5) if cosine > 0.99
    ]


def test_of_a_document_that_is_edited_as_it_is_shown(memory):
    seen = memory.get(PATH)
    memory.edit(PATH, seen.start_line, seen.end_line, seen.text.replace("old", "new"), seen=seen)
    assert found(memory) == [("The new mill.", {"n": 1})]


def test_of_a_document_that_is_got_and_added_again_with_other_metadata(memory):
    (one,) = memory.documents.get(["a"])
    memory.documents.add([dataclasses.replace(one, metadata={"n": 2})])
    assert found(memory) == [("The old mill.", {"n": 2})]


def test_of_a_document_that_is_fetched_and_put_again(memory):
    before = (memory.workspace.root / PATH).read_bytes()
    memory.documents.put(PATH, *memory.documents.fetch(PATH))
    assert (memory.workspace.root / PATH).read_bytes() == before
    fields, text = memory.documents.fetch(PATH)
    memory.documents.put(PATH, {**fields, "metadata": {"n": 3}}, text)
    assert found(memory) == [("The old mill.", {"n": 3})]


def test_but_not_its_text(memory):
    memory.documents.add([Document("a", "Another text.")])
    assert found(memory) == []
    assert memory.documents.get(["a"])[0].model == ""
