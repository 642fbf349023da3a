"""Encrypt an index, decrypt it, give it another key, and open its connections. Nothing is embedded again.

Killed at any moment, an index is left that opens with the old key or the new one; to do it again finishes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from openclaw_memory.errors import StoreError, UserKeyError, WriteError
from openclaw_memory.security import Key
from openclaw_memory.store import SqliteStore
from openclaw_memory_encryption import keys
from openclaw_memory_encryption.keys import PLAIN, EncryptionConfig, KeyPlace, State

if TYPE_CHECKING:
    from openclaw_memory.types import StoreInfo

# Both notice a changed byte. The first is several times as fast, and is not in every build.
CIPHERS = ("aegis", "chacha20")
CACHE_KIB = 65_536  # each page is decrypted when it is read: with a small cache again and again


class IndexKey:
    """The hook of one index, which may be plain still.

    Attributes:
        key: The key of the file that was opened last; None for a plain one.
    """

    def __init__(self, state: State, settings: EncryptionConfig, key: Key | None = None) -> None:
        """Name the workspace.

        Args:
            state: The user's record of it.
            settings: Whether a new index is encrypted, and where a new key is kept.
            key: The key of a copy that is about to be made.
        """
        self._state, self._settings, self.key = state, settings, key

    def begin(self, index: Path) -> None:
        self.key = prepare_key(self._state, self._settings, index)

    def open(self, index: Path, connect: Callable[[Callable[[Any], int | None]], Any]) -> Any:
        tried: tuple[str, ...] | None = None
        missing: UserKeyError | None = None
        while (key_ids := self._state.key_ids) != tried:  # another process may have changed the key meanwhile
            tried, missing = key_ids, None
            for key_id in key_ids or (PLAIN,):
                try:
                    self.key = None if key_id == PLAIN else _find(self._state, key_id, index)
                except UserKeyError as error:
                    missing = error
                    continue
                if db := connect(self.on_connect):
                    self._settle(key_ids, key_id)
                    return db
        if missing is not None:
            raise missing
        if not key_ids:
            raise UserKeyError(
                f"{index} cannot be read without a key, and {self._state.path} that names it is missing: restore that "
                "file, or delete the index, which is built again from the notes"
            )
        if PLAIN not in key_ids and (db := connect(lambda _: None)):
            db.close()
            raise StoreError(
                f"{index} is not encrypted, and this memory is: something else has put it there. Delete it: it is "
                "built again from the notes"
            )
        return None

    def on_connect(self, db: Any) -> int | None:
        if self.key is None:
            return None
        if not any(db.pragma("cipher", cipher) == cipher for cipher in CIPHERS):
            raise StoreError(
                "an encrypted index needs the package apsw-sqlite3mc, and apsw was installed over it: "
                "pip install --force-reinstall --no-deps apsw-sqlite3mc"
            )
        db.pragma("key", self._format_key())
        return CACHE_KIB

    def get_uri_options(self, db: Any) -> str:
        return f"cipher={db.pragma('cipher')}&key={self._format_key()}" if self.key else "key="

    def describe(self, info: StoreInfo, db: Any) -> StoreInfo:
        if self.key is not None:
            return replace(info, engine={**info.engine, "cipher": db.pragma("cipher"), "key": self.key.id})
        if not self._settings.enabled:
            return info
        notice = f"plugins.encryption is enabled, and {info.location} is plain: `openclaw-memory encrypt` encrypts it"
        return replace(info, notices=(*info.notices, notice))

    def _settle(self, key_ids: tuple[str, ...], key_id: str) -> None:
        """Record the key of the index after an interrupted change."""
        if len(key_ids) > 1:  # a change that runs keeps others out
            with suppress(WriteError), self._state.lock():
                self._state.write(key_id, is_rotating=self._state.read().rotating and key_id == key_ids[-1])

    def _format_key(self) -> str:
        """Return the key as SQLite takes it: used as it is, not as a password."""
        return f"raw:{self.key.derive('index').hex()}" if self.key else ""


def has_content(index: Path) -> bool:
    """Return whether an index has been made."""
    return index.exists() and index.stat().st_size > 0


def prepare_key(state: State, settings: EncryptionConfig, index: Path) -> Key | None:
    """Return the key of an index that is about to be made, made itself if need be; None for a plain one.

    Args:
        state: The user's record of the workspace.
        settings: Whether the index is encrypted, and where a new key is kept.
        index: The file.

    Raises:
        UserKeyError: The key is not here, or no new one can be kept.
    """
    if not (state.key_ids or settings.enabled):
        return None
    with state.lock():
        key_ids = [key_id for key_id in state.key_ids if key_id != PLAIN]
        key = _find(state, key_ids[-1], index) if key_ids else keys.choose_key(settings.keys, state)
        if state.key_ids != (key.id,):
            state.write(key.id)
        return key


def _find(state: State, key_id: str, index: Path) -> Key:
    try:
        return keys.find_key(key_id, str(index))
    except UserKeyError as error:
        raise UserKeyError(f"{error}. Or delete {index} and {state.path}: it is built again from the notes") from error


class KeyChange(NamedTuple):
    """The ids of the keys of an index before and after a change; None for a plain one."""

    before: str | None
    after: str | None


def encrypt_index(
    root: Path, index: str | os.PathLike[str], keys_in: KeyPlace = "file", *, wait: float | None = 0
) -> KeyChange:
    """Encrypt an index with the first key of the environment, or a new one. One that is encrypted stays as it is.

    Where there is no index yet, the next one is encrypted.

    Args:
        root: The workspace.
        index: The file. Every memory that has it open must be closed, in all processes.
        keys_in: Where a new key is kept.
        wait: How many seconds to wait for a sync that is under way; None for as long as it takes.

    Raises:
        IndexLockedError: It is in use, or a sync is under way.
        UserKeyError: The key cannot be read or kept.
        StoreError: SQLite cannot encrypt, or the index is damaged or cannot be written. Nothing was changed.
    """
    return _replace_key(
        root, index, lambda _: keys.choose_key(keys_in, State(root)), wait, is_done=lambda key: key is not None
    )


def decrypt_index(root: Path, index: str | os.PathLike[str], *, wait: float | None = 0) -> KeyChange:
    """Decrypt an index, without its rows of encrypted files. The key stays where it is.

    Args:
        root: As for `encrypt_index`.
        index: As for `encrypt_index`.
        wait: As for `encrypt_index`.

    Raises:
        IndexLockedError, UserKeyError, StoreError: As for `encrypt_index`.
    """
    hook = IndexKey(State(root), EncryptionConfig())
    with closing(SqliteStore(index, hook=hook)) as store, store.lock("sync", wait):
        if sealed := [path for path in store.get_files() if path.endswith(".age")]:
            store.remove_files(sealed)
            store.prune()  # their vectors, and what they have left in the bytes of the file
    return _replace_key(root, index, lambda _: None, wait, is_done=lambda key: key is None)


def rotate_index_key(
    root: Path, index: str | os.PathLike[str], keys_in: KeyPlace = "file", *, wait: float | None = 0
) -> KeyChange:
    """Encrypt an index with another key: the first one of the environment, or a new one. The old one stays where it is.

    Args:
        root: As for `encrypt_index`.
        index: As for `encrypt_index`.
        keys_in: As for `encrypt_index`.
        wait: As for `encrypt_index`.

    Raises:
        UserKeyError: The first key of the environment is that of the index; or as for `encrypt_index`.
        IndexLockedError, StoreError: As for `encrypt_index`.
    """

    def choose(key: Key | None) -> Key:
        if key is None:
            raise StoreError(f"{index} is plain: encrypt it first")
        if key in Key.read_environment()[:1]:
            raise UserKeyError(
                f"the first key in {keys.VARIABLE} is that of the index already: write the new one before it, with "
                "a comma between"
            )
        return keys.choose_key(keys_in, State(root))

    return _replace_key(root, index, choose, wait, is_rotating=True)


def _replace_key(
    root: Path,
    index: str | os.PathLike[str],
    choose: Callable[[Key | None], Key | None],
    wait: float | None,
    *,
    is_done: Callable[[Key | None], bool] = lambda _: False,
    is_rotating: bool | None = None,
) -> KeyChange:
    """Give an index the key that is chosen for the one it has, unless it is done already."""
    path, state, settings = Path(index).expanduser(), State(root), EncryptionConfig()
    hook = IndexKey(state, settings)
    after: Key | None = None
    if not has_content(path):
        hook.begin(path)
        with state.lock():
            after = hook.key if is_done(hook.key) else choose(hook.key)
    else:

        def make_hook() -> IndexKey | None:  # no key is made that encrypts nothing
            nonlocal after
            with state.lock():
                after = choose(hook.key)
            return IndexKey(state, settings, after) if after else None

        def write_both() -> None:
            with state.lock():
                state.write(*(key.id if key else PLAIN for key in (hook.key, after)), is_rotating=is_rotating)

        with closing(SqliteStore(path, hook=hook)) as store:
            store.read_meta()  # which finds out its key
            if is_done(hook.key):
                after = hook.key
            else:
                store.rewrite(make_hook, write_both, wait)
    with state.lock():
        state.write(after.id if after else PLAIN)
    return KeyChange(hook.key.id if hook.key else None, after.id if after else None)
