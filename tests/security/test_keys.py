"""Keys: made, kept for their owner alone, found by id where they are, and never used themselves."""

import os
import subprocess
import sys

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError

from openclaw_memory.errors import EncryptionKeyError
from openclaw_memory.security import keys
from openclaw_memory.security.keys import VARIABLE, Key

SECRET = bytes(range(32))


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
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(VARIABLE, raising=False)
    before = keyring.get_keyring()
    keyring.set_keyring(LockedRing())
    yield tmp_path / "data" / "openclaw-memory" / "keys"
    keyring.set_keyring(before)


def test_a_new_key_is_kept_for_its_owner_alone_and_found_by_its_id(place):
    key = keys.make("file")
    assert os.stat(place / key.id).st_mode & 0o777 == 0o600
    assert os.stat(place).st_mode & 0o777 == 0o700
    assert keys.find(key.id, "the index") == key
    assert keys.readable() == (key,)


def test_a_key_in_the_keyring_is_found_by_its_id_and_in_no_file(place):
    keyring.set_keyring(Ring())
    key = keys.make("keyring")
    assert (place / key.id).read_bytes() == b""  # it says that there is such a key, which the keyring cannot list
    assert keys.find(key.id, "the index") == key
    assert keys.readable() == (key,)
    keys.remove(key.id)
    assert keys.readable() == ()
    with pytest.raises(EncryptionKeyError):
        keys.find(key.id, "the index")


def test_a_locked_keyring_keeps_no_key_and_says_so():
    with pytest.raises(EncryptionKeyError, match="locked"):
        keys.make("keyring")


def test_the_first_key_of_the_environment_encrypts_and_all_of_them_decrypt(monkeypatch):
    old, new = Key(SECRET), Key(SECRET[::-1])
    monkeypatch.setenv(VARIABLE, f"{new.secret.hex()}, {old.secret.hex()}")
    assert keys.given() == new
    assert keys.find(old.id, "the index") == old
    assert keys.readable() == (new, old)


def test_without_a_key_the_error_names_the_id_and_every_place(place):
    with pytest.raises(EncryptionKeyError, match=f"abcd.*{VARIABLE}.*{place}/abcd.*keyring"):
        keys.find("abcd", "the index")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_is_refused(place, mode):
    key = keys.make("file")
    os.chmod(place / key.id, mode)
    with pytest.raises(EncryptionKeyError, match="chmod 600"):
        keys.find(key.id, "the index")


@pytest.mark.parametrize("text", ["", "no hex", "ab" * 31, "ab" * 33, "ab" * 32])
def test_a_damaged_key_file_is_an_error_and_never_another_key(place, text):
    key = keys.make("file")
    (place / key.id).write_text(text)
    with pytest.raises(EncryptionKeyError, match=key.id):
        keys.find(key.id, "the index")


@pytest.mark.parametrize("given", ["no hex", "ab", "ab" * 33])
def test_an_environment_that_holds_no_key_is_an_error(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(EncryptionKeyError):
        keys.given()


def test_a_link_in_the_place_of_a_key_is_not_followed(place, tmp_path):
    key = keys.make("file")
    os.rename(place / key.id, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", place / key.id)
    with pytest.raises(EncryptionKeyError):
        keys.find(key.id, "the index")


def test_purposes_have_keys_of_their_own_which_are_always_the_same():
    key = Key(SECRET)
    derived = {purpose: key.derived(purpose) for purpose in ("index", "age", "log", "signature")}
    assert len({*derived.values(), key.secret}) == 5
    assert derived["index"].hex() == Key(SECRET).derived("index").hex()
    assert all(len(one) == 32 for one in derived.values())


def test_a_key_shows_its_id_alone():
    key = Key(SECRET)
    assert key.id in repr(key)
    assert SECRET.hex() not in repr(key)
    assert repr(SECRET) not in repr(key)


def test_a_user_signs_with_a_secret_of_their_own_until_a_key_is_given(monkeypatch):
    before = keys.signing()
    assert keys.signing() == before
    monkeypatch.setenv(VARIABLE, SECRET.hex())
    assert keys.signing() == Key(SECRET)


def test_other_processes_find_the_same_key():
    key = keys.make("file")
    code = f"from openclaw_memory.security import keys; print(keys.find({key.id!r}, 'the index').secret.hex())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == key.secret.hex()
