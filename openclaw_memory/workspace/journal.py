"""Writing: one atomic append to the note of a day."""

from __future__ import annotations

import datetime
import errno
import os
from pathlib import Path

from openclaw_memory.config import Files
from openclaw_memory.errors import OpenClawMemoryError, PathNotAllowedError, QueryError, WriteError
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace.paths import NOTES_FOLDER, counts, why_left_out
from openclaw_memory.workspace.reading import open_at, open_folder

LOCK_SECONDS = 10.0  # an append holds the lock for milliseconds: who waits this long waits for something stuck
_POLL_SECONDS = 0.002


def append(
    root: Path,
    text: str,
    *,
    date: datetime.date,
    title: str | None = None,
    now: datetime.datetime,
    rules: Files,
) -> Excerpt:
    """Add a text to `memory/<date>.md`, whole or not at all, and return its lines.

    A new note begins with `# YYYY-MM-DD`; a `title` makes an entry heading `## HH:MM - title`, with the time of `now`.
    The write is one write(2) under a lock file, on the disk before this returns.

    Raises:
        QueryError: the text is empty, or cannot be written as UTF-8.
        PathNotAllowedError: the note or its folder is a symlink or not a regular file, or the globs leave it out.
        WriteError: it could not be written. The note is as it was.
    """
    import filelock

    entry = _entry(text, title, now)
    path = f"{NOTES_FOLDER}/{date.isoformat()}.md"
    if not counts(rules, path):
        raise PathNotAllowedError(
            f"{path} is left out by files.include or files.exclude: it would never be found again"
        )
    lock = root / NOTES_FOLDER / ".lock"
    try:
        _make_folder(root)
        with filelock.FileLock(lock, timeout=LOCK_SECONDS, mode=0o600, poll_interval=_POLL_SECONDS):
            return _append_locked(root, path, entry, date, rules)
    except filelock.Timeout as error:
        raise WriteError(f"{path} was not written: {lock} is held for over {LOCK_SECONDS:g} s; try again") from error
    except OSError as error:
        if isinstance(error, OpenClawMemoryError):
            raise
        if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.ENOTDIR}:
            raise PathNotAllowedError(
                f"{path} is not written: a symlink, or something that is no file or folder, is in its way; move it"
            ) from error
        raise WriteError(
            f"{path} could not be written ({error.strerror}) and is as it was: mend the cause and try again"
        ) from error


def _entry(text: str, title: str | None, now: datetime.datetime) -> list[str]:
    """The lines of an entry, the heading first."""
    lines = text.strip("\n").split("\n")
    if not text.strip():
        raise QueryError("the text to append is empty: give at least one word")
    if title is not None and title.strip():
        lines = [f"## {now:%H:%M} - {' '.join(title.split())}", "", *lines]
    try:
        "\n".join(lines).encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the text to append is not Unicode at character {error.start}: remove the lone surrogate"
        ) from error
    return lines


def _make_folder(root: Path) -> None:
    try:
        os.mkdir(root / NOTES_FOLDER, 0o700)
    except FileExistsError:
        # A symlink would take the lock file, and the note, elsewhere.
        os.close(open_folder(str(root), (NOTES_FOLDER,)))
    else:
        _flush(root, ())


def _append_locked(root: Path, path: str, entry: list[str], date: datetime.date, rules: Files) -> Excerpt:
    parts = tuple(path.split("/"))
    descriptor, is_new = _open_note(root, parts)
    done = False
    try:
        before = _checked_content(descriptor, path, rules)
        head, first_line = _joint(before, entry, date)
        data = (head + "\n".join(entry) + "\n").encode()
        if len(before) + len(data) > rules.max_bytes:
            raise WriteError(
                f"{path} would grow beyond files.max_bytes ({rules.max_bytes:,}) and never be read again: "
                "append less, or to another date"
            )
        _write_whole(descriptor, data, len(before), path)
        done = True
    finally:
        os.close(descriptor)
        if is_new and not done:
            os.unlink(root.joinpath(*parts))
    if is_new:
        _flush(root, (NOTES_FOLDER,))
    return Excerpt(path, "\n".join(entry), first_line, first_line + len(entry) - 1)


def _open_note(root: Path, parts: tuple[str, ...]) -> tuple[int, bool]:
    flags = os.O_RDWR | os.O_APPEND
    try:
        return open_at(str(root), parts, flags), False
    except FileNotFoundError:
        return open_at(str(root), parts, flags | os.O_CREAT | os.O_EXCL), True


def _checked_content(descriptor: int, path: str, rules: Files) -> bytes:
    info = os.fstat(descriptor)
    if reason := why_left_out(info, rules):
        raise PathNotAllowedError(f"{path} {reason}; nothing was written")
    blocks = []
    while block := os.read(descriptor, 1 << 20):
        blocks.append(block)
    before = b"".join(blocks)
    if before.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise WriteError(f"{path} is UTF-16, to which UTF-8 cannot be added: save it as UTF-8 first")
    return before


def _joint(before: bytes, entry: list[str], date: datetime.date) -> tuple[str, int]:
    """What goes between the note as it is and the entry, and the number of the entry's first line."""
    if not before:
        head = f"# {date.isoformat()}\n\n"
    else:
        head = "" if before.endswith(b"\n") else "\n"
        # A heading stands apart; plain lines follow each other, so that a list stays one list.
        if entry[0].startswith("## ") and not before.endswith(b"\n\n"):
            head += "\n"
    return head, before.count(b"\n") + head.count("\n") + 1


def _write_whole(descriptor: int, data: bytes, size: int, path: str) -> None:
    try:
        written = os.write(descriptor, data)
        if written < len(data):
            raise WriteError(f"{path} took {written} of {len(data)} bytes and is as it was: free some disk space")
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _flush(root: Path, parts: tuple[str, ...]) -> None:
    """Put the names in a folder on the disk. Windows has no such call, and opens no folders."""
    if os.name == "nt":
        return
    folder = open_folder(str(root), parts)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
