"""Which key an index is encrypted with: a file next to it names the key by its id, and holds nothing of it.

While an index is given another key there are two ids, of which either may be right. The id of a plain index is "".
The file comes from where the index does: it can name a key of this user or ask for one, and no index that is made is
plain because of it.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import apsw

from openclaw_memory._links import NO_LINK
from openclaw_memory.config.sections import EncryptionConfig
from openclaw_memory.errors import EncryptionKeyError, StoreError, remedy
from openclaw_memory.security import keys
from openclaw_memory.security.keys import Key
from openclaw_memory.store.connection import KEY_LOCK, KEY_NAME, SYNC_LOCK, cipher_of, damaged, fetch, first_bytes
from openclaw_memory.store.lock import file_lock

if TYPE_CHECKING:
    from openclaw_memory.types import StoreInfo

Connected: TypeAlias = Callable[[Key | None], apsw.Connection]  # a connection to an index that uses a key

PLAIN = ""
ID = re.compile("[0-9a-f]{16}")
_MOST_BYTES = 1024  # ten times what two ids take
_MOST_CHANGES = 100  # that an index is looked at again, as its key was changed when it was opened
_LOCK_SECONDS = 10.0  # a key is made in milliseconds; a keyring may ask for a password
# SQLite keeps bytes 16 to 23 of an encrypted file in the open: our size of a page, the versions, some room at the end
# of each page for what its cipher adds, and three constants. A plain index begins with MAGIC, and has no such room.
MAGIC = b"SQLite format 3\0"
_IN_THE_OPEN = re.compile(rb"\x40\x00[\x01\x02]{2}[^\x00]\x40\x20\x20", re.DOTALL)


def named(index: Path) -> tuple[str, ...]:
    """Return the ids of the keys that an index may be encrypted with; () where no file names any.

    Raises:
        EncryptionKeyError: The file is a link, cannot be read, or names no keys.
    """
    place = Path(f"{index}{KEY_NAME}")
    try:
        text = _read(place)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise EncryptionKeyError(
            f"{place}, which names the key of the index, cannot be read ({error.strerror}): {remedy(error)}"
        ) from error
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        ids = json.loads(text)["keys"]
        if 1 <= len(ids) <= 2 and all(one == PLAIN or ID.fullmatch(one) for one in ids):
            return tuple(ids)
    raise EncryptionKeyError(
        f"{place} names no key of the index: restore it, or delete it together with {index}, which is built again "
        "from the notes"
    )


def name(index: Path, ids: Sequence[str]) -> None:
    """Name the keys of an index, on the disk when this returns: those that were named before, or these. () for none.

    Raises:
        StoreError: The file cannot be written.
    """
    place = Path(f"{index}{KEY_NAME}")
    new = place.with_name(f"{place.name}.{os.urandom(8).hex()}.tmp")
    try:
        if ids:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(descriptor, json.dumps({"keys": list(ids)}).encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(new, place)
        else:
            place.unlink(missing_ok=True)
        keys.sync_folder(place.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise StoreError(f"{place} cannot be written ({error.strerror}): {remedy(error)}") from error


def of_new(index: Path, encryption: EncryptionConfig) -> Key | None:
    """Return the key of an index that is to be made: the one that is named for it, or a new one; None for a plain one.

    Raises:
        EncryptionKeyError: The named key is not here, or no new one can be kept.
    """
    if (key := _named_last(index)) or not encryption.enabled:
        return key
    with file_lock(Path(f"{index}{KEY_LOCK}"), _LOCK_SECONDS):
        if key := _named_last(index):  # another process was quicker
            return key
        key = keys.given() or keys.make(encryption.keys)
        name(index, [key.id])
        return key


def opened(index: Path, connected: Connected) -> tuple[apsw.Connection, Key | None]:
    """Return a connection to an index that there is, and the key that opens it; None where it is plain.

    Args:
        index: The file.
        connected: Returns a connection to it that uses a key.

    Raises:
        EncryptionKeyError: The key is not here.
        CorruptIndexError: Its key does not open it.
    """
    was: tuple[str, ...] | None = None
    missing: EncryptionKeyError | None = None
    for _ in range(_MOST_CHANGES):
        if (ids := named(index)) == was:
            break
        was, missing = ids, None
        for one in ids or (PLAIN,):
            try:
                key = None if one == PLAIN else find(one, index)
            except EncryptionKeyError as error:
                missing = error
                continue
            if db := _tried(key, connected):
                return db, key
    if missing is not None:
        raise missing
    if not was:
        return _unnamed(index, connected)
    raise damaged(index, "its key does not open it")


def find(key_id: str, index: Path) -> Key:
    """Return the key of an index.

    Raises:
        EncryptionKeyError: It is not here.
    """
    try:
        return keys.find(key_id, str(index))
    except EncryptionKeyError as error:
        raise EncryptionKeyError(
            f"{error}. Or delete {index} and {index}{KEY_NAME}: the index is built again from the notes"
        ) from error


def described(info: StoreInfo, db: apsw.Connection, key: Key | None, encryption: EncryptionConfig) -> StoreInfo:
    """Return what an index is, with its cipher and the id of its key."""
    if key is not None:
        return replace(info, engine={**info.engine, "cipher": cipher_of(db), "key": key.id})
    if not encryption.enabled:
        return info
    words = f"encryption.enabled is on, but {info.location} was made plain: `openclaw-memory encrypt` encrypts it"
    return replace(info, notices=(*info.notices, words))


def _named_last(index: Path) -> Key | None:
    ids = named(index)
    wanted = [one for one in ids if one != PLAIN]
    if not wanted:
        return None
    key = find(wanted[-1], index)
    if ids != (key.id,):
        name(index, [key.id])
    return key


def _tried(key: Key | None, connected: Connected) -> apsw.Connection | None:
    """Return a connection that uses a key; None where it is the wrong one, or the first page is damaged."""
    db = None
    try:
        db = connected(key)
        fetch(db, "SELECT count(*) FROM sqlite_schema")
    except BaseException as error:
        if db is not None:
            db.close()
        if isinstance(error, apsw.NotADBError):
            return None
        raise
    return db


def _unnamed(index: Path, connected: Connected) -> tuple[apsw.Connection, Key]:
    """Return a connection to an index that is no plain one, and for which no key is named: its name may have been lost.

    Raises:
        CorruptIndexError: It looks as a damaged one does, and not as an encrypted one.
        EncryptionKeyError: None of the keys that are here opens it.
    """
    header = first_bytes(index, 24)
    if header.startswith(MAGIC) or not _IN_THE_OPEN.fullmatch(header[16:]):
        raise damaged(index, "file is not a database")
    for key in keys.readable():
        if db := _tried(key, connected):
            # Where a sync is under way, or nothing can be written, a later opening names it.
            with suppress(StoreError), file_lock(Path(f"{index}{SYNC_LOCK}"), 0):
                name(index, [key.id])
            return db, key
    raise EncryptionKeyError(
        f"{index} seems to be encrypted, {index}{KEY_NAME} that names its key is missing, and none of the keys in "
        f"{keys.VARIABLE} and the user's key folder opens it: put the file or the key back, or delete the index, which "
        "is built again from the notes"
    )


def _read(place: Path) -> bytes:
    descriptor = os.open(place, os.O_RDONLY | NO_LINK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)
