"""Documents that came with vectors of their own: found by them, exactly, whatever happens to files and index."""

import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory import Memory
from openclaw_memory.errors import EmbedderError, InvalidInputError, QueryError, SyncBusyError, WorkspaceError
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import Document, Maker
from openclaw_memory.workspace.document_cache import Known

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
    assert "4 documents have lost the vectors" in caplog.text


def test_a_maker_that_fails_is_told_and_asked_again_after_the_next_change_or_a_minute(folder, monkeypatch):
    calls = []

    def broken(documents):
        calls.append(len(documents))
        raise RuntimeError("the service is down")

    failing = Maker("letters", "letters", broken)
    now = 1000.0
    monkeypatch.setattr("openclaw_memory.documents.precomputed.time.monotonic", lambda: now)
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), LETTERS)
    nowhere(folder)
    with Memory.open(folder, embedder=None) as memory:
        for _ in range(3):
            assert ids(memory.documents, letters("mill"), maker=failing) == []
        assert calls == [4]
        assert "the service is down" in memory.documents.precomputed.told()[0]
        now += 61
        assert ids(memory.documents, letters("mill"), maker=failing) == []
        assert calls == [4, 4]
        memory.documents.add([Document("other", "text")])
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


def test_a_document_added_again_has_its_new_vector_and_without_one_keeps_it_as_long_as_its_text_stays(documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    documents.add([Document("n0", TEXTS[0])], [letters("zzz")], GIVEN)
    assert found(documents, letters("zzz"))[0] == ("n0", pytest.approx(1))
    documents.add([Document("n0", TEXTS[0], {"more": 1})])
    assert found(documents, letters("zzz"))[0] == ("n0", pytest.approx(1))
    documents.add([Document("n0", "another text")])
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


def test_where_nothing_came_with_a_vector_nothing_is_found_by_one(folder, documents):
    assert ids(documents, [1, 2, 3]) == []
    assert not list((folder / ".memory").glob("*documents*"))
    documents.add(some())
    assert ids(documents, [1, 2, 3]) == []
    assert documents.precomputed.identity is None


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
    assert any("1 document has lost" in notice for notice in memory.status().notices)


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
    (index,) = (folder / ".memory").glob("*.documents.sqlite")
    index.write_bytes(b"garbage" * 1000)
    with Memory.open(folder, embedder=None) as memory:
        assert found(memory.documents, letters("mill")) == before
    assert list((folder / ".memory").glob("*.documents.sqlite.damaged-*"))


def test_the_index_deleted_under_a_memory_that_is_open_is_made_again(folder, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    before = found(documents, letters("mill"))
    for file in (folder / ".memory").glob("*.documents.sqlite*"):
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
    with pytest.raises(InvalidInputError, match="embedding"):
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
    with pytest.raises(InvalidInputError, match="string"):
        documents.matching(None, 5)


@pytest.mark.parametrize("maker", [GIVEN, LETTERS], ids=["in the file", "made again"])
def test_a_memory_opened_again_knows_what_it_knew(folder, maker):
    many = [Document(f"d{number}", f"text {number}", {"number": number}) for number in range(100)]
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(many, vectors_of(many) + np.arange(100)[:, None], maker)
        before = found(memory.documents, letters("mill"), 100)
    with Memory.open(folder, embedder=None) as memory:
        assert found(memory.documents, letters("mill"), 3, where=lambda one: one.metadata["number"] == 7)[0][0] == "d7"
        assert found(memory.documents, letters("mill"), 100) == before
        assert len(memory.documents.precomputed.paths()) == 100


@pytest.mark.parametrize("maker", [GIVEN, LETTERS], ids=["in the file", "made again"])
def test_a_new_vector_for_the_same_text_takes_the_place_of_the_old(folder, memory, documents, maker):
    documents.add(some(), vectors_of(some()), maker)
    long_ago = 1_700_000_000
    for path in (folder / "memory/notes").glob("*.md"):
        os.utime(path, (long_ago, long_ago))  # no stamp is in doubt
    memory.sync()
    documents.add([some()[0]], [[-1.0] * 8], maker)
    assert found(documents, [-1.0] * 8)[0] == ("n0", pytest.approx(1))


@pytest.mark.parametrize("spread", [0.02, 1.0], ids=["nearly the same", "different"])
def test_the_nearest_are_exact_among_many(documents, spread):
    random = np.random.default_rng(3)
    rows = 1.0 + spread * random.normal(size=(2000, 64))
    rows[:, :3] += 40 * random.normal(size=(2000, 3))  # a few large components
    documents.add([Document(f"d{number}", "same") for number in range(2000)], rows, GIVEN)
    for question in rows[:5] + 0.01:
        exact = cosines(rows, question)
        answers = found(documents, question, 10)
        assert [score for _, score in answers] == pytest.approx(np.sort(exact)[::-1][:10], abs=1e-6)
        assert [exact[int(name[1:])] for name, _ in answers] == pytest.approx(np.sort(exact)[::-1][:10], abs=1e-6)


def test_vectors_of_zeros_are_near_to_nothing_and_still_there(documents):
    documents.add(some()[:2], [[0.0, 0.0], [1.0, 0.0]], GIVEN)
    assert found(documents, [1, 0]) == [("n1", 1.0), ("n0", 0.0)]
    assert sorted(found(documents, [0, 0])) == [("n0", 0.0), ("n1", 0.0)]


def test_what_a_person_writes_into_the_folder_of_documents_is_noticed(folder, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    (folder / "memory/notes/n0.md").unlink()
    deadline = time.monotonic() + 20
    while len(documents.precomputed.paths()) == 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(documents.precomputed.paths()) == 3


def test_another_model_is_refused_also_where_the_index_is_gone(folder):
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), LETTERS)
    nowhere(folder)
    with Memory.open(folder, embedder=None) as memory:
        with pytest.raises(EmbedderError, match="'letters'"):
            memory.documents.add([Document("new", "text")], [[1.0] * 8], GIVEN)
        for path in (folder / "memory/notes").glob("*.md"):
            path.unlink()
        assert memory.documents.add([Document("new", "text")], [[1.0] * 3], GIVEN) == ["new"]


def test_of_two_that_add_at_once_with_other_dimensions_one_is_refused(documents):
    outcomes = []

    def add(name, dims):
        try:
            outcomes.extend(
                documents.add([Document(f"{name}{n}", "text") for n in range(5)], [[1.0] * dims] * 5, GIVEN)
            )
        except EmbedderError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=add, args=("a", 4)), threading.Thread(target=add, args=("b", 5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in outcomes if isinstance(one, EmbedderError)]) == 1
    assert documents.precomputed.lacking == 0
    assert len(documents.precomputed.paths()) == 5


def test_a_copy_that_a_person_has_changed_does_not_get_the_vector_of_the_original(folder, documents):
    documents.add(some(), vectors_of(some()), LETTERS)
    original = folder / "memory/notes/n1.md"
    (folder / "memory/notes/a-copy.md").write_text(original.read_text().replace(TEXTS[1], "zzz"))
    documents.add([Document("n1", "rrrr")], [letters("rrrr")], LETTERS)
    ((best, score), *_) = documents.precomputed.nearest(letters("rrrr"), 10, maker=LETTERS)
    assert (best.text, score) == ("rrrr", pytest.approx(1))


def test_a_memory_whose_own_index_is_damaged_still_finds_by_vectors(folder):
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), GIVEN)
        before = found(memory.documents, letters("mill"))
    (folder / ".memory/index.sqlite").write_bytes(b"garbage" * 1000)
    with Memory.open(folder, embedder=None) as memory:
        assert found(memory.documents, letters("mill")) == before


def test_files_that_are_deleted_while_others_ask_break_no_question(folder, documents):
    documents.add(some(), vectors_of(some()), GIVEN)
    errors, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            try:
                assert len(found(documents, letters("mill"))) == 4
            except Exception as error:  # noqa: BLE001 - each is told below
                errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        time.sleep(0.03)
        (folder / ".memory/index.documents.sqlite").unlink(missing_ok=True)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_slow_maker_keeps_no_other_question_waiting(folder, memory, documents):
    documents.add(some(), vectors_of(some()), LETTERS)
    path = folder / "memory/notes/n0.md"
    path.write_text(path.read_text().replace(TEXTS[0], "changed"))
    memory.sync()
    begun, go_on = threading.Event(), threading.Event()

    def slow(wanted):
        begun.set()
        assert go_on.wait(20)
        return vectors_of(wanted)

    asking = threading.Thread(
        target=found, args=(documents, letters("x")), kwargs={"maker": Maker("letters", "l", slow)}
    )
    asking.start()
    assert begun.wait(20)
    assert len(found(documents, letters("mill"))) >= 3
    go_on.set()
    asking.join()
    assert len(found(documents, letters("mill"))) == 4


def test_each_agent_has_vectors_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    for name in ("a", "a-documents"):
        (tmp_path / f"workspace-{name}").mkdir()
    with Memory.for_agent("a", embedder=None) as first, Memory.for_agent("a-documents", embedder=None) as second:
        first.documents.add([Document("x", "text")], [[1.0, 0.0]], GIVEN)
        second.append("A note.")
        second.sync()
        first.sync()
        assert ids(first.documents, [1, 0]) == ["x"]
        assert ids(second.documents, [1, 0]) == []


ASKS = """
import sys, time
from openclaw_memory import Memory
from openclaw_memory.types import Maker
import numpy as np
make = Maker("letters", "letters", lambda some: np.array([[len(one.text), 1.0] for one in some], np.float32))
with Memory.open(sys.argv[1], embedder=None) as memory:
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        memory.documents.precomputed.vectors(memory.documents.get(["d1"]))
        memory.documents.precomputed.nearest([1.0, 1.0], 3, maker=make)
"""


def test_two_processes_that_add_and_ask_lose_no_vector(folder):
    make = Maker("letters", "letters", lambda some: np.array([[len(one.text), 1.0] for one in some], np.float32))
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add([Document("d0", "text")], [[4.0, 1.0]], make)
        asking = subprocess.Popen([sys.executable, "-c", ASKS, str(folder), "4"])
        for number in range(1, 30):
            memory.documents.add([Document(f"d{number}", "text" * number)], [[4.0 * number, 1.0]], make)
        assert asking.wait(60) == 0
        assert len(ids(memory.documents, [1, 0], 100, maker=make)) == 30
        assert memory.documents.precomputed.lacking == 0


def test_people_s_notes_are_found_behind_documents_with_many_chunks(folder):
    long = "\n\n".join(
        f"## Part {number}\n\nShips and boats, ferries and canoes, number {number}." for number in range(80)
    )
    with Memory.open(folder) as memory:
        memory.append("The canoes are in the shed.", date="2026-01-02")
        memory.documents.add([Document("long", long)], [[1.0, 0.0]], GIVEN)
        vector = memory.embedder.embed_query("Where are the canoes?")
        near = memory.documents.near(vector, 2, beside=memory.documents.precomputed.paths())
        assert [document.id for document, _ in near] == ["memory/2026-01-02.md#L1-L3"]
        assert memory.documents.near(vector, 2, beside=memory.documents.precomputed.paths(), least=0.99) == []


def test_what_does_not_fit_is_not_among_all(documents):
    documents.add(some())
    assert [one.id for one in documents.all(lambda one: one.metadata["number"] > 1)] == ["n2", "n3"]


def test_a_document_that_could_not_be_read_once_is_found_again(folder, memory, documents, monkeypatch):
    documents.add(some(), vectors_of(some()), LETTERS)
    path = folder / "memory/notes/n1.md"
    path.write_text(path.read_text().replace(TEXTS[1], "the ferry sank"))
    look = Known.look

    def refused(known, name, *given):
        if name.endswith("n1.md"):
            raise WorkspaceError("input/output error")
        return look(known, name, *given)

    monkeypatch.setattr(Known, "look", refused)
    (folder / "memory/notes/new.md").write_text((folder / "memory/notes/n0.md").read_text().replace('"n0"', '"new"'))
    memory.sync()
    assert "n1" not in ids(documents, letters("mill"), maker=LETTERS)
    monkeypatch.setattr(Known, "look", look)
    memory.documents.add([Document("more", "text")], [letters("text")], LETTERS)
    ((name, score), *_) = found(documents, letters("the ferry sank"), maker=LETTERS)
    assert (name, score) == ("n1", pytest.approx(1))


def test_a_changed_text_never_comes_with_the_vector_of_the_old_one(folder, documents):
    documents.add(some(), vectors_of(some()), LETTERS)
    path = folder / "memory/notes/n0.md"
    path.write_text(path.read_text().replace(TEXTS[0], "zzzz"))
    for document, cosine in documents.precomputed.nearest(letters(TEXTS[0]), 4, maker=LETTERS):
        assert cosine == pytest.approx(cosines([letters(document.text)], letters(TEXTS[0]))[0], abs=1e-6)


@pytest.mark.parametrize("work", ["add", "ask"])
def test_a_progress_callback_waits_for_nobody_who_waits_for_its_sync(folder, memory, documents, work):
    memory.append("A note.")
    seen = []

    with Memory.open(folder, embedder=None) as other:
        adding = threading.Thread(target=other.documents.add, args=(some(), vectors_of(some()), GIVEN))

        def progress(_):
            if not seen:
                seen.append("begun")
                adding.start()
                time.sleep(0.3)  # it has its turn by now, and waits for this sync
                try:
                    seen.append(
                        documents.add(some(), vectors_of(some()), GIVEN) if work == "add" else ids(documents, [1.0] * 8)
                    )
                except SyncBusyError as error:
                    seen.append(str(error))

        memory.sync(progress=progress)
        adding.join(30)
        assert not adding.is_alive()
        assert len(ids(other.documents, [1.0] * 8)) == 4
    assert ("progress callback" in seen[1]) if work == "add" else seen[1] == []


def test_what_a_sync_that_broke_off_had_taken_up_is_found_after_the_next(folder, memory, documents):
    documents.add(some()[:2], vectors_of(some()[:2]), GIVEN)
    assert sorted(ids(documents, letters("mill"))) == ["n0", "n1"]
    note = SqliteStore.note

    def broken_off(store, name, text):
        if name in {"last_sync", "documents"}:
            raise KeyboardInterrupt
        note(store, name, text)

    with Memory.open(folder, embedder=None) as other, pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteStore, "note", broken_off)
        with pytest.raises(KeyboardInterrupt):
            other.documents.add(some()[2:], vectors_of(some()[2:]), GIVEN)
    assert memory.sync().added == ()
    assert sorted(ids(documents, letters("mill"))) == ["n0", "n1", "n2", "n3"]


def test_the_only_document_may_get_a_vector_of_other_dimensions(folder, memory, documents):
    documents.add([Document("a", "text")], [[1.0, 0.0]], GIVEN)
    with Memory.open(folder.parent, embedder=None) as elsewhere:
        elsewhere.documents.add([Document("a", "text")], [[1.0, 0.0, 0.0]], GIVEN)
    shutil.copy(folder.parent / "memory/notes/a.md", folder / "memory/notes/a.md")
    memory.sync()
    assert found(documents, [1, 0, 0]) == [("a", 1.0)]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_an_index_that_may_not_be_written_still_answers(folder):
    with Memory.open(folder, embedder=None) as memory:
        memory.documents.add(some(), vectors_of(some()), GIVEN)
    (folder / ".memory/index.documents.sqlite").chmod(0o400)
    with Memory.open(folder, embedder=None) as memory:
        assert len(ids(memory.documents, letters("mill"))) == 4
