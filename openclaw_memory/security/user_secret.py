"""The secret of this user, kept outside every workspace, and the keyed hashes made with it."""

from __future__ import annotations

import os
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from openclaw_memory._links import NO_LINK
from openclaw_memory.errors import StoreError, remedy

NAME = "index.key"
BYTES = 32
# Random for each start of a Linux machine, the same in all its processes and containers: no stranger can know it.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Secret(NamedTuple):
    """The key, and why it lasts only until the machine is started again; "" where it is kept in its file."""

    key: bytes
    problem: str = ""


def secret() -> Secret:
    """Return the secret of this user, which is made and kept in the user's data folder where there is none yet.

    Raises:
        StoreError: It can neither be read nor made.
    """
    from platformdirs import user_data_path

    try:
        folder = user_data_path("openclaw-memory")
    except RuntimeError as error:  # a user without a home folder
        return _of_this_start(f"the key that signs the index cannot be kept ({error}): set XDG_DATA_HOME to a folder")
    return _of(folder)


def tag(key: bytes, about: str, *values: bytes) -> str:
    """Return a keyed hash of values as 32 hex digits; one `about` something else is never the same."""
    return blake2b(b"\0".join(values), key=key, person=about.encode(), digest_size=16).hexdigest()


@cache
def _of(folder: Path) -> Secret:
    try:
        return Secret(_read(folder) or _made(folder))
    except OSError as error:
        problem = (
            f"{folder / NAME}, the key that signs the index, cannot be kept ({error.strerror or error}): "
            f"{remedy(error)}, or set XDG_DATA_HOME to a folder of your own"
        )
    return _of_this_start(problem)


def _of_this_start(problem: str) -> Secret:
    """Return a secret that lasts until the machine is started again, since no key can be kept."""
    try:
        boot = BOOT_ID.read_bytes().strip()
    except OSError:
        boot = b""
    if not boot:
        raise StoreError(f"{problem}; without it no index can be told from one that others have planted")
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Secret(
        blake2b(boot, key=str(user).encode(), digest_size=BYTES).digest(),
        f"{problem}; until then the index is built again whenever this machine was started again",
    )


def _read(folder: Path) -> bytes | None:
    """Return the key in its file; None where there is no file.

    Raises:
        OSError: It cannot be read, is a link, or is no key of this user.
    """
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | NO_LINK)
    except FileNotFoundError:
        return None
    try:
        owner = os.fstat(descriptor).st_uid
        found = os.read(descriptor, BYTES + 1)
    except IsADirectoryError:
        found, owner = b"", 0
    finally:
        os.close(descriptor)
    if hasattr(os, "geteuid") and owner not in {0, os.geteuid()}:
        raise PermissionError(0, "it belongs to another user")
    if len(found) != BYTES:
        raise OSError(0, f"it is not {BYTES} bytes long: delete it")
    return found


def _made(folder: Path) -> bytes:
    """Make the key and its folder; return it, or that of a process which was quicker.

    It is written under another name and linked to its own: no process ever sees a part of it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = folder / f".{NAME}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)
    try:
        try:
            os.write(descriptor, os.urandom(BYTES))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _named(unfinished, folder / NAME)
    finally:
        unfinished.unlink(missing_ok=True)
    found = _read(folder)
    if found is None:
        raise FileNotFoundError(0, "it was deleted when it had just been made")
    return found


def _named(unfinished: Path, name: Path) -> None:
    """Give a finished key its name, unless there is one."""
    try:
        os.link(unfinished, name)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not os.path.lexists(name):
            os.replace(unfinished, name)
