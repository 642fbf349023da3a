"""Documents as files: names that are safe everywhere, nothing of a person's overwritten, whole files only."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import InvalidInputError, PathNotAllowedError, WriteError
from openclaw_memory.workspace import documents
from openclaw_memory.workspace.document_cache import DocumentCache
from openclaw_memory.workspace.documents import Fields, make_file_name
from openclaw_memory.workspace.files import WorkspaceFiles

NOTES = "memory/notes"
OURS = '---\nopenclaw_memory: 1\nid: "a"\n---\ntext\n'


def upsert(root: Path, given: dict[str, tuple], rules: FilesConfig | None = None, cache: DocumentCache | None = None):
    """Write documents where a look at all files finds them."""
    files = WorkspaceFiles(root, rules or FilesConfig())
    known = cache or DocumentCache(files)
    names = {documents.fold_path(f"{NOTES}/{path.name}") for path in (root / NOTES).glob("*")}
    look = lambda keys: documents.Whereabouts(documents.find_paths(known, list(keys)), set(), names)  # noqa: E731
    return documents.upsert(files, given, look)


def put(root: Path, **texts: str) -> list[str]:
    given = {name: ({"metadata": {}}, text) for name, text in texts.items()}
    return upsert(root, given).changed


def stored(root: Path) -> dict[str, str]:
    cache = DocumentCache(WorkspaceFiles(root))
    contents = [cache.load(f"{NOTES}/{path.name}").content for path in (root / NOTES).glob("*")]
    return {one.fields["id"]: one.text for one in contents if one is not None}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
def test_every_id_has_a_name_that_every_system_takes(doc_id):
    if not doc_id.strip():
        return
    name = make_file_name(doc_id)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert 0 < len(name) <= 93
    assert name not in {"con", "nul", "com1"}


@pytest.mark.parametrize(
    ("one", "other"),
    [("Doc", "doc"), ("a/b", "a-b"), ("é", "e\u0301"), ("x" * 200, "x" * 201), ("..", "."), ("con", "CON")],
)
def test_ids_that_differ_never_share_a_file(tmp_path, one, other):
    assert make_file_name(one).casefold() != make_file_name(other).casefold()
    upsert(tmp_path, {one: ({}, "1"), other: ({}, "2")})
    assert stored(tmp_path) == {one: "1", other: "2"}


@pytest.mark.parametrize("doc_id", ["", " \n", "\ud800", 5, None])
def test_what_is_no_id_is_refused_and_nothing_written(tmp_path, doc_id):
    with pytest.raises(InvalidInputError):
        upsert(tmp_path, {"good": ({}, ""), doc_id: ({}, "")})
    assert stored(tmp_path) == {}


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


def test_files_and_folders_are_for_their_owner_alone(tmp_path):
    documents.write(WorkspaceFiles(tmp_path), [Fields("memory/deep/er/x.md", {}, "")])
    assert (tmp_path / "memory/deep/er/x.md").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "memory/deep/er").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.md", "../x.md", "memory/x.txt", "sessions/a.jsonl", "/etc/x.md"])
def test_documents_lie_below_memory_alone(tmp_path, path):
    with pytest.raises(PathNotAllowedError):
        documents.write(WorkspaceFiles(tmp_path), [Fields(path, {}, "")])


@pytest.mark.parametrize("content", ["mine", "---\ntitle: x\n---\n", "", b"\xff\x00\xfe"], ids=repr)
def test_a_persons_file_is_neither_overwritten_nor_removed(tmp_path, content):
    (tmp_path / "memory").mkdir()
    file = tmp_path / "memory" / "x.md"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = file.read_bytes()
    for change in (
        lambda: documents.write(
            WorkspaceFiles(tmp_path), [Fields("memory/new.md", {}, ""), Fields("memory/x.md", {}, "theirs")]
        ),
        lambda: documents.remove(WorkspaceFiles(tmp_path), ["memory/x.md"]),
    ):
        with pytest.raises(PathNotAllowedError, match=r"memory/x\.md is a person's own file"):
            change()
    assert file.read_bytes() == before
    assert not (tmp_path / "memory" / "new.md").exists()
    cache = DocumentCache(WorkspaceFiles(tmp_path))
    assert cache.load("memory/x.md").content is None


@pytest.mark.parametrize("path", ["memory/2026-02-18.md", "./memory/2026-02-18.md"])
def test_the_note_of_a_day_is_no_document(tmp_path, path):
    with pytest.raises(PathNotAllowedError, match=r"2026-02-18\.md is the note of a day.*memory/notes"):
        documents.write(WorkspaceFiles(tmp_path), [Fields("memory/new.md", {}, ""), Fields(path, {}, "")])
    assert list(tmp_path.glob("memory/*.md")) == []


def test_what_would_never_be_read_again_is_not_written(tmp_path):
    rules = FilesConfig(max_bytes=200, exclude=("memory/private/",))
    with pytest.raises(WriteError, match=r"files\.max_bytes"):
        upsert(tmp_path, {"good": ({}, ""), "large": ({}, "ä" * 100)}, rules)
    assert stored(tmp_path) == {}
    with pytest.raises(PathNotAllowedError, match=r"files\.exclude"):
        documents.write(WorkspaceFiles(tmp_path, rules), [Fields("memory/private/x.md", {}, "")])


@pytest.mark.parametrize("error", [KeyboardInterrupt("b.md"), PermissionError(1, "locked", "x", None, "b.md")])
def test_a_write_that_ends_half_way_leaves_whole_files_only_and_names_the_one_that_fails(tmp_path, monkeypatch, error):
    put(tmp_path, a="old", b="old", c="old")

    def fails_at_the_second(source, target, **named):
        if target == "b.md":
            raise error
        os.rename(source, target, **named)

    monkeypatch.setattr(os, "replace", fails_at_the_second)
    with pytest.raises((KeyboardInterrupt, WriteError), match=r"^(memory/notes/b\.md was not .*locked|b\.md$)"):
        put(tmp_path, a="new", b="new", c="new")
    assert stored(tmp_path) == {"a": "new", "b": "old", "c": "old"}
    assert sorted(os.listdir(tmp_path / NOTES)) == ["a.md", "b.md", "c.md"]


def test_a_change_right_after_a_look_is_seen_though_size_and_stamp_are_the_same(tmp_path):
    put(tmp_path, a="0")
    cache, file = DocumentCache(WorkspaceFiles(tmp_path)), tmp_path / NOTES / "a.md"
    for text in "123456789" * 5:
        file.write_text(OURS.replace("text", text))
        assert cache.load(f"{NOTES}/a.md").content.text == text


# A person's hand

DAMAGED = {
    "a value": '---\nopenclaw_memory: 1\nid: "x"\nmetadata: {"a": 1, b: 2}\n---\nOld text.\n',
    "the id": '---\nopenclaw_memory: 1\nid "x"\nmetadata: {"a": 1}\n---\nOld text.\n',
    "no id": '---\nopenclaw_memory: 1\nmetadata: {"a": 1}\n---\nOld text.\n',
    "a blank id": '---\nopenclaw_memory: 1\nid: ""\n---\nOld text.\n',
    "no end": '---\nopenclaw_memory: 1\nid: "x"\nmetadata: {"a": 1}\nOld text.\n',
    "a list": '---\nopenclaw_memory: 1\nid: "x"\nmetadata: [1]\n---\nOld text.\n',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_document_is_told_once_and_stays_one(tmp_path, caplog, content):
    put(tmp_path, x="Old text.")
    file = tmp_path / NOTES / "x.md"
    file.write_text(content)
    cache = DocumentCache(WorkspaceFiles(tmp_path))
    for _ in range(3):
        assert documents.find_paths(cache) == {"x": [f"{NOTES}/x.md"]}
        assert cache.load(f"{NOTES}/x.md").content.text == "Old text."
    assert [f"{NOTES}/x.md" in record.getMessage() for record in caplog.records] == [True]
    assert list(cache.unread) == [f"{NOTES}/x.md"]
    assert upsert(tmp_path, {"x": ({"metadata": {}}, "New.")}, cache=cache).changed == [f"{NOTES}/x.md"]
    assert os.listdir(tmp_path / NOTES) == ["x.md"]
    assert stored(tmp_path) == {"x": "New."}
    assert cache.load(f"{NOTES}/x.md").content.text == "New."
    assert cache.unread == {}


def test_a_document_without_its_id_is_found_by_the_name_that_its_id_leads_to(tmp_path):
    (path,) = put(tmp_path, **{"Doc/Ä 1": "Old."})
    file = tmp_path / path
    file.write_text(file.read_text().replace('id: "Doc/Ä 1"\n', ""))
    cache = DocumentCache(WorkspaceFiles(tmp_path))
    assert documents.find_paths(cache, ["Doc/Ä 1"]) == {"Doc/Ä 1": [path]}
    assert documents.find_paths(cache) == {file.stem: [path]}
    assert upsert(tmp_path, {"Doc/Ä 1": ({}, "New.")}, cache=cache).changed == [path]
    assert stored(tmp_path) == {"Doc/Ä 1": "New."}


def test_a_document_that_has_the_id_comes_before_one_that_only_has_its_name(tmp_path):
    put(tmp_path, a="1")
    folder = tmp_path / NOTES
    (folder / "a.md").rename(folder / "moved.md")
    (folder / "a.md").write_text(DAMAGED["no id"])
    assert documents.find_paths(DocumentCache(WorkspaceFiles(tmp_path))) == {
        "a": [f"{NOTES}/moved.md", f"{NOTES}/a.md"]
    }


@pytest.mark.parametrize("around", ["{}", "({})", "{},", "x={}\nand more"])
def test_a_mask_is_noticed_whatever_stands_around_it(tmp_path, around):
    put(tmp_path, a="the key is sk-proj-abcdefghij0123456789ABCDEFGHIJ.")
    with pytest.raises(InvalidInputError, match="masks a secret"):
        put(tmp_path, a=around.format("sk-pro…GHIJ"))
