"""From a file to the rows that stand for it in the index: read, cut, segment, name the vectors."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from openclaw_memory.chunking import chunk, moved_down
from openclaw_memory.chunking.matter import matter_end
from openclaw_memory.config import Chunking
from openclaw_memory.embeddings import vector_key
from openclaw_memory.fence import without_fenced
from openclaw_memory.redaction import redact
from openclaw_memory.sync.compare import UNREAD_SIZE
from openclaw_memory.text import segment
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, MemoryFile
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.dates import date_terms, is_date_title, note_date
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES, Part

if TYPE_CHECKING:
    import datetime


class Piece(NamedTuple):
    """What is written of a file at once: its rows from line `from_line` on, and its record once they are there.

    A note is one piece, a long transcript several. Until the `last` one is written, the record has no size: its stamp
    tells that there is more. `left_out` says which lines of the file could not be read.
    """

    record: FileRecord
    rows: list[ChunkRow]
    from_line: int = 1
    last: bool = True
    left_out: str = ""


def read(workspace: Workspace, file: MemoryFile) -> tuple[FileRecord, str]:
    """The record and the text of a note.

    The clock is read before the content: whatever is written afterwards differs in its stamp or is in doubt.

    Raises:
        OpenClawMemoryError, OSError: the file has vanished, is not allowed any more, or cannot be read as text.
    """
    record = _record(file)
    text = workspace.read(file.path)
    return replace(record, hash=sha256(text.encode("utf-8", "surrogatepass")).hexdigest()), text


def rows(text: str, path: str, rules: Chunking, *, vectors: bool) -> list[ChunkRow]:
    """The chunks of a note, each with its terms and, where `vectors` are wanted, the key of its vector.

    The words of the path count as context for the keyword index, so that a file is found by its name. They are not
    embedded: every rename would embed the file again. What was recalled from the memory is left out, and secrets are
    masked; lines keep their numbers, and offsets are those of the text that is left.
    """
    day = note_date(path)
    above = matter_end(text)  # nothing in a document's fields may reach into its text
    pieces = chunk(text[:above] + redact(without_fenced(text[above:])), path, rules, note_date=day)
    return _rows(pieces, path, day, vectors=vectors)


def transcript_rows(part: Part, path: str, rules: Chunking, *, vectors: bool) -> list[ChunkRow]:
    """The chunks of a part of a transcript, cut as a note of its day is, with lines and offsets in the whole."""
    pieces = chunk(part.text, path, rules, note_date=part.day)
    placed = (moved_down(piece, part.first_line - 1, part.start_char) for piece in pieces)
    return _rows(placed, path, part.day, vectors=vectors)


def transcript_pieces(
    workspace: Workspace, file: MemoryFile, known: FileRecord | None, rules: Chunking, *, vectors: bool, size: int
) -> Iterator[Piece | FileRecord]:
    """What is to be written of a transcript that the index knows up to `known`, None for all of it.

    A piece has at least `size` chunks, but for the last one, and at most one part more. Where nothing has been added
    there is none, but the record with its new stamp.

    Raises:
        OpenClawMemoryError, OSError: as `read`, before any piece or between two of them.
    """
    record = _record(file, known)
    found: list[ChunkRow] = []
    unreadable: list[tuple[int, int]] = []
    from_line = 0
    for part in workspace.transcript(file.path, record.hash):
        if len(found) >= size:
            yield Piece(replace(record, size=UNREAD_SIZE), found, from_line, last=False)
            found, from_line = [], 0
        found += transcript_rows(part, file.path, rules, vectors=vectors)
        from_line = from_line or part.first_line
        lacks = None if part.first_line == 1 else record.lacks  # a file that was rewritten lacks nothing yet
        record = replace(record, hash=str(part.mark), lacks=lacks)
        if part.unreadable:
            unreadable.append((part.first_unreadable, part.unreadable))
    yield Piece(record, found, from_line, left_out=_left_out(unreadable)) if from_line else record


def _left_out(unreadable: Sequence[tuple[int, int]]) -> str:
    """Which lines of a transcript could not be read, in words, from the first one's number and the count in parts."""
    if not unreadable:
        return ""
    first, count = unreadable[0][0], sum(count for _, count in unreadable)
    what = f"JSON object of at most {MAX_LINE_BYTES >> 20} MiB"
    if count == 1:
        return f"line {first} is no {what} and was left out"
    return f"{count} lines are no {what} and were left out, the first is line {first}"


def _record(file: MemoryFile, known: FileRecord | None = None) -> FileRecord:
    """What is known of a file before it is read: its stamp now, and the content that the index holds of it."""
    digest, lacks = (known.hash, known.lacks) if known else ("", None)
    return FileRecord(file.path, file.source, digest, file.size, file.mtime_ns, file.inode, time.time_ns(), lacks)


def _rows(pieces: Iterable[Chunk], path: str, day: datetime.date | None, *, vectors: bool) -> list[ChunkRow]:
    name = path.removesuffix(".md").removesuffix(".jsonl")
    dates = date_terms(day) if day else ()

    @cache  # most chunks stand in the context of the one before
    def about(context: str) -> str:
        return " ".join([segment(f"{context} {name}"), *dates])

    def row(piece: Chunk) -> ChunkRow:
        if is_date_title(piece.text):  # it would be found by its date, before what was written on that day
            return ChunkRow(piece, "", "", None)
        return ChunkRow(
            piece, segment(piece.text), about(piece.context), vector_key(piece.embedding_text) if vectors else None
        )

    return [row(piece) for piece in pieces]
