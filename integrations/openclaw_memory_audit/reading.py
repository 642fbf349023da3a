"""Read the access log, the newest entries first, and check that it is as it was written."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgspec import structs

from openclaw_memory import OpenClawMemoryError
from openclaw_memory.errors import InvalidInputError, NotFoundError
from openclaw_memory.workspace import SafeFolder, Workspace
from openclaw_memory_audit.entries import GAP, AuditError, Entry, Keys, decode_entry, hash_name
from openclaw_memory_audit.head import HEAD, Head, list_files, locate_file, lock, read_head

_SNAPSHOTS, _SESSIONS, _TRANSCRIPT = ".memory/snapshots", "sessions/", ".jsonl"


class Wrong(NamedTuple):
    """The first thing that is wrong: the file, the line, the number of the entry that should be there, the reason."""

    file: str
    line: int
    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check.

    Attributes:
        folder: The folder of the log.
        entries: How many entries are as they were written, up to the first wrong one.
        first: The number of the oldest entry that is kept.
        last: The number of the last one. Note it elsewhere: a log that ends before it later was put back.
        wrong: The first thing that is wrong; None if nothing is.
        gaps: The entries in place of others that could not be written.
    """

    folder: str
    entries: int = 0
    first: int = 0
    last: int = 0
    wrong: Wrong | None = None
    gaps: tuple[Entry, ...] = ()

    @property
    def ok(self) -> bool:
        """True if there is a log, every entry is as it was written, and none is missing."""
        return self.wrong is None


def read_entries(
    keys: Keys,
    folder: SafeFolder,
    workspace: Workspace,
    op: str | None,
    path: str | None,
    since: datetime.date | str | None,
    actor: str | None,
    session: str | None,
) -> Iterator[Entry]:
    """Yield entries; see `AccessLog.read_entries`."""
    day, names = _parse_day(since), {hash_name(keys, name): name for name in _list_names(workspace)}
    exact, who = path and f"#{hash_name(keys, path)}", session and hash_name(keys, session)

    def resolve(name: str) -> str:
        return names.get(name, f"#{name}") if name else ""

    for number in reversed(list_files(folder)):
        for line in reversed(folder.read(locate_file(number)).split(b"\n")[:-1]):
            entry = decode_entry(keys, line)
            if entry is None or (op and entry.op != op) or entry.ts[:10] < day or (who and entry.session != who):
                continue
            resolved = replace(entry, session=resolve(entry.session), paths=tuple(map(resolve, entry.paths)))
            if (not actor or actor in entry.actor) and (
                not path or any(path in name or name == exact for name in resolved.paths)
            ):
                yield resolved


def _list_names(workspace: Workspace) -> Iterator[str]:
    """Yield the paths of the files that exist, and the sessions of their transcripts."""
    every = replace(workspace, sessions=structs.replace(workspace.sessions, index=True))
    for file in every.scan().files:
        yield file.path
        if file.path.startswith(_SESSIONS):
            yield file.path.removeprefix(_SESSIONS).removesuffix(_TRANSCRIPT)
    with suppress(OpenClawMemoryError):
        yield from (f"{_SNAPSHOTS}/{name}" for name in SafeFolder(workspace.root).list_names(_SNAPSHOTS))


def _parse_day(since: datetime.date | str | None) -> str:
    if not since:
        return ""
    try:
        return (since if isinstance(since, datetime.date) else datetime.date.fromisoformat(since)).isoformat()[:10]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"since must be a day such as '2026-11-21', not {since!r}") from error


def verify_log(keys: Keys, folder: SafeFolder) -> Verdict:
    """Check a log; see `AccessLog.verify`."""
    verdict = Verdict(str(folder.base / "audit"))
    try:
        head, files = _read_at_once(keys, folder)
    except NotFoundError:
        head, files = None, {}
    except AuditError as error:
        return replace(verdict, wrong=Wrong(HEAD, 0, 1, str(error)))
    if head is None:
        reason = "its head is missing" if files or list_files(folder) else "there is no log, or it was removed"
        return replace(verdict, wrong=Wrong(HEAD, 0, 1, reason))
    expected, before, wrong, gaps = head.first, "", None, list[Entry]()
    for number, row, line in _split_lines(files):
        entry = decode_entry(keys, line)
        reason = _explain(entry, expected, before, head)
        if entry is None or reason:
            wrong = Wrong(locate_file(number), row, expected, reason)
            break
        expected, before = expected + 1, entry.mac
        if entry.op == GAP:
            gaps.append(entry)
    last = expected - 1
    if wrong is None and last < head.seq:
        reason = f"the log ends with {last}, and its head says {head.seq}: the end was cut off or lost"
        wrong = Wrong(locate_file(head.file), 0, expected, reason)
    return Verdict(verdict.folder, expected - head.first, head.first, last, wrong, tuple(gaps))


def _split_lines(files: dict[int, bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the whole lines of files, each with the number of its file and its own."""
    for number, data in files.items():
        for row, line in enumerate(data.split(b"\n")[:-1], 1):
            yield number, row, line


def _read_at_once(keys: Keys, folder: SafeFolder) -> tuple[Head | None, dict[int, bytes]]:
    """Read the head and the files under the lock, so that no entry comes between."""
    with folder.open(HEAD) as descriptor, lock(descriptor):
        head = read_head(keys, descriptor, str(folder.base / HEAD))
        numbers = [number for number in list_files(folder) if head is not None and number >= head.first]
        return head, {number: folder.read(locate_file(number)) for number in numbers}


def _explain(entry: Entry | None, expected: int, before: str, head: Head) -> str:
    """Explain the error of an entry; "" if there is none."""
    if entry is None:
        return "it is not as it was written"
    if entry.seq != expected:
        return f"it is entry {entry.seq}: others are missing, or their place was changed"
    if (before or expected == 1) and entry.prev != before:
        return f"it does not follow entry {expected - 1}"
    return "it is not the entry that the head names" if expected == head.seq and entry.mac != head.mac else ""
