"""The journal: an atomic append to the note of a day, and what an agent reads of it when a session starts."""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeAlias

from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError, WorkspaceError, WriteError
from openclaw_memory.text.fence import escape_fences, fence_text
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import NOTES_FOLDER, get_stamp, is_settled
from openclaw_memory.workspace.safe_read import (
    decode,
    find_encoding,
    is_utf16,
    make_excerpt_of_lines,
    split_lines,
)

# The time in the heading of an entry, as written here and as OpenClaw writes it: `9:05`, `09:05`, `9:05 AM`.
_ENTRY = "## "
_TIME = re.compile(r"## \d{1,2}:\d{2}(?: ?[AaPp][Mm])? - ")


def make_day_path(day: datetime.date) -> str:
    """Return the path of the note of a day that is not sealed."""
    return f"{NOTES_FOLDER}/{day.isoformat()}.md"


def append(
    files: WorkspaceFiles,
    text: str,
    *,
    date: datetime.date,
    title: str | None = None,
    now: datetime.datetime,
    skip_existing: bool = False,
) -> Excerpt:
    """Add `text` to `memory/<date>.md`, or the sealed note of the day, and return its lines with secrets masked.

    A new note begins with `# YYYY-MM-DD`; a `title` adds the heading `## H:MM - title` with the time of `now`. It is
    added under a lock file, and on disk before this returns: up to 4,096 bytes by one write(2), more, and what is
    sealed, by a file that takes the place of the note, so that a killed process leaves all of it or nothing. With
    `skip_existing` nothing is added where the note already has the same lines, at whatever time: the excerpt shows them
    and has `existed` set.

    Raises:
        InvalidInputError: The text is empty, or cannot be written as UTF-8.
        PathNotAllowedError: The note or its folder is a symlink or not a regular file, or the globs exclude it.
        PolicyError: A rule says never to store the text. Nothing was written.
        SealedFileError: The note is sealed, and cannot be opened.
        WriteError: It could not be written. The note is unchanged.
    """
    entry = _entry(text, title, now)
    files.policies.check(None, "\n".join(entry))
    _check_counts(files, make_day_path(date))
    there: list[int] = []  # the 0-based line of the entry

    def added_to(before: bytes) -> bytes:
        if skip_existing and (first := find_block(_lines(before), entry)) is not None:
            there.append(first)
            return b""
        head, first_line = _joint(before, entry, date)
        there.append(first_line - 1)
        return (head + "\n".join(entry) + "\n").encode()

    with files.lock(make_day_path(date)):
        path = files.find(make_day_path(date))
        before, data = _extended(files, path, added_to)
    lines = _lines(before + data)
    return make_excerpt_of_lines(path, lines, there[-1], len(entry), existed=not data, policies=files.policies)


def find_missing(files: WorkspaceFiles, path: str, blocks: Sequence[Sequence[str]]) -> list[bool]:
    """Return of each block of lines whether the note at `path` lacks it, to the letter and one line after the other.

    Raises:
        PathNotAllowedError, UndecodableError, WorkspaceError: The note cannot be read.
    """
    try:
        data, _ = files.read(files.make_place(files.find(path)))
    except NotFoundError:
        return [True] * len(blocks)
    return _missing(_lines(data), blocks)


def append_missing(files: WorkspaceFiles, path: str, blocks: Sequence[Sequence[str]], *, head: str) -> list[bool]:
    """Add those blocks of lines that the note at `path` lacks, all of them or none; return of each whether it did.

    A new note begins with the line `head`, unless the first block does. It is added as by `append`.

    Raises:
        PathNotAllowedError: The note is a symlink or not a regular file, or the globs exclude it.
        PolicyError: A rule says never to store a block. Nothing was written.
        WriteError: It could not be written. The note is unchanged.
    """
    for block in blocks:
        files.policies.check(None, "\n".join(block))
    _check_counts(files, path)
    missing: list[bool] = []

    def added_to(before: bytes) -> bytes:
        missing[:] = _missing(_lines(before), blocks)
        added = [block for block, is_missing in zip(blocks, missing, strict=True) if is_missing]
        if not added:
            return b""
        headed = [[head], *added] if not before and added[0][0] != head else added
        gap = "" if not before or before.endswith(b"\n\n") else "\n" if before.endswith(b"\n") else "\n\n"
        return (gap + "\n\n".join("\n".join(block) for block in headed) + "\n").encode()

    with files.lock(path):
        _extended(files, files.find(path), added_to)
    return missing


def _missing(lines: Sequence[str], blocks: Sequence[Sequence[str]]) -> list[bool]:
    file = [line.rstrip("\r") for line in lines]
    starts: dict[str, list[int]] = {}
    for number, line in enumerate(file):
        starts.setdefault(line, []).append(number)
    return [
        not any(file[first : first + len(block)] == [*block] for first in starts.get(block[0], ())) for block in blocks
    ]


def check_text(text: str, what: str) -> str:
    """Return `text` as it can be written: NUL becomes U+FFFD. `what` names it in errors.

    Raises:
        InvalidInputError: It is not a string, or not valid Unicode.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"{what} must be a string, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{what} is not Unicode at character {error.start}: remove the lone surrogate"
        ) from error
    return text.replace("\0", "\ufffd")


def find_block(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return where `lines` contain `wanted`, line after line, 0-based; None where they do not.

    Times in the headings of entries and carriage returns are ignored.
    """
    block, file = [_timeless(line) for line in wanted], [_timeless(line) for line in lines]
    starts = (first for first, line in enumerate(file) if line == block[0])
    return next((first for first in starts if file[first : first + len(block)] == block), None)


def _timeless(line: str) -> str:
    return _TIME.sub(_ENTRY, line.rstrip("\r"), count=1) if line.startswith(_ENTRY) else line.rstrip("\r")


def _entry(text: str, title: str | None, now: datetime.datetime) -> list[str]:
    lines = check_text(text, "the text to append").strip("\n").split("\n")
    if not text.strip():
        raise InvalidInputError("the text to append is empty: give at least one word")
    if title is None or not title.strip():
        return lines
    return [f"{_ENTRY}{now.hour}:{now:%M} - {check_text(' '.join(title.split()), 'the title')}", "", *lines]


def _extended(files: WorkspaceFiles, path: str, added_to: Callable[[bytes], bytes]) -> tuple[bytes, bytes]:
    """Add to a note what `added_to` makes of its content; return the content and what was added. Call it in `writing`.

    Raises:
        PathNotAllowedError, SealedFileError, WriteError: As `append`.
    """
    before = data = b""

    def extend(file: BinaryIO, _: int) -> bytes:
        nonlocal before, data
        before = file.read()
        if (encoding := "UTF-16" if is_utf16(before) else find_encoding(before)) is not None:
            raise WriteError(f"{path} is {encoding}, to which UTF-8 cannot be added: save it as UTF-8 first")
        data, most = added_to(before), files.settings.max_bytes
        if data and len(before) + len(data) > most:
            raise WriteError(
                f"{path} would grow beyond files.max_bytes ({most:,}) and never be read again: "
                "append less, or to another date"
            )
        return data

    files.append(files.make_place(path), extend)
    return before, data


def _check_counts(files: WorkspaceFiles, path: str) -> None:
    if not files.is_included(path):
        raise PathNotAllowedError(
            f"{path} is left out by files.include or files.exclude: it would never be found again"
        )


def _lines(note: bytes) -> list[str]:
    # Bytes that are not UTF-8 match no entry, and are no reason to ignore the others.
    return split_lines(note.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))


def _joint(before: bytes, entry: list[str], date: datetime.date) -> tuple[str, int]:
    """Return what goes between the existing note and the entry, and the number of the entry's first line."""
    if not before:
        head = f"# {date.isoformat()}\n\n"
    else:
        head = "" if before.endswith(b"\n") else "\n"
        # A heading is set apart, and so is a quotation, which would go on with the next line; other lines follow each
        # other, so that a list stays one list.
        last = before.removesuffix(b"\n").rpartition(b"\n")[2]
        if (entry[0].startswith((_ENTRY, ">")) or last.startswith(b">")) and not before.endswith(b"\n\n"):
            head += "\n"
    return head, before.count(b"\n") + head.count("\n") + 1


# --- the start of a session ---------------------------------------------------------------------------------

SOUL = "SOUL.md"  # persona, values and boundaries: for the agent to read, but no memory, and never indexed


@dataclass(frozen=True, slots=True)
class BootstrapFile:
    """A file as it is shown: `text` is all of it, or whole lines of it within `max_chars`.

    `chars` is how long all of it is. `note` says what is not shown, why, and what to do; "" where all is.
    """

    path: str
    text: str
    chars: int
    max_chars: int
    note: str = ""


@dataclass(frozen=True)
class Bootstrap:
    """The files that a session starts with, in reading order."""

    files: tuple[BootstrapFile, ...]

    @cached_property
    def text(self) -> str:
        """All files for a system prompt, each followed by its note; "" for no files.

        SOUL.md is shown below its path. The others are memory: each is in a fence with its path, so that nothing in
        a note can be taken for another file.
        """
        shown: list[str] = []
        for file in self.files:
            shown += [f"## {file.path}"] if file.path == SOUL else []
            text = escape_fences(file.text) if file.path == SOUL or not file.text else fence_text(file.text, file.path)
            shown += filter(None, (text, file.note and f"({file.note})"))
        return "\n\n".join(shown)


# What was read, by the paths that were wanted and the most characters, with the stamps of the files then.
Read: TypeAlias = dict[tuple[object, ...], tuple[tuple[tuple[int, ...] | None, ...], Bootstrap]]
_MOST_READ = 4  # private or not, on two days


def bootstrap(files: WorkspaceFiles, *, private: bool, max_chars: int, today: datetime.date, read: Read) -> Bootstrap:
    """SOUL.md, MEMORY.md if the session is `private`, and the notes of yesterday and today: those that there are.

    No file is shown beyond `max_chars` characters: of a day the last lines are, of the others the first. Secrets are
    masked. A file that cannot be read is named with the reason, and does not keep the others from being read.

    What is in `read` is returned as long as none of the files has another stamp; what was read is added to it.
    """
    days = [files.find(make_day_path(day)) for day in (today - datetime.timedelta(days=1), today)]
    long_term = [files.find_long_term()] if private else []
    wanted = [SOUL, *(path for path in (*long_term, *days) if files.is_included(path))]
    now, infos = time.time_ns(), [_info(files.root / path) for path in wanted]
    asked, stamps = (*wanted, max_chars), tuple(None if info is None else get_stamp(info) for info in infos)
    before, started = read.get(asked, ((), Bootstrap(())))
    if before == stamps:
        return started
    parts = (_file(files, path, max_chars, keep_end=path in days) for path in wanted)
    started = Bootstrap(tuple(file for file in parts if file is not None))
    if all(info is None or is_settled(info, now) for info in infos):
        if len(read) >= _MOST_READ:
            read.clear()
        read[asked] = stamps, started
    return started


def _info(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):  # it is read all the same, which says why it cannot be
        return None


def _file(files: WorkspaceFiles, path: str, max_chars: int, *, keep_end: bool) -> BootstrapFile | None:
    try:
        data, _ = files.read(files.make_place(path))
        text = redact(files.policies.mask(decode(data, path))).strip("\n")
    except NotFoundError:
        return None
    except WorkspaceError as error:
        return BootstrapFile(path, "", 0, max_chars, f"not shown: {error}")
    if len(text) <= max_chars:
        return BootstrapFile(path, text, len(text), max_chars)
    shown = _last_lines(text, max_chars) if keep_end else _first_lines(text, max_chars)
    where, remedy = (
        ("first", "search finds them") if keep_end else ("last", "move what matters less to notes in memory/")
    )
    note = f"the {where} {len(text) - len(shown):,} of {len(text):,} characters are not shown: {remedy}"
    return BootstrapFile(path, shown, len(text), max_chars, note)


def _first_lines(text: str, max_chars: int) -> str:
    """The whole lines that fit; where the first alone does not, the beginning of it."""
    stop = text.rfind("\n", 0, max_chars + 1)
    return text[: stop if stop > 0 else max_chars]


def _last_lines(text: str, max_chars: int) -> str:
    """The whole lines that fit; where the last alone does not, the end of it."""
    start = text.find("\n", len(text) - max_chars - 1)
    return text[start + 1 if start >= 0 else len(text) - max_chars :]
