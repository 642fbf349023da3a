"""The two parts that can be replaced: an `Embedder`, and a `Store`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, runtime_checkable

from openclaw_memory.types.candidates import CandidateRequest, Candidates
from openclaw_memory.types.files import Source
from openclaw_memory.types.index import ChunkRow, FileRecord, Hit, IndexMeta, Matrix, StoredChunk, StoreInfo, Vector
from openclaw_memory.types.where import Where


@runtime_checkable
class Embedder(Protocol):
    """Turns text into L2-normalised float32 vectors. `testing.check_embedder` is its contract.

    `identity` names everything that changes a vector (provider, endpoint, model, dimensions, options) and holds no
    secret: vectors of different identities never meet in one ranking. `leaves_machine` is False only where no text is
    sent to another machine: anything else is refused where `embedding.allow_remote` is off.
    """

    provider: str
    model: str
    identity: str
    leaves_machine: bool = True

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question, shape (dims,)."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts to be found, shape (len(texts), dims)."""
        ...

    def close(self) -> None:
        """Release connections and threads, if there are any. Calling it twice is allowed."""


@runtime_checkable
class WordVectorEmbedder(Embedder, Protocol):
    """An embedder that also has vectors of single words, by which lines are compared with a question."""

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        """Return the vectors of words, shape (len(words), dims); not normalised."""
        ...


@runtime_checkable
class ServiceEmbedder(Embedder, Protocol):
    """An embedder that asks a server at the URL `endpoint`.

    After a failed question the server is left alone for a while, and searches use keywords alone. Where the server is
    on another machine, the user is informed of the `endpoint` before the first notes are sent.
    """

    endpoint: str


@runtime_checkable
class Store(Protocol):
    """Keeps files, chunks, terms and vectors, and finds chunks again. `testing.check_store` is its contract.

    Each method that writes is one transaction. Scores of `search_text` are above 0, and larger is better; those
    of `search_vector` are cosine similarities. A store is safe to call from several threads.
    """

    def meta(self) -> IndexMeta | None:
        """What the index was built with; None when it is empty and new."""
        ...

    def get_meta(self, name: str) -> str | None:
        """The short text kept under a name; None where there is none."""
        ...

    def set_meta(self, name: str, text: str) -> None:
        """Keep a short text under a name, through every build."""
        ...

    def begin_build(self, meta: IndexMeta, *, keep_rows: bool = False) -> Build:
        """Begin the next index, with the vectors of this one, and with its files and chunks where they are kept.

        Until it is published this one answers; a first index, which answers nothing yet, may be built in its place, so
        that the next build with `keep_rows` goes on where it was cut short.

        Raises:
            CorruptIndexError: this index is damaged.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Store]:
        """This store as it is now, for reading alone: whatever is written meanwhile, its answers fit together."""
        ...

    def files(self) -> Mapping[str, FileRecord]:
        """Every indexed file by its path."""
        ...

    def replace_files(
        self, files: Sequence[tuple[FileRecord, Sequence[ChunkRow] | None]], made_for: IndexMeta | None = None
    ) -> None:
        """Replace the records of files, and all their rows.

        The vectors of chunks were added before; those of rows with an identity may come later.

        Args:
            files: Each file with its new rows, in order. None keeps the rows: only the record of a file that is
                indexed is updated, and any other file is left out.
            made_for: What the rows were made for.

        Raises:
            StoreError: A vector is missing, or `meta` is not `made_for`. Nothing is changed.
        """
        ...

    def extend_file(
        self, record: FileRecord, chunks: Sequence[ChunkRow], from_line: int, made_for: IndexMeta | None = None
    ) -> None:
        """Replace the chunks of one file from line `from_line` on, and its record; the chunks before stay.

        For files that only grow. Chunks at the beginning that are there already may stay as well; new chunks have ids
        beyond all others.
        """
        ...

    def remove_files(self, paths: Iterable[str]) -> int:
        """Remove files and all their rows; returns how many there were."""
        ...

    def known_vectors(self, keys: Iterable[str], identity: str | None = None) -> set[str]:
        """Those of the keys whose vectors are stored under `identity`; None means the one in `meta`."""
        ...

    def add_vectors(self, keys: Sequence[str], vectors: Matrix, identity: str | None = None) -> None:
        """Store one row of `vectors` for each key under `identity`, current or not; the first ones fix its `dims`."""
        ...

    def prune(self, max_entries: int) -> int:
        """Remove vectors that no chunk has, the longest unused first, down to `max_entries`; returns how many."""
        ...

    def candidates(self, request: CandidateRequest) -> Candidates:
        """Return all that one search needs, of one state of the index; see `gather_candidates`.

        Raises:
            EmbedderError: The vector does not fit the index.
        """
        ...

    def search_text(
        self,
        terms: Sequence[str],
        k: int,
        *,
        match: Literal["any", "all"] = "any",
        source: Source | None = None,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k best chunks for segmented terms, best first; a larger score is better, and all are above 0.

        With `where`, only chunks whose `Chunk.metadata` meets the filter are found.
        """
        ...

    def search_vector(
        self,
        vector: Vector,
        k: int,
        *,
        source: Source | None = None,
        identity: str | None = None,
        where: Where | None = None,
    ) -> list[Hit]:
        """The k chunks nearest to a unit vector; with an `identity`, the rows that came under it, and no chunks.

        `where` filters chunks by their metadata.
        """
        ...

    def vectors(self, chunk_ids: Sequence[int]) -> Mapping[int, Vector]:
        """The vectors of these chunks, each of shape (dims,); chunks without a vector are left out."""
        ...

    def chunks(self, ids: Iterable[int]) -> list[StoredChunk]:
        """These chunks, in ascending order of id; unknown ids are left out."""
        ...

    def file_chunks(self, path: str, identity: str | None = None) -> list[StoredChunk]:
        """All chunks of one file, in the order of its lines; with an `identity`, its rows under that one."""
        ...

    def identities(self) -> Mapping[str, tuple[int, int]]:
        """How many rows came under each identity (`ChunkRow.identity`), and how many of them have their vectors."""
        ...

    def lock(
        self, name: str, wait: float | None = None, notify: Callable[[str], None] | None = None
    ) -> AbstractContextManager[bool]:
        """Keep every other thread and process that asks for the lock `name` out while the block runs.

        It yields whether that is so: False where no lock can be made, and where this thread holds it already. The lock
        is waited for `wait` seconds, or without end; `notify` is called with the reason, and what it raises ends the
        waiting. A sync holds the lock `sync`, the watcher at work the lock `watch`.

        Raises:
            SyncBusyError: it is still held after `wait` seconds.
        """
        ...

    def verify(self) -> tuple[str, ...]:
        """What a check of the whole index finds wrong; empty when it is sound. It reads everything."""
        ...

    def recover(self, reason: str) -> str:
        """Put an empty index in the place of a damaged one; returns what was done, in words.

        Raises:
            StoreError: that is not possible.
        """
        ...

    def describe(self, *, counts: bool = True) -> StoreInfo:
        """What the index is; with `counts` also what it holds, and which engine paths work, as a real query shows."""
        ...

    def close(self) -> None:
        """Release the index. Calling it twice is allowed."""
        ...


@runtime_checkable
class Build(Protocol):
    """The next index of a store, unseen until it is published."""

    @property
    def store(self) -> Store:
        """What the next index is written into."""
        ...

    def publish(self) -> None:
        """Put it in the place of the index that answers: every reader sees the old one or the new one, whole."""
        ...

    def abort(self) -> None:
        """Give it up, and free what it took. Calling it twice is allowed."""
        ...
