"""Files encrypted with age for the key of a memory: sealed, unsealed, and the identity that opens them elsewhere.

The format is that of https://age-encryption.org/v1, so that the standard program `age` reads such a file with the
identity that `derive_identity` returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory import MemoryConfig
from openclaw_memory.errors import SealedFileError, UserKeyError
from openclaw_memory.security import Key
from openclaw_memory_encryption import keys
from openclaw_memory_encryption.index import IndexKey, has_content, prepare_key
from openclaw_memory_encryption.keys import PLAIN, State, read_settings

if TYPE_CHECKING:
    from types import ModuleType

PURPOSE = "age"  # of the key that is the identity of files

_PREFIX = "age-secret-key-"  # of an identity, in the encoding of BIP 173
_ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_NONCE, _BLOCK, _TAG = 16, 64 << 10, 16  # of the format: before the text, of each block of it, and behind that
MAX_HEADER = 4096  # ours have one stanza; reading takes a time that grows with their square
_ANOTHER_KEY = "No matching keys found"  # how pyrage says that none of the identities opens a file


class OtherKeyError(SealedFileError):
    """A file is encrypted with none of the keys that were tried."""


def derive_identity(key: Key) -> str:
    """Derive the X25519 identity of a key, "AGE-SECRET-KEY-1...", which decrypts every file of the key."""
    bits = int.from_bytes(key.derive(PURPOSE), "big") << 4  # 256 bits are 52 groups of 5, the last one filled up
    groups = [(bits >> 5 * place) & 31 for place in reversed(range(52))]
    expanded = [*(ord(letter) >> 5 for letter in _PREFIX), 0, *(ord(letter) & 31 for letter in _PREFIX)]
    checksum = _calculate_checksum([*expanded, *groups, *[0] * 6]) ^ 1
    groups += [(checksum >> 5 * place) & 31 for place in reversed(range(6))]
    return f"{_PREFIX}1{''.join(_ALPHABET[group] for group in groups)}".upper()


def seal(data: bytes, key: Key) -> bytes:
    """Return `data` encrypted for a key alone.

    Raises:
        SealedFileError: The package `pyrage` is not installed.
    """
    pyrage = _import_pyrage()
    sealed: bytes = pyrage.encrypt(data, [pyrage.x25519.Identity.from_str(derive_identity(key)).to_public()])
    return sealed


def measure_text(head: bytes, size: int) -> int:
    """Return the size in bytes of a file's text, without the key; 0 if its header is incomplete.

    Args:
        head: The beginning of the file, with all of its header.
        size: The size of the file in bytes.
    """
    at = head.find(b"\n--- ")
    end = head.find(b"\n", at + 1) + 1 if at >= 0 else 0
    blocks = size - end - _NONCE
    return max(0, blocks - _TAG * -(-blocks // (_BLOCK + _TAG))) if end else 0


def unseal(data: bytes, among: Iterable[Key], what: str) -> bytes:
    """Decrypt a file. Nothing of a file that was cut short or changed is returned.

    Args:
        data: The content of a file of age.
        among: The keys that may open it; later ones are asked for where earlier ones do not.
        what: The file, for the error.

    Raises:
        SealedFileError: None of the keys opens it, it is damaged or not a file of age, or `pyrage` is not installed.
    """
    pyrage = _import_pyrage()
    if not data.startswith(b"age-encryption.org/v1\n"):
        raise SealedFileError(f"{what} is not a file of age, though its name says so: restore it, or rename it")
    if data.find(b"\n--- ", 0, MAX_HEADER) < 0:
        raise SealedFileError(f"{what} has a header of over {MAX_HEADER:,} bytes: encrypt it for fewer keys")
    for key in among:
        try:
            opened: bytes = pyrage.decrypt(data, [pyrage.x25519.Identity.from_str(derive_identity(key))])
        except pyrage.DecryptError as error:
            if _ANOTHER_KEY not in str(error):
                why = str(error).partition("\n")[0]  # below it, a newer version of the program age is recommended
                raise SealedFileError(f"{what} is damaged and cannot be decrypted ({why}): restore a copy") from error
        else:
            return opened
    raise OtherKeyError(
        f"{what} is encrypted with a key that is not here, or is damaged: put the key back into the user's key folder "
        f"or {keys.VARIABLE}, or restore the file"
    )


def _calculate_checksum(groups: Iterable[int]) -> int:
    """Return the checksum of BIP 173 over groups of 5 bits."""
    checksum = 1
    for group in groups:
        top, checksum = checksum >> 25, (checksum & 0x1FFFFFF) << 5 ^ group
        for place, generator in enumerate(_GENERATOR):
            checksum ^= generator if top >> place & 1 else 0
    return checksum


def _import_pyrage() -> ModuleType:
    try:
        import pyrage
    except ImportError as error:
        raise SealedFileError("encrypted files need the package pyrage: pip install pyrage") from error
    module: ModuleType = pyrage
    return module


class AgeCodec:
    """Encrypt and decrypt the files of one workspace with the present key of its index."""

    def __init__(self, root: Path, config: MemoryConfig) -> None:
        """Read the settings.

        Args:
            root: The workspace.
            config: The settings of the memory.

        Raises:
            ConfigError: A setting is wrong, or the user has no home folder.
        """
        self._state, self._settings = State(root), read_settings(config)
        self._index: Path | None = None
        self._keys: dict[str, Key] = {}

    @property
    def is_active(self) -> bool:
        """Return whether the workspace is encrypted, or the settings ask for it."""
        return self._settings.enabled or bool(self._state.key_ids)

    @property
    def key_id(self) -> str | None:
        """The id of the key of the index, or of the next one where there is none; None for a plain index."""
        if key_ids := self._state.key_ids:
            return None if PLAIN in key_ids else key_ids[-1]
        if self._index is None or not self._settings.enabled or has_content(self._index):
            return None
        key = prepare_key(self._state, self._settings, self._index)
        return key.id if key else None

    def make_hook(self, index: Path) -> IndexKey | None:
        self._index = index
        return IndexKey(self._state, self._settings) if self.is_active else None

    def is_sealing(self, kind: str) -> bool:
        if kind in {"private", "note"}:
            return (kind == "private" or self._settings.notes) and self.key_id is not None
        return self._settings.transcripts if kind == "transcript" else self._settings.snapshots

    def seal(self, data: bytes, path: str) -> bytes:
        return seal(data, self._find(str(self.key_id), path))

    def unseal(self, data: bytes, path: str) -> bytes:
        return unseal(data, self._list_keys(str(self.key_id), path), path)

    def is_current(self, data: bytes, path: str) -> bool:
        try:
            unseal(data, [self._find(str(self.key_id), path)], path)
        except OtherKeyError:
            return False
        return True

    def measure(self, head: bytes, size: int) -> int:
        return measure_text(head, size)

    def _list_keys(self, key_id: str, path: str) -> Iterator[Key]:
        """Yield the key of the index, then all others of this user: a file may have an earlier one."""
        missing: SealedFileError | None = None
        try:
            yield self._find(key_id, path)
        except SealedFileError as error:  # another one may open it: this says more than that none does
            missing = error
        for key in (*self._keys.values(), *keys.list_keys()):
            if key.id != key_id:
                yield key
        if missing is not None:
            raise missing

    def _find(self, key_id: str, path: str) -> Key:
        try:
            return self._keys.setdefault(key_id, self._keys.get(key_id) or keys.find_key(key_id, path))
        except UserKeyError as error:
            raise SealedFileError(str(error)) from error
