"""Take messages out of a transcript: a tombstone of equal length replaces each line, and has its ids alone."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, BinaryIO

from msgspec import Struct

from openclaw_memory.errors import WriteError
from openclaw_memory.workspace.atomic import open_at
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import Place
from openclaw_memory.workspace.transcript_formats import get_message
from openclaw_memory.workspace.transcript_records import get_time, parse

FORGOTTEN = "[forgotten]"
# Fields by which programs follow from entry to entry; none holds spoken words.
_LINKS = ("type", "id", "parentId", "timestamp", "firstKeptEntryId", "tokensBefore", "uuid", "parentUuid", "sessionId")
_MESSAGE_LINKS = ("role", "timestamp", "toolCallId", "toolName")
_TEXTS = ("summary", "content", "customType")  # texts that readers of an entry expect
_PIECE_BYTES = 1 << 20


class Line(Struct, frozen=True):
    """A line of a transcript. An entry without a time, and an unreadable line, have the day of the entry before.

    Attributes:
        number: Its number, 1-based.
        data: Its bytes.
        record: Its record; None if it cannot be read.
        day: Its day; None if nothing before it has one.
    """

    number: int
    data: bytes
    record: dict[str, Any] | None
    day: datetime.date | None

    @property
    def is_content(self) -> bool:
        """False for a header, a blank line, or a tombstone, which hold no spoken words."""
        text = self.data.strip()
        if not text or (self.record is not None and self.record.get("type") == "session"):
            return False
        return make_tombstone(self.data, self.record) != self.data


def read_lines(file: BinaryIO, zone: datetime.tzinfo | None) -> Iterator[Line]:
    """Yield the lines of an open file."""
    day: datetime.date | None = None
    for number, data in enumerate(file, 1):
        record = parse(data) if data.strip() else None
        if record is not None and (time := get_time(record)) is not None:
            day = (time.astimezone(zone) if time.tzinfo else time).date()
        yield Line(number, data, record, day)


def make_tombstone(data: bytes, record: Mapping[str, Any] | None) -> bytes:
    """Return the replacement of a line: as many bytes, without spoken words.

    The type, the ids and the times of its record stay, so that references to it still hold. Offsets of other lines
    stay, which programs note down.
    """
    end = b"\n" if data.endswith(b"\n") else b""
    room = len(data) - len(end)
    for text, more in ((FORGOTTEN, {"hidden": True}), ("", {})):
        empty = json.dumps({**_make_empty(record or {}, text), **more}, ensure_ascii=False, separators=(",", ":"))
        line = empty.encode("utf-8", "surrogatepass")
        if len(line) <= room:
            return line.ljust(room) + end
    return b"{}".ljust(room)[:room] + end


def forget_lines(files: WorkspaceFiles, place: Place, numbers: Iterable[int], size: int, digest: str) -> bool:
    """Replace lines of a transcript by tombstones, in place; return False if the file has another beginning.

    Bytes that another program appends meanwhile stay: no byte but those of the lines is written. A sealed file is
    replaced as a whole. Call it with the lock of the transcripts held.

    Raises:
        SealedFileError: It is sealed, and cannot be opened.
        OSError: It could not be written: lines before are replaced.
        WriteError: The disk took a part of a line.
    """
    numbers = frozenset(numbers)
    if files.is_sealed(place):
        with files.open(place) as (file, info):
            if hash_head(file, size) != digest:
                return False
            file.seek(0)
            lines = [make_tombstone(line, parse(line)) if at in numbers else line for at, line in enumerate(file, 1)]
        files.replace(place, b"".join(lines), info)
        return True
    descriptor = open_at(place.base, place.parts, os.O_RDWR)
    with open(descriptor, "rb", buffering=0) as file:
        if hash_head(file, size) != digest:
            return False
        file.seek(0)
        offset = 0
        with open(os.dup(descriptor), "rb") as source:
            for number, data in enumerate(source, 1):
                if number in numbers:
                    line = make_tombstone(data, parse(data))
                    file.seek(offset)
                    if os.write(descriptor, line) != len(line):
                        raise WriteError(f"{place.path} took a part of line {number}: free some disk space, and again")
                    source.seek(offset + len(data))
                offset += len(data)
        os.fsync(descriptor)
    return True


def hash_head(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the first `size` bytes of an open file; "" if it has fewer."""
    file.seek(0)
    digest, left = sha256(), size
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        digest.update(piece)
        left -= len(piece)
    return "" if left else digest.hexdigest()


def _make_empty(record: Mapping[str, Any], text: str) -> dict[str, Any]:
    links = {name: record[name] for name in _LINKS if name in record}
    inner = record.get("message")
    if get_message(record) is record:  # its text is in the record itself
        return {**links, **{name: record[name] for name in _MESSAGE_LINKS if name in record}, "content": text}
    if isinstance(inner, dict):
        return {
            **links,
            "message": {**{name: inner[name] for name in _MESSAGE_LINKS if name in inner}, "content": text},
        }
    return {**links, **{name: text for name in _TEXTS if isinstance(record.get(name), str)}}
