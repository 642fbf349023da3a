"""The rows of an index: chunks and files as they go into a store and come back, and what the index says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.types.files import Source
from openclaw_memory.types.where import Scalar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # shape (dims,), L2-normalised
    Matrix: TypeAlias = NDArray[np.float32]  # shape (n, dims), rows L2-normalised
else:
    Vector: TypeAlias = Any
    Matrix: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of lines of one file, the unit that is embedded and looked up.

    `start_char` is the offset of `text` in the file, in characters. `context` is what the lines themselves do not say
    (file date, title, heading path); it is embedded and indexed with the text, and never shown as part of it.
    `section` is the line that opens its section, 0 where they are not told apart: an answer never spans two.
    `metadata` holds the fields that searches can filter by.
    """

    start_line: int
    end_line: int
    start_char: int
    text: str
    context: str = ""
    section: int = 0
    metadata: Mapping[str, Scalar] = field(default_factory=dict, hash=False)

    @property
    def embedding_text(self) -> str:
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it comes back from a store. `ordinal` is its position among the chunks of its file, from 0."""

    id: int
    path: str
    source: Source
    chunk: Chunk
    ordinal: int = 0


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as it goes into a store: with its segmented terms and the key of its vector.

    `vector_key` is the SHA-256 hex of the exact embedded string, or None where the chunk has no vector.

    A row with an `identity` is no chunk: it says that a vector of that model came with the whole file. It has no terms
    and no text, and is found by `Store.search_vector` under that identity alone, as soon as the vector is stored.
    """

    chunk: Chunk
    terms: str
    context_terms: str
    vector_key: str | None
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What the index knows of one file. `hash` is that of its text; of a transcript, the mark up to which it was read.

    `size` is in bytes; -1 where a sync ended before it had read a transcript to its end.

    `checked_ns` is when its content was last read, by the wall clock.

    `vectors_missing` says why some of its rows have no vectors yet, in words; None when they have all.
    """

    path: str
    source: Source
    hash: str
    size: int
    mtime_ns: int
    inode: int
    checked_ns: int
    vectors_missing: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by one leg of the search; a larger score is better."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """What an index was built with. A difference means that its chunks must be built again.

    `building` names the build that is under way, or was cut short: the index then holds a part of the files. It is
    None once that build is published.
    """

    provider: str
    model: str
    identity: str
    dims: int | None
    chunking: Mapping[str, Any]
    schema_version: int
    building: str | None = None

    @property
    def complete(self) -> bool:
        return self.building is None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What an index is: its kind, where it is kept, and, as far as they were asked for, counts and sizes.

    `location` is a path or a URL without secrets, "" where there is none; `exists` says whether anything is kept there
    yet. `locked` names the locks that are held now, by any thread or process. `damaged` names the damaged indexes that
    were kept, `unfinished` what builds that were cut short, or are under way, have left. `sources` counts
    (files, chunks); `vector_path` and `engine` say which paths of the engine work. `size_bytes` includes `log_bytes`.
    """

    backend: str
    location: str = ""
    exists: bool = True
    locked: frozenset[str] = frozenset()
    damaged: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    files: int = 0
    chunks: int = 0
    vectors: int = 0
    sources: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    vector_path: str = "none"
    vector_error: str | None = None
    size_bytes: int = 0
    log_bytes: int = 0
    engine: Mapping[str, str] = field(default_factory=dict)
