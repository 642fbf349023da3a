"""Read transcripts, conversations in JSON lines, as text with the same line numbers, part by part."""

from __future__ import annotations

import datetime
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Self
from zlib import crc32

from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.types import Excerpt
from openclaw_memory.workspace.excerpts import DEFAULT_CHARS, check_range, make_excerpt
from openclaw_memory.workspace.transcript_formats import FORMATS
from openclaw_memory.workspace.transcript_records import get_day, is_known, parse, render_record

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

PART_BYTES = 65_536
MAX_LINE_BYTES = 8 * 1024 * 1024

# So much of the finished parts is checked though the file has grown: 100 MB take 36 ms of a processor.
VERIFIED_BYTES = 128 * 1024 * 1024

# The format of a file is recognised by its first lines. OpenClaw's header is the first of them.
_SNIFFED_LINES = 20

_CHECKED_BYTES = 4096
_PIECE_BYTES = 1 << 20
_MARK = re.compile(r"2 (\d{1,18}) (\d{1,18}) (\d{1,18}) ([01]) (\d{1,18}) (\d{1,10}) ([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a transcript was read, as a string and back.

    `line`, `offset` and `char` say where the open part begins: its first line (1-based), the byte of it, and the
    character of the whole text; `muted` whether replies are muted there. All bytes before `end` were read. A file that
    was rewritten has another `check`, the digest of its head and of the open part, or `crc`, the CRC-32 of all finished
    parts.
    """

    line: int
    offset: int
    char: int
    muted: bool
    end: int
    crc: int
    check: str

    def __str__(self) -> str:
        return f"2 {self.line} {self.offset} {self.char} {self.muted:d} {self.end} {self.crc} {self.check}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a mark; return None if the string is not one."""
        match = _MARK.fullmatch(text)
        if match is None:
            return None
        line, offset, char, muted, end, crc = map(int, match.groups()[:6])
        return cls(line, offset, char, bool(muted), end, crc, match[7])


@dataclass(slots=True)
class Part:
    """A run of lines of a transcript, all of one day. Only the last part of a file is open: it may yet grow.

    `text` has a line for each line of the file, each ended by a newline. `day` is None if no message has a date. `mark`
    says how far the file has been read with this part. `unreadable` counts the lines that are not JSON objects or are
    too long; the first of them is `first_unreadable`, 0 for none.
    """

    first_line: int
    start_char: int
    day: datetime.date | None
    text: str
    mark: Mark
    unreadable: int
    first_unreadable: int = 0


_START = Mark(1, 0, 0, muted=False, end=0, crc=0, check="")


@dataclass(slots=True)
class _Open:
    """A part that is being read: where it begins, and its content so far."""

    begin: Mark
    lines: list[str]
    chars: int = 0
    unreadable: int = 0
    first_unreadable: int = 0
    day: datetime.date | None = None
    has_text: bool = False

    def add(self, text: str, when: datetime.date | None, readable: bool) -> None:
        if not readable:
            self.first_unreadable = self.first_unreadable or self.begin.line + len(self.lines)
            self.unreadable += 1
        if text:
            # What is said outweighs the day in a header.
            self.day = (self.day if self.has_text else None) or when or self.day
            self.has_text = True
        elif not self.has_text:
            self.day = self.day or when
        self.lines.append(text)
        self.chars += len(text) + 1

    def part(self, mark: Mark) -> Part:
        text = "".join(f"{line}\n" for line in self.lines)
        return Part(self.begin.line, self.begin.char, self.day, text, mark, self.unreadable, self.first_unreadable)

    def following(self, end: int, muted: bool) -> Mark:
        return Mark(self.begin.line + len(self.lines), end, self.begin.char + self.chars, muted, end, 0, "")


def read_parts(
    file: BinaryIO, mark: str | None = None, part_bytes: int = PART_BYTES, policies: Policies = NONE
) -> Iterator[Part]:
    """Yield the parts of an open file from the open part of `mark` on, or from the beginning if the mark does not fit.

    A part ends with the line that fills it up to `part_bytes`, or before the first words of another day. A last line
    that is not complete is left for later; a JSON object is complete without its newline too. Nothing is yielded if
    nothing was added; but if the mark does not fit and nothing is complete, one part without a line says so.

    To detect a rewritten file, all that was read of it is compared; if it has grown and its finished parts are over 128
    MiB, only its head and its open part.
    """
    known = Mark.parse(mark) if mark is not None else None
    part: Part | None = None
    if known is not None and _fits(file, known):
        for part in _added(file, known, part_bytes, policies):
            yield part
        if part is not None or known.offset <= VERIFIED_BYTES or _crc(file, 0, known.offset) == known.crc:
            return
    for part in _added(file, _START, part_bytes, policies):
        yield part
    if part is None and mark is not None:
        yield _Open(_START, []).part(replace(_START, check=_check(file, _START)))


def explain_foreign(file: BinaryIO) -> str | None:
    """Return why an open file is no transcript of a known format; None if it is one, or holds no record yet.

    The first lines decide: one record of OpenClaw's or of another known program among them is enough. Lines without a
    record, and those of which all was forgotten, decide nothing.
    """
    first = None
    for line, _, _ in islice(_lines(file, 0), _SNIFFED_LINES):
        record = parse(line) if line is not None else None
        if record is not None and is_known(record):
            return None
        first = record if first is None and record and not record.get("hidden") else first
    if first is None:
        return None
    kind = first.get("type")
    what = f"is of type {kind!r:.40}" if isinstance(kind, str) else "has no type"
    return (
        f"is not a transcript in a format of {', '.join(('OpenClaw', *(one.program for one in FORMATS)))}: "
        f"its first record {what}; "
        "convert it, or leave it out with files.exclude"
    )


def count_added_lines(file: BinaryIO, mark: str, within: int) -> int | None:
    """Return how many lines were added to an open file since `mark`, counted in the first `within` bytes.

    None if the mark does not say how far the file was read, or the file is shorter than that.
    """
    known = Mark.parse(mark)
    if known is None or file.seek(0, os.SEEK_END) < known.end:
        return None
    file.seek(known.end)
    return file.read(within).count(b"\n")


def render_lines(file: BinaryIO, start: int, end: int, policies: Policies = NONE) -> list[str]:
    """Return what lines `start` to `end` of an open file say, whether they are muted or not."""
    file.seek(_offset_of(file, start - 1))
    lines = (file.readline(MAX_LINE_BYTES + 1) for _ in range(start, end + 1))
    records = (parse(line) for line in lines)
    return ["" if record is None else render_record(record, muted=False, policies=policies)[0] for record in records]


def _offset_of(file: BinaryIO, lines: int) -> int:
    """Return where the first `lines` lines of an open file end; they are counted in blocks."""
    offset = 0
    file.seek(0)
    while lines > 0 and (block := file.read(PART_BYTES)):
        inside = block.count(b"\n")
        if inside >= lines:
            return offset + len(block) - len(block.split(b"\n", lines)[-1])
        offset, lines = offset + len(block), lines - inside
    return offset


def read_records(file: BinaryIO, start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield every readable record of an open file, from the byte `start` on."""
    return (record for record, _ in iterate_records(file, start) if record is not None)


def iterate_records(file: BinaryIO, start: int = 0) -> Iterator[tuple[dict[str, Any] | None, int]]:
    """Yield the record of each line of an open file from the byte `start` on, None without one, and where it ends.

    Half a line at the end of the file is left out.
    """
    for line, size, is_ended in _lines(file, start):
        start += size
        record = parse(line) if line is not None else None
        if is_ended or record is not None:
            yield record, start


def _added(file: BinaryIO, begin: Mark, part_bytes: int, policies: Policies) -> Iterator[Part]:
    """Yield the parts from `begin` on that hold more than was read before."""
    crc, crc_end, head = begin.crc, begin.offset, None
    for part in _parts(file, begin, part_bytes, policies):
        if part.mark.end > begin.end:
            if head is None and part.mark.end >= _CHECKED_BYTES:
                head = sha256(b"".join(_bytes(file, 0, _CHECKED_BYTES)))
            crc, crc_end = _crc(file, crc_end, part.mark.offset, crc), part.mark.offset
            mark = part.mark
            part.mark = Mark(mark.line, mark.offset, mark.char, mark.muted, mark.end, crc, _check(file, mark, head))
            yield part


def _parts(file: BinaryIO, begin: Mark, part_bytes: int, policies: Policies) -> Iterator[Part]:
    """Yield the parts from `begin` on; their marks lack what the bytes are checked by."""
    part, muted, end = _Open(begin, []), begin.muted, begin.offset
    for line, size, is_ended in _lines(file, begin.offset):
        record = parse(line) if line and line.strip() else None
        if record is None and not is_ended:
            break  # half a line: the rest of it will come
        text, muted_after = render_record(record, muted, policies) if record is not None else ("", muted)
        when = get_day(record) if record is not None and (text or record.get("type") == "session") else None
        if text and part.has_text and when and part.day and when != part.day:
            yield part.part(following := part.following(end, muted))
            part = _Open(following, [])
        part.add(text, when, readable=record is not None or (line is not None and not line.strip()))
        muted, end = muted_after, end + size
        if is_ended and end - part.begin.offset >= part_bytes:
            yield part.part(following := part.following(end, muted))
            part = _Open(following, [])
    if part.lines:
        yield part.part(replace(part.begin, end=end))


def _lines(file: BinaryIO, offset: int) -> Iterator[tuple[bytes | None, int, bool]]:
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


def _fits(file: BinaryIO, mark: Mark) -> bool:
    """Whether a file goes on from `mark`: as far as `VERIFIED_BYTES` allow, all that was read of it is compared.

    It does not if the last line that was read had no newline and now goes on: it is another line.
    """
    if _check(file, mark) != mark.check:
        return False
    file.seek(max(0, mark.end - 1))
    seam = file.read(2)
    if mark.end > 0 and len(seam) == 2 and b"\n" not in seam:
        return False
    return mark.offset > VERIFIED_BYTES or _crc(file, 0, mark.offset) == mark.crc


def _check(file: BinaryIO, mark: Mark, head: HASH | None = None) -> str:
    """Return a digest of the head of a file and of its open part; that of no byte if the file is shorter.

    `head` is the digest of a whole head, which is the same for many parts.
    """
    digest, start = sha256() if head is None else head.copy(), min(mark.offset, max(0, mark.end - _CHECKED_BYTES))
    size = 0
    for piece in _bytes(file, 0, min(mark.end, _CHECKED_BYTES)) if head is None else ():
        digest.update(piece)
    for piece in _bytes(file, start, mark.end):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest()[:16] if size == mark.end - start else ""


def _crc(file: BinaryIO, start: int, end: int, crc: int = 0) -> int:
    for piece in _bytes(file, start, end):
        crc = crc32(piece, crc)
    return crc


def _bytes(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yield some bytes of a file, in pieces that cost little memory; its position is the same afterwards."""
    place = file.tell()
    file.seek(start)
    while start < end and (piece := file.read(min(end - start, _PIECE_BYTES))):
        start += len(piece)
        yield piece
    file.seek(place)


def read_excerpt(file: BinaryIO, path: str, start: int, lines: int, policies: Policies = NONE) -> tuple[Excerpt, int]:
    """Return lines of an open file like `safe_read.excerpt_of`, and the number of the last line that was looked at.

    Lines before `start` are counted, not read, and of the others no more than it takes to know whether there are more.

    Raises:
        InvalidInputError: `start` or `lines` is not a whole number of at least 1.
    """
    check_range(start, lines)
    begin = _skipped(file, start - 1)
    count = before = begin.line - 1
    text = ""
    for part in _parts(file, begin, PART_BYTES, policies):
        text += part.text
        count += part.text.count("\n")
        if count - before > lines or len(text) > DEFAULT_CHARS + 1:
            break
    if before < start - 1:  # the last line has no newline: it was not skipped
        text, before = "", start - 1
    excerpt = make_excerpt(path, text, 1, lines)
    following = excerpt.next_start and excerpt.next_start + before
    return replace(excerpt, start_line=start, end_line=excerpt.end_line + before, next_start=following), count


def _skipped(file: BinaryIO, lines: int) -> Mark:
    """Return where so many lines of a file end, or the file itself, and whether replies are muted there."""
    at, offset, muted = 0, 0, False
    for line, size, is_ended in islice(_lines(file, 0), min(lines, sys.maxsize)):
        if not is_ended:
            break
        # Only a turn with a provenance mutes, and only a turn of the user ends that: most lines need not be parsed.
        if line is not None and (muted or b'"provenance"' in line) and (record := parse(line)) is not None:
            muted = render_record(record, muted)[1]
        at, offset = at + 1, offset + size
    return Mark(at + 1, offset, 0, muted, offset, 0, "")
