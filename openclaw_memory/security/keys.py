"""The keys of encrypted indexes and files: 32 random bytes each, found by id in the environment, a file or the keyring.

A key is never used itself: `Key.derived` gives each purpose a key of its own, so that what one of them gives away says
nothing of the others.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory._links import NO_LINK
from openclaw_memory.config.config import KEYS_VARIABLE, keys_in_environment
from openclaw_memory.config.sections import KeyPlace
from openclaw_memory.errors import EncryptionError, EncryptionKeyError, remedy
from openclaw_memory.security.user_secret import secret

if TYPE_CHECKING:
    from types import ModuleType

BYTES = 32
VARIABLE = KEYS_VARIABLE
SERVICE = "openclaw-memory"  # of the keys in a keyring, whose user names are the ids
FOLDER = "keys"  # in the user's data folder
_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class Key:
    """A key, shown by its id alone."""

    secret: bytes = field(repr=False)
    """32 bytes."""
    id: str = field(init=False)
    """16 hex digits that say which key it is, and nothing about what it is."""

    def __post_init__(self) -> None:
        """Check the length, and make the id.

        Raises:
            EncryptionKeyError: The secret is not 32 bytes long.
        """
        if len(self.secret) != BYTES:
            raise EncryptionKeyError(f"a key has {BYTES} bytes, not {len(self.secret)}: write it as 64 hex digits")
        object.__setattr__(self, "id", blake2b(key=self.secret, person=b"id", digest_size=_ID_BYTES).hexdigest())

    def derived(self, purpose: str) -> bytes:
        """Return the 32 bytes that are the key of one purpose, such as "index"; BLAKE2b keyed by this key.

        Args:
            purpose: At most 16 bytes.
        """
        return blake2b(key=self.secret, person=purpose.encode(), digest_size=BYTES).digest()


def find(key_id: str, what: str) -> Key:
    """Return the key with an id: of the environment, the user's key files, or the keyring.

    Args:
        key_id: The id.
        what: What is encrypted with it, for the error.

    Raises:
        EncryptionKeyError: It is in none of them, or its file can be read by others.
    """
    for place in (_in_environment, _in_file, _in_keyring):
        if key := place(key_id):
            return key
    raise EncryptionKeyError(
        f"{what} is encrypted with the key {key_id}, which is neither in {VARIABLE}, nor in {_file(key_id)}, nor in "
        f"the keyring: set {VARIABLE} to its 64 hex digits, or put the file back"
    )


def make(place: KeyPlace) -> Key:
    """Return a new random key, kept in the user's key folder (0600) or the keyring.

    Raises:
        EncryptionKeyError: It could not be kept there; there is no key.
        EncryptionError: The package `keyring` is not installed.
    """
    key = Key(os.urandom(BYTES))
    if place == "keyring":
        _keep_in_keyring(key)
        _put_down(key.id, "")
    else:
        _put_down(key.id, f"{key.secret.hex()}\n")
    return key


def given() -> Key | None:
    """Return the key that encrypts what is new: the first one of the environment; None where none is set.

    Raises:
        EncryptionKeyError: The environment does not hold keys.
    """
    return next(iter(_of_environment()), None)


def remove(key_id: str) -> None:
    """Remove a key from the user's key folder and the keyring. What is still encrypted with it can be read no more."""
    with suppress(FileNotFoundError):
        _file(key_id).unlink()
    if _in_keyring(key_id) and (ring := _keyring()):
        ring.delete_password(SERVICE, key_id)


def readable() -> tuple[Key, ...]:
    """Return the keys of the environment and the user's key folder, those of the environment first.

    Those of the keyring are among them where an empty file in that folder has their id: a keyring lists nothing.

    Raises:
        EncryptionKeyError: One of them is damaged, or can be read by others.
    """
    with suppress(FileNotFoundError):
        files = [key for name in sorted(os.listdir(_folder())) if (key := _in_file(name))]
        return tuple(dict.fromkeys((*_of_environment(), *files)))
    return _of_environment()


def signing() -> Key:
    """Return the key by which this user signs: the first of the environment, else the secret in the user's data folder.

    Raises:
        EncryptionKeyError: The environment does not hold keys.
        StoreError: There is no key and none can be made.
    """
    return given() or Key(secret().key)


def _of_environment() -> tuple[Key, ...]:
    try:
        return tuple(Key(bytes.fromhex(one)) for one in keys_in_environment())
    except (ValueError, EncryptionKeyError) as error:
        raise EncryptionKeyError(
            f"{VARIABLE} does not hold keys of 64 hex digits each, separated by commas: make one with "
            "`python -c 'import secrets; print(secrets.token_hex(32))'`"
        ) from error


def _in_environment(key_id: str) -> Key | None:
    return next((key for key in _of_environment() if key.id == key_id), None)


def _folder() -> Path:
    from platformdirs import user_data_path

    try:
        return user_data_path("openclaw-memory") / FOLDER
    except RuntimeError as error:  # a user without a home folder
        raise EncryptionKeyError(f"no folder can hold keys ({error}): set XDG_DATA_HOME, or {VARIABLE}") from error


def _file(key_id: str) -> Path:
    return _folder() / key_id


def _in_file(key_id: str) -> Key | None:
    path = _file(key_id)
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_LINK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EncryptionKeyError(f"the key {path} cannot be read ({error.strerror}): {remedy(error)}") from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return None
        if os.name == "posix" and (info.st_mode & 0o077 or info.st_uid not in {0, os.geteuid()}):
            raise EncryptionKeyError(f"the key {path} can be read or written by others: `chmod 600 {path}`")
        text = os.read(descriptor, 4 * BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
    if not text:  # it says that the keyring has a key of this id, which lists none
        return _in_keyring(key_id)
    try:
        key = Key(bytes.fromhex(text))
    except (ValueError, EncryptionKeyError) as error:
        raise EncryptionKeyError(f"{path} does not hold 64 hex digits: put the key back as it was") from error
    if key.id != key_id:
        raise EncryptionKeyError(f"{path} holds the key {key.id}: put the key {key_id} back, or rename the file")
    return key


def _put_down(key_id: str, text: str) -> None:
    """Write the file of a key, which holds it; an empty one says that the keyring does.

    Raises:
        EncryptionKeyError: It cannot be written, and is not there.
    """
    path = _file(key_id)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)
        try:
            os.write(descriptor, text.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise EncryptionKeyError(
            f"the key cannot be kept in {path.parent} ({error.strerror}): {remedy(error)}, or set XDG_DATA_HOME to a "
            "folder of your own"
        ) from error


def sync_folder(folder: Path) -> None:
    """Have the disk confirm a new name: a power cut would take away a key, and all that it encrypted with it."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _keyring() -> ModuleType | None:
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _in_keyring(key_id: str) -> Key | None:
    """Return a key of the keyring; None where it is not there, or where no keyring can be asked."""
    if (ring := _keyring()) is None:
        return None
    try:
        text = ring.get_password(SERVICE, key_id)
    except Exception:  # noqa: BLE001 - each keyring has errors of its own, and none of them finds the key
        return None
    return None if text is None else Key(bytes.fromhex(text))


def _keep_in_keyring(key: Key) -> None:
    if (ring := _keyring()) is None:
        raise EncryptionError("keys in the keyring need the package keyring: pip install keyring")
    try:
        ring.set_password(SERVICE, key.id, key.secret.hex())
    except Exception as error:
        raise EncryptionKeyError(
            f'the key cannot be kept in the keyring ({error}): unlock it, or set encryption.keys = "file"'
        ) from error
