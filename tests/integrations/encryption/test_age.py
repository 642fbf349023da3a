"""Files of age: the standard program opens them with the identity of the key, and nothing that was changed opens."""

import sys

import pyrage
import pytest
from openclaw_memory_encryption import age

from openclaw_memory.errors import SealedFileError
from openclaw_memory.security.keys import Key

KEY, OTHER = Key(bytes(range(32))), Key(bytes(32))
TEXT = b"# Health\n\nThe blood group is O negative.\n"
SEALED = age.seal(TEXT, KEY)


@pytest.mark.parametrize("first", range(0, 256, 16))
def test_an_identity_is_one_of_age(first):
    identity = age.derive_identity(Key(bytes((first + at) % 256 for at in range(32))))
    assert str(pyrage.x25519.Identity.from_str(identity)) == identity


def test_the_identity_opens_a_file_without_this_library():
    assert pyrage.decrypt(SEALED, [pyrage.x25519.Identity.from_str(age.derive_identity(KEY))]) == TEXT


@pytest.mark.parametrize("keys", [[KEY], [OTHER, KEY]])
def test_any_of_the_keys_opens_a_file(keys):
    assert age.unseal(SEALED, keys, "x.md.age") == TEXT


@pytest.mark.parametrize("text", [b"", b"x", b"x" * 65_536, b"y" * 65_537, bytes(range(256)) * 4096])
def test_what_is_encrypted_is_decrypted(text):
    assert age.unseal(age.seal(text, KEY), [KEY], "x.md.age") == text


@pytest.mark.parametrize("keys", [[], [OTHER]])
def test_without_its_key_a_file_says_which_one_it_is(keys):
    with pytest.raises(SealedFileError, match=r"memory/x\.md\.age is encrypted with a key that is not here"):
        age.unseal(SEALED, keys, "memory/x.md.age")


def test_every_flipped_bit_is_noticed():
    opened = [at for at in range(len(SEALED)) if _opens(SEALED[:at] + bytes([SEALED[at] ^ 1]) + SEALED[at + 1 :])]
    assert opened == []


def test_every_cut_and_every_addition_is_noticed():
    assert [end for end in range(len(SEALED)) if _opens(SEALED[:end])] == []
    assert not _opens(SEALED + b"\0")


def test_whole_blocks_that_are_missing_at_the_end_are_noticed():
    long = age.seal(b"z" * 4 * 65_536, KEY)
    ends = [len(long) - blocks * (65_536 + 16) for blocks in (1, 2, 3)]
    assert not any(_opens(long[:end]) for end in ends)


def _opens(data: bytes) -> bool:
    try:
        age.unseal(data, [KEY], "x.md.age")
    except SealedFileError:
        return False
    return True


def test_where_pyrage_is_missing_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyrage", None)
    with pytest.raises(SealedFileError, match=r"pip install pyrage"):
        age.seal(TEXT, KEY)


def test_a_file_for_thousands_of_keys_is_refused_before_it_is_tried():
    head, stanza, end = SEALED.partition(b"\n-> ")
    inner, last = end.split(b"\n---", 1)
    data = head + (stanza + inner) * 2000 + b"\n---" + last
    with pytest.raises(SealedFileError, match="header of over"):
        age.unseal(data, [KEY], "x.md.age")


def test_a_file_for_a_few_keys_is_read():
    identity = pyrage.x25519.Identity.from_str(age.derive_identity(KEY))
    others = [pyrage.x25519.Identity.generate() for _ in range(10)]
    sealed = pyrage.encrypt(TEXT, [one.to_public() for one in (*others, identity)])
    assert age.unseal(sealed, [KEY], "x.md.age") == TEXT
