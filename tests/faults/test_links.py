"""A folder from strangers may hold links where the library keeps its files: none of them is followed or written through."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli import main
from openclaw_memory.cli.doctor import examine
from openclaw_memory.config import SyncConfig
from openclaw_memory.embeddings.batch import Job, Known, load, path_of, save
from openclaw_memory.errors import PathNotAllowedError, StoreError
from openclaw_memory.store import SqliteStore

OWN, PRIVATE = "The gate code of the hut is on the blue card.", "The salary of Anna is 4,200 euros."
QUIET = MemoryConfig(sync=SyncConfig(on_search=False))
# Everything that is opened or made next to an index, by what its name adds to the index's.
FILES = ("", "-wal", "-shm", "-journal", ".sync-lock", ".watch-lock", ".batches.json")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
        assert memory.search("salary of Anna").results == ()
        assert memory.sync(force=True).ok
        assert OWN in memory.search("gate code of the hut")[0].snippet
        memory.append("The key is under the third stone.", date="2026-11-21")
        assert memory.search("third stone", max_results=1).stale
        with memory.watch():
            assert memory.sync().ok
        return memory.status(deep=True).notices


def told(folder: Path, words: str) -> bool:
    """Whether the doctor says so."""
    return any(words in finding.detail for finding in examine(lambda: opened(folder)))


def test_a_linked_folder_of_the_index_shows_and_changes_no_other_workspace(own, private, cache):
    (own / ".memory").symlink_to("../private/.memory")
    before = content(private)
    notices = used(own)
    assert content(private) == before
    assert any(f"{own / '.memory'} is a symbolic link" in notice and str(cache) in notice for notice in notices)
    assert told(own, "is a symbolic link and is not followed")
    with opened(private) as memory:
        assert PRIVATE in memory.search("salary of Anna")[0].snippet


@pytest.mark.parametrize("exists", [True, False], ids=["a folder", "nothing"])
def test_a_linked_folder_of_the_index_leads_nothing_there(own, tmp_path, exists):
    if exists:
        (tmp_path / "target").mkdir()
    (own / ".memory").symlink_to(tmp_path / "target")
    used(own)
    assert not exists or list((tmp_path / "target").iterdir()) == []
    assert (tmp_path / "target").exists() == exists


@pytest.mark.parametrize("kind", ["soft", "hard", "dangling"])
@pytest.mark.parametrize("name", FILES)
def test_a_link_in_the_place_of_any_file_of_the_index_is_not_written_through(own, tmp_path, name, kind):
    planted, victim = own / f".memory/index.sqlite{name}", tmp_path / "victim"
    planted.parent.mkdir()
    victim.write_bytes(b"precious\n")
    if kind == "hard":
        os.link(victim, planted)
    else:
        planted.symlink_to(victim if kind == "soft" else tmp_path / "nowhere")
    notices = used(own)
    assert victim.read_bytes() == b"precious\n"
    assert not (tmp_path / "nowhere").exists()
    assert sorted(path.name for path in planted.parent.iterdir()) == [planted.name]
    assert any(str(planted) in notice and "the index is kept in" in notice for notice in notices)


def test_the_index_of_another_workspace_in_the_place_of_the_own_one_is_neither_read_nor_changed(own, private):
    (own / ".memory").mkdir()
    for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
        (own / ".memory" / name).symlink_to(f"../../private/.memory/{name}")
    before = content(private)
    used(own)
    assert content(private) == before


def test_a_linked_gitignore_is_not_made_through(own, tmp_path):
    (own / ".memory").mkdir()
    (own / ".memory/.gitignore").symlink_to(tmp_path / "nowhere")
    used(own)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("linked", [".memory", ".memory/config.toml"])
def test_linked_settings_are_ignored_and_named(own, tmp_path, linked):
    (tmp_path / "target").mkdir()
    (tmp_path / "target/config.toml").write_text("[chunking]\nmax_chars = 200\n")
    if linked == ".memory":
        (own / linked).symlink_to(tmp_path / "target")
    else:
        (own / ".memory").mkdir()
        (own / linked).symlink_to(tmp_path / "target/config.toml")
    with opened(own) as memory:
        assert memory.config.chunking == QUIET.chunking
        assert any(f"{own / linked} is a symbolic link" in notice for notice in memory.status().notices)
    assert told(own, "are ignored")


def test_the_settings_of_all_markdown_are_not_made_through_a_link(own, tmp_path, capsys):
    (tmp_path / "target").mkdir()
    (own / ".memory").symlink_to(tmp_path / "target")
    with pytest.raises(SystemExit) as ended:
        main(["init", "--all-markdown", "--workspace", str(own)])
    assert ended.value.code
    assert "is a symbolic link and is not followed" in capsys.readouterr().err
    assert list((tmp_path / "target").iterdir()) == []


def test_a_folder_of_the_index_that_becomes_a_link_while_it_is_open_is_a_typed_error(own, private):
    with opened(own) as memory:
        memory.sync()
        (own / ".memory").rename(own / "aside")
        (own / ".memory").symlink_to(private / ".memory")
        before = content(private)
        for call in (memory.sync, memory.status, lambda: memory.search("salary of Anna")):
            with pytest.raises(StoreError, match="is a symbolic link"):
                call()
        assert content(private) == before


@pytest.mark.parametrize("kind", ["index_path", "store"])
def test_an_index_that_is_named_inside_the_workspace_is_not_reached_through_a_link(own, tmp_path, kind):
    (tmp_path / "target").mkdir()
    (own / "data").symlink_to(tmp_path / "target")
    named = {"index_path": own / "data/index.sqlite", "store": "sqlite:///data/index.sqlite"}
    with opened(own, **{kind: named[kind]}) as memory:
        for call in (memory.sync, memory.status, lambda: memory.search("hut")):
            with pytest.raises(StoreError, match=r"data is a symbolic link, .*move it away"):
                call()
    assert list((tmp_path / "target").iterdir()) == []


@pytest.mark.parametrize("name", FILES[:6])
@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_an_index_that_is_named_elsewhere_is_no_link_itself(own, tmp_path, name, kind):
    victim, index = tmp_path / "victim", tmp_path / "elsewhere/index.sqlite"
    victim.write_bytes(b"precious\n")
    index.parent.mkdir()
    make = os.symlink if kind == "soft" else os.link
    make(victim, f"{index}{name}")
    with opened(own, index_path=index) as memory:
        work = SqliteStore(index).lock("watch", 0).__enter__ if name == ".watch-lock" else memory.sync
        with pytest.raises(StoreError, match="link"):
            work()
    assert victim.read_bytes() == b"precious\n"


def test_what_leads_to_the_workspace_or_to_a_named_index_may_be_links(own, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "short").symlink_to(tmp_path)
    for index in (None, tmp_path / "short/data/index.sqlite"):
        with opened(tmp_path / "short/own", index_path=index) as memory:
            assert memory.sync(force=True).ok
            assert OWN in memory.search("gate code of the hut")[0].snippet
            assert not any("link" in notice for notice in memory.status(deep=True).notices)
    assert (own / ".memory/index.sqlite").is_file()
    assert (tmp_path / "data/index.sqlite").is_file()


def test_without_a_place_for_the_index_a_link_is_a_typed_error(own, private, tmp_path, monkeypatch):
    (own / ".memory").symlink_to(private / ".memory")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    before = content(private)
    with opened(own) as memory, pytest.raises(StoreError, match="index_path"):
        memory.sync()
    assert content(private) == before


@pytest.mark.parametrize("make", [os.symlink, os.link], ids=["soft", "hard"])
@pytest.mark.parametrize("lock", ["memory/.lock", "memory/.flush-lock", "sessions/.lock"])
def test_a_link_in_the_place_of_a_lock_of_the_notes_is_not_written_through(own, tmp_path, make, lock):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious\n")
    victim.chmod(0o640)
    (own / lock).parent.mkdir(exist_ok=True)
    make(victim, own / lock)
    with opened(own) as memory:
        for write in (
            lambda: memory.append("A new note.", date="2026-11-21"),
            lambda: memory.session_log("talk").append("user", "hello"),
        ):
            with suppress(PathNotAllowedError):
                write()
        memory.flush("agent:main:main")
    assert victim.read_bytes() == b"precious\n"
    assert victim.stat().st_mode & 0o777 == 0o640


def test_the_record_of_batch_jobs_is_neither_read_nor_written_through_a_link(tmp_path):
    victim, index = tmp_path / "victim", tmp_path / "index.sqlite"
    victim.write_text('{"model": {"jobs": [], "failures": 7}}')
    path_of(index).symlink_to(victim)
    with pytest.raises(StoreError):
        load(path_of(index))
    for number in range(os.getpid() - 3, os.getpid() + 4):
        (tmp_path / f"{path_of(index).name}.{number}").symlink_to(victim)
    save(path_of(index), {"model": Known((Job("job-1", ["key"], 1, 0.0),))})
    assert victim.read_text() == '{"model": {"jobs": [], "failures": 7}}'
    assert list(load(path_of(index))) == ["model"]


def test_a_copy_of_a_workspace_by_hard_links_does_not_change_with_it(own, tmp_path):
    with opened(own) as memory:
        memory.sync()
    shutil.copytree(own, tmp_path / "copy", copy_function=os.link)
    (tmp_path / "copy/MEMORY.md").unlink()
    (tmp_path / "copy/MEMORY.md").write_text(f"# Long-term memory\n\n{OWN} It is new.\n")
    before = content(own / ".memory")
    with opened(tmp_path / "copy") as memory:
        memory.sync()
        assert "It is new." in memory.search("gate code of the hut")[0].snippet
    assert content(own / ".memory") == before
