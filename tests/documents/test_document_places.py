"""Writes among many documents: the index says where they are, and what people and other programs changed still counts."""

import shutil

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from index_files import index_folder

from openclaw_memory import Memory
from openclaw_memory.types import Document

FOLDER = "memory/notes"


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, embedder=None) as opened:
        opened.documents.add([Document(name, f"{name} was here", {"n": 1}) for name in ("anna", "berta", "carl")])
        yield opened


def files(memory):
    return sorted(path.name for path in (memory.workspace.root / FOLDER).rglob("*.md"))


def moved(memory, name="anna"):
    folder = memory.workspace.root / FOLDER
    (folder / "sub").mkdir()
    return (folder / f"{name}.md").rename(folder / "sub" / "other.md")


def test_an_id_that_a_person_has_changed_counts(memory):
    path = memory.workspace.root / FOLDER / "anna.md"
    path.write_text(path.read_text().replace('id: "anna"', 'id: "anita"'))
    assert memory.documents.delete(["anna"]) == []
    memory.sync()
    memory.documents.add([Document("anita", "anita was here")])
    assert [one.path for one in memory.documents.get(["anita"])] == [f"{FOLDER}/anna.md"]
    assert len(files(memory)) == 3


def test_documents_are_listed_by_what_they_are_parts_of(memory):
    documents = memory.documents
    parts = [Document(f"p{number}", "a part", fields={"part_of": f"whole {number % 2}"}) for number in range(4)]
    documents.add(parts)
    assert [one.id for one in documents.iterate(documents.Filter(parts_of=["whole 1"]))] == ["p1", "p3"]
    moved(memory, "p3")
    assert {one.id for one in documents.iterate(documents.Filter(parts_of=["whole 1"]))} == {"p1", "p3"}
    assert [
        one.id for one in documents.iterate(documents.Filter(tests=[lambda one: one.id == "p0"], parts_of=["whole 0"]))
    ] == ["p0"]
    assert list(documents.iterate(documents.Filter(parts_of=["nothing"]))) == []


def change_by_hand(step, folder, there, at):
    """Delete, move or copy the files of a document; whether it is gone."""
    if step == "gone":
        for path in there:
            path.unlink()
    elif there:
        (shutil.move if step == "move" else shutil.copy)(there[0], folder / f"x{at}.md")
    return step == "gone"


@settings(max_examples=8)
@example([("add", 0), ("add", 1), ("gone", 0), ("move", 1), ("copy", 1)])
@given(st.lists(st.tuples(st.sampled_from("add own move copy drop gone lost".split()), st.integers(0, 4)), max_size=12))
def test_whatever_happens_the_documents_are_those_of_the_files(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("any")
    folder = root / FOLDER
    expected: dict[str, str] = {}
    with Memory.open(root, embedder=None) as one, Memory.open(root, embedder=None) as two:
        for at, (step, number) in enumerate(steps):
            name = f"d{number}"
            there = [path for path in folder.rglob("*.md") if f'id: "{name}"' in path.read_text()]
            if step in {"add", "own"}:
                (one if step == "add" else two).documents.add([Document(name, f"text {at}")])
                expected[name] = f"text {at}"
            elif step == "drop":
                assert one.documents.delete([name]) == [name] * (name in expected)
                expected.pop(name, None)
            elif step == "lost":
                shutil.rmtree(index_folder(root), ignore_errors=True)
            elif change_by_hand(step, folder, there, at):
                expected.pop(name, None)
        names = [f"d{number}" for number in range(5)]
        for memory in (one, two):
            assert {found.id for found in memory.documents.get(names)} == expected.keys()
            assert {found.id for found in memory.documents.iterate()} == expected.keys()
        one.documents.add([Document("last", "text")])
        assert one.documents.delete([*names, "last"]) == [*sorted(expected), "last"]
        assert not list(folder.rglob("*.md"))
