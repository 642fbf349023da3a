"""Cut the text of a file into chunks, in one of several styles.

A new chunker is one function of the shape `Chunker` and one entry in `STYLES`, under a name that
`config.sections.Style` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from itertools import islice
from typing import TypeAlias

from openclaw_memory.chunking.headings import chunk_headings
from openclaw_memory.chunking.sliding_window import chunk_line_window, chunk_sliding_window
from openclaw_memory.config.sections import ChunkingConfig
from openclaw_memory.text.front_matter import measure_front_matter
from openclaw_memory.types import Chunk

__all__ = ["MOST_CHUNKS", "STYLES", "Chunker", "chunk", "move_down"]

Chunker: TypeAlias = Callable[[str, str, ChunkingConfig, date | None], Iterator[Chunk]]

STYLES: Mapping[str, Chunker] = {"headings": chunk_headings, "tokens": chunk_sliding_window, "lines": chunk_line_window}

# 10 MiB of prose, the largest file that is read by default, are 15,000 chunks of the default size. A file of as many
# headings as fit would be 2.6 million, and fill the index by itself.
MOST_CHUNKS = 20_000


def chunk(text: str, path: str, rules: ChunkingConfig, *, note_date: date | None = None) -> list[Chunk]:
    """Cut the text of one file into chunks, in the order of its lines; a blank file has none.

    Lines are 1-based and end at line feeds only. The front matter of a document that a program wrote is in no chunk.
    Text after the first `MOST_CHUNKS` is in none either.

    Args:
        text: The text of the file.
        path: Relative to the workspace, with forward slashes; a style may treat some files differently. The file's name
            is not in the chunks, so that a renamed file keeps its vectors.
        rules: Style and sizes.
        note_date: The day that the note is about; it becomes part of `Chunk.context`.
    """
    above = measure_front_matter(text)
    chunks = (piece for piece in STYLES[rules.style](text[above:], path, rules, note_date) if piece.text.strip())
    pieces = list(islice(chunks, MOST_CHUNKS))
    return [move_down(piece, text.count("\n", 0, above), above) for piece in pieces] if above else pieces


def move_down(piece: Chunk, lines: int, chars: int) -> Chunk:
    """Return a chunk as if its text began further down in its file."""
    return Chunk(  # dataclasses.replace takes three times as long, and a transcript of many days has a part for each
        piece.start_line + lines,
        piece.end_line + lines,
        piece.start_char + chars,
        piece.text,
        piece.context,
        piece.section and piece.section + lines,
        piece.metadata,
    )
