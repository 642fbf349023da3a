"""Read transcripts, conversations in JSON lines, as text with the same line numbers, part by part."""

from __future__ import annotations

import datetime
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, Self
from zlib import crc32

from msgspec import Struct, structs

from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace.excerpts import DEFAULT_CHARS, check_range, make_excerpt
from openclaw_memory.workspace.transcript_formats import FORMATS, find_format
from openclaw_memory.workspace.transcript_records import MAX_LINE_BYTES, get_time, parse, render_record

PART_BYTES = 65_536

# The format of a file is recognised by its first lines. OpenClaw's header is the first of them.
_SNIFFED_LINES = 20

_PIECE_BYTES = 1 << 20
_MARK = re.compile(r"3 (\d{1,18}) (\d{1,18}) (\d{1,18}) ([01]) (\d{1,18}) (\d{1,10})")


class Mark(Struct, frozen=True):
    """The end of a reading of a transcript, as a string and back.

    Attributes:
        line: The first line of the open part, 1-based.
        offset: The byte where it begins.
        char: The character of the whole text where it begins.
        muted: Whether replies are muted there.
        end: All bytes before it were read.
        crc: The CRC-32 of these bytes; a file that was rewritten has another.
    """

    line: int = 1
    offset: int = 0
    char: int = 0
    muted: bool = False
    end: int = 0
    crc: int = 0

    def __str__(self) -> str:
        return f"3 {self.line} {self.offset} {self.char} {self.muted:d} {self.end} {self.crc}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a mark; return None if the string is not one."""
        if (match := _MARK.fullmatch(text)) is None:
            return None
        line, offset, char, muted, end, crc = map(int, match.groups())
        return cls(line, offset, char, bool(muted), end, crc)


class Part(Struct):
    """A run of lines of a transcript, all of one day. Only the last part of a file is open: it may yet grow.

    Attributes:
        first_line: The number of its first line, 1-based.
        start_char: The character of the whole text where it begins.
        day: Its day; None if no message has a date.
        text: A line for each line of the file, each ended by a newline.
        mark: How far the file has been read with this part.
        unreadable: How many lines are not JSON objects or are too long.
        first_unreadable: The first of them; 0 for none.
    """

    first_line: int
    start_char: int
    day: datetime.date | None
    text: str
    mark: Mark
    unreadable: int
    first_unreadable: int = 0


_START = Mark()


class _OpenPart:
    """A part that is being read: where it begins, and its content so far."""

    def __init__(self, begin: Mark) -> None:
        self.begin, self.lines, self.chars = begin, list[str](), 0
        self.unreadable = self.first_unreadable = 0
        self.day: datetime.date | None = None
        self.has_text = False

    def add(self, text: str, day: datetime.date | None, *, readable: bool) -> None:
        if not readable:
            self.first_unreadable = self.first_unreadable or self.begin.line + len(self.lines)
            self.unreadable += 1
        if text:
            # The day of a message outweighs the one in a header.
            self.day = (self.day if self.has_text else None) or day or self.day
            self.has_text = True
        elif not self.has_text:
            self.day = self.day or day
        self.lines.append(text)
        self.chars += len(text) + 1

    def finish(self, mark: Mark) -> Part:
        text = "".join(f"{line}\n" for line in self.lines)
        return Part(self.begin.line, self.begin.char, self.day, text, mark, self.unreadable, self.first_unreadable)

    def make_next_mark(self, end: int, muted: bool) -> Mark:
        return Mark(self.begin.line + len(self.lines), end, self.begin.char + self.chars, muted, end)


def read_parts(
    file: BinaryIO, mark: str | None = None, part_bytes: int = PART_BYTES, policies: Policies = NONE
) -> Iterator[Part]:
    """Yield the parts of an open file from the open part of `mark` on, or from the beginning if the mark does not fit.

    A part ends with the line that fills it up to `part_bytes`, or before the first words of another day. A last line
    that is not complete is left for later; a JSON object is complete without its newline too. Nothing is yielded if
    nothing was added; but if the mark does not fit and nothing is complete, one part without a line says so.

    To detect a rewritten file, all bytes that were read are compared by a checksum: 100 MB take 36 ms of a processor.
    """
    earlier = Mark.parse(mark) if mark is not None else None
    if earlier is not None and _fit(file, earlier):
        yield from _read_added(file, earlier, part_bytes, policies)
        return
    part: Part | None = None
    for part in _read_added(file, _START, part_bytes, policies):
        yield part
    if part is None and mark is not None:
        yield _OpenPart(_START).finish(_START)


def explain_foreign(file: BinaryIO) -> str | None:
    """Return why an open file is not a transcript of a known format; None if it is one, or holds no record yet.

    The first lines decide: one record of a known format among them is enough. Lines without a record, and those of
    which all was forgotten, decide nothing.
    """
    first = None
    for line, _, _ in islice(_iterate_lines(file, 0), _SNIFFED_LINES):
        record = parse(line) if line is not None else None
        if record is not None and find_format(record) is not None:
            return None
        first = record if first is None and record and not record.get("hidden") else first
    if first is None:
        return None
    return (
        f"is not a transcript in a format of {', '.join(entry.program for entry in FORMATS)}: "
        f"its first record is of type {first.get('type')!r:.40}; convert it, or leave it out with files.exclude"
    )


def count_added_lines(file: BinaryIO, mark: str, within: int) -> int | None:
    """Count the lines that were added to an open file since `mark`, in the first `within` bytes.

    None if the mark does not say how far the file was read, or the file is shorter than that.
    """
    earlier = Mark.parse(mark)
    if earlier is None or file.seek(0, os.SEEK_END) < earlier.end:
        return None
    file.seek(earlier.end)
    return file.read(within).count(b"\n")


def render_lines(file: BinaryIO, start: int, end: int, policies: Policies = NONE) -> list[str]:
    """Return lines of an open file as they are indexed, muted or not; "" for a line without spoken words."""
    file.seek(_skip_lines(file, start - 1).offset)
    records = (parse(file.readline(MAX_LINE_BYTES + 1)) for _ in range(start, end + 1))
    return ["" if record is None else render_record(record, muted=False, policies=policies)[0] for record in records]


def read_records(file: BinaryIO, start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield every readable record of an open file."""
    return (record for record, _ in iterate_records(file, start) if record is not None)


def iterate_records(file: BinaryIO, start: int = 0) -> Iterator[tuple[dict[str, Any] | None, int]]:
    """Yield the record of each line of an open file, None without one, and where it ends.

    Half a line at the end of the file is left out.
    """
    for line, size, is_ended in _iterate_lines(file, start):
        start += size
        record = parse(line) if line is not None else None
        if is_ended or record is not None:
            yield record, start


def _read_added(file: BinaryIO, begin: Mark, part_bytes: int, policies: Policies) -> Iterator[Part]:
    """Yield the parts from `begin` on that hold more than was read before."""
    finished, end = 0, 0  # the checksum of the finished parts, and where they end
    for part in _read_parts(file, begin, part_bytes, policies):
        mark = part.mark
        if mark.end > begin.end:
            finished, end = _compute_crc(file, end, mark.offset, finished), mark.offset
            part.mark = structs.replace(mark, crc=_compute_crc(file, end, mark.end, finished))
            yield part


def _read_parts(file: BinaryIO, begin: Mark, part_bytes: int, policies: Policies) -> Iterator[Part]:
    """Yield the parts from `begin` on; their marks lack `crc`."""
    part, muted, end = _OpenPart(begin), begin.muted, begin.offset
    for line, size, is_ended in _iterate_lines(file, begin.offset):
        record = parse(line) if line and line.strip() else None
        if record is None and not is_ended:
            break  # half a line: the remainder will come
        text, muted_after = render_record(record, muted, policies) if record is not None else ("", muted)
        time = get_time(record) if record is not None and (text or record.get("type") == "session") else None
        day = time and time.date()
        if text and part.has_text and day and part.day and day != part.day:
            yield part.finish(mark := part.make_next_mark(end, muted))
            part = _OpenPart(mark)
        part.add(text, day, readable=record is not None or (line is not None and not line.strip()))
        muted, end = muted_after, end + size
        if is_ended and end - part.begin.offset >= part_bytes:
            yield part.finish(mark := part.make_next_mark(end, muted))
            part = _OpenPart(mark)
    if part.lines:
        yield part.finish(structs.replace(part.begin, end=end))


def _iterate_lines(file: BinaryIO, offset: int) -> Iterator[tuple[bytes | None, int, bool]]:
    """Yield each line (None if it is too long to be held), its size in bytes, and whether a newline ends it."""
    file.seek(offset)
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) <= MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line, len(line), line.endswith(b"\n")
            continue
        size = len(line)
        while line and not line.endswith(b"\n"):
            line = file.readline(_PIECE_BYTES)
            size += len(line)
        yield None, size, bool(line)


def _fit(file: BinaryIO, mark: Mark) -> bool:
    """Return whether a file goes on from `mark`: all bytes that were read agree.

    It does not if the last line that was read had no newline and now goes on: it is another line.
    """
    if file.seek(0, os.SEEK_END) < mark.end or _compute_crc(file, 0, mark.end) != mark.crc:
        return False
    file.seek(max(0, mark.end - 1))
    seam = file.read(2)
    return mark.end == 0 or len(seam) < 2 or b"\n" in seam


def _compute_crc(file: BinaryIO, start: int, end: int, crc: int = 0) -> int:
    """Return the checksum of some bytes of a file, read piece by piece; its position is the same afterwards."""
    place = file.tell()
    file.seek(start)
    while start < end and (piece := file.read(min(end - start, _PIECE_BYTES))):
        start, crc = start + len(piece), crc32(piece, crc)
    file.seek(place)
    return crc


def read_excerpt(file: BinaryIO, path: str, start: int, lines: int, policies: Policies = NONE) -> tuple[Excerpt, int]:
    """Return lines of an open file like `make_excerpt`, and the number of the last line that was looked at.

    Lines before `start` are counted, not read, and of the others no more than it takes to know whether there are more.

    Raises:
        InvalidInputError: `start` or `lines` is not a whole number of at least 1.
    """
    check_range(start, lines)
    begin = _skip_lines(file, start - 1)
    count = before = begin.line - 1
    text = ""
    for part in _read_parts(file, begin, PART_BYTES, policies):
        text += part.text
        count += part.text.count("\n")
        if count - before > lines or len(text) > DEFAULT_CHARS + 1:
            break
    if before < start - 1:  # the last line has no newline: it was not skipped
        text, before = "", start - 1
    excerpt = make_excerpt(path, text, 1, lines)
    next_start = excerpt.next_start and excerpt.next_start + before
    return structs.replace(excerpt, start_line=start, end_line=excerpt.end_line + before, next_start=next_start), count


def _skip_lines(file: BinaryIO, lines: int) -> Mark:
    """Return where so many lines of a file end, or the file itself, and whether replies are muted there."""
    at, offset, muted = 0, 0, False
    for line, size, is_ended in islice(_iterate_lines(file, 0), min(lines, sys.maxsize)):
        if not is_ended:
            break
        # Only a turn with a provenance mutes, and only a turn of the user ends that: most lines need not be parsed.
        if line is not None and (muted or b'"provenance"' in line) and (record := parse(line)) is not None:
            muted = render_record(record, muted)[1]
        at, offset = at + 1, offset + size
    return Mark(at + 1, offset, 0, muted, offset)
