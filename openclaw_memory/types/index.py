"""Define the rows of an index, its description, and the request of a search."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from openclaw_memory.types.conditions import Metadata, Where
from openclaw_memory.types.files import Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # shape (dims,), L2-normalised
    Matrix: TypeAlias = NDArray[np.float32]  # shape (n, dims), rows L2-normalised
    # Of each token of a text its vector, shape (n, dims), and its place: first character, and the one after the last.
    TokenVectors: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]
else:
    Vector: TypeAlias = Any
    Matrix: TypeAlias = Any
    TokenVectors: TypeAlias = Any

_DAY = re.compile(r"\d{4}([-_.])\d{2}\1\d{2}")  # as a heading


class Chunk(Struct, frozen=True):
    """A run of lines of one file, the unit that is embedded and searched.

    Attributes:
        start_line: Its first line, 1-based.
        end_line: Its last line, included.
        start_char: The offset of `text` in the file, in characters.
        text: The text.
        context: The file date, title and heading path, which the lines themselves do not say. It is embedded and
            indexed with the text, and never shown as part of it.
        section: The first line of its section, 0 if sections are not distinguished. A result never spans two sections.
        metadata: The fields that searches can filter by; None for a value that they cannot.
    """

    start_line: int
    end_line: int
    start_char: int
    text: str
    context: str = ""
    section: int = 0
    metadata: Metadata = {}

    @property
    def embedding_text(self) -> str:
        """The embedded text: the headings above but for days, which would outweigh a short text, and the text."""
        headings = " > ".join(name for name in self.context.split(" > ") if not _DAY.fullmatch(name))
        return f"{headings}\n{self.text}" if headings else self.text


class StoredChunk(Struct, frozen=True):
    """A chunk as a store returns it. `ordinal` is its position among the chunks of its file, from 0.

    `token_codes` were stored with its vector; they are there if they were asked for. `digest` is a hash of all other
    fields, or 0 if the store has none.
    """

    id: int
    path: str
    source: Source
    chunk: Chunk
    ordinal: int = 0
    token_codes: bytes = b""
    digest: int = 0


class ChunkRow(Struct, frozen=True):
    """A chunk as it is written to a store, with its segmented terms and the key of its vector.

    A row with an `identity` is not a chunk: it says that a vector of that model came with the whole file. It has no
    terms and no text. Only `Store.search_vector` with that identity finds it, once the vector is stored.

    Attributes:
        chunk: The chunk.
        terms: The terms of its text, separated by spaces.
        context_terms: The terms of its context.
        vector_key: The SHA-256 hex digest of the exact embedded string, or None for a chunk without a vector.
        identity: The model of the vector, or None for the model of the index.
    """

    chunk: Chunk
    terms: str
    context_terms: str
    vector_key: str | None
    identity: str | None = None


class FileRecord(Struct, frozen=True):
    """The record of one file in the index.

    Attributes:
        path: Relative to the workspace, with forward slashes.
        source: Notes or transcripts.
        hash: The hash of its text; for a transcript, the position up to which it was read.
        size: In bytes; -1 if a sync ended before it had read a transcript to its end.
        mtime_ns: When the file was last written, by its stamp.
        inode: Its inode.
        checked_ns: When its content was last read, by the wall clock.
        vectors_missing: Why some of its rows have no vectors yet, or None when all have.
        ctime_ns: When anything about it was last changed, by the system's own stamp; 0 if unknown.
        doc_id: The id of the document in it, or None for any other file.
        part_of: The id of the whole that the document is a part of, or None.
        left_out: The names of the policies that leave lines of it out; None if there are none.
    """

    path: str
    source: Source
    hash: str
    size: int
    mtime_ns: int
    inode: int
    checked_ns: int
    vectors_missing: str | None = None
    ctime_ns: int = 0
    doc_id: str | None = None
    part_of: str | None = None
    left_out: str | None = None


class Hit(Struct, frozen=True):
    """A chunk that keyword search or vector search found; a larger score is better."""

    chunk_id: int
    score: float


class IndexMeta(Struct, frozen=True):
    """The model and chunking of an index. With others its chunks must be built again.

    `building` names a build that is running or was interrupted, during which the index holds a part of the files; None
    for a complete index.
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
        """True if the index is whole: False while it is being built."""
        return self.building is None


class StoreInfo(Struct, frozen=True):
    """The kind and location of an index, and, on request, counts and sizes.

    Attributes:
        backend: The kind of store.
        location: A path, or a URL without secrets; "" if there is no location.
        exists: Whether anything is stored there yet.
        locked: The locks that any thread or process holds now.
        notices: Its limits, in words.
        files: How many files are indexed.
        chunks: How many chunks they have.
        vectors: How many vectors are stored, in use or not.
        without_tokens: How many chunks have a vector that was stored without the codes of its tokens.
        sources: Numbers of files and of chunks, by source.
        vector_path: How vectors are searched.
        vector_error: Why they are not searched the fast way, or None.
        extension_path: The library by which they are searched the fast way, or None.
        size_bytes: Size on disk, `log_bytes` included.
        log_bytes: Size of the write-ahead log.
        engine: Versions and modes of the engine, by name.
        memory_bytes: How much memory the store may use to keep of it what makes searches faster; 0 for none.
        unerased: Whether texts that are gone have left bytes that are still to be erased; said with the counts.
    """

    backend: str
    location: str = ""
    exists: bool = True
    locked: frozenset[str] = frozenset()
    files: int = 0
    chunks: int = 0
    vectors: int = 0
    without_tokens: int = 0
    sources: Mapping[str, tuple[int, int]] = {}
    vector_path: str = "none"
    vector_error: str | None = None
    size_bytes: int = 0
    log_bytes: int = 0
    engine: Mapping[str, str] = {}
    notices: tuple[str, ...] = ()
    memory_bytes: int = 0
    unerased: bool = False
    extension_path: str | None = None


class SourceHits(Struct, frozen=True):
    """Score the chunks that were found in one source, by id.

    Attributes:
        text: The scores of keyword search.
        vector: The cosines of vector search, or None if it did not run.
        cosines: The cosines of all chunks that either search found, as far as they are known.
    """

    text: Mapping[int, float]
    vector: Mapping[int, float] | None
    cosines: Mapping[int, float] = {}


class HitRequest(Struct, frozen=True):
    """Ask a store for the chunks that keywords and a vector find.

    Attributes:
        terms: Segmented terms of the keyword search. Without any, nothing is searched.
        vector: The unit vector of the query, or None to search by keywords alone.
        text_hits: How many chunks keyword search finds at most, in each source.
        vector_hits: How many chunks vector search finds at most, in each source.
        match: Whether a chunk needs any of the terms, or all of them.
        enough: With `match="all"`, chunks with any of the terms are added if fewer than this have all.
        source: The one source to search. None searches each source that holds files, one after the other.
        all_cosines: Whether chunks that only keyword search found get a cosine too.
        counted: The terms whose document frequencies are wanted.
        where: A filter on the metadata of chunks.
        memory_bytes: How much memory, for this index and others in this process, the store may use to make later
            searches faster; 0 for none.
    """

    terms: Sequence[str]
    vector: Vector | None = None
    text_hits: int = 60
    vector_hits: int = 50
    match: Literal["any", "all"] = "any"
    enough: int = 0
    source: Source | None = None
    all_cosines: bool = False
    counted: Sequence[str] = ()
    where: Where | None = None
    memory_bytes: int = 0


class Hits(Struct, frozen=True):
    """Answer a `HitRequest` from one state of the index.

    Attributes:
        by_source: One entry for each source that was searched, in the order of `SOURCES`.
        frequencies: In how many chunks each of the counted terms occurs.
        chunk_count: How many chunks the index holds.
    """

    by_source: Sequence[SourceHits]
    frequencies: Mapping[str, int]
    chunk_count: int
