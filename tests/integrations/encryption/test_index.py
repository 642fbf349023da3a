"""An encrypted index: made, opened, encrypted anew and decrypted; what is known of it stands in the user's data folder."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from encrypted import ENCRYPTED, kept_keys, key_of, open_store
from index_files import index_file
from openclaw_memory_encryption import decrypt_index, encrypt_index, keys, rotate_index_key
from openclaw_memory_encryption.keys import State, list_keys

from openclaw_memory import Memory
from openclaw_memory.config.environment import locate_user_data
from openclaw_memory.errors import ConfigError, CorruptIndexError, IndexLockedError, StoreError, UserKeyError
from openclaw_memory.security.keys import VARIABLE, Key
from openclaw_memory.store import SqliteStore

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.fixture
def plain(tmp_path):
    """A plain index with rows, closed."""
    return fill(tmp_path / "agent" / "index.sqlite")


@pytest.fixture
def filled(tmp_path):
    """An encrypted index with rows, closed."""
    return fill(tmp_path / "agent" / "index.sqlite", ENCRYPTED)


def fill(path, config=None):
    with Memory.open(notes(path.parent), embedder="hashing", config=config, index_path=path) as memory:
        memory.sync()
    return path


def notes(folder):
    (folder / "memory").mkdir(exist_ok=True, parents=True)
    for number in range(6):
        (folder / "memory" / f"{number}.md").write_text("\n".join(f"text {number} line {at}" for at in range(40)))
    return folder


def state(path):
    """What an index answers."""
    with closing(open_store(path)) as store:
        assert store.verify() == ()
        return store.read_meta(), store.get_files(), store.get_chunks(range(100)), list(store.get_vectors(range(100)))


def files_of(path):
    files = (file for file in path.parent.iterdir() if file.is_file())
    return {file.name: file.read_bytes() for file in files if "lock" not in file.name}


# --- made
@pytest.mark.fault(38)
def test_an_index_that_is_made_is_encrypted_where_the_settings_say_so(filled):
    with closing(open_store(filled)) as store:
        engine = store.describe().engine
    assert (engine["cipher"], engine["key"]) == ("aegis", key_of(filled.parent))
    assert kept_keys() == {engine["key"]}
    key = keys.find_key(engine["key"], "").secret
    content = b"".join(files_of(filled).values())
    assert not any(words in content for words in (b"text 7", b"memory/0.md", b"CREATE TABLE"))
    secrets = (key, key.hex().encode(), Key(key).derive("index"))
    known = State(filled.parent).path.read_bytes()
    assert not any(secret in content + known for secret in secrets)
    with closing(sqlite3.connect(filled)) as db, pytest.raises(sqlite3.DatabaseError):
        db.execute("SELECT * FROM meta")


def test_a_plain_index_stays_plain_and_says_so_where_the_settings_ask_for_another(plain):
    assert not State(plain.parent).path.exists()
    assert kept_keys() == set()
    with closing(open_store(plain, ENCRYPTED)) as store:
        assert any("is plain: `openclaw-memory encrypt`" in notice for notice in store.describe().notices)
    assert key_of(plain.parent) is None


def test_a_key_of_the_environment_is_used_and_none_is_made(tmp_path, monkeypatch):
    secret = os.urandom(32)
    monkeypatch.setenv(VARIABLE, secret.hex())
    path = fill(tmp_path / "index.sqlite", ENCRYPTED)
    assert key_of(tmp_path) == Key(secret).id
    assert not (locate_user_data() / "keys").exists()
    monkeypatch.delenv(VARIABLE)
    with closing(open_store(path)) as store, pytest.raises(UserKeyError, match=f"not in {VARIABLE}"):
        store.read_meta()


def test_an_index_that_was_deleted_is_made_again_with_the_same_key_whatever_the_settings_say(filled):
    before = key_of(filled.parent)
    filled.unlink()
    fill(filled)
    assert key_of(filled.parent) == before
    assert b"CREATE TABLE" not in filled.read_bytes()


MAKE = """
import sys
from encrypted import ENCRYPTED, open_store
from pathlib import Path
store = open_store(Path(sys.argv[1]), ENCRYPTED)
print("ready", flush=True)
sys.stdin.readline()
store.set_meta(sys.argv[2], "there")
store.close()
"""


def test_processes_that_make_an_index_at_once_make_one_key(tmp_path):
    path = tmp_path / "index.sqlite"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, str(path), f"note-{number}"], env={**os.environ, "PYTHONPATH": os.path.dirname(__file__)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(2)
    ]  # fmt: skip
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    assert [child.communicate(timeout=60)[1] for child in children] == [""] * 2
    assert kept_keys() == {key_of(tmp_path)}
    with closing(open_store(path)) as store:
        assert [store.get_meta(f"note-{number}") for number in range(2)] == ["there"] * 2


# --- known to this user's machine
@pytest.mark.fault(38)
def test_a_plain_index_in_the_place_of_an_encrypted_one_is_an_error(filled, tmp_path):
    planted = fill(tmp_path / "another agent" / "index.sqlite").read_bytes()
    filled.write_bytes(planted)
    with Memory.open(filled.parent, embedder="hashing", index_path=filled) as memory:
        for call in (memory.status, memory.sync, lambda: memory.search("text")):
            with pytest.raises(StoreError, match="is not encrypted, and this memory is"):
                call()
    assert filled.read_bytes() == planted


def test_a_key_file_in_the_opened_folder_is_not_read(filled):
    before = state(filled)
    filled.with_name("index.sqlite.key").write_text(json.dumps({"keys": ["0" * 16]}))
    (filled.parent / "codec.json").write_text(json.dumps({"codec": "none", "keys": [""]}))
    assert state(filled) == before


def test_a_store_without_the_hook_says_that_it_is_missing(filled):
    with closing(SqliteStore(filled)) as store, pytest.raises(StoreError, match=r"hook=.*encryption"):
        store.read_meta()


@pytest.mark.fault(38)
def test_without_its_key_every_call_is_an_error_that_says_so_and_nothing_changes(filled):
    before, key = files_of(filled), key_of(filled.parent)
    (locate_user_data() / "keys" / key).unlink()
    store = open_store(filled, ENCRYPTED)
    for call in (
        store.read_meta, lambda: store.get_chunks([1]), lambda: store.search_text(["all"], 5),
        store.describe, store.verify, lambda: store.remove_files(["memory/0.md"]),
    ):  # fmt: skip
        with pytest.raises(UserKeyError, match=key):
            call()
    assert store.describe(counts=False).exists
    store.close()
    for change in (encrypt_index, decrypt_index, rotate_index_key):
        with pytest.raises(UserKeyError, match=key):
            change(filled.parent, filled)
    assert files_of(filled) == before
    assert kept_keys() == set()


def test_another_key_does_not_open_it_and_that_is_damage(filled):
    other = State(filled.parent)
    other.write(keys.choose_key("file", other).id)
    with closing(open_store(filled)) as store, pytest.raises(CorruptIndexError):
        store.read_meta()


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"codec": "encryption", "keys": []}', b'{"codec": "x", "keys": ["../x"]}']
)
def test_a_damaged_record_is_an_error_that_says_what_to_do(filled, content):
    State(filled.parent).path.write_bytes(content)
    with pytest.raises((UserKeyError, StoreError), match="restore it, or delete it"):
        open_store(filled).read_meta()


# --- encrypted, decrypted, with another key
def test_an_index_is_encrypted_given_another_key_and_decrypted_with_all_that_it_holds(plain):
    root, before = plain.parent, state(plain)
    first = encrypt_index(root, plain)
    assert (first.before, first.after) == (None, key_of(root))
    assert b"line 7" not in plain.read_bytes()
    assert state(plain) == before
    assert encrypt_index(root, plain) == (first.after, first.after)
    second = rotate_index_key(root, plain)
    assert second.before == first.after != second.after == key_of(root)
    assert kept_keys() == {first.after, second.after}
    assert state(plain) == before
    assert decrypt_index(root, plain) == (second.after, None)
    assert decrypt_index(root, plain) == (None, None)
    with pytest.raises(StoreError, match="is plain: encrypt it first"):
        rotate_index_key(root, plain)
    assert state(plain) == before
    assert plain.stat().st_mode & 0o777 == 0o600
    assert not State(root).path.exists()
    assert [name for name in files_of(plain) if name.startswith("index")] == ["index.sqlite"]
    with closing(SqliteStore(plain)) as store:
        assert store.describe().engine["journal_mode"] == "wal"


def test_a_new_key_of_the_environment_stands_before_the_old_one(plain, monkeypatch):
    old, new = os.urandom(32).hex(), os.urandom(32).hex()
    monkeypatch.setenv(VARIABLE, old)
    encrypt_index(plain.parent, plain)
    with pytest.raises(UserKeyError, match="write the new one before it"):
        rotate_index_key(plain.parent, plain)
    monkeypatch.setenv(VARIABLE, f"{new},{old}")
    rotate_index_key(plain.parent, plain)
    monkeypatch.setenv(VARIABLE, new)
    assert state(plain)


def test_an_index_that_is_to_be_made_is_encrypted_and_is_not(tmp_path):
    path = tmp_path / "index.sqlite"
    change = encrypt_index(tmp_path, path)
    fill(path)
    assert key_of(tmp_path) == change.after
    assert b"CREATE TABLE" not in path.read_bytes()
    path.unlink()
    assert decrypt_index(tmp_path, path) == (change.after, None)
    fill(path)
    assert b"CREATE TABLE" in path.read_bytes()


@pytest.mark.parametrize("change", [encrypt_index, decrypt_index, rotate_index_key])
def test_an_index_that_is_open_elsewhere_stays_as_it_is(tmp_path, change):
    path = fill(tmp_path / "index.sqlite", None if change is encrypt_index else ENCRYPTED)
    store = open_store(path)
    store.read_meta()
    before, there = key_of(tmp_path), kept_keys()
    with pytest.raises(IndexLockedError, match="is open elsewhere"):
        change(tmp_path, path)
    assert (key_of(tmp_path), kept_keys()) == (before, there)
    store.set_meta("a", "b")
    store.close()
    assert not list(path.parent.glob("*.rebuild-*"))
    change(tmp_path, path)


# --- commands
@pytest.fixture
def on_notes(run, notes):
    """Run a command on notes that are indexed."""
    assert run("index", "--workspace", notes).code == 0
    return lambda name, *arguments: run(name, "--workspace", notes, *arguments)


def test_an_index_is_encrypted_searched_given_another_key_and_decrypted(on_notes, notes):
    index = index_file(notes)
    first = on_notes("encrypt")
    (key,) = kept_keys()
    assert first.out == f"the index is encrypted with the key {key}: keep a copy of that key\n"
    assert "notes that are not encrypted lie beside it" in first.err
    assert b"boiler" not in index.read_bytes()
    assert on_notes("encrypt").out == f"the index is encrypted with the key {key} already\n"
    assert "Van Dam" in on_notes("search", "Who services the boiler?").out
    assert f"cipher aegis, key {key}" in on_notes("status").out
    changed = json.loads(on_notes("rotate-key", "--json").out)
    assert changed["before"] == key
    assert {changed["after"]} == kept_keys() - {key}
    assert "0 chunks embedded" in on_notes("index", "--force").out
    assert on_notes("decrypt").out == "the index is plain\n"
    assert on_notes("decrypt").out == "the index is plain already\n"
    assert "Van Dam" in on_notes("search", "Who services the boiler?").out


def test_no_command_shows_the_key_itself(on_notes):
    said = [on_notes(*words) for words in (["encrypt"], ["status", "--json"], ["doctor"], ["rotate-key"], ["decrypt"])]
    assert not any(key.secret.hex() in outcome.out + outcome.err for outcome in said for key in list_keys())


def test_without_the_key_doctor_and_search_name_it(on_notes):
    on_notes("encrypt")
    (key,) = kept_keys()
    (locate_user_data() / "keys" / key).unlink()
    outcome = on_notes("doctor")
    assert outcome.code == 1
    assert f"encrypted with the key {key}, which is not in OPENCLAW_MEMORY_KEY," in outcome.out
    assert on_notes("search", "boiler").code == 2
    assert key in on_notes("search", "boiler").err


@pytest.mark.parametrize(
    ("store", "backend"),
    [("postgresql://host/db", "builtin"), (SqliteStore("index.sqlite"), "builtin"), ("sqlite", "qmd")],
)
def test_what_would_keep_text_in_the_open_is_refused(tmp_path, store, backend):
    with pytest.raises(ConfigError, match="this memory is encrypted"):
        Memory.open(tmp_path, store=store, config=ENCRYPTED.replace({"store": {"backend": backend}}))


def test_a_workspace_does_not_choose_whether_it_is_encrypted(tmp_path):
    (tmp_path / ".memory").mkdir()
    (tmp_path / ".memory/config.toml").write_text("plugins.encryption.enabled = true\n")
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.sync()
        status = memory.status()
    assert "key" not in status.engine
    assert any("plugins.encryption may not be set" in notice for notice in status.notices)
    assert kept_keys() == set()


def test_a_memory_that_was_opened_before_the_index_was_encrypted_says_to_open_it_again(plain):
    with Memory.open(plain.parent, embedder="hashing", index_path=plain) as memory:
        encrypt_index(plain.parent, plain)
        with pytest.raises(StoreError, match="open the memory again"):
            memory.search("text")
    with Memory.open(plain.parent, embedder="hashing", index_path=plain) as memory:
        assert memory.search("text 3")
