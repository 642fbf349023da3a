"""The user's data folder: one for each workspace, wherever that is opened from."""

import os
import shutil

import pytest

from openclaw_memory import Memory
from openclaw_memory.cli import main
from openclaw_memory.cli.doctor import check_memory
from openclaw_memory.config.environment import locate_user_data, locate_workspace_data


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_workspace_has_one_folder_by_any_of_its_names(tmp_path, home):
    (tmp_path / "my notes").mkdir()
    (tmp_path / "link").symlink_to("my notes")
    folder = locate_workspace_data(tmp_path / "my notes")
    assert folder.parent == home / "workspaces"
    assert folder.name.startswith("my-notes-")
    assert locate_workspace_data(tmp_path / "link") == folder
    assert not home.exists()


@pytest.mark.parametrize("name", ["...", "日記", "a" * 200, os.fsdecode(b"\xff")])
def test_each_workspace_has_a_folder_of_its_own_whatever_its_name(tmp_path, home, name):
    folders = {locate_workspace_data(tmp_path / part / name) for part in ("one", "two")}
    assert len(folders) == 2
    assert all(folder.parent == home / "workspaces" for folder in folders)
    for folder in folders:
        folder.mkdir(parents=True)


@pytest.mark.usefixtures("home")
def test_the_variable_may_begin_with_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", "~/memory")
    assert locate_user_data() == tmp_path / "memory"


@pytest.fixture
def notes(tmp_path, home):  # noqa: ARG001 - what is indexed goes there
    for name in ("kept", "deleted"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "MEMORY.md").write_text("The ferry sails on Friday.\n")
        with Memory.open(tmp_path / name, embedder=None) as memory:
            memory.sync()
    return tmp_path


def test_prune_removes_the_folders_of_workspaces_that_are_gone_and_no_other(home, notes, capsys):
    deleted = locate_workspace_data(notes / "deleted")
    with pytest.raises(SystemExit, match="0"):
        main(["doctor", "--prune", "--workspace", str(notes / "kept")])
    assert deleted.exists()
    shutil.rmtree(notes / "deleted")
    assert any(
        "deleted" in finding.detail for finding in check_memory(lambda: Memory.open(notes / "kept", embedder=None))
    )
    with pytest.raises(SystemExit, match="0"):
        main(["doctor", "--prune", "--workspace", str(notes / "kept")])
    assert str(deleted) in capsys.readouterr().err
    assert list((home / "workspaces").iterdir()) == [locate_workspace_data(notes / "kept")]
    with Memory.open(notes / "kept", embedder=None) as memory:
        assert memory.search("ferry")


def test_the_doctor_checks_a_memory_of_a_user_without_a_home_folder(notes, monkeypatch):
    monkeypatch.delenv("OPENCLAW_MEMORY_HOME")
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("no home")))
    findings = check_memory(lambda: Memory.open(notes / "kept", embedder=None, index_path=notes / "index.sqlite"))
    assert any(finding.check == "workspace" and finding.level == "ok" for finding in findings)
