"""Files below one trusted folder: no link is followed, the modes are private, and a write is whole or nothing."""

import os
import stat
from pathlib import Path

import pytest

from openclaw_memory.errors import NotFoundError, PathNotAllowedError, WriteError
from openclaw_memory.workspace import SafeFolder

WRITES = {
    "append": lambda folder, path: folder.append(path, b"new"),
    "append a page": lambda folder, path: folder.append(path, b"new" * 4096),
    "replace": lambda folder, path: folder.replace(path, b"new"),
    "lock": lambda folder, path: folder.lock(path).__enter__(),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "base").mkdir()
    return SafeFolder(tmp_path / "base")


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "elsewhere" / "victim"
    file.parent.mkdir()
    file.write_bytes(b"precious\n")
    file.chmod(0o640)
    return file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_what_is_written_is_read(folder):
    folder.append("logs/today.log", b"one\n")
    folder.append("logs/today.log", b"two\n" * 4096)
    assert folder.read("logs/today.log") == b"one\n" + b"two\n" * 4096
    (folder.base / "logs/today.log").chmod(0o644)
    with folder.lock():
        folder.replace("logs/today.log", b"three\n")
    assert (folder.read("logs/today.log"), mode(folder.base / "logs/today.log")) == (b"three\n", 0o644)
    folder.remove("logs/today.log")
    folder.remove("logs/today.log")
    with pytest.raises(NotFoundError):
        folder.read("logs/today.log")
    assert folder.list_names("logs") == []
    assert folder.list_names("missing") == []


@pytest.mark.parametrize("write", WRITES)
def test_a_trusted_folder_that_is_missing_is_not_made_unless_it_is_said(tmp_path, write):
    with pytest.raises(WriteError):
        WRITES[write](SafeFolder(tmp_path / "gone"), "sub/file")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("kind", ["soft", "dangling"])
def test_nothing_is_written_through_a_linked_file(folder, victim, write, kind):
    (folder.base / "file").symlink_to(victim if kind == "soft" else victim.with_name("new"))
    with pytest.raises(PathNotAllowedError):
        WRITES[write](folder, "file")
    assert (victim.read_bytes(), mode(victim)) == (b"precious\n", 0o640)
    assert [path.name for path in victim.parent.iterdir()] == ["victim"]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("path", ["linked/victim", "linked/new", "linked/sub/new", "own/linked/new"])
def test_nothing_is_written_through_a_linked_folder(folder, victim, write, path):
    (folder.base / "own").mkdir()
    for place in ("linked", "own/linked"):
        (folder.base / place).symlink_to(victim.parent)
    with pytest.raises(PathNotAllowedError):
        WRITES[write](folder, path)
    assert (victim.read_bytes(), [path.name for path in victim.parent.iterdir()]) == (b"precious\n", ["victim"])


def test_nothing_is_read_through_a_link(folder, victim):
    (folder.base / "file").symlink_to(victim)
    (folder.base / "linked").symlink_to(victim.parent)
    for path in ("file", "linked/victim"):
        with pytest.raises(PathNotAllowedError, match="symlink"):
            folder.read(path)
    with pytest.raises(PathNotAllowedError, match="symlink"):
        folder.list_names("linked")


def test_a_link_is_removed_and_not_what_it_leads_to(folder, victim):
    (folder.base / "file").symlink_to(victim)
    (folder.base / "linked").symlink_to(victim.parent)
    folder.remove("file")
    with pytest.raises(PathNotAllowedError):
        folder.remove("linked/victim")
    assert not (folder.base / "file").is_symlink()
    assert victim.exists()


def test_files_of_one_folder_are_written_and_removed_together(folder):
    folder.append("notes/old", b"old")
    (folder.base / "notes" / ".openclaw-memory-0123456789abcdef.tmp").write_bytes(b"of a process that was killed")
    with folder.lock():
        folder.replace_all("notes", {"old": b"new", "other": b"more"})
    assert {name: folder.read(f"notes/{name}") for name in folder.list_names("notes")} == {
        "old": b"new",
        "other": b"more",
    }
    (folder.base / "notes" / ".openclaw-memory-0123456789abcdef.tmp").write_bytes(b"of a process that was killed")
    folder.remove_all("notes", ["old", "other", "missing"])
    folder.remove_all("missing", ["old"])
    assert folder.list_names("notes") == []


def test_links_may_lead_to_the_trusted_folder(folder, tmp_path):
    (tmp_path / "short").symlink_to(folder.base)
    SafeFolder(tmp_path / "short").append("file", b"one\n")
    assert folder.read("file") == b"one\n"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_neither_read_nor_written(folder, kind):
    (os.mkdir if kind == "folder" else os.mkfifo)(folder.base / "odd")
    for use in (
        folder.read,
        *(lambda path, write=write: WRITES[write](folder, path) for write in ("append", "replace")),
    ):
        with pytest.raises(PathNotAllowedError):
            use("odd")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "/new", "../out", "a/../../out", "a//b", "./a", "a/", "a\0b"])
def test_a_path_that_leads_out_is_refused(folder, path):
    for use in (
        folder.read,
        folder.remove,
        *(lambda path, write=write: write(folder, path) for write in WRITES.values()),
    ):
        with pytest.raises(PathNotAllowedError):
            use(path)
    for use in (lambda: folder.replace_all("a", {path: b"new"}), lambda: folder.remove_all("a", [path])):
        with pytest.raises(PathNotAllowedError):
            use()
    assert list(folder.base.iterdir()) == []


def test_a_workspace_has_a_folder_of_its_own_outside_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "home"))
    (tmp_path / "notes").mkdir()
    folder = SafeFolder.locate_data(tmp_path / "notes")
    assert not (tmp_path / "home").exists()
    folder.append("hooks.log", b"one\n")
    assert (tmp_path / "home" / "workspaces") in folder.base.parents
    assert list((tmp_path / "notes").iterdir()) == []
