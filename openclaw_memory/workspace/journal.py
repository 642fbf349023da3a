"""The journal: an atomic append to the note of a day, and the files that an agent reads when a session starts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import BinaryIO

import msgspec

from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError, WorkspaceError, WriteError
from openclaw_memory.text.fence import escape_fences, fence_text
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace.atomic import make_folders
from openclaw_memory.workspace.encodings import UTF8, decode, find_encoding
from openclaw_memory.workspace.excerpts import make_excerpt_of_lines, split_lines
from openclaw_memory.workspace.files import WorkspaceFiles

# The time in the heading of an entry, as written here and as OpenClaw writes it: `9:05`, `09:05`, `9:05 AM`.
_ENTRY = "## "
_TIME = re.compile(r"## \d{1,2}:\d{2}(?: ?[AaPp][Mm])? - ")


def append(
    files: WorkspaceFiles,
    text: str,
    *,
    date: datetime.date,
    title: str | None = None,
    now: datetime.datetime,
    skip_existing: bool = False,
    path: str | None = None,
    select: Callable[[str], str] | None = None,
) -> Excerpt:
    """Add `text` to the note of a day, sealed or not, and return its lines. See `Notes.append`.

    A new note begins with `# YYYY-MM-DD`; a `title` adds the heading `## H:MM - title` with the time of `now`.

    Args:
        files: The files of the workspace.
        text: The text to add.
        date: The day.
        title: The title of the entry.
        now: The moment.
        skip_existing: Add nothing if the note has the same lines, at whatever time; the excerpt has `existed` set.
        path: Another note below `memory/` than that of the day.
        select: Returns the part to add in place of all of the text, of what the note holds; "" for nothing.

    Raises:
        InvalidInputError, PathNotAllowedError, PolicyError, SealedFileError, WriteError: As `Notes.append`.
    """
    entry = _make_entry(text, title, now)
    if select is None:
        files.policies.check(None, "\n".join(entry))
    path = path or files.journal.make_path(date)
    if not files.is_included(path):
        raise PathNotAllowedError(
            f"{path} is left out by files.include or files.exclude: it would never be found again"
        )
    before = data = b""
    first = 0  # the 0-based line of the entry

    def extend(file: BinaryIO, _: int) -> bytes:
        nonlocal before, data, entry, first
        before = file.read()
        if (encoding := find_encoding(before)) != UTF8:
            raise WriteError(f"{path} is {encoding}, to which UTF-8 cannot be added: save it as UTF-8 first")
        if select is not None:
            entry = split_lines(select("\n".join(_split(before))))
            files.policies.check(None, "\n".join(entry))
        if not entry:
            return b""
        if skip_existing and (existing := find_block(_split(before), entry)) is not None:
            first = existing
            return b""
        head, most = _join_gap(before, entry, date), files.settings.max_bytes
        first, data = before.count(b"\n") + head.count("\n"), (head + "\n".join(entry) + "\n").encode()
        if len(before) + len(data) > most:
            raise WriteError(
                f"{path} would grow beyond files.max_bytes ({most:,}) and never be read again: "
                "append less, or to another date"
            )
        return data

    with files.lock(path):
        place = files.make_place(files.find(path))
        make_folders(files.root, place.parts[:-1], place.path)
        files.append(place, extend)
    lines = _split(before + data)
    return make_excerpt_of_lines(place.path, lines, first, len(entry), existed=not data, policies=files.policies)


def check_text(text: str, name: str) -> str:
    """Return a text as it can be written: NUL becomes U+FFFD.

    Args:
        text: The text.
        name: Names it in errors.

    Raises:
        InvalidInputError: It is not a string, or not valid Unicode.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be a string, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{name} is not Unicode at character {error.start}: remove the lone surrogate"
        ) from error
    return text.replace("\0", "\ufffd")


def find_block(lines: Sequence[str], block: Sequence[str]) -> int | None:
    """Return the 0-based line at which `lines` contain a block, line after line, or None.

    Times in the headings of entries and carriage returns are ignored.

    Args:
        lines: All lines of a note.
        block: The block of lines.
    """
    block, file = [_strip_time(line) for line in block], [_strip_time(line) for line in lines]
    starts = (first for first, line in enumerate(file) if line == block[0])
    return next((first for first in starts if file[first : first + len(block)] == block), None)


def _strip_time(line: str) -> str:
    return _TIME.sub(_ENTRY, line.rstrip("\r"), count=1) if line.startswith(_ENTRY) else line.rstrip("\r")


def _make_entry(text: str, title: str | None, now: datetime.datetime) -> list[str]:
    lines = check_text(text, "the text to append").strip("\n").split("\n")
    if not text.strip():
        raise InvalidInputError("the text to append is empty: give at least one word")
    if title is None or not title.strip():
        return lines
    return [f"{_ENTRY}{now.hour}:{now:%M} - {check_text(' '.join(title.split()), 'the title')}", "", *lines]


def _split(note: bytes) -> list[str]:
    # Bytes that are not UTF-8 match no entry, and are no reason to ignore the others.
    return split_lines(note.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))


def _join_gap(before: bytes, entry: list[str], date: datetime.date) -> str:
    """Return the text between the existing note and the entry."""
    if not before:
        return "" if entry[0].startswith("# ") else f"# {date.isoformat()}\n\n"
    gap = "" if before.endswith(b"\n") else "\n"
    # A heading is set apart, and so is a quotation, which would go on with the next line; other lines follow each
    # other, so that a list stays one list.
    last = before.removesuffix(b"\n").rpartition(b"\n")[2]
    is_apart = entry[0].startswith((_ENTRY, ">")) or last.startswith(b">")
    return gap + "\n" if is_apart and not before.endswith(b"\n\n") else gap


# --- the start of a session ---------------------------------------------------------------------------------

SOUL = "SOUL.md"  # persona, values and boundaries: for the agent to read, but no memory, and never indexed


class BootstrapFile(msgspec.Struct, frozen=True):
    """A file as it is shown.

    Attributes:
        path: The file.
        text: All of it, or whole lines of it within `max_chars`.
        chars: The length of all of it.
        max_chars: The most characters.
        note: The part that is not shown, why, and the remedy; "" if all is shown.
    """

    path: str
    text: str
    chars: int
    max_chars: int
    note: str = ""


class Bootstrap(msgspec.Struct, frozen=True):
    """The files that a session starts with, in reading order.

    Attributes:
        files: The files.
    """

    files: tuple[BootstrapFile, ...]

    @property
    def text(self) -> str:
        """All files for a system prompt, each followed by its note; "" for no files.

        SOUL.md is shown below its path. The others are memory: each is in a fence with its path, so that nothing in
        a note can be taken for another file.
        """
        parts: list[str] = []
        for file in self.files:
            parts += [f"## {file.path}"] if file.path == SOUL else []
            text = escape_fences(file.text) if file.path == SOUL or not file.text else fence_text(file.text, file.path)
            parts += filter(None, (text, file.note and f"({file.note})"))
        return "\n\n".join(parts)


def bootstrap(files: WorkspaceFiles, *, private: bool, max_chars: int, today: datetime.date) -> Bootstrap:
    """Return SOUL.md, MEMORY.md if the session is `private`, and the notes of yesterday and today, where they exist.

    No file is shown beyond `max_chars` characters: of a day the last lines are, of the others the first. Secrets are
    masked. A file that cannot be read is named with the reason, and does not keep the others from being read.

    Args:
        files: The files of the workspace.
        private: Whether to include MEMORY.md.
        max_chars: The most characters of one file.
        today: The day.
    """
    days = [files.find_day(day) for day in (today - datetime.timedelta(days=1), today)]
    long_term = [files.find_long_term()] if private else []
    paths = [SOUL, *(path for path in (*long_term, *days) if files.is_included(path))]
    parts = (_show_file(files, path, max_chars, is_day=path in days) for path in paths)
    return Bootstrap(tuple(part for part in parts if part is not None))


def _show_file(files: WorkspaceFiles, path: str, max_chars: int, *, is_day: bool) -> BootstrapFile | None:
    try:
        data, _ = files.read(files.make_place(path))
        text = redact(files.policies.mask(decode(data, path))).strip("\n")
    except NotFoundError:
        return None
    except WorkspaceError as error:
        return BootstrapFile(path, "", 0, max_chars, f"not shown: {error}")
    if len(text) <= max_chars:
        return BootstrapFile(path, text, len(text), max_chars)
    at = text.find("\n", len(text) - max_chars - 1) + 1 if is_day else text.rfind("\n", 0, max_chars + 1)
    # Whole lines; a part of one that is longer.
    part = text[at or len(text) - max_chars :] if is_day else text[: at if at > 0 else max_chars]
    where, remedy = ("first", "search finds them") if is_day else ("last", "move what matters less to notes in memory/")
    note = f"the {where} {len(text) - len(part):,} of {len(text):,} characters are not shown: {remedy}"
    return BootstrapFile(path, part, len(text), max_chars, note)
