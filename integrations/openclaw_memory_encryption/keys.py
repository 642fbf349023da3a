"""Keep the keys of encrypted workspaces, the settings, and the id of the key of each workspace."""

from __future__ import annotations

import json
import os
import re
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from openclaw_memory import MemoryConfig
from openclaw_memory.config import read_plugin_settings
from openclaw_memory.errors import NotFoundError, UserKeyError, WorkspaceError, WriteError
from openclaw_memory.security import Key
from openclaw_memory.workspace import SafeFolder

if TYPE_CHECKING:
    from types import ModuleType

NAME = "encryption"
KeyPlace: TypeAlias = Literal["file", "keyring"]


class EncryptionConfig(Struct, frozen=True):
    """Set which files are encrypted on the disk. Turning a setting off decrypts nothing.

    Attributes:
        enabled: Whether an index is encrypted when it is made.
        keys: Where a new key is kept: in a `file` of the user's data folder, or in the `keyring`. Keys of the
            environment come first.
        notes: Whether new notes, documents and records are encrypted too.
        transcripts: Whether new transcripts are.
        snapshots: Whether new snapshots are.
    """

    enabled: bool = False
    keys: KeyPlace = "file"
    notes: bool = False
    transcripts: bool = False
    snapshots: bool = False


def read_settings(config: MemoryConfig) -> EncryptionConfig:
    """Read the settings of this plug-in from those of a memory.

    Raises:
        ConfigError: A key is unknown, or a value has a wrong type.
    """
    return read_plugin_settings(config, NAME, EncryptionConfig)


PLAIN = ""  # the id of the key of a plain index
_RECORD = "codec.json"  # by which the core knows that this plug-in is to be loaded
_ID = re.compile("[0-9a-f]{16}|")


class State:
    """The record of one workspace, read anew at each use: other processes change it."""

    def __init__(self, root: Path) -> None:
        """Name the workspace.

        Args:
            root: Its folder.

        Raises:
            ConfigError: The user has no home folder.
        """
        self._folder = SafeFolder.locate_data(root)

    @property
    def path(self) -> Path:
        """The file of the record."""
        return self._folder.base / _RECORD

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Return the ids of keys: two during a change, none for a plain workspace."""
        return self._read()[0]

    @property
    def is_rotating(self) -> bool:
        """Return whether some files still have the previous key."""
        return self._read()[1]

    def lock(self) -> AbstractContextManager[None]:
        """Hold the lock under which the record is written."""
        return self._folder.lock("codec.lock")

    def write(self, *key_ids: str, is_rotating: bool | None = None) -> None:
        """Write the ids of the keys. Call it in `lock`.

        Args:
            key_ids: The ids, PLAIN for a plain index.
            is_rotating: As the property; None leaves it.
        """
        if key_ids == (PLAIN,):
            self._folder.remove(_RECORD)
            return
        rotating = self.is_rotating if is_rotating is None else is_rotating
        record = {"codec": NAME, "keys": list(key_ids), "rotating": rotating}
        self._folder.replace(_RECORD, json.dumps(record).encode() + b"\n")

    def _read(self) -> tuple[tuple[str, ...], bool]:
        try:
            record = json.loads(self._folder.read(_RECORD))
            key_ids = tuple(record["keys"])
            if 1 <= len(key_ids) <= 2 and all(_ID.fullmatch(key_id) for key_id in key_ids):
                return key_ids, bool(record.get("rotating"))
        except NotFoundError:
            return (), False
        except (ValueError, KeyError, TypeError):
            pass
        raise UserKeyError(f"{self.path} does not name the key of the index: restore it, or delete it and the index")


VARIABLE = "OPENCLAW_MEMORY_KEY"
SERVICE = "openclaw-memory"  # of the keys in a keyring, whose user names are the ids


def find_key(key_id: str, what: str) -> Key:
    """Find a key by its id.

    Raises:
        UserKeyError: It is nowhere, or its file can be read by others.
    """
    key = next((key for key in Key.read_environment() if key.id == key_id), None)
    if key := key or _read_file(key_id) or _read_keyring(key_id):
        return key
    raise UserKeyError(
        f"{what} is encrypted with the key {key_id}, which is not in {VARIABLE}, {_open_folder().base / key_id} "
        f"or the keyring: set {VARIABLE} to its 64 hex digits, or put the file back"
    )


def choose_key(place: KeyPlace) -> Key:
    """Return the first key of the environment, or make a new one and keep it.

    Raises:
        UserKeyError: It cannot be kept there, or the environment does not hold keys.
    """
    if keys := Key.read_environment():
        return keys[0]
    key = Key(os.urandom(32))
    if place == "keyring":
        _write_keyring(key)
    try:
        # An empty file says that the keyring has a key of this id: it lists none.
        _open_folder().replace(key.id, b"" if place == "keyring" else f"{key.secret.hex()}\n".encode())
    except WriteError as error:
        raise UserKeyError(f"the key cannot be kept: {error}, or set OPENCLAW_MEMORY_HOME to another folder") from error
    return key


def list_keys() -> tuple[Key, ...]:
    """List the keys of the environment, then those of the user's data folder.

    Raises:
        UserKeyError: One of them is damaged, or can be read by others.
    """
    files = [key for name in _open_folder().list_names() if (key := _read_file(name))]
    return tuple(dict.fromkeys((*Key.read_environment(), *files)))


def _open_folder() -> SafeFolder:
    return SafeFolder(SafeFolder.locate_data().base / "keys", create=True)


def _read_file(key_id: str) -> Key | None:
    folder = _open_folder()
    path = folder.base / key_id
    try:
        with folder.open(key_id) as descriptor:
            info = os.fstat(descriptor)
            if os.name == "posix" and (info.st_mode & 0o077 or info.st_uid not in {0, os.geteuid()}):
                raise UserKeyError(f"the key {path} can be read or written by others: `chmod 600 {path}`")
            text = os.read(descriptor, 128).decode("ascii", "replace").strip()
    except NotFoundError:
        return None
    except WorkspaceError as error:
        raise UserKeyError(f"the key {path} cannot be read: {error}") from error
    if not text:
        return _read_keyring(key_id)
    try:
        key = Key(bytes.fromhex(text))
    except (ValueError, UserKeyError) as error:
        raise UserKeyError(f"{path} does not hold 64 hex digits: put the key back as it was") from error
    if key.id != key_id:
        raise UserKeyError(f"{path} holds the key {key.id}: put the key {key_id} back, or rename the file")
    return key


def _load_keyring() -> ModuleType | None:
    with suppress(ImportError):
        import keyring

        return keyring
    return None


def _read_keyring(key_id: str) -> Key | None:
    """Read a key of the keyring; None where it is not there, or where no keyring can be asked."""
    if (ring := _load_keyring()) is None:
        return None
    try:
        text = ring.get_password(SERVICE, key_id)
    except Exception:  # noqa: BLE001 - each keyring has errors of its own, and none of them finds the key
        return None
    return None if text is None else Key(bytes.fromhex(text))


def _write_keyring(key: Key) -> None:
    if (ring := _load_keyring()) is None:
        raise UserKeyError("keys in the keyring need the package keyring: pip install keyring")
    try:
        ring.set_password(SERVICE, key.id, key.secret.hex())
    except Exception as error:
        raise UserKeyError(
            f'the key cannot be kept in the keyring ({error}): unlock it, or set plugins.encryption.keys = "file"'
        ) from error
