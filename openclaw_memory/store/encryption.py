"""Encrypts an index that is there, decrypts it, or gives it another key: nothing is embedded again.

A copy is made next to it with the other key, and takes its place by one rename, while no other connection has it open.
Killed at any moment, an index is left that opens with the old key or the new one; to do it again finishes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import apsw

from openclaw_memory import _forks
from openclaw_memory.config.sections import EncryptionConfig, KeyPlace
from openclaw_memory.errors import EncryptionKeyError, IndexLockedError, StoreError, remedy
from openclaw_memory.security import keys
from openclaw_memory.security.keys import Key
from openclaw_memory.store import index_key, integrity, shadow, signature
from openclaw_memory.store.connection import cipher_of, connect, fetch, own_errors, prepare_file, raw
from openclaw_memory.store.sqlite import SqliteStore
from openclaw_memory.types.files import ENCRYPTED

if TYPE_CHECKING:
    from collections.abc import Sequence

# What becomes of a key, and of one that a change cut short was to put in its place.
Wanted: TypeAlias = Callable[[Key | None, Key | None], Key | None]

ALONE_MS = 1000  # a search that began before is over by then


class KeyChange(NamedTuple):
    """The ids of the keys of an index before and after a change; None for a plain one."""

    before: str | None
    after: str | None


def encrypt_index(index: str | os.PathLike[str], keys_in: KeyPlace = "file", *, wait: float | None = 0) -> KeyChange:
    """Encrypt an index with the first key of the environment, or a new one. One that is encrypted stays as it is.

    Where there is no index yet, the next one is encrypted.

    Args:
        index: The file. Every memory that has it open must be closed, in all processes.
        keys_in: Where a new key is kept.
        wait: How many seconds to wait for a sync that is under way; None for as long as it takes.

    Raises:
        IndexLockedError: It is in use, or a sync is under way.
        EncryptionError: The key cannot be read or kept, or SQLite cannot encrypt.
        StoreError: It is damaged, was made elsewhere, or cannot be written. Nothing was changed.
    """
    return _changed(Path(index), lambda key, begun: key or begun or _new(keys_in), wait)


def decrypt_index(index: str | os.PathLike[str], *, wait: float | None = 0) -> KeyChange:
    """Decrypt an index, without what it has of encrypted files. The key stays where it is.

    Args:
        index: As for `encrypt_index`.
        wait: As for `encrypt_index`.

    Raises:
        IndexLockedError, EncryptionError, StoreError: As for `encrypt_index`.
    """
    with closing(SqliteStore(Path(index).expanduser())) as store, store.lock("sync", wait):
        if sealed := [path for path in store.files() if path.endswith(ENCRYPTED)]:
            store.remove_files(sealed)
            store.prune(0)  # their vectors, and what they have left in the bytes of the file
    return _changed(Path(index), lambda _, __: None, wait)


def rotate_index_key(index: str | os.PathLike[str], keys_in: KeyPlace = "file", *, wait: float | None = 0) -> KeyChange:
    """Encrypt an index with another key: the first one of the environment, or a new one. The old one stays where it is.

    Args:
        index: As for `encrypt_index`.
        keys_in: As for `encrypt_index`.
        wait: As for `encrypt_index`.

    Raises:
        EncryptionKeyError: The first key of the environment is that of the index.
        IndexLockedError, EncryptionError, StoreError: As for `encrypt_index`.
    """

    def other(key: Key | None, begun: Key | None) -> Key:
        if begun is not None:
            return begun
        if key is None:
            raise StoreError(f"{index} is plain: encrypt it first")
        if (given := keys.given()) == key:
            raise EncryptionKeyError(
                f"the first key in {keys.VARIABLE} is that of the index already: write the new one before it, with a "
                "comma between"
            )
        return given or keys.make(keys_in)

    return _changed(Path(index), other, wait)


def _new(keys_in: KeyPlace) -> Key:
    return keys.given() or keys.make(keys_in)


def _changed(index: Path, wanted: Wanted, wait: float | None) -> KeyChange:
    index = index.expanduser()
    store = SqliteStore(index)
    with own_errors(index), _forks.no_fork():
        prepare_file(index)
        with closing(store), store.lock("sync", wait) as is_alone:
            if not is_alone:
                raise StoreError(f"{index} cannot be locked: its folder must be writable, on a file system with locks")
            return _of_this(index, wanted) if integrity.size_of(index) else _of_next(index, wanted)


def _of_next(index: Path, wanted: Wanted) -> KeyChange:
    """Change the key of an index that is yet to be made."""
    key = index_key.of_new(index, EncryptionConfig())
    new = wanted(key, None)
    index_key.name(index, [new.id] if new else [])
    return KeyChange(key.id if key else None, new.id if new else None)


def _of_this(index: Path, wanted: Wanted) -> KeyChange:
    db, key = index_key.opened(index, lambda key: connect(index, read_only=False, extension=None, key=key))
    with closing(db):
        found = signature.origin(db)
        if found is None or found.maker != "us":
            raise StoreError(f"{index} is no index of this user ({found.why if found else 'it is empty'}): sync first")
        before, begun = _begun(index, key)
        new = wanted(key, begun)
        change = KeyChange(before, new.id if new else None)
        if new != key:
            try:
                _alone(db, index)
                copy = _copy(db, index, new)
            except BaseException:
                if new not in {key, begun, keys.given(), None}:  # a new one, which encrypts nothing
                    keys.remove(new.id if new else "")
                raise
            _put_in_place(copy, index, [key.id if key else index_key.PLAIN, change.after or index_key.PLAIN])
        index_key.name(index, [change.after] if change.after else [])
    integrity.forget_kept(index)  # they hold in the open, or under the old key, what this one does
    return change


def _begun(index: Path, key: Key | None) -> tuple[str | None, Key | None]:
    """Return the id of the key that an index has, or had, and the key that a change cut short was to give it, if any.

    Where it has that key already, only its name was still to be written.
    """
    has = key.id if key else index_key.PLAIN
    ids = index_key.named(index)
    if len(ids) < 2 or ids[-1] == index_key.PLAIN:
        return has or None, None
    with suppress(EncryptionKeyError):
        return ids[0] or None, index_key.find(ids[-1], index)
    return has or None, None


def _alone(db: apsw.Connection, index: Path) -> None:
    """Keep every other connection out of the file, until this one is closed, with all of it in the file.

    SQLite gives up its log only where no other connection is open, in any process.
    """
    try:
        db.set_busy_timeout(ALONE_MS)
        fetch(db, "PRAGMA locking_mode = EXCLUSIVE")
        mode = fetch(db, "PRAGMA journal_mode = DELETE")
        fetch(db, "BEGIN EXCLUSIVE; COMMIT")
    except (apsw.BusyError, apsw.LockedError):
        mode = []
    if mode != [("delete",)]:
        raise IndexLockedError(
            f"{index} is open elsewhere, which its key cannot be changed under: close each memory of it, and end each "
            f"program that uses it (`fuser -v {index}` shows which); then try again"
        )


def _copy(db: apsw.Connection, index: Path, key: Key | None) -> Path:
    """Return a copy of an index, encrypted with another key, which is on the disk and opens."""
    copy = shadow.new_file(index)
    try:
        options = "key="
        if key is not None:
            with closing(connect(copy, read_only=False, extension=None, key=key)) as empty:
                options = f"cipher={cipher_of(empty)}&key={raw(key)}"
        db.execute("VACUUM INTO ?", (f"{copy.absolute().as_uri()}?{options}",))
        with closing(connect(copy, read_only=False, extension=None, key=key)) as made:
            fetch(made, "PRAGMA journal_mode = WAL")
            if signature.origin(made) is None:
                raise StoreError(f"the copy {copy} of {index} is not one: try again")
        descriptor = os.open(copy, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        shadow.discard(copy)
        raise
    return copy


def _put_in_place(copy: Path, index: Path, ids: Sequence[str]) -> None:
    index_key.name(index, ids)
    try:
        os.replace(copy, index)
        keys.sync_folder(index.parent)
    except OSError as error:
        raise StoreError(f"{index} cannot be replaced ({error.strerror}): {remedy(error)}") from error
