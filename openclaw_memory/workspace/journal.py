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
from typing import TypeAlias

from openclaw_memory.config import FilesConfig
from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    PathNotAllowedError,
    WorkspaceError,
    WriteError,
)
from openclaw_memory.text.fence import fenced, harmless
from openclaw_memory.text.policies import policies_of
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import Excerpt
from openclaw_memory.types.files import ENCRYPTED
from openclaw_memory.workspace.atomic import append_whole, opened_to_append, read_whole, replace_file, writing
from openclaw_memory.workspace.paths import NOTES_FOLDER, Place, as_it_is, counts, long_term_path, why_left_out
from openclaw_memory.workspace.safe_read import (
    as_written,
    decode,
    decrypted,
    excerpt_of_lines,
    is_utf16,
    other_encoding,
    read_place,
    split_lines,
)
from openclaw_memory.workspace.stamps import is_settled, stamp_of

# The time in the heading of an entry, as written here and as OpenClaw writes it: `9:05`, `09:05`, `9:05 AM`.
_ENTRY = "## "
_TIME = re.compile(r"## \d{1,2}:\d{2}(?: ?[AaPp][Mm])? - ")


def day_path(day: datetime.date) -> str:
    """Return the path of the note of a day that is not encrypted."""
    return f"{NOTES_FOLDER}/{day.isoformat()}.md"


def append(
    root: Path,
    text: str,
    *,
    date: datetime.date,
    title: str | None = None,
    now: datetime.datetime,
    rules: FilesConfig,
    skip_existing: bool = False,
) -> Excerpt:
    """Add `text` to `memory/<date>.md`, or the encrypted note of the day, and return its lines with secrets masked.

    A new note begins with `# YYYY-MM-DD`; a `title` adds the heading `## H:MM - title` with the time of `now`. It is
    added under a lock file, and on disk before this returns: up to 4,096 bytes by one write(2), more, and what is
    encrypted, by a file that takes the place of the note, so that a killed process leaves all of it or nothing. With
    `skip_existing` nothing is added where the note already has the same lines, at whatever time: the excerpt shows them
    and has `existed` set.

    Raises:
        InvalidInputError: The text is empty, or cannot be written as UTF-8.
        PathNotAllowedError: The note or its folder is a symlink or not a regular file, or the globs exclude it.
        PolicyError: A rule says never to store the text. Nothing was written.
        UndecryptableError: The note is encrypted, and cannot be decrypted.
        WriteError: It could not be written. The note is unchanged.
    """
    entry = _entry(text, title, now)
    policies_of(rules).check(None, "\n".join(entry))
    _check_counts(rules, day_path(date))
    with writing(root, day_path(date), rules):
        return _append_locked(root, as_it_is(root, day_path(date)), entry, date, rules, skip_existing)


def missing_blocks(root: Path, path: str, blocks: Sequence[Sequence[str]], rules: FilesConfig) -> list[bool]:
    """Return of each block of lines whether the note at `path` lacks it, to the letter and one line after the other.

    Raises:
        PathNotAllowedError, UndecodableError, WorkspaceError: The note cannot be read.
    """
    try:
        data, _ = read_place(_place(root, as_it_is(root, path)), rules)
    except NotFoundError:
        return [True] * len(blocks)
    return _missing(_lines(data), blocks)


def append_missing(
    root: Path, path: str, blocks: Sequence[Sequence[str]], *, head: str, rules: FilesConfig
) -> list[bool]:
    """Add those blocks of lines that the note at `path` lacks, all of them or none; return of each whether it did.

    A new note begins with the line `head`, unless the first block does. It is added as by `append`.

    Raises:
        PathNotAllowedError: The note is a symlink or not a regular file, or the globs exclude it.
        PolicyError: A rule says never to store a block. Nothing was written.
        WriteError: It could not be written. The note is unchanged.
    """
    for block in blocks:
        policies_of(rules).check(None, "\n".join(block))
    _check_counts(rules, path)
    missing: list[bool] = []

    def added_to(before: bytes) -> bytes:
        missing[:] = _missing(_lines(before), blocks)
        added = [block for block, is_missing in zip(blocks, missing, strict=True) if is_missing]
        if not added:
            return b""
        headed = [[head], *added] if not before and added[0][0] != head else added
        gap = "" if not before or before.endswith(b"\n\n") else "\n" if before.endswith(b"\n") else "\n\n"
        return (gap + "\n\n".join("\n".join(block) for block in headed) + "\n").encode()

    with writing(root, path, rules):
        _extended(root, as_it_is(root, path), rules, added_to)
    return missing


def _missing(lines: Sequence[str], blocks: Sequence[Sequence[str]]) -> list[bool]:
    file = [line.rstrip("\r") for line in lines]
    starts: dict[str, list[int]] = {}
    for number, line in enumerate(file):
        starts.setdefault(line, []).append(number)
    return [
        not any(file[first : first + len(block)] == [*block] for first in starts.get(block[0], ())) for block in blocks
    ]


def checked_text(text: str, what: str) -> str:
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
    lines = checked_text(text, "the text to append").strip("\n").split("\n")
    if not text.strip():
        raise InvalidInputError("the text to append is empty: give at least one word")
    if title is None or not title.strip():
        return lines
    return [f"{_ENTRY}{now.hour}:{now:%M} - {checked_text(' '.join(title.split()), 'the title')}", "", *lines]


def _append_locked(
    root: Path, path: str, entry: list[str], date: datetime.date, rules: FilesConfig, skip_existing: bool
) -> Excerpt:
    there: list[int] = []  # the 0-based line of the entry

    def added_to(before: bytes) -> bytes:
        if skip_existing and (first := find_block(_lines(before), entry)) is not None:
            there.append(first)
            return b""
        head, first_line = _joint(before, entry, date)
        there.append(first_line - 1)
        return (head + "\n".join(entry) + "\n").encode()

    before, data = _extended(root, path, rules, added_to)
    lines, policies = _lines(before + data), policies_of(rules)
    return excerpt_of_lines(path, lines, there[-1], len(entry), existed=not data, policies=policies)


def _extended(root: Path, path: str, rules: FilesConfig, added_to: Callable[[bytes], bytes]) -> tuple[bytes, bytes]:
    """Add to a note what `added_to` makes of its content; return the content and what was added. Call it in `writing`.

    Raises:
        PathNotAllowedError, UndecryptableError, WriteError: As `append`.
    """
    place = _place(root, path)
    with opened_to_append(place.base, place.parts, path) as descriptor:
        raw, seen = _checked_content(descriptor, path, rules)
        before = decrypted(raw, path, rules)
        if is_utf16(before):
            raise WriteError(f"{path} is UTF-16, to which UTF-8 cannot be added: save it as UTF-8 first")
        if (encoding := other_encoding(before)) is not None:
            raise WriteError(f"{path} is {encoding}, to which UTF-8 cannot be added: save it as UTF-8 first")
        if not (data := added_to(before)):
            return before, data
        _check_room(len(before) + len(data), path, rules)
        if before is raw and not path.endswith(ENCRYPTED):
            append_whole(descriptor, place.base, place.parts, before, data)
        else:
            replace_file(place.base, place.parts, as_written(before + data, place, rules, is_there=True), seen)
    return before, data


def _place(root: Path, path: str) -> Place:
    return Place(path, str(root), tuple(path.split("/")))


def _check_counts(rules: FilesConfig, path: str) -> None:
    if not counts(rules, path):
        raise PathNotAllowedError(
            f"{path} is left out by files.include or files.exclude: it would never be found again"
        )


def _check_room(size: int, path: str, rules: FilesConfig) -> None:
    if size > rules.max_bytes:
        raise WriteError(
            f"{path} would grow beyond files.max_bytes ({rules.max_bytes:,}) and never be read again: "
            "append less, or to another date"
        )


def _lines(note: bytes) -> list[str]:
    # Bytes that are not UTF-8 match no entry, and are no reason to ignore the others.
    return split_lines(note.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))


def _checked_content(descriptor: int, path: str, rules: FilesConfig) -> tuple[bytes, os.stat_result]:
    info = os.fstat(descriptor)
    if reason := why_left_out(info, rules):
        raise PathNotAllowedError(f"{path} {reason}; nothing was written")
    return read_whole(descriptor), info


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
            text = harmless(file.text) if file.path == SOUL or not file.text else fenced(file.text, file.path)
            shown += filter(None, (text, file.note and f"({file.note})"))
        return "\n\n".join(shown)


# What was read, by the paths that were wanted and the most characters, with the stamps of the files then.
Read: TypeAlias = dict[tuple[object, ...], tuple[tuple[tuple[int, ...] | None, ...], Bootstrap]]
_MOST_READ = 4  # private or not, on two days


def bootstrap(
    root: Path, *, private: bool, max_chars: int, today: datetime.date, rules: FilesConfig, read: Read
) -> Bootstrap:
    """SOUL.md, MEMORY.md if the session is `private`, and the notes of yesterday and today: those that there are.

    No file is shown beyond `max_chars` characters: of a day the last lines are, of the others the first. Secrets are
    masked. A file that cannot be read is named with the reason, and does not keep the others from being read.

    What is in `read` is returned as long as none of the files has another stamp; what was read is added to it.
    """
    days = [as_it_is(root, day_path(day)) for day in (today - datetime.timedelta(days=1), today)]
    long_term = [long_term_path(root)] if private else []
    wanted = [SOUL, *(path for path in (*long_term, *days) if counts(rules, path))]
    now, infos = time.time_ns(), [_info(root / path) for path in wanted]
    asked, stamps = (*wanted, max_chars), tuple(None if info is None else stamp_of(info) for info in infos)
    before, started = read.get(asked, ((), Bootstrap(())))
    if before == stamps:
        return started
    files = (_file(root, path, max_chars, rules, keep_end=path in days) for path in wanted)
    started = Bootstrap(tuple(file for file in files if file is not None))
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


def _file(root: Path, path: str, max_chars: int, rules: FilesConfig, *, keep_end: bool) -> BootstrapFile | None:
    try:
        data, _ = read_place(_place(root, path), rules)
        text = redact(policies_of(rules).shown(decode(data, path))).strip("\n")
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
