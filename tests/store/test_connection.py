import os
import stat
import subprocess
import sys
from contextlib import closing

import apsw
import pytest
from msgspec.structs import replace

from openclaw_memory.errors import CorruptIndexError, IndexLockedError, StoreError
from openclaw_memory.store import SqliteStore, connection
from openclaw_memory.store.schema import SCHEMA_VERSION


@pytest.mark.fault(44)
def test_files_and_folders_it_makes_are_for_their_owner_alone(path, build):
    umask = os.umask(0)
    try:
        with_log = SqliteStore.open(path)
        build.fill(with_log, build.units(3))
        modes = {child.name: stat.S_IMODE(child.stat().st_mode) for child in path.parent.iterdir()}
        with_log.close()
    finally:
        os.umask(umask)
    assert modes == dict.fromkeys([".gitignore", "index.sqlite", "index.sqlite-wal", "index.sqlite-shm"], 0o600)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]


def test_a_folder_of_its_own_is_kept_out_of_git_and_a_persons_folder_is_not(tmp_path):
    own, persons = tmp_path / "own", tmp_path / "persons"
    for folder in (own, persons):
        folder.mkdir()
        if folder == persons:
            (folder / "something.txt").touch()
        SqliteStore.open(folder / "index.sqlite").close()
    assert (own / ".gitignore").read_text() == "*\n"
    assert not (persons / ".gitignore").exists()


def test_everything_is_there_after_it_is_closed_and_opened_again(store, path, build):
    build.fill(store, build.units(60))
    near = build.units(1, seed=9)[0]
    before = store.read_meta(), store.get_files(), store.get_chunks(range(100)), store.search_vector(near, 60)
    store.close()
    assert not path.with_name("index.sqlite-wal").exists()
    with closing(SqliteStore.open(path)) as again:
        now = again.read_meta(), again.get_files(), again.get_chunks(range(100)), again.search_vector(near, 60)
    assert now == before


@pytest.mark.fault(5)
@pytest.mark.parametrize(
    "content",
    [b"# Notes\n" * 1000, b"\0" * 8192, b"SQLite format 3\0" + b"\xff" * 5000, os.urandom(40_000)],
    ids=["text", "zeros", "header-only", "noise"],
)
def test_a_file_that_is_no_database_is_reported_as_damaged_and_left_alone(tmp_path, content):
    path = tmp_path / "index.sqlite"
    path.write_bytes(content)
    with pytest.raises(CorruptIndexError, match="Sync again: the index is built again"):
        SqliteStore.open(path)
    assert path.read_bytes() == content


def test_an_index_of_a_newer_version_is_refused_with_the_remedy(store, path, build):
    store.begin_build(replace(build.META, schema_version=SCHEMA_VERSION + 1)).publish()
    store.close()
    with pytest.raises(StoreError, match="update openclaw_memory, or delete the index"):
        SqliteStore.open(path)


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.sqlite"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="a SQLite database of another program"):
        SqliteStore.open(path)
    assert path.read_bytes() == before


def test_a_path_that_cannot_be_an_index_says_why(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    cases = {
        tmp_path: "is a folder",
        tmp_path / "link": "cannot be read or written",
        tmp_path / "file" / "index.sqlite": "is a file, where the folder of the index belongs; move it away",
    }
    for path, words in cases.items():
        with pytest.raises(StoreError, match=words):
            SqliteStore.open(path)
    assert not (tmp_path / "target").exists()


def test_a_read_only_folder_can_still_be_searched(store, path, build):
    build.fill(store, build.units(20))
    store.close()
    code = (
        "import sys, numpy; from openclaw_memory.store import SqliteStore\n"
        "store = SqliteStore.open(sys.argv[1])\n"
        "print(store.describe().chunks, len(store.search_text(['all'], 50)), store.describe().vector_path)"
    )
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$4"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(path.parent), sys.executable, code, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no mounts here: {done.stderr}")
    assert done.stdout == "20 20 sqlite-vec\n", done.stderr


def test_a_write_lock_held_by_another_process_is_named(path, monkeypatch, build):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_MS", 50)
    impatient = SqliteStore.open(path)
    db = apsw.Connection(str(path))
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(IndexLockedError, match="try again"):
        impatient.begin_build(build.META).publish()
    assert impatient.read_meta() is None
    db.execute("ROLLBACK")
    impatient.begin_build(build.META).publish()
    assert impatient.read_meta() == build.META
    db.close()
    impatient.close()


def test_a_closed_store_says_so_and_lets_work_under_way_end(store, build):
    build.fill(store, build.units(20))
    with store._connections.read() as db:
        store.close()
        assert db.execute("SELECT count(*) FROM chunks").fetchall() == [(20,)]
    with pytest.raises(apsw.ConnectionClosedError):
        db.execute("SELECT 1")
    with pytest.raises(StoreError, match="closed"):
        store.describe()
