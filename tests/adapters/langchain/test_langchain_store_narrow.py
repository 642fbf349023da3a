"""A namespace among many others: its items are found first, with scores, and without looking at those of others."""

import pytest
from langchain_openclaw_memory import OpenClawStore
from langgraph.store.base import PutOp

from openclaw_memory import Memory

ME = ("users", "me")
OTHERS, DAYS = 300, 80


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """A memory with items of others and many daily notes, all of which say nearly the same as the three of `ME`."""
    folder = tmp_path_factory.mktemp("agent")
    (folder / "memory").mkdir()
    for day in range(DAYS):
        name = f"{2000 + day // 360}-{1 + day // 30 % 12:02}-{1 + day % 30 % 28:02}"
        (folder / "memory" / f"{name}.md").write_text(f"# {name}\n\nThe ferry leaves at {day}.\n")
    with Memory.open(folder, embedder="hashing") as memory:
        store = OpenClawStore(memory)
        others = [
            PutOp(("users", f"u{at % 100}"), f"item{at}", {"text": f"The ferry of u{at % 100} leaves at {at}."})
            for at in range(OTHERS)
        ]
        store.batch(others)
        store.put(ME, "ferry", {"text": "The ferry leaves at seven.", "kind": "travel"})
        store.put(ME, "boat", {"text": "A boat lies in the harbour.", "kind": "thing"})
        store.put((*ME, "deep"), "late", {"text": "The last ferry leaves at ten.", "kind": "travel"})
        memory.sync()
        yield memory


@pytest.fixture
def store(memory):
    return OpenClawStore(memory)


def test_the_items_of_a_namespace_come_first_with_their_scores(store):
    for _ in range(5):  # from the fourth search on the index is kept in memory
        found = store.search(ME, query="When does the ferry leave?", limit=5)
        assert [item.key for item in found][:2] in (["ferry", "late"], ["late", "ferry"])
        assert all(item.score is not None and item.score > 0 for item in found[:2])
        assert {item.namespace[:2] for item in found} == {ME}


def test_items_are_found_among_daily_notes_that_say_the_same(store):
    found = store.search((), query="When does the ferry leave?", limit=10)
    assert len(found) == 10
    assert all(item.score is not None for item in found)


def test_what_a_person_changes_in_a_namespace_is_found_at_once_and_no_other_file_is_read(store, memory, monkeypatch):
    read = []
    monkeypatch.setattr(memory, "sync", lambda **_: read.append("all"))
    file = memory.workspace.root / "memory/users/me/boat.md"
    file.write_text(file.read_text().replace("A boat lies in the harbour.", "A zeppelin hangs in the hall."))
    found = store.search(ME, query="zeppelin", limit=1)
    assert found[0].value["text"] == "A zeppelin hangs in the hall."
    assert found[0].score
    store.put(ME, "new", {"text": "The walrus is called Otto."})
    assert store.search(ME, query="walrus", limit=1)[0].score
    assert read == []
