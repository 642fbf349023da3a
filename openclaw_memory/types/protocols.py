"""The parts that can be replaced: an `Embedder`, and a `Store` with its `Build`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    from openclaw_memory.types.conditions import Where
    from openclaw_memory.types.files import Source
    from openclaw_memory.types.index import (
        ChunkRow,
        FileRecord,
        Hit,
        HitRequest,
        Hits,
        IndexMeta,
        Matrix,
        StoredChunk,
        StoreInfo,
        TokenVectors,
        Vector,
    )
    from openclaw_memory.types.results import Progress


class ConnectionHook(Protocol):
    """A hook that has each connection of `SqliteStore` before it reads anything.

    Connections are those of the package `apsw`. One hook serves one store, from several threads.
    """

    def begin(self, index: Path) -> None:
        """Prepare for an index that is about to be made.

        Args:
            index: Its file, which is empty.
        """
        ...

    def open(self, index: Path, connect: Callable[[Callable[[Any], int | None]], Any]) -> Any:
        """Return a connection to an index that there is; None where it cannot be read, as of a damaged one.

        Args:
            index: Its file.
            connect: Opens a connection that a function like `on_connect` sets up; returns None where nothing can be
                read with it. It may be tried more than once.
        """
        ...

    def on_connect(self, db: Any) -> int | None:
        """Set up a connection, as `begin` or `open` found out last; return the size of its cache in KiB, if it matters.

        Args:
            db: The connection, on which no statement has run yet.
        """
        ...

    def get_uri_options(self, db: Any) -> str:
        """Return the parameters of a URI with which SQLite writes a copy that this hook opens, as `key=...`.

        Args:
            db: A connection that `on_connect` has set up.
        """
        ...

    def describe(self, info: StoreInfo, db: Any) -> StoreInfo:
        """Add the hook's own findings to the state of the index.

        Args:
            info: The state.
            db: A connection.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns text into L2-normalised float32 vectors. `testing.check_embedder` checks an implementation.

    Vectors of different identities are never compared. An embedder may also have `embed_words(words)`: it returns the
    vectors of lower-case words, shape (len(words), dims), not normalised, and lines are compared with a query by them.

    Attributes:
        provider (str): Name of the provider, such as `openai`.
        model (str): Name of the model.
        identity (str): Everything that changes a vector (provider, endpoint, model, dimensions, options), without
            secrets.
        leaves_machine (bool): False only where no text is sent to another machine. Anything else is refused unless
            `embedding.allow_remote` is on.
    """

    provider: str
    model: str
    identity: str
    leaves_machine: bool = True

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (dims,).

        Args:
            text: The query.

        Raises:
            EmbedderError: The vector could not be made.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts to be searched, shape (len(texts), dims).

        Args:
            texts: The texts, in the order of the rows.

        Raises:
            EmbedderError: The vectors could not be made.
        """
        ...

    def close(self) -> None:
        """Release connections and threads, if there are any. Calling it twice is allowed."""


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also has vectors of tokens, to compare lines with a query by late interaction.

    They come from the same call as the vector of the text. Sync stores them in few bits. `TokenVectors` are a pair: the
    vectors, shape (n, dims), and where each token is in the text (its first character, and the one after its last),
    integers of shape (n, 2). A token of no character, such as `[CLS]`, has an empty place. Vectors are compared by
    their angles: those of unrelated tokens should be at right angles.
    """

    def embed_query_tokens(self, text: str) -> tuple[Vector, TokenVectors]:
        """Return the vector of a query, as `embed_query`, and those of its tokens.

        Args:
            text: The query.

        Raises:
            EmbedderError: The vectors could not be made.
        """
        ...

    def embed_document_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenVectors | None]]:
        """Return the vectors of texts, as `embed_documents`, and for each text those of its tokens.

        Args:
            texts: The texts. A text whose tokens have no known places gets None.

        Raises:
            EmbedderError: The vectors could not be made.
        """
        ...


@runtime_checkable
class ServiceEmbedder(Embedder, Protocol):
    """An embedder that calls a server at the URL `endpoint`.

    After a failed request the server is not called for a while, and searches use keywords alone. If the server is on
    another machine, the user is informed of the `endpoint` before the first notes are sent.
    """

    endpoint: str


@runtime_checkable
class PreparingEmbedder(Embedder, Protocol):
    """An embedder around another one that sees all missing texts of a sync first, to leave them to long jobs.

    Attributes:
        inner: The embedder of texts that are not held.
    """

    inner: Embedder

    def prepare(self, store: Store, missing: Iterable[tuple[str, str]]) -> tuple[Mapping[str, str], int, int]:
        """Store the vectors of finished jobs, then submit the texts that are still missing.

        Args:
            store: The index.
            missing: The key and the text of each vector that the store lacks; read it after storing.

        Returns:
            The keys of vectors that come later, each with the reason; the number of texts whose vectors were stored;
            and the tokens of these at most.

        Raises:
            StoreError: The index cannot be written.
        """
        ...

    def wait(self, store: Store, progress: Callable[[Progress], None] | None = None) -> bool:
        """Wait for held vectors at the end of a sync; return whether it should look again.

        Args:
            store: The index.
            progress: Is called while it waits.
        """
        ...

    def describe(self, store: Store) -> Mapping[str, Any]:
        """Return the state of held vectors, for the status.

        Args:
            store: The index.
        """
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps files, chunks, terms and vectors, and searches them. `testing.check_store` checks an implementation.

    Each method that writes is one transaction. A store is safe to call from several threads.
    """

    def read_meta(self) -> IndexMeta | None:
        """Return the description of the build, or None for a new index."""
        ...

    def get_meta(self, name: str) -> str | None:
        """Return the short text stored under a name, or None.

        Args:
            name: The name.
        """
        ...

    def set_meta(self, name: str, text: str) -> None:
        """Store a short text under a name; every build keeps it.

        Args:
            name: The name; a text stored under it before is replaced.
            text: The text.
        """
        ...

    def begin_build(self, meta: IndexMeta, *, keep_rows: bool = False) -> Build:
        """Begin the next index, which starts with the vectors of this one.

        This index stays in use until the next one is published. A first index, which has nothing to lose, may be built
        in place, so that the next build with `keep_rows` continues where an interrupted one stopped.

        Args:
            meta: The description of the next index.
            keep_rows: Whether it also starts with the files and chunks of this one.

        Raises:
            CorruptIndexError: This index is damaged.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Store]:
        """Return a read-only view of this store as it is now, for a `with` block; later writes are not seen in it."""
        ...

    def get_files(
        self,
        paths: Iterable[str] | None = None,
        *,
        ids: Iterable[str] | None = None,
        part_of: str | None = None,
        id_prefix: str | None = None,
    ) -> Mapping[str, FileRecord]:
        """Return the records of indexed files, by path: all, or those that one argument names.

        Args:
            paths: The paths of files.
            ids: The ids of documents; several files have the same one where a person has copied one.
            part_of: The wholes of the documents.
            id_prefix: The prefix of the documents' ids, not empty.
        """
        ...

    def replace_files(
        self, files: Sequence[tuple[FileRecord, Sequence[ChunkRow] | None]], made_for: IndexMeta | None = None
    ) -> None:
        """Replace the records of files, and all their rows.

        The vectors of chunks were added before; those of rows with an identity may come later.

        Args:
            files: Each file with its new rows, in order. None keeps the rows: only the record of a file that is
                indexed is updated, and any other file is left out. Its document is then as before.
            made_for: The index that the rows were made for.

        Raises:
            StoreError: A vector is missing, or `meta` is not `made_for`. Nothing is changed.
        """
        ...

    def extend_file(
        self, record: FileRecord, chunks: Sequence[ChunkRow], from_line: int, made_for: IndexMeta | None = None
    ) -> None:
        """Replace the rows of one file from a line on, and its record; earlier rows stay. For files that only grow.

        Rows at the beginning that are stored already may stay as well. New chunks get ids above all others.

        Args:
            record: The record of the file.
            chunks: The new rows, in order.
            from_line: The first line, 1-based, whose rows are replaced.
            made_for: The index that the rows were made for.

        Raises:
            StoreError: The file is not indexed, a vector is missing, or `meta` is not `made_for`. Nothing is changed.
        """
        ...

    def remove_files(self, paths: Iterable[str]) -> int:
        """Remove files and all their rows, and return how many files were indexed.

        Args:
            paths: The paths; unknown ones are ignored.
        """
        ...

    def find_keys(
        self, keys: Iterable[str], identity: str | None = None, *, with_token_codes: bool = False
    ) -> set[str]:
        """Return the keys that have a stored vector.

        Args:
            keys: Keys as in `ChunkRow.vector_key`.
            identity: The model of the vectors; None means the one in `meta`.
            with_token_codes: Whether only vectors that were stored with the codes of their tokens count.
        """
        ...

    def add_vectors(
        self,
        keys: Sequence[str],
        vectors: Matrix,
        identity: str | None = None,
        *,
        token_codes: Sequence[bytes] | None = None,
    ) -> None:
        """Store vectors under their keys; a key that is stored already keeps its vector.

        Args:
            keys: Keys as in `ChunkRow.vector_key`.
            vectors: One row for each key, shape (len(keys), dims). The first vectors of a model set its `dims`.
            identity: The model of the vectors, which need not be the current one; None means the one in `meta`.
            token_codes: For each key the codes of its tokens, which are kept and removed with the vector. A vector that
                was stored without any gets them.

        Raises:
            EmbedderError: The shape is wrong, or a value is not finite. Nothing is stored.
            StoreError: The index has no `meta`, and no `identity` is given.
        """
        ...

    def prune(self, *, keep_unused: bool = False) -> int:
        """Remove the vectors that no row uses, and return how many were removed.

        A sync ends with it: what was removed from the index before must also be gone from the bytes of its files.

        Args:
            keep_unused: Whether vectors that no row uses stay, as while those of another model are gathered.
        """
        ...

    def find_hits(self, request: HitRequest) -> Hits:
        """Find chunks by keywords and vector, from one state of the index; `gather_hits` implements it.

        Args:
            request: The terms, the vector and the limits.

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
        """Return the best chunks for segmented terms, best first. A larger score is better, and every score is above 0.

        Args:
            terms: The terms.
            k: How many chunks at most.
            match: Whether a chunk needs any of the terms, or all of them.
            source: The one source to search, or None for all.
            where: A filter on `Chunk.metadata`. A function may have `files`, the ranges of files that hold all chunks
                which pass: read these alone.
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
        """Return the chunks nearest to a unit vector, nearest first, scored by cosine similarity.

        Args:
            vector: The unit vector, shape (dims,).
            k: How many chunks at most.
            source: The one source to search, or None for all.
            identity: Search the rows stored under this identity instead of the chunks.
            where: A filter on `Chunk.metadata`. A row with an identity passes if the first chunk of its file does, or
                the file has no chunk.

        Raises:
            EmbedderError: The vector does not fit the index.
        """
        ...

    def get_vectors(self, chunk_ids: Sequence[int]) -> Mapping[int, Vector]:
        """Return the vectors of chunks by id, each of shape (dims,); chunks without a vector are left out.

        A store may round vectors of chunks, so that a cosine differs by 1e-5, but not those that came with documents.

        Args:
            chunk_ids: The ids.
        """
        ...

    def get_chunks(self, ids: Iterable[int], *, token_codes: bool = False) -> list[StoredChunk]:
        """Return stored chunks, by ascending id; unknown ids are left out.

        Args:
            ids: The ids, in any order.
            token_codes: Whether they bring the codes of their tokens.
        """
        ...

    def get_file_chunks(self, *paths: str, identity: str | None = None) -> list[StoredChunk]:
        """Return the chunks of files, those of each in the order of its lines.

        Args:
            *paths: The paths of the files.
            identity: Return the files' rows under this identity instead of their chunks.
        """
        ...

    def count_identities(self) -> Mapping[str, tuple[int, int]]:
        """Return for each `ChunkRow.identity` how many rows have it, and how many of these have their vectors."""
        ...

    def lock(
        self, name: str, wait: float | None = None, notify: Callable[[str], None] | None = None
    ) -> AbstractContextManager[bool]:
        """Keep other threads and processes out of the lock `name` while the `with` block runs.

        The block gets True, or False if no lock can be made or this thread already holds it.

        Args:
            name: `sync` for a sync, `watch` for a watcher, `vectors` for their embedding in the background.
            wait: How many seconds to wait; None waits without limit.
            notify: Called with the reason while waiting; an exception it raises ends the wait.

        Raises:
            SyncBusyError: The lock is still held after `wait` seconds.
        """
        ...

    def verify(self) -> tuple[str, ...]:
        """Check the whole index, and return its faults; none for a sound one."""
        ...

    def delete_damaged(self, reason: str) -> str:
        """Replace a damaged index by an empty one, and return a sentence about it.

        Args:
            reason: The damage of the index.

        Raises:
            StoreError: It cannot be replaced.
        """
        ...

    def describe(self, *, counts: bool = True) -> StoreInfo:
        """Describe the index.

        Args:
            counts: Whether to add what it holds, and which engine paths work, tried with a real query.
        """
        ...

    def close(self) -> None:
        """Release the index. Calling it twice is allowed."""
        ...


@runtime_checkable
class Build(Protocol):
    """The next index of a store, not visible until it is published."""

    @property
    def store(self) -> Store:
        """The store to write the next index into."""
        ...

    def publish(self) -> None:
        """Replace the current index: every reader sees either the old one or the new one, as a whole."""
        ...

    def abort(self) -> None:
        """Discard the build and release its resources. Calling it twice is allowed."""
        ...
