"""Documents of a collection have ids of their own, are found in it alone, and lie in a folder of their own."""

import pytest

from openclaw_memory import Memory
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.types import Document, VectorSource


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path) as memory:
        memory.append("Anna's walrus is called Otto.", date="2026-11-21")
        yield memory


@pytest.fixture
def three(memory):
    """The documents in no collection, and those of two: each has a walrus."""
    all_of = [memory.documents.get_collection(name) for name in (None, "work", "At Home")]
    for number, documents in enumerate(all_of):
        documents.add([Document("walrus", f"Walrus {number} sleeps.", {"n": number}), Document(f"only-{number}", "")])
    return all_of


def ids(found):
    return sorted(one.id for one in found)


def test_each_has_ids_of_its_own(three):
    assert [one.text for documents in three for one in documents.get(["walrus"])] == [
        "Walrus 0 sleeps.",
        "Walrus 1 sleeps.",
        "Walrus 2 sleeps.",
    ]
    for number, documents in enumerate(three):
        assert ids(documents.iterate()) == [f"only-{number}", "walrus"]
        assert documents.get([f"only-{(number + 1) % 3}"]) == []


def test_searches_find_what_is_in_the_collection_alone(three, memory):
    vector = memory.embedder.embed_query("walrus")
    for number, documents in enumerate(three):
        own = {f"only-{number}", "walrus"} | ({"memory/2026-11-21.md#L3"} if number == 0 else set())
        assert {one.id for one, _ in documents.search("walrus", 9)} == own
        assert {one.text for one, _ in documents.search("walrus", 9) if one.metadata.get("n") is not None} == {
            f"Walrus {number} sleeps."
        }
        for found in (documents.search_keywords("walrus", 9), documents.search_vector(vector, 9)):
            assert {one.metadata["n"] for one, _ in found if "n" in one.metadata} == {number}
    assert three[1].get(["memory/2026-11-21.md#L3"]) == []


def test_files_lie_in_a_folder_of_the_collection_and_may_be_moved(three, memory):
    root = memory.workspace.root
    (file,) = root.glob("memory/notes/work/walrus.md")
    assert 'collection: "work"' in file.read_text(encoding="utf-8")
    assert len([*root.glob("memory/notes/at-home-*/walrus.md")]) == 1, "a name that is no file name gets a digest"
    file.rename(root / "memory/notes/moved.md")
    assert [one.text for one in three[1].get(["walrus"])] == ["Walrus 1 sleeps."]
    assert [one.text for one in three[0].get(["walrus"])] == ["Walrus 0 sleeps."]


def test_a_file_that_lost_its_id_stays_in_its_collection(three, memory):
    file = memory.workspace.root / "memory/notes/work/walrus.md"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(("id:", "collection:"))), encoding="utf-8")
    assert ids(three[1].iterate()) == ["only-1", "walrus"]
    three[0].delete(ids(three[0].iterate()))
    assert file.exists()


def test_vectors_that_documents_came_with_are_kept_apart(memory):
    source = VectorSource("theirs", "theirs")
    work, home = (memory.documents.get_collection(name) for name in ("work", "home"))
    work.add([Document("a", "one")], [[1.0, 0.0]], source)
    home.add([Document("a", "two")], [[0.0, 1.0]], source)
    for documents, text in ((work, "one"), (home, "two")):
        ((found, _),) = documents.search_vector([1.0, 0.0], 5, identity="theirs")
        assert found.text == text


def test_no_id_leads_into_a_collection(three):
    for call in (three[0].get, three[0].delete, lambda ids: three[0].add([Document(ids[0], "mine")])):
        with pytest.raises(InvalidInputError, match="control character"):
            call(["\x1fwork\x1fwalrus"])
    assert [one.text for one in three[1].get(["walrus"])] == ["Walrus 1 sleeps."]
