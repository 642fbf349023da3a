"""Keep the head of a log: how far the log goes, with a MAC, in a small file that is its lock too."""

from __future__ import annotations

import errno
import hmac
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from openclaw_memory.workspace import SafeFolder
from openclaw_memory_audit.entries import AuditError, Keys, decode_entry

FOLDER = "audit"
HEAD = f"{FOLDER}/head.json"
LOCK_SECONDS = 5.0
STUCK_SECONDS = 0.1  # an entry takes microseconds: where none is written for so long, the holder of the lock is stuck
_POLL_SECONDS = 0.001
_BYTES = 512
_MAC_CHARS = 64
_NAME = re.compile(r"access\.(\d{12})\.jsonl")


class Head(NamedTuple):
    """The length of a log and its last entry.

    Attributes:
        seq: The number of the last entry, 0 before the first one.
        mac: Its MAC, "" before the first one.
        file: The number that names its file: that of the first entry there.
        size: The bytes of that file, with the last entry.
        first: The number of the oldest entry that is kept.
    """

    seq: int = 0
    mac: str = ""
    file: int = 1
    size: int = 0
    first: int = 1


def locate_file(number: int) -> str:
    """Return the path of a file of a log, in the data folder, by the number of its first entry."""
    return f"{FOLDER}/access.{number:012}.jsonl"


def list_files(folder: SafeFolder) -> list[int]:
    """List the numbers that name the files of a log, ascending."""
    return sorted(int(match[1]) for name in folder.list_names(FOLDER) if (match := _NAME.fullmatch(name)))


def read_head(keys: Keys, descriptor: int, where: str) -> Head | None:
    """Read the head of a log; None before the first entry.

    Raises:
        AuditError: It is not as this user's log has written it.
    """
    data = read_at(descriptor, 0, _BYTES).rstrip()
    if not data:
        return None
    mac, body = data[:_MAC_CHARS], data[_MAC_CHARS:]
    if not hmac.compare_digest(hmac.digest(keys.head, body, "sha256").hex().encode(), mac):
        raise AuditError(
            f"{where} is not as it was written, or was written with another user.key: restore it, or move its folder "
            "away to begin a new log"
        )
    return Head(*json.loads(body))


def write_head(keys: Keys, descriptor: int, head: Head) -> None:
    """Write the head of a log in place: it fits in one sector."""
    body = json.dumps(head).encode()
    write_at(descriptor, 0, (hmac.digest(keys.head, body, "sha256").hex().encode() + body).ljust(_BYTES))


def follow_entries(keys: Keys, descriptor: int, head: Head, size: int) -> Head:
    """Return the head after the entries that are behind it, as a process leaves them that is killed in between.

    Anything there that is not an entry is cut off.
    """
    for line in read_at(descriptor, head.size, size - head.size).split(b"\n")[:-1]:
        entry = decode_entry(keys, line)
        if entry is None or (entry.seq, entry.prev) != (head.seq + 1, head.mac):
            break
        head = head._replace(seq=entry.seq, mac=entry.mac, size=head.size + len(line) + 1)
    os.ftruncate(descriptor, head.size)
    return head


def read_at(descriptor: int, offset: int, size: int) -> bytes:
    """Read up to so many bytes of a file from an offset on."""
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def write_at(descriptor: int, offset: int, data: bytes) -> None:
    """Write data into a file at an offset.

    Raises:
        OSError: It could not be written, or in part, which the next entry cuts off.
    """
    os.lseek(descriptor, offset, os.SEEK_SET)
    if os.write(descriptor, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def lock(descriptor: int, *, waits: bool = True) -> Iterator[None]:
    """Hold the lock of a log, which is on its head.

    Args:
        descriptor: The open head.
        waits: Wait for 5 s while nobody writes, and not for a tenth of a second.

    Raises:
        TimeoutError: Another process holds it and writes nothing for that long.
    """
    changed, stamp, patience = time.monotonic(), 0, LOCK_SECONDS if waits else STUCK_SECONDS
    while not _try_lock(descriptor):
        if stamp != (stamp := os.fstat(descriptor).st_mtime_ns):
            changed = time.monotonic()
        if time.monotonic() > changed + patience:
            raise TimeoutError(0, f"another process has held the log for over {patience:g} s")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        _unlock(descriptor)


if sys.platform == "win32":
    import msvcrt

    _LOCKED_AT = 1 << 20  # beyond what is read

    def _try_lock(descriptor: int) -> bool:
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

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
