"""An index that this user did not make is not answered from, and nothing in it is run: it is built anew."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import apsw
import pytest

from openclaw_memory import Memory, MemoryConfig, SqliteStore
from openclaw_memory.config import SyncConfig
from openclaw_memory.errors import StoreError
from openclaw_memory.security import user_secret as secret

TRUE, FALSE = "The spare key is with Mrs. Groen.", "The spare key is with Mr. Mallory."
QUESTION = "Who has the spare key?"


@pytest.fixture(autouse=True)
def own_places(tmp_path, monkeypatch):
    """Folders of this user alone, so that each test has a key of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """A workspace with one note."""
    return workspace(tmp_path / "agent", TRUE)


def workspace(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "MEMORY.md").write_text(f"# Long-term memory\n\n- {text}\n", encoding="utf-8")
    return folder


def index_of(folder):
    return folder / ".memory" / "index.sqlite"


def change(index, *statements):
    """Change an index as whoever holds the file can: with every right of SQLite, and with no key."""
    db = apsw.Connection(str(index))
    for statement in statements:
        db.execute(statement)
    db.close()


def schema_of(index):
    db = apsw.Connection(str(index))
    found = db.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    db.close()
    return found


def plant(folder, *statements):
    """Put an index into a workspace that says something false of its note, with the note's own stamp."""
    with Memory.open(workspace(folder, FALSE)) as memory:
        memory.sync()
    note = folder / "MEMORY.md"
    workspace(folder, TRUE)
    found = note.stat()
    stamp = f"UPDATE files SET size = {found.st_size}, mtime_ns = {found.st_mtime_ns}, inode = {found.st_ino}"
    change(index_of(folder), f"{stamp}, checked_ns = {found.st_mtime_ns + 10**12}", *statements)


def elsewhere(tmp_path, monkeypatch, name="theirs"):
    """Be another user, or the same one on another machine."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / name / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name / "cache"))


UNSIGNED = "DELETE FROM meta WHERE key = 'signature'"
PLANTED = {
    "nothing more": UNSIGNED,
    "a trigger": "CREATE TRIGGER evil AFTER UPDATE ON files BEGIN DELETE FROM chunks; END",
    "a view": "CREATE VIEW evil AS SELECT load_extension('/tmp/evil')",
    "a table": "CREATE TABLE evil (x)",
    "a virtual table": "CREATE VIRTUAL TABLE evil USING fts5 (x)",
    "an index": "CREATE INDEX evil ON files (hash)",
    "a generated column": "ALTER TABLE files ADD COLUMN evil AS (hex(hash))",
}


@pytest.mark.parametrize("before_search", [True, False])
@pytest.mark.parametrize("what", PLANTED)
def test_an_index_without_a_signature_is_not_answered_from_and_built_anew(
    folder, tmp_path, monkeypatch, what, before_search
):
    with monkeypatch.context() as patch:
        elsewhere(tmp_path, patch)
        plant(folder, PLANTED[what], UNSIGNED)
    config = MemoryConfig(sync=SyncConfig(before_search=before_search, on_search=False))
    with Memory.open(folder, config=config) as memory:
        assert any("was made elsewhere" in notice for notice in memory.status().notices)
        found = memory.search(QUESTION)
        assert [result.snippet for result in found if FALSE in result.snippet] == []
        if before_search:
            assert TRUE in found[0].snippet
            assert "was made elsewhere" in found.reason
        else:
            assert len(found) == 0
            assert "was made elsewhere" in memory.sync().rebuilt
        assert TRUE in memory.search(QUESTION)[0].snippet
        assert not any("elsewhere" in notice for notice in memory.status(deep=True).notices)
        assert memory.status().index_path == str(index_of(folder))
    assert not any("evil" in f"{entry}" for entry in schema_of(index_of(folder)))


@pytest.mark.parametrize("what", [what for what in PLANTED if what != "nothing more"])
def test_what_was_planted_in_an_index_of_our_own_is_not_run_and_costs_it(folder, what):
    with Memory.open(folder) as memory:
        memory.sync()
    change(index_of(folder), PLANTED[what])
    with Memory.open(folder) as memory:
        found = memory.search(QUESTION)
        assert TRUE in found[0].snippet
        assert "'evil' is not ours" in found.reason or "'files' is not ours" in found.reason
        assert memory.status(deep=True).problems == ()
    assert not any("evil" in f"{entry}" for entry in schema_of(index_of(folder)))


def test_an_index_of_another_key_is_left_alone_and_ours_is_in_the_cache(folder, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        elsewhere(tmp_path, patch)
        plant(folder)
    theirs = index_of(folder).read_bytes()
    with Memory.open(folder) as memory:
        found = memory.search(QUESTION)
        assert [TRUE in result.snippet for result in found] == [True]
        assert memory.status().index_path.startswith(str(tmp_path / "cache"))
        assert any("nothing is read from" in notice for notice in memory.status().notices)
    assert index_of(folder).read_bytes() == theirs


def test_users_who_share_a_workspace_build_no_index_twice(folder, tmp_path, monkeypatch):
    """As do a machine and a container that mounts its folder and has another home."""
    with Memory.open(folder) as ours:
        assert ours.sync().added == ("MEMORY.md",)
        for turn in range(10):
            with monkeypatch.context() as patch:
                elsewhere(tmp_path, patch)
                with Memory.open(folder) as theirs:
                    report = theirs.sync()
                    assert (report.rebuilt, report.unchanged) == (None, int(turn > 0))
                    assert TRUE in theirs.search(QUESTION)[0].snippet
            report = ours.sync()
            assert (report.rebuilt, report.unchanged) == (None, 1)
            assert TRUE in ours.search(QUESTION)[0].snippet


def test_processes_that_fight_for_one_file_are_told_and_end_it(folder, tmp_path, monkeypatch):
    index = tmp_path / "shared" / "index.sqlite"
    ours = Memory.open(folder, index_path=index)
    ours.sync()
    elsewhere(tmp_path, monkeypatch)
    theirs = Memory.open(folder, index_path=index)
    theirs.sync()

    def take_turns():
        for _ in range(4):
            monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
            ours.sync()
            elsewhere(tmp_path, monkeypatch)
            theirs.sync()

    with pytest.raises(StoreError, match="made again and again by a process with another key"):
        take_turns()
    ours.close()
    theirs.close()


def test_another_workspaces_index_is_built_anew_from_its_own_vectors(folder, tmp_path):
    other = workspace(tmp_path / "other", FALSE)
    with Memory.open(other, embedder="hashing") as memory:
        memory.sync()
    (folder / ".memory").mkdir()
    shutil.copy(index_of(other), index_of(folder))
    with Memory.open(folder, embedder="hashing") as memory:
        found = memory.search(QUESTION)
        assert [TRUE in result.snippet for result in found] == [True]
        assert "made for another folder" in found.reason
    shutil.copytree(folder, tmp_path / "copy")
    with Memory.open(tmp_path / "copy", embedder="hashing") as memory:
        report = memory.sync()
        assert "made for another folder" in report.rebuilt
        assert report.embedded == 0


def test_a_workspace_that_is_moved_keeps_its_index(folder, tmp_path):
    with Memory.open(folder) as memory:
        memory.sync()
    folder.rename(tmp_path / "moved")
    with Memory.open(tmp_path / "moved") as memory:
        report = memory.sync()
        assert (report.rebuilt, report.unchanged) == (None, 1)


def test_a_text_that_was_altered_in_an_index_of_our_own_is_not_shown(folder):
    with Memory.open(folder) as memory:
        memory.sync()
    change(index_of(folder), f"UPDATE chunks SET text = replace(text, '{TRUE}', '{FALSE}'), checksum = checksum + 1")
    with Memory.open(folder) as memory:
        found = memory.search(QUESTION)
        assert [TRUE in result.snippet for result in found] == [True]
        assert "is not what was written" in found.reason


def test_a_row_of_another_index_of_ours_is_not_shown(folder, tmp_path):
    other = workspace(tmp_path / "other", FALSE)
    for one in (other, folder):
        with Memory.open(one) as memory:
            memory.sync()
    wanted = apsw.Connection(str(index_of(other))).execute("SELECT text, checksum FROM chunks").fetchall()[0]
    db = apsw.Connection(str(index_of(folder)))
    db.execute("UPDATE chunks SET text = ?, checksum = ?", wanted)
    db.close()
    with Memory.open(folder) as memory:
        assert not any(FALSE in result.snippet for result in memory.search(QUESTION))


def test_an_index_that_cannot_be_built_again_is_refused_with_the_next_step(folder, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        elsewhere(tmp_path, patch)
        plant(folder)
    with closing(SqliteStore(index_of(folder), read_only=True)) as store:
        assert store.meta() is None
        assert store.describe().planted is not None
    with pytest.raises(StoreError, match=r"set XDG_CACHE_HOME .*, or XDG_DATA_HOME"):
        SqliteStore.open(index_of(folder), read_only=True)


def test_what_a_schema_says_is_not_run_by_any_connection(folder):
    with closing(SqliteStore.open(index_of(folder))) as store, store._connections.lend() as db:
        for setting, value in {"DEFENSIVE": 1, "TRUSTED_SCHEMA": 0, "ENABLE_TRIGGER": 0, "ENABLE_VIEW": 0}.items():
            assert db.config(getattr(apsw, f"SQLITE_DBCONFIG_{setting}"), -1) == value


# --- the key -------------------------------------------------------------------------------------------------------

MAKE_KEY = "from openclaw_memory.security.user_secret import secret; print(secret().key.hex(), secret().problem)"


def test_processes_that_start_together_make_one_key(tmp_path):
    def make(_):
        return subprocess.run([sys.executable, "-c", MAKE_KEY], capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(8) as several:
        made = set(several.map(make, range(8)))
    assert len(made) == 1
    place = tmp_path / "data" / "openclaw-memory"
    assert [made.pop().strip()] == [(place / "index.key").read_bytes().hex()]
    assert os.listdir(place) == ["index.key"]
    assert (place.stat().st_mode & 0o777, (place / "index.key").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("what", ["a link", "a folder", "empty"])
def test_a_key_that_is_none_is_not_used_and_the_status_says_so(folder, tmp_path, what):
    place = tmp_path / "data" / "openclaw-memory"
    place.mkdir(parents=True)
    if what == "a link":
        (tmp_path / "theirs").write_bytes(bytes(32))
        (place / "index.key").symlink_to(tmp_path / "theirs")
    elif what == "a folder":
        (place / "index.key").mkdir()
    else:
        (place / "index.key").touch()
    with Memory.open(folder) as memory:
        assert TRUE in memory.search(QUESTION)[0].snippet
        assert any("index.key" in notice and "XDG_DATA_HOME" in notice for notice in memory.status().notices)
    assert secret.secret().key != bytes(32)


def test_where_no_key_can_be_kept_processes_share_that_of_the_boot(folder, tmp_path, monkeypatch):
    (tmp_path / "data").write_text("in the way of the folder")
    with Memory.open(folder) as memory:
        memory.sync()
    secret._of.cache_clear()  # as in another process
    with Memory.open(folder) as memory:
        assert (memory.sync().rebuilt, memory.sync().unchanged) == (None, 1)
    secret._of.cache_clear()
    monkeypatch.setattr(secret, "BOOT_ID", tmp_path / "none")
    with Memory.open(folder) as memory, pytest.raises(StoreError, match="set XDG_DATA_HOME to a folder of your own"):
        memory.search(QUESTION)


@pytest.mark.parametrize("has_home", [True, False])
def test_where_no_key_can_be_kept_a_new_start_of_the_machine_costs_one_index(folder, tmp_path, monkeypatch, has_home):
    (tmp_path / "data").write_text("in the way of the folder")
    (tmp_path / "cache").write_text("in the way of the folder")
    if not has_home:
        monkeypatch.setattr("platformdirs.user_data_path", homeless)
        monkeypatch.setattr("platformdirs.user_cache_path", homeless)
    for start in ("one", "two"):
        (tmp_path / "boot").write_text(start)
        monkeypatch.setattr(secret, "BOOT_ID", tmp_path / "boot")
        secret._of.cache_clear()
        with Memory.open(folder) as memory:
            assert TRUE in memory.search(QUESTION)[0].snippet
            assert any("XDG_DATA_HOME" in words for words in memory.status().notices)
            assert memory.sync().unchanged == 1


def homeless(_):
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_folder_in_the_place_of_a_file_of_sqlite_costs_no_answer(folder, ending):
    (folder / ".memory" / f"index.sqlite{ending}").mkdir(parents=True)
    with Memory.open(folder) as memory:
        assert TRUE in memory.search(QUESTION)[0].snippet
        assert any(f"index.sqlite{ending} is no file" in words for words in memory.status().notices)
