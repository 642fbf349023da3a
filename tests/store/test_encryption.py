"""An encrypted index: made, opened, encrypted anew and decrypted; its key is named next to it and never guessed wrong."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from openclaw_memory.config import EncryptionConfig
from openclaw_memory.errors import CorruptIndexError, EncryptionError, EncryptionKeyError, IndexLockedError, StoreError
from openclaw_memory.security import keys
from openclaw_memory.store import SqliteStore, connection, decrypt_index, encrypt_index, rotate_index_key
from openclaw_memory.store.connection import connect

ENABLED = EncryptionConfig(enabled=True)


@pytest.fixture(autouse=True)
def own_keys(tmp_path, monkeypatch):
    """Keys of this test alone."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(keys.VARIABLE, raising=False)


@pytest.fixture
def filled(path, build):
    """An encrypted index with rows, closed."""
    with closing(SqliteStore(path, encryption=ENABLED)) as store:
        build.fill(store, build.units(60))
    return path


def state(path):
    """What an index answers."""
    with closing(SqliteStore(path)) as store:
        assert store.verify() == ()
        return store.meta(), store.files(), store.chunks(range(100)), list(store.vectors(range(100)))


def key_of(path):
    with closing(SqliteStore(path)) as store:
        return store.key_id()


def sidecar(path):
    return path.with_name(f"{path.name}.key")


def named(path):
    return json.loads(sidecar(path).read_text())["keys"]


def kept():
    """The ids of the keys in the user's folder."""
    return {key.id for key in keys.readable()}


def files_of(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if "lock" not in file.name}


# --- made


def test_an_index_that_is_made_is_encrypted_where_the_settings_say_so(path, build):
    with closing(SqliteStore(path, encryption=ENABLED)) as store:
        build.fill(store, build.units(60))
        while_open = b"".join(files_of(path).values())
        engine = store.describe().engine
        assert (engine["cipher"], engine["key"]) == ("aegis", store.key_id())
    assert kept() == {engine["key"]} == set(named(path))
    key = keys.find(engine["key"], "").secret
    for content in (while_open, b"".join(files_of(path).values())):
        assert not any(words in content for words in (b"text 7", b"n7 all", b"memory/0.md", b"CREATE TABLE"))
        assert not any(secret in content for secret in (key, key.hex().encode(), keys.Key(key).derived("index")))
    assert stat.S_IMODE(sidecar(path).stat().st_mode) == 0o600
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.DatabaseError):
        db.execute("SELECT * FROM meta")


def test_an_index_is_plain_by_default_and_has_nothing_beside_it_that_names_a_key(path, build):
    with closing(SqliteStore(path)) as store:
        build.fill(store, build.units(3))
        assert store.key_id() is None
        assert "cipher" not in store.describe().engine
    assert not sidecar(path).exists()
    assert kept() == set()


def test_a_plain_index_stays_plain_and_says_so_where_the_settings_ask_for_another(path):
    SqliteStore.open(path).close()
    with closing(SqliteStore(path, encryption=ENABLED)) as store:
        assert store.key_id() is None
        assert any("was made plain: `openclaw-memory encrypt`" in notice for notice in store.describe().notices)


def test_a_key_of_the_environment_is_used_and_none_is_made(path, monkeypatch):
    secret = os.urandom(32)
    monkeypatch.setenv(keys.VARIABLE, secret.hex())
    with closing(SqliteStore(path, encryption=ENABLED)) as store:
        assert store.key_id() == keys.Key(secret).id
        store.set_meta("a", "b")
    assert not (path.parents[2] / "data/openclaw-memory/keys").exists()
    monkeypatch.delenv(keys.VARIABLE)
    with closing(SqliteStore(path)) as store, pytest.raises(EncryptionKeyError, match="neither in OPENCLAW_MEMORY_KEY"):
        store.get_meta("a")


def test_the_key_of_an_index_is_there_before_the_index_is(path):
    with closing(SqliteStore(path, encryption=ENABLED)) as store:
        before = store.key_id()
        store.set_meta("a", "b")
        assert store.key_id() == before
    assert kept() == {before}


def test_an_index_that_was_deleted_is_made_again_with_the_same_key_whatever_the_settings_say(filled):
    before = key_of(filled)
    filled.unlink()
    with closing(SqliteStore(filled)) as store:
        store.set_meta("a", "b")
        assert store.key_id() == before


@pytest.mark.parametrize("ids", [["", "KEY"], ["KEY", ""]])
def test_no_index_is_made_plain_because_of_a_change_that_was_cut_short(filled, ids):
    before = key_of(filled)
    filled.unlink()
    sidecar(filled).write_text(json.dumps({"keys": [one and before for one in ids]}))
    with closing(SqliteStore(filled)) as store:
        store.set_meta("a", "b")
        assert store.key_id() == before
    assert named(filled) == [before]


MAKE = """
import sys
from pathlib import Path
from openclaw_memory.config import EncryptionConfig
from openclaw_memory.store import SqliteStore
store = SqliteStore(sys.argv[1], encryption=EncryptionConfig(enabled=True))
print("ready", flush=True)
sys.stdin.readline()
store.set_meta(sys.argv[2], "there")
store.close()
"""


def test_processes_that_make_an_index_at_once_make_one_key(path):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, str(path), f"note-{number}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    assert [child.communicate(timeout=60)[1] for child in children] == [""] * 4
    assert kept() == set(named(path))
    assert len(kept()) == 1
    with closing(SqliteStore(path)) as store:
        assert [store.get_meta(f"note-{number}") for number in range(4)] == ["there"] * 4


# --- without its key


@pytest.mark.parametrize("read_only", [True, False])
def test_without_its_key_every_call_is_an_error_that_says_so_and_nothing_changes(filled, build, read_only):
    before, key = files_of(filled), key_of(filled)
    keys.remove(key)
    store = SqliteStore(filled, read_only=read_only, encryption=ENABLED)
    calls = {
        "meta": store.meta,
        "chunks": lambda: store.chunks([1]),
        "search": lambda: store.search_text(["all"], 5),
        "describe": store.describe,
        "verify": store.verify,
        "key_id": store.key_id,
        "write": lambda: store.remove_files(["memory/0.md"]),
        "build": lambda: store.begin_build(build.META),
    }
    for call in calls.values():
        with pytest.raises(EncryptionKeyError, match=key):
            call()
    assert store.describe(counts=False).exists
    store.close()
    for change in (encrypt_index, decrypt_index, rotate_index_key):
        with pytest.raises(EncryptionKeyError, match=key):
            change(filled)
    assert files_of(filled) == before
    assert kept() == set()


def test_another_key_of_the_user_does_not_open_it_and_that_is_damage(filled):
    other = keys.make("file")
    sidecar(filled).write_text(json.dumps({"keys": [other.id]}))
    with closing(SqliteStore(filled)) as store, pytest.raises(CorruptIndexError, match="its key does not open it"):
        store.meta()


def test_the_name_of_a_key_that_was_lost_is_found_again(filled):
    before, key = state(filled), key_of(filled)
    sidecar(filled).unlink()
    keys.make("file")
    assert state(filled) == before
    assert named(filled) == [key]


def test_where_the_name_and_the_key_were_lost_nothing_is_set_aside(filled):
    keys.remove(key_of(filled))
    sidecar(filled).unlink()
    keys.make("file")
    before = files_of(filled)
    with closing(SqliteStore(filled)) as store:
        with pytest.raises(EncryptionKeyError, match="seems to be encrypted"):
            store.meta()
        with pytest.raises(EncryptionKeyError, match="seems to be encrypted"):
            store.set_meta("a", "b")
    assert files_of(filled) == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"keys": []}',
        b'{"keys": ["../../x"]}',
        b'{"keys": ["", "", ""]}',
        b"[" * 2000,
        b'{"keys": 7}',
    ],
)
def test_a_name_that_is_none_is_an_error_that_says_what_to_do(filled, content):
    sidecar(filled).write_bytes(content)
    with closing(SqliteStore(filled)) as store, pytest.raises(EncryptionKeyError, match="or delete it together with"):
        store.meta()


def test_the_name_of_a_key_is_read_through_no_link(filled, tmp_path):
    other = tmp_path / "elsewhere"
    sidecar(filled).rename(other)
    sidecar(filled).symlink_to(other)
    with closing(SqliteStore(filled)) as store, pytest.raises(StoreError, match="symbolic link"):
        store.meta()


def test_where_apsw_was_installed_over_ours_the_error_says_how_to_repair_it(filled, monkeypatch):
    monkeypatch.delattr(apsw, "mc_version")
    with closing(SqliteStore(filled)) as store, pytest.raises(EncryptionError, match="--no-deps apsw-sqlite3mc"):
        store.meta()


# --- encrypted, decrypted, with another key


def test_an_index_is_encrypted_given_another_key_and_decrypted_with_all_that_it_holds(path, build):
    with closing(SqliteStore(path)) as store:
        build.fill(store, build.units(60))
        store.set_meta("a", "b")
    before = state(path)
    first = encrypt_index(path)
    assert (first.before, first.after) == (None, key_of(path))
    assert b"text 7" not in path.read_bytes()
    assert state(path) == before
    assert encrypt_index(path) == (first.after, first.after)
    second = rotate_index_key(path)
    assert second.before == first.after != second.after == key_of(path)
    assert kept() == {first.after, second.after}
    assert state(path) == before
    with pytest.raises(apsw.NotADBError):
        connect(path, read_only=False, extension=None, key=keys.find(first.after, ""))
    assert decrypt_index(path) == (second.after, None)
    assert decrypt_index(path) == (None, None)
    assert state(path) == before
    assert b"text 7" in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {name for name in files_of(path) if not name.endswith(".gitignore")} == {"index.sqlite"}
    assert connect(path, read_only=False, extension=None).pragma("journal_mode") == "wal"


def test_a_plain_index_has_no_key_to_change(path):
    SqliteStore.open(path).close()
    with pytest.raises(StoreError, match="is plain: encrypt it first"):
        rotate_index_key(path)


def test_a_new_key_of_the_environment_stands_before_the_old_one(path, monkeypatch):
    old, new = os.urandom(32).hex(), os.urandom(32).hex()
    monkeypatch.setenv(keys.VARIABLE, old)
    SqliteStore.open(path).close()
    encrypt_index(path)
    with pytest.raises(EncryptionKeyError, match="write the new one before it"):
        rotate_index_key(path)
    monkeypatch.setenv(keys.VARIABLE, f"{new},{old}")
    rotate_index_key(path)
    monkeypatch.setenv(keys.VARIABLE, new)
    assert state(path)


def test_an_index_that_is_to_be_made_is_encrypted_and_is_not(path):
    change = encrypt_index(path)
    with closing(SqliteStore(path)) as store:
        store.set_meta("a", "b")
        assert store.key_id() == change.after
    path.unlink()
    assert decrypt_index(path) == (change.after, None)
    with closing(SqliteStore(path)) as store:
        store.set_meta("a", "b")
        assert store.key_id() is None


@pytest.mark.parametrize("change", [encrypt_index, decrypt_index, rotate_index_key])
def test_an_index_that_is_open_elsewhere_stays_as_it_is(path, build, change):
    encrypted = change is not encrypt_index
    store = SqliteStore(path, encryption=EncryptionConfig(enabled=encrypted))
    build.fill(store, build.units(9))
    before, there = store.key_id(), kept()
    with pytest.raises(IndexLockedError, match="is open elsewhere"):
        change(path)
    assert (store.key_id(), kept()) == (before, there)
    assert len(store.chunks(range(100))) == 9
    store.set_meta("a", "b")
    store.close()
    assert key_of(path) == before
    assert not list(path.parent.glob("*.rebuild-*"))
    change(path)


def test_an_index_is_not_encrypted_while_a_sync_is_under_way(path):
    SqliteStore.open(path).close()
    command = f"from openclaw_memory.store import SqliteStore\nwith SqliteStore({str(path)!r}).lock('sync'):\n"
    command += textwrap.indent("print('held', flush=True)\ninput()", "    ")
    with subprocess.Popen(
        [sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "held\n"
        with pytest.raises(IndexLockedError, match="is held by"):
            encrypt_index(path)
        child.communicate("\n")
    encrypt_index(path)


def test_an_index_of_others_is_not_encrypted(path, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path / "theirs"))
        SqliteStore.open(path).close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="no index of this user"):
        encrypt_index(path)
    assert path.read_bytes() == before
    assert kept() == set()


def test_a_child_that_was_forked_reads_and_writes_an_encrypted_index(filled):
    with closing(SqliteStore(filled)) as store:
        assert len(store.chunks(range(100))) == 60
        if (child := os.fork()) == 0:
            store.set_meta("child", str(len(store.chunks(range(100)))))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert store.get_meta("child") == "60"


@pytest.mark.parametrize("is_immutable", [True, False])
def test_an_encrypted_index_that_may_not_be_written_is_read(filled, monkeypatch, is_immutable):
    monkeypatch.setattr(connection, "_needs_no_log", lambda _: is_immutable)
    before = files_of(filled)
    with closing(SqliteStore(filled, read_only=True)) as store:
        assert len(store.chunks(range(100))) == 60
        assert store.key_id() == named(filled)[0]
        assert store.verify() == ()
    assert files_of(filled).items() >= before.items()


def test_a_damaged_index_is_set_aside_with_the_name_of_its_key_and_made_again_with_that_key(filled):
    key = key_of(filled)
    content = bytearray(filled.read_bytes())
    content[100:200] = os.urandom(100)
    filled.write_bytes(content)
    with closing(SqliteStore(filled)) as store:
        assert store.verify()
        store.recover("test")
        store.set_meta("a", "b")
        assert store.key_id() == key
        (aside,) = store.describe(counts=False).damaged
        assert named(filled) == [key] == named(Path(aside))
        store.prune(0)
