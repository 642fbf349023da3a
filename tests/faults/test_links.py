"""A folder from strangers may hold links where the library keeps its files: none of them is followed or written through."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from index_files import index_file

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli.doctor import check_memory
from openclaw_memory.config.sections import SyncConfig
from openclaw_memory.errors import PathNotAllowedError, StoreError

OWN, PRIVATE = "The gate code of the hut is on the blue card.", "The salary of Anna is 4,200 euros."
QUIET = MemoryConfig(sync=SyncConfig(on_search=False))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The user's data folder."""
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "home"))


def workspace(folder: Path, text: str) -> Path:
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(f"# Long-term memory\n\n{text}\n")
    return folder


@pytest.fixture
def own(tmp_path):
    """A workspace that came from strangers."""
    return workspace(tmp_path / "own", OWN)


@pytest.fixture
def private(tmp_path):
    """Another workspace of the same user, with its index."""
    folder = workspace(tmp_path / "private", PRIVATE)
    with opened(folder) as memory:
        memory.sync()
    return folder


def opened(folder: Path, **options: object) -> Memory:
    return Memory.open(folder, embedder="hashing", config=QUIET, **options)  # type: ignore[arg-type]


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def used(folder: Path) -> tuple[str, ...]:
    """Do everything once that opens or makes a file, and return the notices of the status."""
    with opened(folder) as memory:
        assert not any(PRIVATE in result.snippet for result in memory.search("salary of Anna"))
        assert memory.sync(force=True).ok
        assert OWN in memory.search("gate code of the hut")[0].snippet
        memory.append("The key is under the third stone.", date="2026-11-21")
        assert memory.search("third stone", max_results=1).stale
        with memory.watch():
            assert memory.sync().ok
        return memory.status(deep=True).notices


def told(folder: Path, words: str) -> bool:
    """Whether the doctor says so."""
    return any(words in finding.detail for finding in check_memory(lambda: opened(folder)))


@pytest.mark.fault(46)
@pytest.mark.parametrize("exists", [True, False], ids=["a folder", "nothing"])
def test_a_linked_memory_folder_leads_nothing_there(own, tmp_path, exists):
    if exists:
        (tmp_path / "target").mkdir()
    (own / ".memory").symlink_to(tmp_path / "target")
    used(own)
    assert not exists or list((tmp_path / "target").iterdir()) == []
    assert (tmp_path / "target").exists() == exists


def plant(own: Path, private: Path, how: str) -> None:
    """Put the index of another workspace where an index was once kept, as a stranger's archive may."""
    index = index_file(private)
    if how == "folder":
        (own / ".memory").symlink_to(index.parent)
        return
    (own / ".memory").mkdir()
    make = {"copies": shutil.copy, "links": os.symlink, "hard links": os.link}[how]
    for file in index.parent.glob("index.sqlite*"):
        make(file, own / ".memory" / file.name)


@pytest.mark.fault(46)
@pytest.mark.parametrize("how", ["folder", "copies", "links", "hard links"])
def test_an_index_that_came_with_a_folder_is_neither_read_nor_changed(own, private, how):
    plant(own, private, how)
    planted, before = content(own / ".memory"), content(index_file(private).parent)
    used(own)
    assert content(own / ".memory") == planted
    assert content(index_file(private).parent) == before


@pytest.mark.parametrize("name", ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"])
def test_a_named_index_that_is_a_link_is_a_typed_error(own, tmp_path, name):
    victim, index = tmp_path / "victim", tmp_path / "elsewhere/index.sqlite"
    victim.write_bytes(b"precious\n")
    index.parent.mkdir()
    (index.parent / name).symlink_to(victim)
    with opened(own, index_path=index) as memory, suppress(StoreError):
        memory.sync()
    assert victim.read_bytes() == b"precious\n"


@pytest.mark.fault(46)
@pytest.mark.parametrize("linked", [".memory", ".memory/config.toml"])
def test_linked_settings_are_ignored_and_named(own, tmp_path, linked):
    (tmp_path / "target").mkdir()
    (tmp_path / "target/config.toml").write_text("[files]\nexclude = ['a']\n")
    if linked == ".memory":
        (own / linked).symlink_to(tmp_path / "target")
    else:
        (own / ".memory").mkdir()
        (own / linked).symlink_to(tmp_path / "target/config.toml")
    with opened(own) as memory:
        assert memory.config.files == QUIET.files
        settings = own / ".memory/config.toml"
        assert any(f"{settings} passes a symlink" in notice for notice in memory.status().notices)
    assert told(own, "are ignored")


def test_the_settings_of_all_markdown_are_not_made_through_a_link(own, tmp_path, run):
    (tmp_path / "target").mkdir()
    (own / ".memory").symlink_to(tmp_path / "target")
    outcome = run("init", "--all-markdown", "--workspace", own)
    assert outcome.code
    assert "passes a symlink, which is never followed" in outcome.err
    assert list((tmp_path / "target").iterdir()) == []


@pytest.mark.fault(46)
def test_what_leads_to_the_workspace_or_to_a_named_index_may_be_links(own, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "short").symlink_to(tmp_path)
    for index in (None, tmp_path / "short/data/index.sqlite"):
        with opened(tmp_path / "short/own", index_path=index) as memory:
            assert memory.sync(force=True).ok
            assert OWN in memory.search("gate code of the hut")[0].snippet
            assert not any("link" in notice for notice in memory.status(deep=True).notices)
    assert index_file(own).is_file()
    assert (tmp_path / "data/index.sqlite").is_file()


@pytest.mark.fault(46)
@pytest.mark.parametrize("make", [os.symlink, os.link], ids=["soft", "hard"])
@pytest.mark.parametrize("lock", ["memory/.lock", "sessions/.lock"])
def test_a_link_in_the_place_of_a_lock_of_the_notes_is_not_written_through(own, tmp_path, make, lock):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious\n")
    victim.chmod(0o640)
    (own / lock).parent.mkdir(exist_ok=True)
    make(victim, own / lock)
    with opened(own) as memory:
        for write in (
            lambda: memory.append("A new note.", date="2026-11-21"),
            lambda: memory.sessions.log("talk").append("user", "hello"),
        ):
            with suppress(PathNotAllowedError):
                write()
        memory.sessions.flush("agent:main:main")
    assert victim.read_bytes() == b"precious\n"
    assert victim.stat().st_mode & 0o777 == 0o640
