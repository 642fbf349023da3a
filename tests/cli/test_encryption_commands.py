"""The commands that encrypt an index, and what `status` and `doctor` say of it."""

import json

import apsw
import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError
from openclaw_memory.security import keys
from openclaw_memory.testing import InMemoryStore

ENCRYPTED = MemoryConfig().updated({"encryption": {"enabled": True}})


@pytest.fixture(autouse=True)
def own_keys(tmp_path, monkeypatch):
    """Keys of this test alone."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(keys.VARIABLE, raising=False)


@pytest.fixture
def on_notes(run, notes):
    """Run a command on notes that are indexed."""
    assert run("index", "--workspace", notes).code == 0
    return lambda name, *arguments: run(name, "--workspace", notes, *arguments)


def ids():
    return {key.id for key in keys.readable()}


def test_an_index_is_encrypted_searched_given_another_key_and_decrypted(on_notes, notes):
    index = notes / ".memory/index.sqlite"
    first = on_notes("encrypt")
    (key,) = ids()
    assert first.out == f"the index is encrypted with the key {key}: keep a copy of that key\n"
    assert "notes that are not encrypted lie beside it" in first.err
    assert b"boiler" not in index.read_bytes()
    assert on_notes("encrypt").out == f"the index is encrypted with the key {key} already\n"
    assert "Van Dam" in on_notes("search", "Who services the boiler?").out
    assert f"cipher aegis, key {key}" in on_notes("status").out
    changed = json.loads(on_notes("rotate-key", "--json").out)
    assert changed["before"] == key
    assert {changed["after"]} == ids() - {key}
    assert "0 chunks embedded" in on_notes("index", "--force").out
    assert on_notes("decrypt").out == "the index is plain\n"
    assert on_notes("decrypt").out == "the index is plain already\n"
    assert "Van Dam" in on_notes("search", "Who services the boiler?").out


def test_no_command_shows_the_key_itself(on_notes):
    said = [on_notes(*words) for words in (["encrypt"], ["status", "--json"], ["doctor"], ["rotate-key"], ["decrypt"])]
    assert not any(key.secret.hex() in outcome.out + outcome.err for outcome in said for key in keys.readable())


def test_the_doctor_says_what_an_encrypted_index_is_worth_and_which_key_is_missing(on_notes):
    on_notes("encrypt")
    (key,) = ids()
    found = on_notes("doctor").out
    assert f"the index is encrypted (aegis, key {key})" in found
    assert "reads the notes themselves" in found
    keys.remove(key)
    outcome = on_notes("doctor")
    assert outcome.code == 1
    assert f"encrypted with the key {key}, which is neither in OPENCLAW_MEMORY_KEY, nor in" in outcome.out
    assert on_notes("search", "boiler").code == 2
    assert key in on_notes("search", "boiler").err


def test_the_doctor_says_so_where_apsw_was_installed_over_ours(on_notes, monkeypatch):
    monkeypatch.delattr(apsw, "mc_version")
    assert "pip install --force-reinstall --no-deps apsw-sqlite3mc" in on_notes("doctor").out
    outcome = on_notes("encrypt")
    assert outcome.code == 2
    assert "pip install --force-reinstall --no-deps apsw-sqlite3mc" in outcome.err
    assert ids() == set()


@pytest.mark.parametrize(
    ("store", "backend"), [("postgresql://host/db", "builtin"), (InMemoryStore(), "builtin"), ("sqlite", "qmd")]
)
def test_what_would_not_be_encrypted_is_refused_and_said_where_only_the_workspace_asks_for_it(tmp_path, store, backend):
    config = ENCRYPTED.updated({"backend": {"name": backend}})
    with pytest.raises(ConfigError, match=r"encryption\.enabled does not encrypt"):
        Memory.open(tmp_path, store=store, config=config)
    if not isinstance(store, str):
        (tmp_path / ".memory").mkdir()
        (tmp_path / ".memory/config.toml").write_text("encryption.enabled = true\n")
        with Memory.open(tmp_path, store=store) as memory:
            assert any("does not encrypt a store that was handed in" in one for one in memory.status().notices)


def test_a_workspace_has_its_index_encrypted(tmp_path):
    (tmp_path / "MEMORY.md").write_text("The spare key is with Mrs. Groen.\n")
    (tmp_path / ".memory").mkdir()
    (tmp_path / ".memory/config.toml").write_text("encryption.enabled = true\n")
    with Memory.open(tmp_path, embedder=None) as memory:
        memory.sync()
        assert {memory.status().engine["key"]} == ids()
    assert b"groen" not in (tmp_path / ".memory/index.sqlite").read_bytes().lower()
