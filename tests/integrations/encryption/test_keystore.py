"""Keys: made, kept for their owner alone, found by id where they are, and never used themselves."""

import os
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError
from openclaw_memory_encryption import keys
from openclaw_memory_encryption.keys import State, find_key, list_keys

from openclaw_memory.errors import UserKeyError
from openclaw_memory.security.keys import VARIABLE, Key

SECRET = bytes(range(32))


def choose_key(place):
    return keys.choose_key(place, State(Path("notes")))


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self):
        self.kept = {}

    def get_password(self, service, username):
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        self.kept[service, username] = password

    def delete_password(self, service, username):
        del self.kept[service, username]


class LockedRing(Ring):
    """A keyring that no one has unlocked."""

    def get_password(self, *_):
        raise KeyringError("locked")

    set_password = delete_password = get_password


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The user's folder of keys, none of which are there yet, and a keyring that cannot be asked."""
    monkeypatch.setenv("OPENCLAW_MEMORY_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(VARIABLE, raising=False)
    before = keyring.get_keyring()
    keyring.set_keyring(LockedRing())
    yield tmp_path / "data" / "keys"
    keyring.set_keyring(before)


def test_a_new_key_is_kept_for_its_owner_alone_and_found_by_its_id(place):
    key = choose_key("file")
    assert choose_key("file") == key  # while nothing is encrypted with it
    assert os.stat(place / key.id).st_mode & 0o777 == 0o600
    assert os.stat(place).st_mode & 0o777 == 0o700
    assert find_key(key.id, "the index") == key
    assert list_keys() == (key,)


def test_a_key_in_the_keyring_is_found_by_its_id_and_in_no_file(place):
    keyring.set_keyring(Ring())
    key = choose_key("file")
    assert choose_key("keyring") == key
    assert (place / key.id).read_bytes() == b""  # it says that there is such a key, which the keyring cannot list
    assert find_key(key.id, "the index") == key
    assert list_keys() == (key,)


def test_a_locked_keyring_keeps_no_key_and_says_so():
    with pytest.raises(UserKeyError, match="locked"):
        choose_key("keyring")


def test_the_first_key_of_the_environment_encrypts_and_all_of_them_decrypt(monkeypatch):
    old, new = Key(SECRET), Key(SECRET[::-1])
    monkeypatch.setenv(VARIABLE, f"{new.secret.hex()}, {old.secret.hex()}")
    assert choose_key("file") == new
    assert find_key(old.id, "the index") == old
    assert list_keys() == (new, old)


def test_without_a_key_the_error_names_the_id_and_every_place(place):
    with pytest.raises(UserKeyError, match=f"abcd.*{VARIABLE}.*{place}/abcd.*keyring"):
        find_key("abcd", "the index")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_is_refused(place, mode):
    key = choose_key("file")
    os.chmod(place / key.id, mode)
    with pytest.raises(UserKeyError, match="chmod 600"):
        find_key(key.id, "the index")


@pytest.mark.parametrize("text", ["", "no hex", "ab" * 31, "ab" * 33, "ab" * 32])
def test_a_damaged_key_file_is_an_error_and_never_another_key(place, text):
    key = choose_key("file")
    (place / key.id).write_text(text)
    with pytest.raises(UserKeyError, match=key.id):
        find_key(key.id, "the index")


def test_a_link_in_the_place_of_a_key_is_not_followed(place, tmp_path):
    key = choose_key("file")
    os.rename(place / key.id, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", place / key.id)
    with pytest.raises(UserKeyError):
        find_key(key.id, "the index")
