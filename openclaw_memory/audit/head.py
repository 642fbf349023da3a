"""The head of an access log: how far it goes. It is kept apart, in the user's data folder.

Its file is also the lock under which the log is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from openclaw_memory._links import NO_LINK
from openclaw_memory.errors import WriteError, remedy

LOCK_SECONDS = 5.0  # an entry takes microseconds: who waits this long waits for something stuck
_POLL_SECONDS = 0.001
# The head is written into the two slots in turn: a write that a power cut tears leaves the other one.
_SLOT_BYTES = 4096
_CHECK = 32
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Head(NamedTuple):
    """How far a log goes.

    Attributes:
        turn: How often the head was written.
        seq: The number of the last entry; 0 before the first one.
        mac: Its MAC; random before the first one.
        file: The number by which the file of the last entry is named: that of its first entry.
        size: The bytes of that file, with the last entry.
        synced: The last entry that the disk has confirmed.
        boot: Which start of the machine the last entry was written in; "" where that is unknown.
        first: The number of the oldest entry that is kept.
        root: The MAC of the entry before that.
        key: The id of the key.
        place: The folder of the log.
        missed: How many entries could not be written since.
    """

    turn: int
    seq: int
    mac: str
    file: int
    size: int
    synced: int
    boot: str
    first: int
    root: str
    key: str
    place: str
    missed: int = 0


def boot() -> str:
    """Return what names this start of the machine; "" where the system does not say."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def folder_of_heads() -> Path:
    """Return the folder of all heads of this user.

    Raises:
        WriteError: The user has no home folder, and XDG_DATA_HOME names none.
    """
    from platformdirs import user_data_path

    try:
        return user_data_path("openclaw-memory") / "audit"
    except RuntimeError as error:
        raise WriteError(f"the head of the access log has no place ({error}): set XDG_DATA_HOME to a folder") from error


def head_file(place: str) -> Path:
    """Return the file of the head of the log in the folder `place`.

    Raises:
        WriteError: As `folder_of_heads`.
    """
    return (
        folder_of_heads()
        / f"{hashlib.blake2b(place.encode('utf-8', 'surrogateescape'), digest_size=16).hexdigest()}.head"
    )


def open_head(place: str) -> int:
    """Open, and make where it is missing, the file of a head; return its descriptor.

    Raises:
        WriteError: As `folder_of_heads`, or it cannot be opened.
    """
    file = head_file(place)
    try:
        make_private(file.parent)
        return os.open(file, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
    except OSError as error:
        raise WriteError(
            f"{file}, the head of the access log, cannot be opened ({error.strerror}): {remedy(error)}, or set "
            "XDG_DATA_HOME to a folder of your own"
        ) from error


def make_private(folder: Path) -> None:
    """Make a folder and the missing ones above it for their owner alone."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def known_heads() -> Iterator[Head]:
    """Yield the heads of all logs of this user that can be read."""
    try:
        files = sorted(folder_of_heads().glob("*.head"))
    except (OSError, WriteError):
        return
    for file in files:
        if (head := head_in(file)) is not None:
            yield head


def head_in(file: Path) -> Head | None:
    """Return the head in a file; None where there is none."""
    try:
        with open(os.open(file, os.O_RDONLY | NO_LINK), "rb") as opened:
            return decoded(opened.read())
    except OSError:
        return None


@contextmanager
def held(descriptor: int) -> Iterator[None]:
    """Hold the lock of a head.

    Raises:
        TimeoutError: Another process held it for 5 s.
    """
    ends = time.monotonic() + LOCK_SECONDS
    while not _locked(descriptor):
        if time.monotonic() > ends:
            raise TimeoutError(0, f"another process has held its head for over {LOCK_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        _unlock(descriptor)


if sys.platform == "win32":
    import msvcrt

    _LOCKED_AT = 1 << 20  # beyond what is read

    def _locked(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCKED_AT, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_AT, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _locked(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def read(descriptor: int) -> bytes:
    """Return what the file of a head holds now, for `decoded`."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 2 * _SLOT_BYTES)


def write(descriptor: int, head: Head) -> bytes:
    """Write a head into the slot whose turn it is; return its line, without the end."""
    os.lseek(descriptor, head.turn % 2 * _SLOT_BYTES, os.SEEK_SET)
    body = json.dumps(head).encode()
    line = _check(body) + body
    if os.write(descriptor, line + b"\n") != len(line) + 1:
        raise OSError(0, "the head was written in part")
    return line


def decoded(found: bytes, known: Mapping[bytes, Head] = MappingProxyType({})) -> Head | None:
    """Return the latest head of a file's content; None where there is none.

    Args:
        found: The content.
        known: Heads by their lines, which need not be read again.
    """
    lines = (found[at : at + _SLOT_BYTES].partition(b"\n")[0] for at in (0, _SLOT_BYTES))
    heads = [head for line in lines if (head := known.get(line) or _parsed(line)) is not None]
    return max(heads, default=None)


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK // 2).hexdigest().encode()


def _parsed(line: bytes) -> Head | None:
    check, body = line[:_CHECK], line[_CHECK:]
    return Head(*json.loads(body)) if body and _check(body) == check else None
