"""Write the access log: one write(2) an entry, under a lock between processes, and its head behind it.

The head is written after its entry, so that a process that is killed leaves a log that is ahead of its head, never
behind. What a power cut may take is known by `Head.synced`, up to which the disk has confirmed: once a second, and when
the log is closed. Nothing that is found wrong is repaired: the chain goes on from the head, and `verify` names it.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from openclaw_memory import _forks
from openclaw_memory._acting import actor
from openclaw_memory.audit import head as heads
from openclaw_memory.audit.chain import GAP, LOST, MISSED, Entry, opened, sealed
from openclaw_memory.audit.head import Head
from openclaw_memory.audit.place import content, files_in, folder_of, key_of, name_of, own_key
from openclaw_memory.audit.place import opened as opened_file
from openclaw_memory.errors import AuditError, OpenClawMemoryError, remedy
from openclaw_memory.security.keys import sync_folder

if TYPE_CHECKING:
    from openclaw_memory.config import AuditConfig

MOST_PLACES = 200  # of one entry: a call with more of them leaves several
SYNC_SECONDS = 1.0  # a power cut takes no more than the entries of so long
_MAC_BYTES = 32
_sync = getattr(os, "fdatasync", os.fsync)


class AccessLog:
    """The access log of one workspace. Safe to use from several threads and processes."""

    def __init__(self, root: Path, rules: AuditConfig) -> None:
        """Nothing is read or written yet.

        Args:
            root: The folder of the workspace.
            rules: The settings.
        """
        self._root, self._rules, self._folder = root, rules, root
        self._head: int | None = None  # descriptors of the head, and of the file with the number `_first`
        self._file: int | None = None
        self._first, self._path, self._inode = 0, "", 0
        self._keys: dict[str, bytes] = {}
        self._known: dict[bytes, Head] = {}  # the heads that this object has written last, by their lines
        self._boot = heads.boot()
        self._synced_at = float("-inf")
        self._is_synced = True
        self._missed, self._trouble = 0, ""
        self._lock = _forks.lock()
        _forks.in_child(self)

    def after_fork(self) -> None:
        """Open files again: a lock of theirs would be the parent's too."""
        self._release()

    @property
    def required(self) -> bool:
        """Whether nothing is done that leaves no entry."""
        return self._rules.required

    def write(self, op: str, places: Sequence[tuple[str, str]] = (), result: str = "ok") -> None:
        """Add the entry of a call. One that cannot be written is counted: `problems` and a later entry say so.

        Args:
            op: What was done.
            places: The paths that were read or changed, each with its lines; "" for all of them.
            result: What came of it.

        Raises:
            AuditError: It could not be written, and `audit.required` says that nothing is done without.
        """
        some = [places[at : at + MOST_PLACES] for at in range(0, len(places), MOST_PLACES)] or [()]
        with self._lock:
            done = 0
            try:
                for one in some:
                    self._append(op, one, result)
                    done += 1
            except (OSError, OpenClawMemoryError) as error:
                self._note(error, len(some) - done)
                if self._rules.required:
                    raise AuditError(f"{op}: {self._trouble}; audit.required refuses what leaves no entry") from error

    def problems(self) -> list[str]:
        """Return what `status` says of the log: entries that are missing, and why. It changes nothing."""
        missed = self._missed
        with suppress(OSError, OpenClawMemoryError):
            known = heads.head_in(heads.head_file(str(folder_of(self._root, self._rules))))
            missed += known.missed if known else 0
        if not missed:
            return []
        return [f"the access log lacks {missed:,} entries{f': {self._trouble}' if self._trouble else ''}"]

    def close(self) -> None:
        """Have the disk confirm all entries. The next one opens the log again."""
        with self._lock:
            with suppress(OSError, OpenClawMemoryError):
                if not self._is_synced and self._head is not None:
                    with heads.held(self._head):
                        if (head := self._read(self._head)) is not None:
                            self._keep(self._head, self._confirmed(head)._replace(turn=head.turn + 1))
                            _sync(self._head)
            self._release()

    def __del__(self) -> None:
        self._release()

    # --- one entry -----------------------------------------------------------------------------------------------

    def _append(self, op: str, places: Sequence[tuple[str, str]], result: str) -> None:
        if self._head is None:
            self._folder = folder_of(self._root, self._rules)
            heads.make_private(self._folder)
            self._head = heads.open_head(str(self._folder))
        with heads.held(self._head):
            head = self._read(self._head) or self._begun()
            head = self._followed(head)
            if missed := head.missed + self._missed:
                head, self._missed = self._added(head, GAP, (), f"{MISSED} {missed}"), 0
            self._added(head, op, places, result)
            self._trouble = ""

    def _added(self, head: Head, op: str, places: Sequence[tuple[str, str]], result: str) -> Head:
        """Write an entry, and the head behind it; return that."""
        assert self._head is not None
        line, mac = sealed(self._key(head.key), head.seq + 1, actor(), op, places, result, head.mac)
        if head.size and head.size + len(line) > self._rules.max_bytes:
            head = self._rotated(head)
        file = self._file
        assert file is not None
        if (written := os.write(file, line)) != len(line):
            with suppress(OSError):
                os.ftruncate(file, head.size)
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {written} of {len(line)} bytes were written")
        head = head._replace(
            turn=head.turn + 1, seq=head.seq + 1, mac=mac, size=head.size + len(line), boot=self._boot, missed=0
        )
        self._is_synced = False
        # Where a restart cannot be told from a cut tail, each entry is on the disk before its head says so.
        is_due = not self._boot or time.monotonic() - self._synced_at >= SYNC_SECONDS
        if is_due:
            head = self._confirmed(head)
        self._keep(self._head, head)
        if is_due:
            _sync(self._head)
        return head

    def _confirmed(self, head: Head) -> Head:
        if self._file is not None:
            _sync(self._file)
        self._synced_at, self._is_synced = time.monotonic(), True
        return head._replace(synced=head.seq)

    def _rotated(self, head: Head) -> Head:
        """Begin a new file, and remove those that are too old; return the head, which says so before any is removed."""
        assert self._head is not None
        head = self._confirmed(head)
        head = head._replace(turn=head.turn + 1, file=head.seq + 1, size=0)
        there = [number for number in files_in(self._folder) if number != head.file]
        gone, kept = there[: -self._rules.keep or None], there[-self._rules.keep :] if self._rules.keep else []
        if gone:
            oldest = opened(content(self._folder, kept[0]).partition(b"\n")[0], None) if kept else None
            if not kept:
                head = head._replace(first=head.seq + 1, root=head.mac)
            elif oldest is not None:  # a damaged one is left for `verify` to name
                head = head._replace(first=oldest.seq, root=oldest.prev)
        self._keep(self._head, head)
        self._open_file(head.file)
        for number in gone:
            os.unlink(self._folder / name_of(number))
        return head

    def _note(self, error: Exception, missed: int) -> None:
        """Count entries that could not be written, for all processes if the head can be written."""
        why = f"{error.strerror or error}: {remedy(error)}" if isinstance(error, OSError) else str(error)
        self._trouble = f"an entry could not be written ({why})"
        self._missed += missed
        with suppress(OSError, OpenClawMemoryError):
            if self._head is not None and not isinstance(error, TimeoutError):
                with heads.held(self._head):
                    if (head := self._read(self._head)) is not None:
                        self._keep(self._head, head._replace(turn=head.turn + 1, missed=head.missed + self._missed))
                        self._missed = 0

    def _read(self, head: int) -> Head | None:
        return heads.decoded(heads.read(head), self._known)

    def _keep(self, descriptor: int, head: Head) -> None:
        latest = [*self._known.items()][-1:]  # that of the other slot
        self._known = {**dict(latest), heads.write(descriptor, head): head}

    # --- where the log was left ----------------------------------------------------------------------------------

    def _begun(self) -> Head:
        """Return the head of a new log, or of one that was moved here with its workspace."""
        assert self._head is not None
        place, random = str(self._folder), token_hex(_MAC_BYTES)
        last, moved = last_entry(self._folder, None), None
        if last is None:
            first = max(files_in(self._folder), default=0) + 1
            head = Head(0, first - 1, random, first, 0, first - 1, self._boot, first, random, own_key().id, place)
        elif (moved := moved_head(place, last)) is not None:
            head = moved._replace(turn=moved.turn + 1, place=place)
        else:  # from elsewhere, or cut: the next entry follows no other one, and `verify` says so
            file = files_in(self._folder)[-1]
            head = Head(0, last.seq, random, file, 0, last.seq, self._boot, last.seq + 1, random, own_key().id, place)
        # On the disk before there is a log: one without a head is taken for another one's.
        self._keep(self._head, head)
        os.fsync(self._head)
        sync_folder(heads.folder_of_heads())
        if moved is not None:
            heads.head_file(moved.place).unlink(missing_ok=True)
        return head

    def _followed(self, head: Head) -> Head:
        """Return the head as the files are: a process was killed in between, or the machine was started again."""
        try:
            info = os.stat(self._path if head.file == self._first else self._folder / name_of(head.file))
        except FileNotFoundError:
            info = None
        if self._file is None or head.file != self._first or info is None or info.st_ino != self._inode:
            self._open_file(head.file)
        size = info.st_size if info is not None else 0
        if size == head.size and head.boot == self._boot:
            return head
        data = content(self._folder, head.file)
        whole = data[: data.rfind(b"\n") + 1]
        is_torn = len(whole) < len(data) and (len(whole) >= head.size or head.boot != self._boot)
        if is_torn and self._file is not None:
            os.ftruncate(self._file, len(whole))  # part of an entry, which nobody was told of
            data = whole
        for line in data[head.size :].split(b"\n")[:-1]:
            entry = opened(line, self._key(head.key))
            if entry is None or entry.prev != head.mac or entry.seq != head.seq + 1:
                break
            head = head._replace(seq=entry.seq, mac=entry.mac)
        if not data.endswith(b"\n") and data and self._file is not None:  # cut in the midst of a line
            os.write(self._file, b"\n")
            data += b"\n"
        if head.boot != self._boot:
            return self._restarted(head._replace(size=len(data)))
        return head._replace(size=len(data))

    def _restarted(self, head: Head) -> Head:
        """Return the head after the machine was started again: what the disk had not confirmed may be lost."""
        head = head._replace(boot=self._boot)
        last = last_entry(self._folder, self._key(head.key))
        if last is None or not head.synced <= last.seq < head.seq:
            return head
        return self._added(head._replace(mac=last.mac), GAP, (), f"{LOST} {head.seq - last.seq}")

    def _open_file(self, first: int) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        is_new = not os.path.lexists(self._folder / name_of(first))
        self._file = opened_file(self._folder, first, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._first, self._path = first, str(self._folder / name_of(first))
        self._inode = os.fstat(self._file).st_ino
        if is_new:
            sync_folder(self._folder)

    def _key(self, key_id: str) -> bytes:
        if key_id not in self._keys:
            self._keys[key_id] = key_of(key_id, str(self._folder))
        return self._keys[key_id]

    def _release(self) -> None:
        for descriptor in (self._head, self._file):
            if descriptor is not None:
                os.close(descriptor)
        self._head = self._file = None


def last_entry(folder: Path, key: bytes | None) -> Entry | None:
    """Return the last whole entry of a log; None where there is none.

    Args:
        folder: The folder of the log.
        key: Its key; None believes the files.

    Raises:
        OSError, PathNotAllowedError: A file cannot be read.
    """
    for number in reversed(files_in(folder)):
        for line in reversed(content(folder, number).split(b"\n")[:-1]):
            if (entry := opened(line, key)) is not None:
                return entry
    return None


def moved_head(place: str, last: Entry) -> Head | None:
    """Return the head of a log that ends with this entry and is not where the head says any more; None without one.

    Args:
        place: Where the log is.
        last: Its last entry.
    """
    for head in heads.known_heads():
        if head.mac == last.mac and head.place != place and not os.path.isdir(head.place):
            return head
    return None
