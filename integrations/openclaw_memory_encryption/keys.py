"""Keep the keys of encrypted workspaces, the settings, and the id of the key of each workspace."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.json import decode, encode

from openclaw_memory import MemoryConfig
from openclaw_memory.config import read_plugin_settings
from openclaw_memory.errors import NotFoundError, UserKeyError, WorkspaceError, WriteError
from openclaw_memory.security import Key
from openclaw_memory.workspace import SafeFolder

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
_RECORD = "codec.json"
_Id: TypeAlias = Annotated[str, Meta(pattern=r"\A([0-9a-f]{16})?\Z")]


class Record(Struct, frozen=True):
    """The keys of one workspace.

    Attributes:
        keys: Their ids: two during a change, none for a plain workspace.
        rotating: Whether some files still have the previous key.
        next: The id of the key that a change has begun to make, and that encrypts nothing yet.
        codec: The name of this plug-in, which the core loads.
    """

    keys: Annotated[tuple[_Id, ...], Meta(max_length=2)] = ()
    rotating: bool = False
    next: _Id = ""
    codec: str = NAME


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
        """The ids of the keys."""
        return self.read().keys

    def lock(self) -> AbstractContextManager[None]:
        """Hold the lock under which the record is written."""
        return self._folder.lock("codec.lock")

    def write(self, *key_ids: str, is_rotating: bool | None = None, next_id: str | None = None) -> None:
        """Write the ids of the keys. Call it in `lock`.

        Args:
            key_ids: The ids, PLAIN for a plain index.
            is_rotating: As `Record.rotating`; None leaves it.
            next_id: As `Record.next`; None leaves it, unless it is the only one of the ids.
        """
        old = self.read()
        next_id = old.next if next_id is None else next_id
        key_ids, next_id = () if key_ids == (PLAIN,) else key_ids, "" if key_ids == (next_id,) else next_id
        if not (key_ids or next_id):
            self._folder.remove(_RECORD)
            return
        record = Record(key_ids, bool(key_ids) and (old.rotating if is_rotating is None else is_rotating), next_id)
        self._folder.replace(_RECORD, encode(record) + b"\n")

    def read(self) -> Record:
        """Return the record; an empty one if there is none.

        Raises:
            UserKeyError: It is damaged.
        """
        try:
            record = decode(self._folder.read(_RECORD), type=Record)
            if record.keys or record.next:
                return record
        except NotFoundError:
            return Record()
        except ValueError:
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


def choose_key(place: KeyPlace, state: State) -> Key:
    """Return the first key of the environment, or make a new one and keep it. Call it in the lock of the state.

    A key is named in the state before it is made: where a change is cut short, the next one takes that key.

    Raises:
        UserKeyError: It cannot be kept there, or the environment does not hold keys.
    """
    if keys := Key.read_environment():
        return keys[0]
    try:
        key = find_key(state.read().next or "none", "the index")
    except UserKeyError:
        key = Key(os.urandom(32))
        state.write(*state.key_ids, next_id=key.id)
    if place == "keyring":
        _write_keyring(key)
    try:
        with SafeFolder.locate_data().lock("keys.lock"):  # other workspaces make keys too
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


def _read_keyring(key_id: str) -> Key | None:
    """Read a key of the keyring; None where it is not there, or where no keyring can be asked."""
    try:
        import keyring

        text = keyring.get_password(SERVICE, key_id)
    except Exception:  # noqa: BLE001 - each keyring has errors of its own, and none of them finds the key
        return None
    return None if text is None else Key(bytes.fromhex(text))


def _write_keyring(key: Key) -> None:
    try:
        import keyring

        keyring.set_password(SERVICE, key.id, key.secret.hex())
    except ImportError as error:
        raise UserKeyError("keys in the keyring need the package keyring: pip install keyring") from error
    except Exception as error:
        raise UserKeyError(
            f'the key cannot be kept in the keyring ({error}): unlock it, or set plugins.encryption.keys = "file"'
        ) from error
