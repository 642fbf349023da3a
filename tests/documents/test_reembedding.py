"""Documents whose vectors are made again by another model: all of them, whatever happens on the way."""

import numpy as np
import pytest

from openclaw_memory.errors import EmbedderError
from openclaw_memory.types import Document, VectorSource

TEXTS = ("the old mill", "the ferry to the island", "beekeeping for beginners", "a walrus asleep")


def counts_of(letters, fails_after=None):
    """A model that counts letters in a text; it fails once it has made vectors of so many documents."""
    made = 0

    def make(documents):
        nonlocal made
        made += len(documents)
        if fails_after is not None and made > fails_after:
            raise EmbedderError("the service is down")
        return np.array([[one.text.count(letter) + 0.5 for letter in letters] for one in documents], np.float32)

    return VectorSource(letters, letters, make)


OLD, NEW = counts_of("aeiotrml"), counts_of("wsbk")


@pytest.fixture
def documents(memory):
    some = [Document(f"n{at}", text, {"at": at}, fields={"part_of": "all"}) for at, text in enumerate(TEXTS)]
    memory.documents.add(some, OLD.make(some), OLD)
    return memory.documents


def nearest(documents, source, text):
    (row,) = source.make([Document("", text)])
    return [document.id for document, _ in documents.search_vector(row, 1, identity=source.identity)]


def test_all_are_found_by_the_new_model_and_stay_what_they_were(documents):
    before = documents.get(["n0", "n1", "n2", "n3"])
    assert documents.rebuild_vectors(NEW) == 4
    after = documents.get(["n0", "n1", "n2", "n3"])
    assert [(one.id, one.text, one.metadata, one.fields, one.path) for one in after] == [
        (one.id, one.text, one.metadata, one.fields, one.path) for one in before
    ]
    assert {one.model for one in after} == {NEW.identity}
    assert [nearest(documents, NEW, text) for text in TEXTS] == [["n0"], ["n1"], ["n2"], ["n3"]]
    assert documents.get_vector_identity() == NEW.identity
    assert (documents.list_problems(look=True), documents.count_missing_vectors()) == ([], 0)


def test_vectors_of_a_model_without_a_name_and_documents_without_vectors_get_those_of_the_new_one(memory):
    given = [Document("given", TEXTS[0])]
    memory.documents.add(given, [[1.0, 2.0, 3.0]], VectorSource("given", "given"))
    memory.documents.add([Document("bare", TEXTS[1])])
    assert memory.documents.rebuild_vectors(NEW) == 2
    assert nearest(memory.documents, NEW, TEXTS[0]) == ["given"]
    assert nearest(memory.documents, NEW, TEXTS[1]) == ["bare"]


def test_a_second_call_goes_on_where_a_failure_stopped_the_first(documents, monkeypatch):
    monkeypatch.setattr("openclaw_memory.documents.collection.AT_ONCE", 2)
    with pytest.raises(EmbedderError, match="the service is down"):
        documents.rebuild_vectors(counts_of("wsbk", fails_after=2))
    assert {one.model for one in documents.iterate()} == {OLD.identity, NEW.identity}
    assert documents.rebuild_vectors(NEW) == 2
    assert documents.rebuild_vectors(NEW) == 0
    assert [nearest(documents, NEW, text) for text in TEXTS] == [["n0"], ["n1"], ["n2"], ["n3"]]


def test_another_collection_is_left_alone_and_a_model_that_makes_nothing_is_refused(memory, documents):
    other = memory.documents.get_collection("other")
    some = [Document("x", TEXTS[0])]
    other.add(some, OLD.make(some), OLD)
    assert other.rebuild_vectors(NEW) == 1
    assert {one.model for one in documents.iterate()} == {OLD.identity}
    with pytest.raises(EmbedderError, match="make"):
        documents.rebuild_vectors(VectorSource("given", "given"))
