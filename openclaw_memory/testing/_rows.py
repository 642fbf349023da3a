"""Hand-made rows, of which the checks of a store are made."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from openclaw_memory.errors import EmbedderError, StoreError
from openclaw_memory.types import SOURCES, Chunk, ChunkRow, FileRecord, IndexMeta, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from openclaw_memory.types import Matrix, Source

DIMS = 8


def made_meta(identity: str = "check/model") -> IndexMeta:
    """What an index of this model says of itself."""
    return IndexMeta("check", "model", identity, None, {"style": "headings", "max_chars": 700}, schema_version=1)


def made_record(path: str, source: Source = "memory", *, content: str = "") -> FileRecord:
    """The record of a file with this content."""
    return FileRecord(path, source, made_key(content), size=len(content), mtime_ns=1 << 60, inode=7, checked_ns=9)


def made_row(line: int, terms: str, *, context_terms: str = "", key: str | None = None) -> ChunkRow:
    """A chunk of one line with these terms."""
    return ChunkRow(Chunk(line, line, line * 10, terms, context_terms), terms, context_terms, key)


def made_key(text: object) -> str:
    """The key of a vector."""
    return hashlib.sha256(str(text).encode()).hexdigest()


def made_vectors(count: int, dims: int = DIMS, seed: int = 0) -> Matrix:
    """Random unit vectors, shape (count, dims)."""
    import numpy as np

    rows = np.random.default_rng(seed).normal(size=(count, dims)).astype(np.float32)
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def filled(store: Store, files: int = 4, chunks: int = 5) -> Matrix:
    """Give a store files of numbered chunks, every second file a transcript; returns their vectors, in order of id."""
    vectors = made_vectors(files * chunks)
    keys = [made_key(number) for number in range(files * chunks)]
    store.reset(made_meta())
    store.add_vectors(keys, vectors)
    for file in range(files):
        numbers = range(file * chunks, (file + 1) * chunks)
        rows = [made_row(1 + at, f"every file{file} n{n}", key=keys[n]) for at, n in enumerate(numbers)]
        path, source = (f"sessions/{file}.jsonl", SOURCES[1]) if file % 2 else (f"memory/{file}.md", SOURCES[0])
        store.replace_files([(made_record(path, source, content=f"{file}"), rows)])
    return vectors


def ids_of(store: Store, path: str) -> list[int]:
    """The ids of a file's chunks, asked by way of its terms: `filled` numbers them by file."""
    found = store.chunks(hit.chunk_id for hit in store.search_text(["every"], 1000))
    return [chunk.id for chunk in found if chunk.path == path]


def refuses(call: Callable[[], None]) -> bool:
    """Whether a call raises one of the errors that a store may raise."""
    try:
        call()
    except (EmbedderError, StoreError):
        return True
    return False
