"""Where an access log is: its folder, its files by the number of their first entry, and its key."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory._links import NO_LINK, link_to
from openclaw_memory.audit.chain import PURPOSE
from openclaw_memory.errors import EncryptionKeyError, PathNotAllowedError
from openclaw_memory.security import keys
from openclaw_memory.security.keys import Key
from openclaw_memory.security.user_secret import secret

if TYPE_CHECKING:
    from openclaw_memory.config import AuditConfig

_NAME = re.compile(r"access\.(\d{12})\.jsonl")


def folder_of(root: Path, rules: AuditConfig) -> Path:
    """Return the folder of the log of a workspace, without links.

    Raises:
        PathNotAllowedError: It is inside the workspace, and a link leads elsewhere.
    """
    given = Path(rules.folder).expanduser()
    if given.is_absolute():
        return Path(os.path.realpath(given))
    folder = Path(os.path.realpath(root), os.path.normpath(given))
    if not folder.is_relative_to(os.path.realpath(root)):
        return Path(os.path.realpath(folder))
    if link := link_to(folder / "access", Path(os.path.realpath(root))):
        raise PathNotAllowedError(f"the access log is not written through a link, and {link}: remove it")
    return folder


def name_of(first: int) -> str:
    """Return the name of the file whose first entry has a number."""
    return f"access.{first:012}.jsonl"


def files_in(folder: Path) -> list[int]:
    """Return the numbers by which the files of a log are named, ascending; none where there is no folder.

    Raises:
        OSError: It cannot be listed.
    """
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def opened(folder: Path, first: int, flags: int) -> int:
    """Open a file of the log and return its descriptor; a new one is for its owner alone.

    Raises:
        OSError: It cannot be opened, or is a link.
        PathNotAllowedError: It is no ordinary file, or has other names, which would be written with it.
    """
    descriptor = os.open(folder / name_of(first), flags | NO_LINK, 0o600)
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
        os.close(descriptor)
        raise PathNotAllowedError(f"{folder / name_of(first)} is no ordinary file, or has hard links: remove it")
    return descriptor


def content(folder: Path, first: int) -> bytes:
    """Return what a file of the log holds.

    Raises:
        OSError, PathNotAllowedError: As `opened`.
    """
    with open(opened(folder, first, os.O_RDONLY), "rb") as file:
        return file.read()


def own_key() -> Key:
    """Return the key with which a new log of this user begins.

    Raises:
        EncryptionKeyError, StoreError: As `keys.signing`.
    """
    return keys.signing()


def key_of(key_id: str, place: str) -> bytes:
    """Return the key of the MACs of a log.

    Args:
        key_id: Which key of the user's it is made of.
        place: The folder of the log, for the error.

    Raises:
        EncryptionKeyError: It is not here.
    """
    for key in (keys.signing(), Key(secret().key), *keys.readable()):
        if key.id == key_id:
            return key.derived(PURPOSE)
    raise EncryptionKeyError(
        f"the access log {place} was written with the key {key_id}, which is not here: put it back, behind the others "
        f"in {keys.VARIABLE}, or move the folder away to begin a new log"
    )
