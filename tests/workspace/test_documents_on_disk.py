"""Documents as files: names that are safe everywhere, nothing of a person's overwritten, whole files only."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory.config import Files
from openclaw_memory.errors import PathNotAllowedError, QueryError, WriteError
from openclaw_memory.workspace import documents
from openclaw_memory.workspace.documents import Fields, file_name

RULES = Files()
NOTES = "memory/notes"
OURS = '---\nopenclaw_memory: 1\nid: "a"\n---\ntext\n'


def put(root: Path, **texts: str) -> list[str]:
    return documents.upsert(root, RULES, {name: ({"metadata": {}}, text) for name, text in texts.items()}, {})


def stored(root: Path) -> dict[str, str]:
    return {fields["id"]: text for _, fields, text in documents.below(root, RULES)}


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
def test_every_id_has_a_name_that_every_system_takes(doc_id):
    if not doc_id.strip():
        return
    name = file_name(doc_id)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert 0 < len(name) <= 93
    assert name not in {"con", "nul", "com1"}


@pytest.mark.parametrize(
    ("one", "other"),
    [("Doc", "doc"), ("a/b", "a-b"), ("é", "e\u0301"), ("x" * 200, "x" * 201), ("..", "."), ("con", "CON")],
)
def test_ids_that_differ_never_share_a_file(tmp_path, one, other):
    assert file_name(one).casefold() != file_name(other).casefold()
    documents.upsert(tmp_path, RULES, {one: ({}, "1"), other: ({}, "2")}, {})
    assert stored(tmp_path) == {one: "1", other: "2"}


@pytest.mark.parametrize("doc_id", ["", " \n", "\ud800", 5, None])
def test_what_is_no_id_is_refused_and_nothing_written(tmp_path, doc_id):
    with pytest.raises(QueryError):
        documents.upsert(tmp_path, RULES, {"good": ({}, ""), doc_id: ({}, "")}, {})
    assert stored(tmp_path) == {}


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a\\..\\b", "C:\\x", "memory/notes/x.md"])
def test_no_id_leads_out_of_the_folder(tmp_path, name):
    (path,) = documents.upsert(tmp_path, RULES, {name: ({}, "text")}, {})
    assert (tmp_path / path).parent == tmp_path / NOTES
    assert stored(tmp_path) == {name: "text"}


@pytest.mark.parametrize(
    "text", ["", "\n", "a\n\n", "a\r\nb\r", "\u2028a\x85", "---\nid: x\n---\n", "\ufeffa", "  a  "]
)
def test_a_text_comes_back_as_it_was(tmp_path, text):
    put(tmp_path, a=text)
    assert stored(tmp_path) == {"a": text}


def test_a_persons_file_in_the_way_keeps_its_name(tmp_path):
    (tmp_path / NOTES).mkdir(parents=True)
    (tmp_path / NOTES / "A.md").write_text("mine")
    (tmp_path / NOTES / "b.md").write_text("mine too")
    assert put(tmp_path, a="1", b="2") == [f"{NOTES}/a-2.md", f"{NOTES}/b-2.md"]
    put(tmp_path, a="changed")
    assert stored(tmp_path) == {"a": "changed", "b": "2"}
    assert (tmp_path / NOTES / "A.md").read_text() == "mine"


def test_a_document_that_a_person_moved_is_changed_where_it_is(tmp_path):
    put(tmp_path, a="1")
    (tmp_path / NOTES / "sub").mkdir()
    (tmp_path / NOTES / "a.md").rename(tmp_path / NOTES / "sub" / "Other name.md")
    assert put(tmp_path, a="2") == [f"{NOTES}/sub/Other name.md"]
    assert stored(tmp_path) == {"a": "2"}


def test_what_is_written_already_is_not_written_again(tmp_path):
    put(tmp_path, a="1", b="2")
    before = (tmp_path / NOTES / "a.md").stat()
    assert put(tmp_path, a="1", b="3") == [f"{NOTES}/b.md"]
    assert (tmp_path / NOTES / "a.md").stat().st_ino == before.st_ino


def test_files_and_folders_are_for_their_owner_alone(tmp_path):
    documents.write(tmp_path, RULES, [Fields("memory/deep/er/x.md", {}, "")])
    assert (tmp_path / "memory/deep/er/x.md").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "memory/deep/er").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.md", "../x.md", "memory/x.txt", "sessions/a.jsonl", "/etc/x.md"])
def test_documents_lie_below_memory_alone(tmp_path, path):
    with pytest.raises(PathNotAllowedError):
        documents.write(tmp_path, RULES, [Fields(path, {}, "")])


@pytest.mark.parametrize("content", ["mine", "---\ntitle: x\n---\n", "", b"\xff\x00\xfe"], ids=repr)
def test_a_persons_file_is_neither_overwritten_nor_removed(tmp_path, content):
    (tmp_path / "memory").mkdir()
    file = tmp_path / "memory" / "x.md"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = file.read_bytes()
    for change in (
        lambda: documents.write(
            tmp_path, RULES, [Fields("memory/new.md", {}, ""), Fields("memory/x.md", {}, "theirs")]
        ),
        lambda: documents.remove(tmp_path, RULES, ["memory/x.md"]),
    ):
        with pytest.raises(PathNotAllowedError, match=r"memory/x\.md is a person's own file"):
            change()
    assert file.read_bytes() == before
    assert not (tmp_path / "memory" / "new.md").exists()
    assert documents.read(tmp_path, RULES, "memory/x.md") is None
    assert list(documents.below(tmp_path, RULES, "memory")) == []


@pytest.mark.skipif(os.name == "nt", reason="making a symlink needs rights there")
@pytest.mark.parametrize("target", ["file", "folder"])
def test_no_symlink_is_written_through_or_removed(tmp_path, target):
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text(OURS)
    (root / "memory").mkdir(parents=True)
    if target == "folder":
        (root / NOTES).symlink_to(outside)
    else:
        (root / NOTES).mkdir()
        (root / NOTES / "a.md").symlink_to(outside / "a.md")
    for change in (
        lambda: documents.write(root, RULES, [Fields(f"{NOTES}/a.md", {"id": "a"}, "new")]),
        lambda: documents.remove(root, RULES, [f"{NOTES}/a.md"]),
    ):
        with pytest.raises(PathNotAllowedError, match="symlink"):
            change()
    assert (outside / "a.md").read_text() == OURS


def test_what_would_never_be_read_again_is_not_written(tmp_path):
    rules = Files(max_bytes=200, exclude=("memory/private/",))
    with pytest.raises(WriteError, match=r"files\.max_bytes"):
        documents.upsert(tmp_path, rules, {"good": ({}, ""), "large": ({}, "ä" * 100)}, {})
    assert stored(tmp_path) == {}
    with pytest.raises(PathNotAllowedError, match=r"files\.exclude"):
        documents.write(tmp_path, rules, [Fields("memory/private/x.md", {}, "")])


def test_a_text_that_is_no_unicode_is_refused(tmp_path):
    with pytest.raises(QueryError, match="lone surrogate"):
        put(tmp_path, good="fine", bad="\udc00")
    assert stored(tmp_path) == {}


def test_a_secret_that_was_shown_masked_is_not_lost_by_writing_it_back(tmp_path):
    secret = "sk-proj-abcdefghij0123456789ABCDEFGHIJ"
    put(tmp_path, a=f"the key is {secret}")
    with pytest.raises(QueryError, match="stands for a secret"):
        put(tmp_path, a="the key is sk-pro…GHIJ and more")
    assert secret in stored(tmp_path)["a"]


def test_a_write_that_ends_half_way_leaves_whole_files_only(tmp_path, monkeypatch):
    put(tmp_path, a="old", b="old", c="old")
    replace, calls = os.replace, []

    def fails_at_the_second(*arguments, **named):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(*arguments, **named)

    monkeypatch.setattr(os, "replace", fails_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        put(tmp_path, a="new", b="new", c="new")
    assert stored(tmp_path) == {"a": "new", "b": "old", "c": "old"}
    assert sorted(os.listdir(tmp_path / NOTES)) == ["a.md", "b.md", "c.md"]


def test_only_what_was_there_is_removed(tmp_path):
    put(tmp_path, a="1", b="2")
    assert documents.remove(tmp_path, RULES, [f"{NOTES}/a.md", f"{NOTES}/none.md"]) == [f"{NOTES}/a.md"]
    assert stored(tmp_path) == {"b": "2"}


def test_what_was_read_before_is_read_again_only_where_it_changed(tmp_path, monkeypatch):
    put(tmp_path, a="1", b="2")
    known = {}
    assert documents.paths_by_id(tmp_path, RULES, known) == {"a": [f"{NOTES}/a.md"], "b": [f"{NOTES}/b.md"]}
    (tmp_path / NOTES / "b.md").write_text(OURS.replace('"a"', '"renamed by hand"'))
    read, reads = documents.read, []
    monkeypatch.setattr(documents, "read", lambda root, rules, path: reads.append(path) or read(root, rules, path))
    assert set(documents.paths_by_id(tmp_path, RULES, known)) == {"a", "renamed by hand"}
    assert reads == [f"{NOTES}/b.md"]
