import os

import pytest

from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import WorkspaceError
from openclaw_memory.types import MemoryFile
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.files import WorkspaceFiles


def lay_out(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n", encoding="utf-8")


def paths(found):
    return [file.path for file in found.files]


def reasons(found):
    return {item.path: item.reason for item in found.skipped}


def test_notes_are_found_with_what_stat_says_of_them(tmp_path):
    lay_out(tmp_path, "MEMORY.md")
    info = (tmp_path / "MEMORY.md").stat()
    found = Workspace.open(tmp_path).scan()
    stats = info.st_size, info.st_mtime_ns, info.st_ino, info.st_ctime_ns
    assert found.files == (MemoryFile("MEMORY.md", "memory", *stats),)
    assert found.skipped == ()


def test_other_names_and_the_librarys_own_folders_do_not_count(tmp_path):
    lay_out(tmp_path, "notes.md", "Memory.md", "memory/a.mD", "memory/a.text", "memory/.memory/a.md", ".memory/a.md")
    lay_out(tmp_path, "memory/.openclaw-repair/a.md", "sub/memory/a.md")
    found = Workspace.open(tmp_path, FilesConfig(extra_paths=("sub/none", ".memory"))).scan()
    assert paths(found) == []
    assert reasons(found) == {
        "sub/none": "does not exist: correct files.extra_paths, or create it",
        ".memory": "lies in a folder that is never indexed",
    }


def test_memory_md_beside_memory_in_capitals_is_left_out_with_a_word(tmp_path):
    lay_out(tmp_path, "memory.md")
    assert Workspace.open(tmp_path).scan().skipped == ()
    lay_out(tmp_path, "MEMORY.md")
    if (tmp_path / "memory.md").read_text() == "MEMORY.md\n":
        pytest.skip("the file system ignores case")
    for rules in (FilesConfig(), FilesConfig(extra_paths=(".",))):
        found = Workspace.open(tmp_path, rules).scan()
        assert paths(found) == ["MEMORY.md"]
        assert reasons(found) == {"memory.md": "is left out next to MEMORY.md: move what it says there"}


def test_a_file_has_one_name_however_many_extra_paths_lead_to_it(tmp_path):
    lay_out(tmp_path, "ws/MEMORY.md", "ws/memory/a.md", "ws/deep/b.md")
    rules = FilesConfig(extra_paths=(".", "deep", "./deep/b.md", str(tmp_path / "ws" / "memory")))
    found = Workspace.open(tmp_path / "ws", rules).scan()
    assert paths(found) == ["MEMORY.md", "memory/a.md", "deep/b.md"]
    assert found.skipped == ()


@pytest.mark.parametrize("link", ["MEMORY.md", "memory", "memory/link.md", "memory/folder", "memory/dangling.md"])
def test_symlinks_are_skipped_and_reported(tmp_path, link):
    lay_out(tmp_path, "outside/secret.md", "ws/USER.md")
    target = tmp_path / "outside" / ("" if link in {"memory", "memory/folder"} else "secret.md")
    (tmp_path / "ws" / link).parent.mkdir(exist_ok=True)
    (tmp_path / "ws" / link).symlink_to(tmp_path / "nowhere" if "dangling" in link else target)
    found = Workspace.open(tmp_path / "ws").scan()
    assert paths(found) == ["USER.md"]
    assert "symlink" in reasons(found)[link]


def test_a_symlink_on_the_way_to_an_extra_path_in_the_workspace_is_not_followed(tmp_path):
    lay_out(tmp_path, "outside/notes/secret.md")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/link").symlink_to(tmp_path / "outside")
    found = Workspace.open(tmp_path / "ws", FilesConfig(extra_paths=("link/notes",))).scan()
    assert paths(found) == []
    assert "symlink" in reasons(found)["link/notes"]


@pytest.mark.fault(17)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
def test_devices_are_skipped_and_reported(tmp_path):
    lay_out(tmp_path, "memory/a.md")
    os.mknod(tmp_path / "memory/zero.md", 0o20666, os.makedev(1, 5))
    found = Workspace.open(tmp_path).scan()
    assert paths(found) == ["memory/a.md"]
    assert reasons(found)["memory/zero.md"] == "is not a regular file, but a link, a pipe or a device"


def rewrite(path):
    """Write another text of the same length, and set the time of the last write back."""
    info = path.stat()
    while path.stat().st_ctime_ns == info.st_ctime_ns:  # until the clock of the file system has ticked
        path.write_text("x" * info.st_size)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


CHANGES = {
    "nothing": lambda _: None,
    "rewritten": lambda root: rewrite(root / "memory/deep/b.md"),
    "new": lambda root: lay_out(root, "memory/new/c.md"),
    "new at the top": lambda root: lay_out(root, "USER.md"),
    "gone": lambda root: (root / "memory/deep/b.md").unlink(),
    "renamed": lambda root: (root / "memory/a.md").rename(root / "memory/A.md"),
    "linked": lambda root: os.link(root / "memory/a.md", root / "elsewhere"),
    "a symlink": lambda root: (root / "memory/deep/link.md").symlink_to("b.md"),
    "a pipe": lambda root: os.mkfifo(root / "memory/deep/pipe"),
    "a transcript": lambda root: lay_out(root, "sessions/c.jsonl"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_scan_is_the_same_object_as_the_last_one_exactly_while_nothing_changes(tmp_path, change):
    lay_out(tmp_path, "MEMORY.md", "memory/a.md", "memory/deep/b.md", "sessions/a.jsonl")
    (tmp_path / "memory/other.md").symlink_to("a.md")
    workspace = Workspace.open(tmp_path)
    last = workspace.scan()
    CHANGES[change](tmp_path)
    found, fresh = workspace.scan(), Workspace.open(tmp_path).scan()
    assert (found is last) == (change == "nothing")
    assert (found.files, found.skipped) == (fresh.files, fresh.skipped)


@pytest.mark.fault(19)
@pytest.mark.nightly
def test_more_than_a_hundred_thousand_files_are_scanned(tmp_path):
    for folder in range(100):
        (tmp_path / f"memory/{folder}").mkdir(parents=True)
        for number in range(1001):
            (tmp_path / f"memory/{folder}/{number}.md").touch()
    found = Workspace.open(tmp_path).scan()
    assert (len(found.files), len(found.skipped)) == (100_100, 0)


def test_a_name_that_is_not_utf_8_is_reported_in_a_form_that_can_be_printed(tmp_path):
    lay_out(tmp_path, "memory/a.md")
    (tmp_path / os.fsdecode(b"memory/\xff.md")).touch()
    found = Workspace.open(tmp_path).scan()
    assert paths(found) == ["memory/a.md"]
    assert reasons(found) == {"memory/\ufffd.md": "has a name that is not UTF-8: rename it"}


def test_what_cannot_be_looked_at_is_unknown_and_not_gone(tmp_path, monkeypatch):
    lay_out(tmp_path, "memory/a.md", "memory/closed/b.md")
    listed = os.scandir

    def scandir(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = Workspace.open(tmp_path).scan()
    assert paths(found) == ["memory/a.md"]
    assert reasons(found) == {"memory/closed": "cannot be looked at: Permission denied"}
    assert found.is_unknown("memory/closed/b.md")
    assert not found.is_unknown("memory/closed.md")


def test_a_workspace_that_is_gone_is_an_error_and_not_an_empty_one(tmp_path):
    with pytest.raises(WorkspaceError, match="cannot be listed"):
        Workspace(WorkspaceFiles(tmp_path / "gone")).scan()
