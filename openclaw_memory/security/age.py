"""Files encrypted with age for the key of a memory: sealed, unsealed, and the identity that opens them elsewhere.

The format is that of https://age-encryption.org/v1, so that the standard program `age` reads such a file with the
identity that `identity_of` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from openclaw_memory.errors import EncryptionError, EncryptionKeyError
from openclaw_memory.security import keys
from openclaw_memory.security.keys import Key

if TYPE_CHECKING:
    from types import ModuleType

MAGIC = b"age-encryption.org/v1\n-> "
PURPOSE = "age"  # of the key that is the identity of files

_PREFIX = "age-secret-key-"  # of an identity, in the encoding of BIP 173
_ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_NONCE, _BLOCK, _TAG = 16, 64 << 10, 16  # of the format: before the text, of each block of it, and behind that
_ANOTHER_KEY = "No matching keys found"  # how pyrage says that none of the identities opens a file


def is_encrypted(data: bytes) -> bool:
    """Return whether the content of a file, or its beginning, is that of a file of age."""
    return data.startswith(MAGIC)


def identity_of(key: Key) -> str:
    """Return the X25519 identity of a key, "AGE-SECRET-KEY-1...": who has it can read every file that the key encrypts.

    Args:
        key: A key of the user's.
    """
    bits = int.from_bytes(key.derived(PURPOSE), "big") << 4  # 256 bits are 52 groups of 5, the last one filled up
    groups = [(bits >> 5 * place) & 31 for place in reversed(range(52))]
    expanded = [*(ord(one) >> 5 for one in _PREFIX), 0, *(ord(one) & 31 for one in _PREFIX)]
    checksum = _polymod([*expanded, *groups, *[0] * 6]) ^ 1
    groups += [(checksum >> 5 * place) & 31 for place in reversed(range(6))]
    return f"{_PREFIX}1{''.join(_ALPHABET[group] for group in groups)}".upper()


def seal(data: bytes, key: Key) -> bytes:
    """Return `data` encrypted for a key alone.

    Args:
        data: What to encrypt.
        key: Who has it reads it.

    Raises:
        EncryptionError: The package `pyrage` is not installed.
    """
    pyrage = _pyrage()
    sealed: bytes = pyrage.encrypt(data, [pyrage.x25519.Identity.from_str(identity_of(key)).to_public()])
    return sealed


def text_size(head: bytes, size: int) -> int:
    """Return how many bytes a file of age holds, without the key; 0 where its header is not whole.

    Args:
        head: The beginning of the file, with all of its header.
        size: The size of the file in bytes.
    """
    at = head.find(b"\n--- ")
    end = head.find(b"\n", at + 1) + 1 if at >= 0 else 0
    blocks = size - end - _NONCE
    return max(0, blocks - _TAG * -(-blocks // (_BLOCK + _TAG))) if end else 0


def unseal(data: bytes, among: Iterable[Key], what: str) -> bytes:
    """Return what was encrypted. Nothing of a file that was cut short or changed is returned.

    Args:
        data: The content of a file of age.
        among: The keys that may open it; later ones are asked for where earlier ones do not.
        what: The file, for the error.

    Raises:
        EncryptionKeyError: None of the keys opens it.
        EncryptionError: It is damaged, is no file of age, or the package `pyrage` is not installed.
    """
    pyrage = _pyrage()
    if not is_encrypted(data):
        raise EncryptionError(f"{what} is no file of age, though its name says so: restore it, or rename it")
    for key in among:
        try:
            opened: bytes = pyrage.decrypt(data, [pyrage.x25519.Identity.from_str(identity_of(key))])
        except pyrage.DecryptError as error:
            if _ANOTHER_KEY not in str(error):
                why = str(error).partition("\n")[0]  # below it, a newer version of the program age is recommended
                raise EncryptionError(
                    f"{what} is damaged and cannot be decrypted ({why}): restore it from a copy"
                ) from error
        else:
            return opened
    raise EncryptionKeyError(
        f"{what} is encrypted with a key that is not here, or is damaged: put the key back into the user's key folder "
        f"or {keys.VARIABLE}, or restore the file"
    )


@dataclass(frozen=True, slots=True)
class FileEncryption:
    """What encrypts and decrypts the files of one memory, by the key of its index; nothing while that is plain.

    `index_key` returns the id of the key that the index is encrypted with now; None for a plain one. `transcripts` and
    `snapshots` say whether new ones are encrypted.
    """

    index_key: Callable[[], str | None]
    transcripts: bool = False
    snapshots: bool = False
    _found: dict[str, Key] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def key_id(self) -> str | None:
        """The id of the key that encrypts what is written; None where files are neither encrypted nor decrypted."""
        return self.index_key()

    def seal(self, data: bytes, path: str) -> bytes:
        """Return the content of a file, encrypted with the key of the index.

        Args:
            data: The content.
            path: The file, for errors.

        Raises:
            EncryptionKeyError: The key is not here.
            EncryptionError: The index is plain, or `pyrage` is not installed.
        """
        return seal(data, self._key(self._needed(path), path))

    def unseal(self, data: bytes, path: str) -> bytes:
        """Return the content of an encrypted file: by the key of the index, or any other that the user has.

        Args:
            data: The file.
            path: Its path, for errors.

        Raises:
            EncryptionKeyError: The key is not here.
            EncryptionError: The index is plain, the file is damaged, or `pyrage` is not installed.
        """
        key_id = self._needed(path)
        return unseal(data, self._readable(key_id, path), path)

    def is_sealed_now(self, data: bytes, path: str) -> bool:
        """Return whether the present key of the index opens a file, and so needs no other.

        Args:
            data: The file.
            path: Its path, for errors.

        Raises:
            EncryptionKeyError: The key is not here.
            EncryptionError: The index is plain, the file is damaged, or `pyrage` is not installed.
        """
        try:
            unseal(data, [self._key(self._needed(path), path)], path)
        except EncryptionKeyError:
            return False
        return True

    def _needed(self, path: str) -> str:
        key_id = self.key_id
        if key_id is None:
            raise EncryptionError(why_not_read(path))
        return key_id

    def _readable(self, key_id: str, path: str) -> Iterator[Key]:
        missing: EncryptionKeyError | None = None
        try:
            yield self._key(key_id, path)
        except EncryptionKeyError as error:  # another one may open it: it says more than that none does
            missing = error
        for key in chain(list(self._found.values()), keys.readable()):
            if key.id != key_id:
                yield key
        if missing is not None:
            raise missing

    def _key(self, key_id: str, path: str) -> Key:
        if key_id not in self._found:
            self._found[key_id] = keys.find(key_id, path)
        return self._found[key_id]


def why_not_read(path: str) -> str:
    """Return why an encrypted file is not read where the index is plain, and what to do, in a sentence.

    Args:
        path: The file.
    """
    return f"{path} {NOT_READ}"


NOT_READ = (
    "is encrypted, and the index is not, which would hold its text in the open: encrypt the index too, with "
    "`openclaw-memory encrypt`; neither QMD nor another store than SQLite can be"
)


def _polymod(groups: Iterable[int]) -> int:
    """Return the checksum of BIP 173 over groups of 5 bits."""
    checksum = 1
    for group in groups:
        top, checksum = checksum >> 25, (checksum & 0x1FFFFFF) << 5 ^ group
        for place, generator in enumerate(_GENERATOR):
            checksum ^= generator if top >> place & 1 else 0
    return checksum


def _pyrage() -> ModuleType:
    try:
        import pyrage
    except ImportError as error:
        raise EncryptionError("encrypted files need the package pyrage: pip install pyrage") from error
    module: ModuleType = pyrage
    return module
