"""Documents that came with vectors of their own: found by them, exactly, whatever happens to files and index."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory import Memory
from openclaw_memory.errors import EmbedderError, QueryError
from openclaw_memory.types import Document, Maker

GIVEN = Maker("given", "given")
TEXTS = ("the old mill", "the ferry to the island", "beekeeping for beginners", "a walrus asleep")


def letters(text):
    """A vector of a text that anybody can make again: how often it has each of eight letters."""
    return [text.count(letter) + 0.5 for letter in "aeiotrml"]


def vectors_of(documents):
    return np.array([letters(document.text) for document in documents], np.float32)


LETTERS = Maker("letters", "letters", vectors_of)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(folder):
    with Memory.open(folder, embedder=None) as opened:
        yield opened


@pytest.fixture
def documents(memory):
    return memory.documents


def some(texts=TEXTS):
    return [Document(f"n{number}", text, {"number": number}) for number, text in enumerate(texts)]


def cosines(rows, vector):
    rows, vector = np.asarray(rows, np.float64), np.asarray(vector, np.float64)
    return rows @ vector / np.linalg.norm(rows, axis=1) / np.linalg.norm(vector)


def found(documents, vector, k=10, **wishes):
    return [(document.id, score) for document, score in documents.precomputed.nearest(vector, k, **wishes)]


def ids(documents, vector, k=10, **wishes):
    return [name for name, _ in found(documents, vector, k, **wishes)]


def nowhere(folder):
    shutil.rmtree(folder / ".memory")


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_documents_are_found_by_the_cosine_of_the_vectors_they_came_with(tmp_path_factory, data):
    rows = data.draw(
        st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3).filter(any), min_size=1, max_size=12)
    )
    question = data.draw(st.lists(st.integers(-9, 9), min_size=3, max_size=3).filter(any))
    with Memory.open(tmp_path_factory.mktemp("agent"), embedder=None) as memory:
        memory.documents.add([Document(f"n{number}", "same") for number in range(len(rows))], rows, GIVEN)
        expected = cosines(rows, question)
        answers = found(memory.documents, question, len(rows))
    assert sorted(name for name, _ in answers) == sorted(f"n{number}" for number in range(len(rows)))
    assert [score for _, score in answers] == pytest.approx(sorted(expected, reverse=True), abs=1e-6)
    assert dict(answers) == pytest.approx({f"n{number}": score for number, score in enumerate(expected)}, abs=1e-6)


def test_a_vector_that_nobody_can_make_again_outlives_the_index(folder):
    rows = [letters(text) for text in TEXTS]
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), rows, GIVEN)
        before = found(memory.documents, rows[1])
    nowhere(folder)
    with Memory.open(folder, embedder=None) as memory:
        assert found(memory.documents, rows[1]) == before
        assert memory.documents.precomputed.identity == "given"


def test_a_vector_that_can_be_made_again_is_not_in_the_file_and_is_made_again(folder):
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), LETTERS)
        before = found(memory.documents, letters(TEXTS[2]))
        assert '"vector"' not in (folder / "memory/notes/n2.md").read_text()
    nowhere(folder)
    with Memory.open(folder, embedder=None) as memory:
        assert found(memory.documents, letters(TEXTS[2]), maker=LETTERS) == before


def test_without_its_maker_a_lost_vector_is_told_and_made_once_the_maker_is_there(folder, caplog):
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), LETTERS)
    nowhere(folder)
    with Memory.open(folder, embedder=None) as memory:
        assert ids(memory.documents, letters("mill")) == []
        assert memory.documents.precomputed.lacking == len(TEXTS)
        assert any("4 documents" in notice and "'letters'" in notice for notice in memory.status().notices)
        assert ids(memory.documents, letters(TEXTS[0]), maker=LETTERS)[0] == "n0"
        assert memory.documents.precomputed.lacking == 0
        assert not [notice for notice in memory.status().notices if "vectors" in notice]
    assert "have lost their vectors" in caplog.text


def test_a_maker_that_fails_is_told_and_asked_again_after_the_next_change(folder):
    calls = []

    def broken(documents):
        calls.append(len(documents))
        raise RuntimeError("the service is down")

    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), LETTERS)
    nowhere(folder)
    with Memory.open(folder, embedder=None) as memory:
        for _ in range(3):
            assert ids(memory.documents, letters("mill"), maker=Maker("letters", "letters", broken)) == []
        assert calls == [4]
        assert "the service is down" in memory.documents.precomputed.told()[0]
        memory.append("Something new.")
        memory.sync()
        assert ids(memory.documents, letters(TEXTS[3]), maker=LETTERS)[0] == "n3"


def test_a_document_that_a_person_has_changed_is_embedded_again(folder, memory, documents):
    documents.add(some(), vectors_of(some()), LETTERS)
    path = folder / "memory/notes/n0.md"
    path.write_text(path.read_text().replace(TEXTS[0], "llll mmmm"))
    memory.sync()
    ((name, score), *_) = found(documents, letters("llll mmmm"), maker=LETTERS)
    assert (name, round(score, 6)) == ("n0", 1)


def test_a_given_vector_stays_with_its_document_when_a_person_changes_the_text(folder, memory, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    path = folder / "memory/notes/n0.md"
    path.write_text(path.read_text().replace(TEXTS[0], "The mill has burnt down."))
    memory.sync()
    ((document, score), *_) = documents.precomputed.nearest(letters(TEXTS[0]), 1)
    assert (document.text, round(score, 6)) == ("The mill has burnt down.", 1)


def test_a_document_that_is_gone_is_not_found(folder, memory, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    documents.delete(["n0"])
    (folder / "memory/notes/n1.md").unlink()
    assert sorted(ids(documents, letters("mill"))) == ["n2", "n3"]
    memory.sync()
    assert sorted(ids(documents, letters("mill"))) == ["n2", "n3"]


def test_a_document_added_again_has_its_new_vector_alone(documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    documents.add([Document("n0", TEXTS[0])], [letters("zzz")], GIVEN)
    assert found(documents, letters("zzz"))[0] == ("n0", pytest.approx(1))
    documents.add([Document("n0", TEXTS[0])])
    assert "n0" not in ids(documents, letters("zzz"))


def test_of_one_id_twice_the_last_counts(documents):
    documents.add([Document("a", "x"), Document("a", "y")], [[1, 0], [0, 1]], GIVEN)
    assert found(documents, [0, 1]) == [("a", pytest.approx(1))]


@pytest.mark.parametrize(
    ("rows", "maker", "words"),
    [
        ([[1.0, 2.0]], GIVEN, "have 2 dimensions, those of the documents that are there have 8"),
        ([[1.0] * 8], LETTERS, "are of 'letters', the documents that are there came with some of 'given'"),
        ([[float("nan")] * 8], GIVEN, "NaN"),
        ([[1e300] * 8], GIVEN, "beyond float32"),
        ([["a"] * 8], GIVEN, "must be numbers"),
        ([[1.0] * 8] * 2, GIVEN, "give one row for each"),
        ([1.0] * 8, GIVEN, "give one row for each"),
        ([[]], GIVEN, "give one row for each"),
        ([[1.0] * 8], None, "give maker="),
    ],
    ids=["dimensions", "model", "nan", "infinite", "text", "count", "flat", "empty", "no maker"],
)
def test_vectors_that_do_not_fit_are_refused_and_nothing_is_written(folder, documents, rows, maker, words):
    documents.add(some(), vectors_of(some()), GIVEN)
    with pytest.raises(EmbedderError, match=words):
        documents.add([Document("new", "text")], rows, maker)
    assert not (folder / "memory/notes/new.md").exists()


def test_another_model_may_come_once_the_documents_of_the_first_are_gone(documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    documents.delete([document.id for document in some()])
    assert documents.precomputed.identity is None
    documents.add([Document("a", "x")], [[1, 0]], GIVEN)
    assert found(documents, [1, 0]) == [("a", pytest.approx(1))]
    documents.delete(["a"])
    documents.add([Document("b", "mill")], [letters("mill")], LETTERS)
    assert documents.precomputed.identity == "letters"


def test_a_question_of_other_dimensions_is_refused(documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    with pytest.raises(EmbedderError, match="8 dimensions"):
        documents.precomputed.nearest([1, 2], 3)
    with pytest.raises(QueryError, match="at least 1"):
        documents.precomputed.nearest(letters("mill"), 0)


def test_where_nothing_came_with_a_vector_there_is_no_index_for_them(folder, documents):
    documents.add(some())
    assert ids(documents, [1, 2, 3]) == []
    assert documents.precomputed.identity is None
    assert not list((folder / ".memory").glob("*documents*"))


def test_a_filter_finds_the_one_of_many(documents):
    many = [Document(f"d{number}", f"text {number}", {"number": number}) for number in range(300)]
    documents.add(many, np.random.default_rng(1).normal(size=(300, 4)), GIVEN)
    assert ids(documents, [1, 2, 3, 4], 2, where=lambda one: one.metadata["number"] == 7) == ["d7"]
    assert len(ids(documents, [1, 2, 3, 4], 300)) == 300


def test_documents_with_and_without_vectors_live_side_by_side(documents):
    documents.add(some()[:2], vectors_of(some()[:2]), GIVEN)
    documents.add(some()[2:])
    assert sorted(ids(documents, letters("mill"))) == ["n0", "n1"]
    vectors = documents.precomputed.vectors(documents.get(["n1", "n2"]))
    assert vectors[0] == pytest.approx(np.array(letters(TEXTS[1])) / np.linalg.norm(letters(TEXTS[1])), abs=1e-6)
    assert vectors[1] is None


def test_a_damaged_vector_in_a_file_is_told(folder, memory, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    path = folder / "memory/notes/n0.md"
    path.write_text(path.read_text().replace('"vector": "', '"vector": "?'))
    memory.sync()
    assert sorted(ids(documents, letters("mill"))) == ["n1", "n2", "n3"]
    assert any("1 documents" in notice for notice in memory.status().notices)


def test_a_vector_of_another_length_in_a_file_is_told(folder, memory, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    path = folder / "memory/notes/n0.md"
    head, numbers, tail = (
        path.read_text().rpartition('"vector": "')[0],
        '"AACAPw=="}',
        path.read_text().split("}\n---")[1],
    )
    path.write_text(f'{head}"vector": {numbers}\n---{tail}')
    memory.sync()
    assert "n0" not in ids(documents, letters("mill"))
    assert "1 dimensions" in documents.precomputed.told()[0]


def test_an_index_full_of_garbage_is_set_aside_and_made_again(folder):
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), GIVEN)
        before = found(memory.documents, letters("mill"))
    (index,) = (folder / ".memory").glob("*-documents.sqlite")
    index.write_bytes(b"garbage" * 1000)
    with Memory.open(folder, embedder=None) as memory:
        assert found(memory.documents, letters("mill")) == before
    assert list((folder / ".memory").glob("*-documents.sqlite.damaged-*"))


def test_the_index_deleted_under_a_memory_that_is_open_is_made_again(folder, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    before = found(documents, letters("mill"))
    for file in (folder / ".memory").glob("*-documents.sqlite*"):
        file.unlink()
    assert found(documents, letters("mill")) == before


ADDS = """
import sys
from openclaw_memory import Memory
from openclaw_memory.types import Document, Maker
with Memory.open(sys.argv[1], embedder=None) as memory:
    for number in range(5):
        memory.documents.add([Document(f"{sys.argv[2]}{number}", "text")], [[number + 1.0, 1.0]], Maker("given", "given"))
"""


def test_what_other_processes_add_is_found(folder, documents):
    documents.add([Document("own", "text")], [[1.0, 0.0]], GIVEN)
    assert ids(documents, [1, 0]) == ["own"]
    running = [subprocess.Popen([sys.executable, "-c", ADDS, str(folder), name]) for name in "ab"]
    assert [process.wait(60) for process in running] == [0, 0]
    everything = {"own", *(f"{name}{number}" for name in "ab" for number in range(5))}
    assert set(ids(documents, [1, 0], 50)) == everything


def test_what_is_shown_of_a_file_is_without_its_vector(memory, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    shown = memory.get("memory/notes/n0.md").text
    assert '"vector": "…"' in shown
    assert TEXTS[0] in shown
    assert documents.get(["n0"])[0].model == "given"


def test_fields_beside_the_metadata_come_back_and_ours_are_refused(documents):
    fields = {"llama_index": {"relationships": {"1": ["a", None]}}, "more": 1}
    documents.add([Document("a", "text", {"n": 1}, fields=fields)])
    assert documents.get(["a"])[0].fields == fields
    with pytest.raises(QueryError, match="embedding"):
        documents.add([Document("a", "text", fields={"embedding": {}})])


def test_a_memory_that_is_closed_answers_no_more(folder):
    memory = Memory.open(folder, embedder=None)
    memory.documents.add(some(), vectors_of(some()), GIVEN)
    memory.close()
    memory.close()
    with pytest.raises(Exception, match="closed"):
        memory.documents.precomputed.nearest(letters("mill"), 1)


def test_words_alone_find_documents_and_lines(memory, documents):
    documents.add(some())
    memory.append("The ferry leaves at nine.\n", date="2026-01-02")
    memory.sync()
    names = [document.id for document, _ in documents.matching("ferry", 5)]
    assert sorted(names) == ["memory/2026-01-02.md#L1-L3", "n1"]
    scores = [score for _, score in documents.matching("ferry island", 5)]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert [one.id for one, _ in documents.matching("ferry", 5, where=lambda one: one.metadata.get("number") == 1)] == [
        "n1"
    ]
    assert documents.matching("   ", 5) == []
    with pytest.raises(QueryError, match="string"):
        documents.matching(None, 5)
