"""Read the access log, the newest entries first, and prove that it is as it was written."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from openclaw_memory.audit import head as heads
from openclaw_memory.audit.chain import GAP, LOST, Entry, opened
from openclaw_memory.audit.head import Head
from openclaw_memory.audit.log import last_entry, moved_head
from openclaw_memory.audit.place import content, files_in, folder_of, key_of, name_of
from openclaw_memory.audit.place import opened as opened_file
from openclaw_memory.errors import AuditError, InvalidInputError

if TYPE_CHECKING:
    from openclaw_memory.config import AuditConfig


class Wrong(NamedTuple):
    """The first thing that is wrong: in which file and line, the number of the entry that should be there, and why."""

    file: str
    line: int
    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a log.

    Attributes:
        folder: Where it is.
        entries: How many entries are as they were written, up to the first wrong one.
        first: The number of the oldest entry that is kept; 0 where there is none.
        last: The number of the last one.
        wrong: The first thing that is wrong; None where nothing is.
        lost: Entries that are missing since the machine was started again, in words: the disk had not confirmed them.
            A power cut has taken them, or someone has cut them off.
        gaps: The entries in place of others that could not be written.
        unfinished: Whether the log ends with part of an entry, as a process leaves it that was killed.
    """

    folder: str
    entries: int = 0
    first: int = 0
    last: int = 0
    wrong: Wrong | None = None
    lost: tuple[str, ...] = ()
    gaps: tuple[Entry, ...] = ()
    unfinished: bool = False

    @property
    def ok(self) -> bool:
        """Whether every entry is as it was written, and none was taken away."""
        return self.wrong is None and not self.lost


def entries(
    root: Path,
    rules: AuditConfig,
    *,
    op: str | None = None,
    path: str | None = None,
    since: datetime.date | str | None = None,
    actor: str | None = None,
) -> Iterator[Entry]:
    """Yield the entries of a log, the newest first, without proving them; lines that hold no entry are skipped.

    Args:
        root: The folder of the workspace.
        rules: The settings, `MemoryConfig.audit`.
        op: Only this operation.
        path: Only those with a path that holds this text.
        since: Only those of this day (UTC) or later, by the clock of then.
        actor: Only those with an actor that holds this text.

    Raises:
        InvalidInputError: `since` is no day.
        AuditError: The log cannot be read.
        PathNotAllowedError: A link is in its place.
    """
    day = _day(since)
    folder = folder_of(root, rules)
    try:
        for number in reversed(files_in(folder)):
            for line in reversed(content(folder, number).split(b"\n")[:-1]):
                one = opened(line, None)
                if one is None or (op is not None and one.op != op) or one.ts[:10] < day:
                    continue
                if (actor is None or actor in one.actor) and (path is None or any(path in known for known in one.path)):
                    yield one
    except OSError as error:
        raise AuditError(f"the access log {folder} cannot be read ({error.strerror})") from error


def verify(root: Path, rules: AuditConfig) -> Verdict:
    """Check every line of a log against its chain, and its end against the head that is kept apart.

    Args:
        root: The folder of the workspace.
        rules: The settings, `MemoryConfig.audit`.

    Raises:
        AuditError: The log cannot be read.
        EncryptionKeyError: Its key is not here.
        PathNotAllowedError: A link is in its place.
    """
    folder = folder_of(root, rules)
    try:
        head, files = _at_once(folder)
        if head is None and not files:
            return Verdict(str(folder))
        if head is None:
            last = last_entry(folder, None)
            head = moved_head(str(folder), last) if last else None
        if head is None:
            reason = f"its head is not in {heads.folder_of_heads()}: it was moved and cut, or comes from elsewhere"
            return Verdict(str(folder), wrong=Wrong(name_of(files[0][0]), 1, files[0][0], reason))
        return _verdict(folder, head, files, key_of(head.key, str(folder)))
    except OSError as error:
        raise AuditError(f"the access log {folder} cannot be read ({error.strerror})") from error


def _day(since: datetime.date | str | None) -> str:
    if since is None:
        return ""
    try:
        return (since if isinstance(since, datetime.date) else datetime.date.fromisoformat(since)).isoformat()[:10]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"since must be a day such as '2026-11-21', not {since!r}") from error


def _at_once(folder: Path) -> tuple[Head | None, list[tuple[int, bytes]]]:
    """Return the head and the files as they are at one moment, in which no entry is written."""
    file = heads.head_file(str(folder))
    descriptor = os.open(file, os.O_RDWR) if file.exists() else None
    try:
        with nullcontext() if descriptor is None else heads.held(descriptor):
            head = None if descriptor is None else heads.decoded(heads.read(descriptor))
            there = [(number, opened_file(folder, number, os.O_RDONLY)) for number in files_in(folder)]
            sizes = [os.fstat(one).st_size for _, one in there]
    finally:
        if descriptor is not None:
            os.close(descriptor)
    files = []
    for (number, one), size in zip(there, sizes, strict=True):
        with open(one, "rb") as opened_one:
            files.append((number, opened_one.read(size)))
    return head, files


def _verdict(folder: Path, head: Head, files: list[tuple[int, bytes]], key: bytes) -> Verdict:
    walk = _Walk(head, key)
    wrong = None
    for number, data in files:
        wrong = wrong or walk.through(number, data, is_last=number == files[-1][0])
    wrong = wrong or walk.end(files[-1][0] if files else head.file)
    last = walk.before.seq if walk.before else 0
    return Verdict(
        str(folder), walk.count, walk.first, last, wrong, tuple(walk.lost), tuple(walk.gaps), walk.is_unfinished
    )


class _Walk:
    """The way through a log, from its oldest entry to what its head says."""

    def __init__(self, head: Head, key: bytes) -> None:
        self._head, self._key = head, key
        self.before: Entry | None = None
        self.count = self.first = 0
        self.gaps, self.lost = list[Entry](), list[str]()
        self.is_unfinished = False
        # The MAC of the entry that the head names, "" before it is found.
        self._at_head = head.root if head.seq == head.first - 1 else ""

    def through(self, number: int, data: bytes, *, is_last: bool) -> Wrong | None:
        """Go through a file; return the first thing that is wrong in it."""
        *lines, rest = data.split(b"\n")
        for row, line in enumerate(lines, 1):
            due = self.before.seq + 1 if self.before else number
            entry = opened(line, self._key)
            if entry is None:
                return Wrong(name_of(number), row, due, "it is not as it was written")
            if reason := _why_wrong(entry, self.before, self._head, number if row == 1 else entry.seq):
                return Wrong(name_of(number), row, due, reason)
            self._passed(entry)
        self.is_unfinished = bool(rest)
        if rest and not is_last:
            due = self.before.seq + 1 if self.before else number
            return Wrong(name_of(number), len(lines) + 1, due, "its end is missing")
        return None

    def _passed(self, entry: Entry) -> None:
        if entry.op == GAP:
            self.gaps.append(entry)
            if entry.result.startswith(LOST):
                self.lost.append(f"{entry.result.removeprefix(LOST).strip()} entries before {entry.seq}")
        if entry.seq == self._head.seq:
            self._at_head = entry.mac
        self.first, self.before, self.count = self.first or entry.seq, entry, self.count + 1

    def end(self, number: int) -> Wrong | None:
        """Return what is wrong with the end of the log; None where the head names one of its entries."""
        head, name = self._head, name_of(number)
        last = self.before.seq if self.before else head.first - 1
        if self._at_head == head.mac:
            return None
        if self._at_head:
            return Wrong(name, 0, head.seq, "it is not the entry that the head names: this is another log")
        if head.boot != heads.boot() and last >= head.synced:
            self.lost.append(f"{head.seq - last} entries after {last}")
            return None
        return Wrong(name, 0, last + 1, f"the log ends with {last}, and its head says {head.seq}: the end was cut off")


def _why_wrong(entry: Entry, before: Entry | None, head: Head, named: int) -> str:
    """Return what is wrong with an entry, in words; "" for nothing. `named` is the number by which its file goes."""
    if entry.seq != named:
        return f"it is entry {entry.seq}: the file was renamed, or its beginning is missing"
    if before is None:
        if entry.seq > head.first:
            return f"the log begins with {entry.seq}, and its head says {head.first}: the beginning is missing"
        return "" if entry.seq < head.first or entry.prev == head.root else "it does not begin this log"
    if entry.prev != before.mac:
        return f"it does not follow entry {before.seq}: one in between is missing, or its place was changed"
    follows = entry.seq == before.seq + 1 or (entry.op == GAP and entry.result.startswith(LOST))
    return "" if follows else f"it follows entry {before.seq} and is {entry.seq}"
