"""From a file to the rows that stand for it in the index: read, cut, segment, name the vectors."""

from __future__ import annotations

import time
from hashlib import sha256

from openclaw_memory.chunking import chunk
from openclaw_memory.config import Chunking
from openclaw_memory.embeddings import vector_key
from openclaw_memory.text import segment
from openclaw_memory.types import Chunk, ChunkRow, FileRecord, MemoryFile
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.dates import date_terms, is_date_title, note_date


def read(workspace: Workspace, file: MemoryFile) -> tuple[FileRecord, str]:
    """The record and the text of a file.

    The clock is read before the content: whatever is written afterwards differs in its stamp or is in doubt.

    Raises:
        OpenClawMemoryError, OSError: the file has vanished, is not allowed any more, or cannot be read as text.
    """
    checked_ns = time.time_ns()
    text = workspace.read(file.path)
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    record = FileRecord(file.path, file.source, digest, file.size, file.mtime_ns, file.inode, checked_ns)
    return record, text


def rows(text: str, path: str, rules: Chunking, *, vectors: bool) -> list[ChunkRow]:
    """The chunks of a file, each with its terms and, where `vectors` are wanted, the key of its vector.

    The words of the path count as context for the keyword index, so that a file is found by its name. They are not
    embedded: every rename would embed the file again.
    """
    name = path.removesuffix(".md")
    day = note_date(path)
    dates = date_terms(day) if day else ()

    def row(piece: Chunk) -> ChunkRow:
        if is_date_title(piece.text):  # it would be found by its date, before what was written on that day
            return ChunkRow(piece, "", "", None)
        about = " ".join([segment(f"{piece.context} {name}"), *dates])
        return ChunkRow(piece, segment(piece.text), about, vector_key(piece.embedding_text) if vectors else None)

    return [row(piece) for piece in chunk(text, path, rules, note_date=day)]
