"""What frameworks put into a memory: kept as files that a person may change, found whole, deleted only by its id."""

import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.errors import EmbedderError, InvalidInputError, QueryError, WorkspaceError, WriteError
from openclaw_memory.types import Document
from openclaw_memory.workspace.files import WorkspaceFiles

KEY = "sk-proj-abcdefghij0123456789ABCDEFGHIJ"


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def documents(memory):
    memory.documents.add(
        [
            Document("launch", "The launch of the ferry was moved to Friday.", {"n": 1, "tags": ["a", None]}),
            Document("venue", "The venue is the old mill by the river.", {"n": 2}),
            Document("empty", "", {"n": 3}),
        ]
    )
    return memory.documents


def ids(found):
    return [one.id if isinstance(one, Document) else one[0].id for one in found]


def test_documents_come_back_in_the_order_of_their_ids(documents):
    first, second = documents.get(["venue", "nobody", "launch", ""])
    assert (first.id, first.text, first.metadata) == ("venue", "The venue is the old mill by the river.", {"n": 2})
    assert (second.metadata, second.path) == ({"n": 1, "tags": ["a", None]}, "memory/notes/launch.md")


def test_the_best_answers_come_first_and_empty_documents_last(documents):
    found = documents.search("When is the launch?", 9)
    assert ids(found) == ["launch", "venue", "empty"]
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert (scores[0] > 0.5, scores[-1]) == (True, 0.0)
    assert ids(documents.search("When is the launch?", 9, min_score=0.5)) == ["launch"]


def test_a_persons_lines_are_documents_by_their_citation(documents, memory):
    memory.append("Anna's boat is called Zeppelin.", date="2026-11-21")
    memory.sync()
    ((found, _),) = documents.search("Zeppelin", 1)
    assert found.id == "memory/2026-11-21.md#L3"
    assert found.metadata == {
        "path": "memory/2026-11-21.md",
        "start_line": 3,
        "end_line": 3,
        "source": "memory",
        "citation": "memory/2026-11-21.md#L3",
    }
    assert documents.get([found.id]) == [found]
    assert found.id not in ids(documents.iterate())


@pytest.fixture
def indexed(tmp_path):
    """A memory whose searches ask the index as it is, though files have changed since."""
    with Memory.open(tmp_path, config=MemoryConfig(sync=SyncConfig(on_search=False))) as memory:
        memory.documents.add([Document("walrus", "The walrus sleeps."), Document("mill", "The old mill.")])
        yield memory


FATES = {
    "unlinked": lambda file: file.unlink(),
    "a symlink": lambda file: file.symlink_to(file.rename(file.with_name("elsewhere.txt"))),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "no text": lambda file: file.write_bytes(b"\xff\x00\xfe"),
}


@pytest.mark.parametrize("becomes", FATES.values(), ids=FATES)
def test_a_file_that_is_no_document_any_more_is_left_out_of_what_is_found(indexed, becomes):
    documents = indexed.documents
    vector = indexed.embedder.embed_query("The walrus sleeps.")
    assert ids(documents.search_vector(vector, 1)) == ids(documents.search("walrus", 1)) == ["walrus"]
    becomes(indexed.workspace.root / "memory/notes/walrus.md")
    assert ids(documents.search("walrus", 2)) == ["mill"]
    assert ids(documents.search_vector(vector, 2)) == ["mill"]
    assert ids(documents.get(["walrus", "mill"])) == ["mill"]
    documents.add([Document("walrus", "The walrus is awake.")])
    assert [one.text for one in documents.get(["walrus"])] == ["The walrus is awake."]


def test_a_file_that_cannot_be_read_keeps_no_other_from_being_found(indexed, monkeypatch):
    read = WorkspaceFiles.read

    def refuses(files, place):
        if place.parts[-1] == "walrus.md":
            raise WorkspaceError("walrus.md cannot be read")
        return read(files, place)

    monkeypatch.setattr(WorkspaceFiles, "read", refuses)
    fresh = indexed.documents
    (indexed.workspace.root / "memory/notes/walrus.md").touch()
    assert ids(fresh.search("walrus", 2)) == ["mill"]
    with pytest.raises(WorkspaceError, match=r"walrus\.md cannot be read"):
        list(fresh.iterate())


def test_what_is_looked_for_in_transcripts_is_not_filled_up_with_notes(documents, memory):
    memory.sessions.log("tuesday").append("user", "The ferry is late.")
    memory.sync()
    found = documents.search("ferry", 3, source="sessions")
    assert [one.path for one, _ in found] == ["sessions/tuesday.jsonl"]


def test_a_write_that_fails_half_way_makes_searches_know_that_the_index_is_behind(indexed, monkeypatch):
    indexed.sync()
    assert not indexed.search("walrus").stale
    replace, calls = os.replace, []

    def fails_at_the_second(*arguments, **named):
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        replace(*arguments, **named)

    monkeypatch.setattr(os, "replace", fails_at_the_second)
    with pytest.raises(WriteError):
        indexed.documents.files.write(("memory/store/a.md", {}, "a"), ("memory/store/b.md", {}, "b"))
    monkeypatch.undo()
    assert indexed.search("walrus").stale


def test_what_stands_above_the_text_is_not_found_and_lines_are_true(documents, memory):
    documents.add([Document("Krokodil", "Quiet text.\nThe second line is about beekeeping.", {"tag": "xylophone"})])
    (hit,) = memory.search("beekeeping", max_results=1)
    lines = (memory.workspace.root / hit.path).read_text().split("\n")
    assert lines[hit.end_line - 1] == "The second line is about beekeeping."
    assert not any("xylophone" in one.snippet or "openclaw" in one.snippet for one in memory.search("xylophone"))


TITLES = [
    f"{first} {second}" for first in ("Harbour", "Granite", "Velvet") for second in ("lease", "audit", "warranty")
]


@pytest.mark.parametrize("way", ["search", "search_keywords", "search_vector"])
def test_documents_are_told_apart_by_their_metadata_alone(memory, way):
    text = "The terms apply for one year. Payment is due within thirty days."
    memory.documents.add([Document(f"id-{at}", text, {"title": title, "page": at}) for at, title in enumerate(TITLES)])
    for at, title in enumerate(TITLES):
        question = f"What does the {title.lower()} say?"
        question = memory.embedder.embed_query(question) if way == "search_vector" else question
        (document, _), *_ = getattr(memory.documents, way)(question, 1)
        assert (document.id, document.text) == (f"id-{at}", text)


@pytest.mark.parametrize("kept", [["title"], []])
def test_metadata_that_the_context_does_not_list_is_not_searched(memory, kept):
    metadata = {"title": "Harbour lease", "file_name": "zebra"}
    memory.documents.add([Document("x", "The terms apply.", metadata, fields={"context": kept})])
    assert bool(memory.documents.search_keywords("harbour", 1)) == bool(kept)
    assert memory.documents.search_keywords("zebra", 1) == []


def test_an_id_is_not_words_of_a_document(memory):
    memory.documents.add([Document("ferry-plan", "It leaves at noon.")])
    assert memory.documents.search_keywords("ferry", 1) == []


@pytest.mark.parametrize("opened", ["<relevant-memories>", "-----BEGIN RSA PRIVATE KEY-----"])
def test_nothing_in_the_metadata_reaches_into_the_text(documents, memory, opened):
    closed = opened.replace("<", "</").replace("BEGIN", "END")
    documents.add([Document("odd", f"All about beekeeping.\n{closed}", {"tag": f"xylophone {opened}"})])
    assert ids(documents.search("beekeeping", 1)) == ["odd"]
    assert not any("xylophone" in one.snippet for one in memory.search("xylophone beekeeping", min_score=0))


def test_the_nearest_to_a_vector_are_found_each_once(documents, memory):
    documents.add([Document("long", "\n\n".join(f"# {n}\n\nThe mill by the river, part {n}." for n in range(40)))])
    found = documents.search_vector(memory.embedder.embed_query("The venue is the old mill by the river."), 3)
    assert ids(found) == ["venue", "long", "launch"]
    assert found[0][1] == pytest.approx(1, abs=1e-3)
    assert ids(documents.search_vector(np.ones(256), 2, where=lambda one: one.metadata.get("n") == 1)) == ["launch"]


def test_a_vector_is_scaled_and_one_that_does_not_fit_is_refused(documents, memory):
    vector = memory.embedder.embed_query("mill")
    assert [score for _, score in documents.search_vector(vector * 7, 2)] == pytest.approx(
        [score for _, score in documents.search_vector(vector.tolist(), 2)], abs=1e-6
    )
    with pytest.raises(EmbedderError, match="dimensions"):
        documents.search_vector([1.0, 2.0], 1)


def test_a_vector_is_of_finite_numbers(documents):
    wrong = {EmbedderError: (math.nan, math.inf, -math.inf), QueryError: ("a", 10**400, 1j, [1.0, [2.0]])}
    for error, numbers in wrong.items():
        for number in numbers:
            with pytest.raises(error, match=r"a vector must be|NaN or an infinity"):
                documents.search_vector([number, *[0.5] * 255], 1)


def test_without_vectors_keywords_answer_and_places_are_filled(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.documents.add([Document("a", "the old mill"), Document("b", "the ferry")])
        assert ids(memory.documents.search("ferry", 2)) == ["b", "a"]
        assert ids(memory.documents.search("ferry", 2, min_score=0.1)) == ["b"]
        assert memory.documents.search_vector([1.0, 0.0], 2) == []
        assert memory.documents.get_vectors(memory.documents.get(["a"])) == [None]


def test_a_document_that_was_read_masked_is_written_back_with_its_secrets(documents, memory):
    file = memory.workspace.root / "memory/notes/s.md"
    documents.add([Document("s", f"the key is {KEY}", {"keys": [{"key": KEY}], "n": 1})])
    before = file.read_text()
    (shown,) = documents.get(["s"], masked=True)
    documents.add([shown])
    assert file.read_text() == before
    documents.add([Document("s", shown.text, {**shown.metadata, "n": 2})])
    assert file.read_text() == before.replace('"n": 1', '"n": 2')
    documents.add([Document("s", "new text", {**shown.metadata, "keys": [*shown.metadata["keys"], "more"]})])
    assert file.read_text() == before.replace(f"the key is {KEY}", "new text").replace("}]", '}, "more"]')


@pytest.mark.parametrize("moved", ["to another name", "into the text"])
def test_what_was_masked_does_not_take_the_place_of_the_secret(documents, memory, moved):
    documents.add([Document("s", "text", {"key": KEY, "n": 1})])
    mask = documents.get(["s"], masked=True)[0].metadata["key"]
    new = Document("s", "text", {"other": mask}) if moved == "to another name" else Document("s", f"it was {mask}")
    with pytest.raises(InvalidInputError, match="masks a secret"):
        documents.add([new])
    assert KEY in (memory.workspace.root / "memory/notes/s.md").read_text()


def test_a_program_reads_its_own_documents_as_it_added_them_and_may_move_them(documents, memory):
    added = Document("s", f"the zeppelin key is {KEY}", {"nested": [{"key": KEY}]}, fields={"own": KEY})
    documents.add([added])
    for (read,) in (documents.get(["s"]), [one for one in documents.iterate() if one.id == "s"]):
        assert (read.text, read.metadata, read.fields) == (added.text, added.metadata, added.fields)
    before = (memory.workspace.root / "memory/notes/s.md").read_text()
    documents.delete(["s"])
    documents.add([read])
    assert (memory.workspace.root / "memory/notes/s.md").read_text() == before


def test_a_secret_in_a_persons_lines_is_masked_however_they_are_found(memory):
    (memory.workspace.root / "MEMORY.md").write_text(f"The zeppelin key is {KEY}.\n")
    memory.sync()
    near = memory.documents.search_vector(memory.embedder.embed_query("zeppelin key"), 1)
    found = memory.documents.search("zeppelin key", 1)
    assert ids(near) == ids(found) == ["MEMORY.md#L1"]
    assert KEY not in repr([*near, *found])


@pytest.mark.parametrize(
    ("fields", "text"), [({"value": {"a": [{"b": KEY}]}}, ""), ({}, f"the key is {KEY}"), ({"value": {KEY: 1}}, "")]
)
def test_a_secret_of_a_program_is_kept_by_every_door_and_shown_by_none(documents, memory, fields, text):
    documents.files.write(("memory/users/x.md", fields, f"The zeppelin flies. {text}"))
    documents.add([Document("y", f"The zeppelin lands. {text}", fields)])
    memory.sync()
    assert KEY in repr([documents.files.read("memory/users/x.md")])
    assert KEY in repr(documents.get(["y"]))
    assert KEY not in repr(
        [
            documents.files.read("memory/users/x.md", masked=True),
            *documents.search("zeppelin", 5),
            *documents.search("", 9),
        ]
    )
    assert KEY not in repr([*documents.get(["y"], masked=True), *documents.iterate(masked=True)])
    assert KEY not in repr([*memory.search("zeppelin")])
    with pytest.raises(InvalidInputError, match="the name holds a secret"):
        documents.files.write(("memory/users/z.md", {"key": KEY}, ""))


def test_a_damaged_document_is_found_told_of_mended_and_deleted(documents, memory, caplog):
    file = memory.workspace.root / "memory/notes/venue.md"
    file.write_text(file.read_text().replace('{"n": 2}', '{"n": 2, b}'))
    memory.sync()
    (found,) = documents.get(["venue"])
    assert (found.text, found.metadata) == ("The venue is the old mill by the river.", {})
    assert ids(documents.search("old mill", 1)) == ["venue"]
    assert sum("venue.md" in record.getMessage() for record in caplog.records) == 1
    assert "venue.md" in documents.list_problems()[0]
    documents.add([Document("venue", "The venue is a tent.", {"n": 3})])
    assert documents.get(["venue"])[0].metadata == {"n": 3}
    assert documents.list_problems() == []
    file.write_text(file.read_text().replace('id: "venue"', "id"))
    assert documents.list_problems(look=True) != []
    assert documents.delete(["venue"]) == ["venue"]
    assert not file.exists()
    assert documents.list_problems(look=True) == []


def test_who_changes_what_was_returned_changes_no_document(documents):
    documents.get(["launch"])[0].metadata["tags"].append("mine")
    assert documents.get(["launch"])[0].metadata["tags"] == ["a", None]


WORDS = st.lists(st.sampled_from("ferry mill river launch venue Friday boat harbour".split()), min_size=1, max_size=6)


@settings(max_examples=6)
@given(texts=st.lists(WORDS, min_size=3, max_size=14), query=WORDS, k=st.integers(1, 4))
@example(texts=[["mill"], ["ferry", "ferry", "mill"], ["ferry"]], query=["ferry"], k=1)
def test_more_that_are_wanted_only_add_to_what_is_found_where_all_is_weighed(tmp_path_factory, texts, query, k):
    with Memory.open(tmp_path_factory.mktemp("law")) as memory:
        memory.documents.add([Document(str(n), " ".join(words), {"n": n}) for n, words in enumerate(texts)])
        for where in (None, lambda one: one.metadata["n"] % 2 == 0):
            few, more = (memory.documents.search(" ".join(query), count, where=where) for count in (k, 2 * k))
            assert few == more[:k]


def test_arguments_that_cannot_be_are_named(documents):
    for metadata in (None, "words", [1]):
        with pytest.raises(InvalidInputError, match="metadata"):
            documents.add([Document("x", "text", metadata)])
    for call in (
        lambda: documents.search("x", 0),
        lambda: documents.search("x", True),
        lambda: documents.search_vector([1.0], 0),
        lambda: documents.get("launch"),
        lambda: documents.delete("launch"),
        lambda: documents.delete([1]),
        lambda: documents.search(5, 1),
    ):
        with pytest.raises(InvalidInputError):
            call()
    assert ids(documents.get(["launch", "x"])) == ["launch"]


def test_files_at_paths_are_written_read_listed_and_dropped(documents, memory):
    documents.files.write(("memory/users/anna/x.md", {"key": "x", "value": {"a": 1}}, "Anna sails."))
    assert documents.files.read("memory/users/anna/x.md") == ({"key": "x", "value": {"a": 1}}, "Anna sails.")
    assert "memory/users/anna/x.md" in documents.files.sync()
    assert documents.files.search("sails", 9, "memory/users", bool)[0][0] == "memory/users/anna/x.md"
    assert [hit.path for hit in memory.search("sails", max_results=1)] == ["memory/users/anna/x.md"]
    assert (documents.files.delete("memory/users/anna/x.md"), documents.files.delete("memory/users/anna/x.md")) == (
        True,
        False,
    )
    assert documents.files.read("memory/users/anna/x.md") is None
    assert "memory/users/anna/x.md" not in documents.files.sync()


def test_adding_the_same_again_changes_no_file_and_needs_no_sync(documents, memory):
    before = memory.status().last_sync
    documents.add([Document("venue", "The venue is the old mill by the river.", {"n": 2})])
    assert memory.status().last_sync == before


def test_threads_add_find_and_delete_at_once(memory):
    documents = memory.documents

    def work(n):
        documents.add([Document(f"d{n}", f"number {n} in the row")])
        found = ids(documents.search(f"number {n}", 1, where=lambda one: one.id == f"d{n}"))
        return found, documents.delete([f"d{n}"]) if n % 2 else []

    with ThreadPoolExecutor(5) as pool:
        results = list(pool.map(work, range(15)))
    assert results == [([f"d{n}"], [f"d{n}"] if n % 2 else []) for n in range(15)]
    assert sorted(ids(documents.iterate())) == sorted(f"d{n}" for n in range(0, 15, 2))


@pytest.mark.parametrize("text", ["one", "", "one\n\nthree\n", "# One\r\ntwo"])
def test_a_document_cites_the_lines_where_its_text_stands(memory, text):
    assert Document("a", text).citation == ""
    memory.documents.add([Document("a", text, {"n": 1})])
    (found,) = memory.documents.get(["a"])
    path, _, lines = found.citation.partition("#L")
    start, _, end = lines.partition("-L")
    excerpt = memory.get(path, start=int(start), lines=int(end or start) - int(start) + 1)
    assert excerpt.text.split("\n") == [line.removesuffix("\r") for line in text.split("\n")] or excerpt.text == text
    assert memory.documents.read(path) == found


def test_at_the_path_of_a_persons_file_or_of_none_is_no_document(memory):
    (memory.workspace.root / "MEMORY.md").write_text("Mine.")
    for path in ("MEMORY.md", "memory/notes/gone.md", "../else.md"):
        assert memory.documents.read(path) is None


def test_lines_that_are_shown_already_do_not_come_once_more_to_fill_up(memory, documents):
    memory.append("The caterer is Brandt.\nThe venue is the old mill.\n\nThe band plays at nine.", date="2026-01-02")
    memory.sync()
    found = [document for document, _ in documents.search("Who is the caterer?", 6)]
    spans = [(one.path, one.metadata["start_line"], one.metadata["end_line"]) for one in found if "#" in one.id]
    assert spans
    for at, (path, start, end) in enumerate(spans):
        assert all(path != other or end < first or last < start for other, first, last in spans[at + 1 :])


def test_words_alone_find_documents_and_lines(documents, memory):
    memory.append("The ferry leaves at nine.\n", date="2026-01-02")
    memory.sync()
    assert sorted(ids(documents.search_keywords("ferry", 5))) == ["launch", "memory/2026-01-02.md#L1-L3"]
    scores = [score for _, score in documents.search_keywords("ferry launch", 5)]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert ids(documents.search_keywords("ferry", 5, where=lambda one: one.metadata.get("n") == 1)) == ["launch"]
    assert documents.search_keywords("   ", 5) == []
    with pytest.raises(QueryError, match="string"):
        documents.search_keywords(None, 5)


def test_documents_of_an_index_that_searches_do_not_build_are_none(tmp_path):
    unbuilt = MemoryConfig(sync=SyncConfig(before_search=False, on_search=False))
    with Memory.open(tmp_path, config=unbuilt) as memory:
        memory.append("The ferry leaves at seven.", date="2026-03-01")
        assert memory.documents.search_keywords("ferry", 2) == []
        assert memory.documents.search("ferry", 2) == []
        assert memory.documents.search_vector([1.0] * 256, 2) == []
        assert memory.documents.get_vector_identity() is None
