"""Keys: read from the environment, shown by their ids alone, and never used themselves."""

import pytest

from openclaw_memory.errors import UserKeyError
from openclaw_memory.security import keys
from openclaw_memory.security.keys import VARIABLE, Key

SECRET = bytes(range(32))


@pytest.mark.parametrize("given", ["no hex", "ab", "ab" * 33])
def test_an_environment_that_holds_no_key_is_an_error(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(UserKeyError):
        keys.read_environment_keys()


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
