"""Take messages out of a transcript: each line becomes as long a one that says nothing and keeps its ids."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO

from openclaw_memory.errors import WriteError
from openclaw_memory.workspace.atomic import open_at
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import Place
from openclaw_memory.workspace.transcript_records import get_message, get_time, parse

FORGOTTEN = "[forgotten]"
# What programs follow from entry to entry; none of it was said.
_KEPT = ("type", "id", "parentId", "timestamp", "firstKeptEntryId", "tokensBefore", "uuid", "parentUuid", "sessionId")
_KEPT_OF_MESSAGE = ("role", "timestamp", "toolCallId", "toolName")
_SAID = ("summary", "content", "customType")  # texts that readers of an entry expect
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a transcript: its number, its bytes, its record, and its day, None where nothing before it has one.

    An entry without a time, and a line that cannot be read, are of the day of the entry before.
    """

    number: int
    data: bytes
    record: dict[str, Any] | None
    day: datetime.date | None

    @property
    def is_content(self) -> bool:
        """Whether anything could have been said here: not in a header, a blank line, or a tombstone."""
        text = self.data.strip()
        if not text or (self.record is not None and self.record.get("type") == "session"):
            return False
        return make_tombstone(self.data, self.record) != self.data


def read_lines(file: BinaryIO, zone: datetime.tzinfo | None) -> Iterator[Line]:
    """Yield the lines of an open file; days are those of `zone`, of the machine where None.

    Args:
        file: The file, from its beginning on.
        zone: The zone of days.
    """
    day: datetime.date | None = None
    for number, data in enumerate(file, 1):
        record = parse(data) if data.strip() else None
        if record is not None and (when := get_time(record)) is not None:
            day = (when.astimezone(zone) if when.tzinfo else when).date()
        yield Line(number, data, record, day)


def make_tombstone(data: bytes, record: Mapping[str, Any] | None) -> bytes:
    """Return what takes the place of a line: as many bytes, of which none was said.

    The type, the ids and the times of its record stay, so that what refers to it still does. Offsets of other lines
    stay, which programs keep.

    Args:
        data: The line, with its newline if it has one.
        record: What it holds; None where it cannot be read.
    """
    end = b"\n" if data.endswith(b"\n") else b""
    room = len(data) - len(end)
    for words, more in ((FORGOTTEN, {"hidden": True}), ("", {})):
        text = json.dumps({**_empty(record or {}, words), **more}, ensure_ascii=False, separators=(",", ":"))
        line = text.encode("utf-8", "surrogatepass")
        if len(line) <= room:
            return line.ljust(room) + end
    return b"{}".ljust(room)[:room] + end


def forget_lines(files: WorkspaceFiles, place: Place, numbers: Iterable[int], size: int, digest: str) -> bool:
    """Replace lines of a transcript by tombstones, in place; return False where the file has another beginning.

    What another program appends meanwhile stays: no byte but those of the lines is written. A sealed one is
    replaced as a whole. Call it with the lock of the transcripts held.

    Args:
        files: The files of the workspace.
        place: The file.
        numbers: The lines, 1-based.
        size: How many bytes of the file `digest` is of.
        digest: The SHA-256 of them, as hex.

    Raises:
        SealedFileError: It is sealed, and cannot be opened.
        OSError: It could not be written: lines before are replaced.
        WriteError: The disk took a part of a line.
    """
    wanted = frozenset(numbers)
    if files.is_sealed(place):
        return _buried_whole(files, place, wanted, size, digest)
    descriptor = open_at(place.base, place.parts, os.O_RDWR)
    with open(descriptor, "rb", buffering=0) as file:
        if hash_head(file, size) != digest:
            return False
        file.seek(0)
        offset = 0
        with open(os.dup(descriptor), "rb") as lines:
            for number, data in enumerate(lines, 1):
                if number in wanted:
                    line = make_tombstone(data, parse(data))
                    file.seek(offset)
                    if os.write(descriptor, line) != len(line):
                        raise WriteError(f"{place.path} took a part of line {number}: free some disk space, and again")
                    lines.seek(offset + len(data))
                offset += len(data)
        os.fsync(descriptor)
    return True


def _buried_whole(files: WorkspaceFiles, place: Place, wanted: AbstractSet[int], size: int, digest: str) -> bool:
    with files.open(place) as (file, info):
        if hash_head(file, size) != digest:
            return False
        file.seek(0)
        lines = [make_tombstone(line, parse(line)) if at in wanted else line for at, line in enumerate(file, 1)]
    files.replace(place, b"".join(lines), info)
    return True


def hash_head(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the first `size` bytes of an open file; "" where it has fewer.

    Args:
        file: The file.
        size: How many bytes.
    """
    file.seek(0)
    digest, left = sha256(), size
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        digest.update(piece)
        left -= len(piece)
    return "" if left else digest.hexdigest()


def _empty(record: Mapping[str, Any], words: str) -> dict[str, Any]:
    kept = {name: record[name] for name in _KEPT if name in record}
    said = {name: words for name in _SAID if isinstance(record.get(name), str)}
    message = get_message(record)
    if message is record:  # its text is in the record itself
        return {**kept, **{name: record[name] for name in _KEPT_OF_MESSAGE if name in record}, "content": words}
    if isinstance(record.get("message"), dict):
        inner = {name: record["message"][name] for name in _KEPT_OF_MESSAGE if name in record["message"]}
        return {**kept, "message": {**inner, "content": words}}
    return {**kept, **said}
