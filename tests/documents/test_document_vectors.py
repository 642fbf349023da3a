"""Documents that came with vectors of their own: found by them, exactly, whatever happens to files and index."""

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_files import index_file, index_folder
from msgspec import structs

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.errors import EmbedderError, InvalidInputError, SyncBusyError
from openclaw_memory.types import Document, VectorSource

GIVEN = VectorSource("given", "given")
TEXTS = ("the old mill", "the ferry to the island", "beekeeping for beginners", "a walrus asleep")
NOTES = "memory/notes"


def letters(text):
    """A vector of a text that anybody can make again: how often it has each of eight letters."""
    return [text.count(letter) + 0.5 for letter in "aeiotrml"]


def vectors_of(documents):
    return np.array([letters(document.text) for document in documents], np.float32)


LETTERS = VectorSource("letters", "letters", vectors_of)


@pytest.fixture
def documents(memory):
    return memory.documents


def some(texts=TEXTS):
    return [Document(f"n{number}", text, {"number": number}) for number, text in enumerate(texts)]


def add(documents, source=GIVEN, added=None):
    added = some() if added is None else added
    documents.add(added, vectors_of(added), source)


def cosines(rows, vector):
    rows, vector = np.asarray(rows, np.float64), np.asarray(vector, np.float64)
    return rows @ vector / np.linalg.norm(rows, axis=1) / np.linalg.norm(vector)


def nearest(documents, vector, k=10, source=None, where=None):
    identity = source.identity if source else documents.get_vector_identity()
    return documents.search_vector(vector, k, identity=identity, vector_source=source, where=where) if identity else []


def found(documents, vector, k=10, **wishes):
    return [(document.id, score) for document, score in nearest(documents, vector, k, **wishes)]


def ids(documents, vector, k=10, **wishes):
    return [name for name, _ in found(documents, vector, k, **wishes)]


def rewrite(tmp_path, name, old, new):
    path = tmp_path / NOTES / f"{name}.md"
    path.write_text(path.read_text().replace(old, new))


@settings(max_examples=10)
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
    assert [score for _, score in answers] == pytest.approx(sorted(expected, reverse=True), abs=1e-6)
    assert dict(answers) == pytest.approx({f"n{number}": score for number, score in enumerate(expected)}, abs=1e-6)


def test_vectors_of_zeros_are_near_to_nothing_and_still_there(documents):
    documents.add(some()[:2], [[0.0, 0.0], [1.0, 0.0]], GIVEN)
    assert found(documents, [1, 0]) == [("n1", 1.0), ("n0", 0.0)]
    assert sorted(found(documents, [0, 0])) == [("n0", 0.0), ("n1", 0.0)]


@pytest.mark.parametrize("fate", ["closed", "index deleted", "index damaged", "index deleted while open"])
@pytest.mark.sampled(3)
def test_what_documents_came_with_outlives_the_index_where_its_model_is_named(tmp_path, fate):
    source = LETTERS
    with Memory.open(tmp_path, embedder=None) as memory:
        add(memory.documents, source)
        before = found(memory.documents, letters(TEXTS[2]))
        if fate == "index deleted while open":
            shutil.rmtree(index_folder(tmp_path))
            assert found(memory.documents, letters(TEXTS[2]), source=source) == before
    if fate == "index deleted":
        shutil.rmtree(index_folder(tmp_path))
    elif fate == "index damaged":
        index_file(tmp_path).write_bytes(b"garbage" * 1000)
    with Memory.open(tmp_path, embedder=None) as memory:
        assert found(memory.documents, letters(TEXTS[2]), source=source) == before
        assert memory.documents.get_vector_identity() == source.identity
        assert memory.sync(force=True).ok
        assert found(memory.documents, letters(TEXTS[2]), source=source) == before
        assert memory.documents.count_missing_vectors() == 0


REBUILT = {
    "sync": lambda _, memory: memory.sync(),
    "forced": lambda _, memory: memory.sync(force=True),
    "another file": lambda tmp_path, _: rewrite(tmp_path, "n0", TEXTS[0], "something else"),
    "moved": lambda tmp_path, _: (tmp_path / NOTES / "n2.md").rename(tmp_path / NOTES / "other.md"),
}


@pytest.mark.parametrize("how", REBUILT)
def test_vectors_of_an_unnamed_model_live_in_the_index_and_outlast_its_syncs(tmp_path, memory, documents, how):
    add(documents)
    before = found(documents, letters(TEXTS[2]))
    assert all('"vector"' not in path.read_text() for path in (tmp_path / NOTES).glob("*.md"))
    REBUILT[how](tmp_path, memory)
    memory.sync()
    assert found(documents, letters(TEXTS[2])) == before
    assert documents.list_problems(look=True) == []


def test_vectors_of_an_unnamed_model_outlast_other_models_and_chunks_of_the_memory(tmp_path):
    config = MemoryConfig(chunking=ChunkingConfig(max_chars=300))
    with Memory.open(tmp_path, embedder=None) as memory:
        add(memory.documents)
        before = found(memory.documents, letters(TEXTS[2]))
    for settings_of_memory in ({"embedder": "static"}, {"embedder": None, "config": config}, {"embedder": None}):
        with Memory.open(tmp_path, **settings_of_memory) as memory:
            assert memory.sync().ok
            memory.sync()
            assert found(memory.documents, letters(TEXTS[2])) == before


def test_what_is_lost_with_the_index_is_said_with_what_to_do(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        add(memory.documents)
    shutil.rmtree(index_folder(tmp_path))
    with Memory.open(tmp_path, embedder=None) as memory:
        with pytest.raises(EmbedderError, match=r"4 documents have lost.*not named.*embed_model="):
            found(memory.documents, letters(TEXTS[0]))
        assert any("not named" in notice for notice in memory.status().notices)
        assert "embed_model=" in memory.documents.list_problems()[0]
        assert memory.documents.count_missing_vectors() == 4
        assert memory.documents.rebuild_vectors(LETTERS) == 4
        assert found(memory.documents, letters(TEXTS[0]), source=LETTERS)[0] == ("n0", pytest.approx(1))
        assert memory.documents.list_problems() == []


def test_a_source_that_fails_is_reported_and_asked_again_after_the_next_add_or_a_minute(tmp_path, monkeypatch):
    calls = []

    def broken(documents):
        calls.append(len(documents))
        raise RuntimeError("the service is down")

    failing = VectorSource("letters", "letters", broken)
    now = 1000.0
    monkeypatch.setattr("openclaw_memory.documents.vectors.time.monotonic", lambda: now)
    with Memory.open(tmp_path, embedder=None) as memory:
        add(memory.documents, LETTERS)
    shutil.rmtree(index_folder(tmp_path))
    with Memory.open(tmp_path, embedder=None) as memory:
        for _ in range(3):
            assert ids(memory.documents, letters("mill"), source=failing) == []
        assert calls == [4]
        assert "the service is down" in memory.documents.list_problems()[0]
        now += 61
        assert ids(memory.documents, letters("mill"), source=failing) == []
        assert calls == [4, 4]
        memory.documents.add([Document("other", "text")])
        assert ids(memory.documents, letters(TEXTS[3]), source=LETTERS)[0] == "n3"


def test_a_document_that_a_person_has_changed_is_embedded_again(tmp_path, memory, documents):
    add(documents, LETTERS)
    for text in ("llll mmmm", "rrrr aaaa"):
        rewrite(tmp_path, "n0", documents.get(["n0"])[0].text, text)
        memory.sync()
        for document, cosine in nearest(documents, letters(TEXTS[0]), source=LETTERS):
            assert cosine == pytest.approx(cosines([letters(document.text)], letters(TEXTS[0]))[0], abs=1e-6)
        memory.sync()
        assert found(documents, letters(text), source=LETTERS)[0] == ("n0", pytest.approx(1))


@pytest.mark.parametrize("way", ["by hand", "edit", "add", "put"])
def test_a_given_vector_stays_with_its_document_whatever_is_done_to_its_file(tmp_path, memory, documents, way):
    add(documents)
    path, expected = f"{NOTES}/n0.md", ("The mill has burnt down.", {"number": 0})
    (one,) = documents.get(["n0"])
    assert one.model == "given"
    if way == "by hand":
        rewrite(tmp_path, "n0", TEXTS[0], expected[0])
    elif way == "edit":
        seen = memory.get(path)
        memory.edit(path, seen.start_line, seen.end_line, seen.text.replace(TEXTS[0], expected[0]), expected=seen)
    elif way == "add":
        documents.add([structs.replace(one, metadata={"number": 5})])
        expected = (TEXTS[0], {"number": 5})
    else:
        bytes_before = (tmp_path / path).read_bytes()
        documents.files.write((path, *documents.files.read(path)))
        assert (tmp_path / path).read_bytes() == bytes_before
        fields, text = documents.files.read(path)
        documents.files.write((path, {**fields, "metadata": {"number": 6}}, text))
        expected = (TEXTS[0], {"number": 6})
    memory.sync()
    document, score = nearest(documents, letters(TEXTS[0]), 1)[0]
    assert (document.text, document.metadata, score) == (*expected, pytest.approx(1))
    assert documents.list_problems(look=True) == []


def test_a_given_vector_goes_with_its_text_where_another_one_is_added(documents):
    add(documents)
    documents.add([Document("n0", TEXTS[0])], [letters("zzz")], GIVEN)
    assert found(documents, letters("zzz"))[0] == ("n0", pytest.approx(1))
    documents.add([Document("n0", "another text")])
    assert "n0" not in ids(documents, letters("zzz"))
    assert documents.get(["n0"])[0].model == ""


def test_a_document_that_is_gone_is_not_found(tmp_path, memory, documents):
    add(documents)
    documents.delete(["n0"])
    (tmp_path / NOTES / "n1.md").unlink()
    assert sorted(ids(documents, letters("mill"))) == ["n2", "n3"]
    memory.sync()
    assert sorted(ids(documents, letters("mill"))) == ["n2", "n3"]
    assert documents.count_missing_vectors() == 0


@pytest.mark.parametrize(
    ("rows", "source", "words"),
    [
        ([[1.0, 2.0]], GIVEN, "with 2 dimensions, documents that are there came with some of 'given' with 8"),
        (
            [[1.0] * 8],
            LETTERS,
            "are of 'letters' with 8 dimensions, documents that are there came with some of 'given'",
        ),
        ([[float("nan")] * 8], GIVEN, "NaN"),
        ([[1e300] * 8], GIVEN, "beyond float32"),
        ([["a"] * 8], GIVEN, "must be numbers"),
        ([[1.0] * 8] * 2, GIVEN, "give one row for each"),
        ([[1.0] * 8], None, "add source="),
    ],
    ids=["dimensions", "model", "nan", "infinite", "text", "count", "no source"],
)
@pytest.mark.sampled(5)
def test_vectors_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path, documents, rows, source, words):
    add(documents)
    shutil.rmtree(index_folder(tmp_path))  # the files of the documents say what fits
    with pytest.raises(EmbedderError, match=words):
        documents.add([Document("new", "text")], rows, source)
    assert not (tmp_path / NOTES / "new.md").exists()


def test_another_model_may_come_once_the_documents_of_the_first_are_gone(tmp_path, documents):
    add(documents)
    documents.delete([document.id for document in some()])
    assert documents.get_vector_identity() is None
    documents.add([Document("a", "x")], [[1, 0]], GIVEN)
    assert found(documents, [1, 0]) == [("a", pytest.approx(1))]
    (tmp_path / NOTES / "a.md").unlink()
    documents.add([Document("b", "mill")], [letters("mill")], LETTERS)
    assert documents.get_vector_identity() == "letters"


@pytest.mark.parametrize(
    ("source", "row", "reason"),
    [
        (LETTERS, letters("text"), "of 'letters' with 8 dimensions, those of the others of 'given'"),
        (GIVEN, [1.0, 0.0], "2 dimension"),
    ],
    ids=["model", "dimensions"],
)
def test_a_document_from_elsewhere_that_does_not_fit_is_reported(
    tmp_path, tmp_path_factory, memory, documents, source, row, reason
):
    add(documents)
    other = tmp_path_factory.mktemp("other")
    with Memory.open(other, embedder=None) as elsewhere:
        elsewhere.documents.add([Document("a", "text")], [row], source)
    shutil.copy(other / NOTES / "a.md", tmp_path / NOTES / "a.md")
    memory.sync()
    assert sorted(ids(documents, letters("mill"))) == ["n0", "n1", "n2", "n3"]
    assert [notice for notice in memory.status().notices if reason in notice]
    for path in (tmp_path / NOTES).glob("n*.md"):
        path.unlink()
    memory.sync()
    documents.add([Document("a", "text")], [row], source)
    assert found(documents, row, source=source) == [("a", pytest.approx(1))]


def test_a_question_that_does_not_fit_is_refused(documents):
    add(documents)
    with pytest.raises(EmbedderError, match="8 dimensions"):
        nearest(documents, [1, 2], 3)


def test_documents_with_and_without_vectors_live_side_by_side(documents):
    documents.add(some()[2:])
    assert (documents.get_vector_identity(), ids(documents, [1, 2, 3])) == (None, [])
    add(documents, GIVEN, some()[:2])
    assert sorted(ids(documents, letters("mill"))) == ["n0", "n1"]
    vectors = documents.get_vectors(documents.get(["n1", "n2"]), "given")
    assert vectors[0] == pytest.approx(np.array(letters(TEXTS[1])) / np.linalg.norm(letters(TEXTS[1])), abs=1e-6)
    assert vectors[1] is None


def test_fields_beside_the_metadata_come_back_and_ours_are_refused(documents):
    fields = {"llama_index": {"relationships": {"1": ["a", None]}}, "more": 1}
    documents.add([Document("a", "text", {"n": 1}, fields=fields)])
    assert documents.get(["a"])[0].fields == fields
    with pytest.raises(InvalidInputError, match="embedding"):
        documents.add([Document("a", "text", fields={"embedding": {}})])


def test_within_the_progress_of_a_sync_vectors_are_found_and_not_added(tmp_path, memory, documents):
    add(documents)
    memory.append("A note.")
    seen = []

    def progress(_):
        seen.append(len(ids(documents, [1.0] * 8)))
        with pytest.raises(SyncBusyError, match="progress callback"):
            add(documents, GIVEN, [Document("new", "text")])

    memory.sync(progress=progress)
    assert set(seen) == {4}
    assert not (tmp_path / NOTES / "new.md").exists()


def test_people_s_notes_are_found_among_documents_of_the_memory_s_own_model(tmp_path):
    long = "\n\n".join(
        f"## Part {number}\n\nShips and boats, ferries and canoes, number {number}." for number in range(80)
    )
    with Memory.open(tmp_path) as memory:
        embedder = memory.embedder
        memory.append("The canoes are in the shed.", date="2026-01-02")
        memory.documents.add([Document("short", "Canoes and ships.")])
        question = embedder.embed_query("Where are the canoes?")
        memory.documents.add([Document("long", long)], [-question], VectorSource(embedder.identity, embedder.model))
        near = memory.documents.search_vector(question, 5, identity=embedder.identity)
        assert sorted(document.id for document, _ in near[:2]) == ["memory/2026-01-02.md#L1-L3", "short"]
        assert (near[2][0].id, near[2][1]) == ("long", pytest.approx(-1))
        assert len(near) == 3
        rows = memory.documents.get_vectors([document for document, _ in near], embedder.identity)
        assert rows[2] == pytest.approx(-question, abs=1e-6)
        assert all(row is not None for row in rows)
