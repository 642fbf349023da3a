"""The vocabulary: frozen value objects that pass between the stages, and the two protocols, Embedder and Store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # shape (dims,), L2-normalised
    Matrix: TypeAlias = NDArray[np.float32]  # shape (n, dims), rows L2-normalised
else:
    Vector: TypeAlias = Any
    Matrix: TypeAlias = Any

Source: TypeAlias = Literal["memory", "sessions"]
SOURCES: tuple[Source, ...] = ("memory", "sessions")


def citation(path: str, start_line: int, end_line: int) -> str:
    """`path#L3` for one line, `path#L3-L9` for several; lines are 1-based."""
    return f"{path}#L{start_line}" if end_line <= start_line else f"{path}#L{start_line}-L{end_line}"


# --- workspace ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A file that counts as memory, as found on disk. `path` is relative to the workspace, with forward slashes."""

    path: str
    source: Source
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was found and left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a memory file. `next_start` leads on, None at the end; `cut`: the one line shown is not shown whole."""

    path: str
    text: str
    start_line: int
    end_line: int
    next_start: int | None = None
    cut: bool = False

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


# --- index -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of lines of one file, the unit that is embedded and looked up.

    `start_char` is the offset of `text` in the file, in characters. `context` is what the lines themselves do not say
    (file date, title, heading path); it is embedded and indexed with the text, and never shown as part of it.
    `section` is the line that opens its section, 0 where they are not told apart: an answer never spans two.
    """

    start_line: int
    end_line: int
    start_char: int
    text: str
    context: str = ""
    section: int = 0

    @property
    def embedding_text(self) -> str:
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it comes back from a store. Ids of one file's chunks are consecutive, in the order of its lines."""

    id: int
    path: str
    source: Source
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as it goes into a store: with its segmented terms and the key of its vector.

    `vector_key` is the SHA-256 hex of the exact embedded string, or None where the chunk has no vector.
    """

    chunk: Chunk
    terms: str
    context_terms: str
    vector_key: str | None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What the index knows of one file. `checked_ns` is when its content was last read, by the wall clock.

    `lacks` says why some of its rows have no vectors yet, in words; None when they have all.
    """

    path: str
    source: Source
    hash: str
    size: int
    mtime_ns: int
    inode: int
    checked_ns: int
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by one leg of the search; a larger score is better."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """What an index was built with. A difference means that its chunks must be built again.

    `building` names the build that is under way, or was cut short: the index then holds a part of the files. It is
    None from `Store.finish` until the next `Store.reset`.
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
class StoreStats:
    """How much an index holds and which paths of the engine are alive. `sources` counts (files, chunks)."""

    files: int
    chunks: int
    vectors: int
    sources: Mapping[str, tuple[int, int]]
    vector_path: str
    vector_error: str | None
    size_bytes: int
    engine: Mapping[str, str]


# --- answers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A contiguous run of lines that answers, with its place.

    `score` lies in [0, 1]; `parts` says how it came about: `confidence` that the notes answer at all times the `share`
    of this answer, or `vector_score` and `text_score` where whole chunks answer.
    """

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did. Paths are listed, except for the unchanged files, which are counted.

    Files in `waiting` are found by keywords, but lack vectors, for the reason given, until a sync gets them.
    `embedded` counts texts, `tokens` estimates from above what they came to.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    failed: tuple[Skipped, ...] = ()
    waiting: tuple[Skipped, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    embedded: int = 0
    tokens: int = 0
    seconds: float = 0.0
    rebuilt: str | None = None

    @property
    def ok(self) -> bool:
        return not self.failed and not self.waiting


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a long piece of work: `completed` of `total` units, and what they are.

    `embedded` texts of at most `tokens` tokens were embedded meanwhile, in `seconds`.
    """

    completed: int
    total: int
    label: str
    embedded: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Texts embedded in a second; 0 where none were."""
        return self.embedded / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace so far; None before the first unit."""
        return self.seconds / self.completed * (self.total - self.completed) if self.completed else None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a memory: what is indexed, with what, and whatever works less well than it could.

    `passed_over` says why other providers were not taken, `problems` what a deep look finds wrong with the index itself
    (syncing with force mends it). `dirty` are files that a sync would read; those in `waiting` lack only vectors.
    """

    workspace: str
    index_path: str
    provider: str
    model: str
    requested_provider: str
    passed_over: Mapping[str, str]
    mode: Literal["hybrid", "keyword"]
    files: int
    chunks: int
    sources: Mapping[str, tuple[int, int]]
    dirty: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    vector: Mapping[str, Any]
    fts: Mapping[str, Any]
    cache: Mapping[str, Any]
    index_bytes: int
    notices: tuple[str, ...]
    engine: Mapping[str, str]
    problems: tuple[str, ...] = ()
    waiting: tuple[Skipped, ...] = ()


# --- protocols ---------------------------------------------------------------------------------------------------


@runtime_checkable
class Embedder(Protocol):
    """Turns text into L2-normalised float32 vectors. `testing.check_embedder` is its contract.

    `identity` names everything that changes a vector (provider, endpoint, model, dimensions, options) and holds no
    secret: vectors of different identities never meet in one ranking.
    """

    provider: str
    model: str
    identity: str

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dims,)."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """The vectors of texts to be found, shape (len(texts), dims)."""
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps files, chunks, terms and vectors, and finds chunks again. `testing.check_store` is its contract.

    Each method that writes is one transaction. Scores of `search_text` are BM25 (larger is better, > 0), those of
    `search_vector` are cosine similarities. A store is safe to call from several threads.
    """

    def meta(self) -> IndexMeta | None:
        """What the index was built with; None when it is empty and new."""
        ...

    def reset(self, meta: IndexMeta) -> None:
        """Forget all files and chunks and remember `meta`; vectors are kept, they are a cache."""
        ...

    def finish(self, build: str) -> None:
        """Say that the build of this name is complete; nothing happens where another one has begun since."""
        ...

    def files(self) -> Mapping[str, FileRecord]:
        """Every indexed file by its path."""
        ...

    def lacking(self) -> Mapping[str, int]:
        """How many files lack vectors, by the reason."""
        ...

    def replace_files(
        self, files: Sequence[tuple[FileRecord, Sequence[ChunkRow]]], made_for: IndexMeta | None = None
    ) -> None:
        """Replace all rows of these files, whose vectors were added before; refuse where meta is not `made_for`."""
        ...

    def touch_files(self, records: Sequence[FileRecord], made_for: IndexMeta | None = None) -> None:
        """Update the stamps of files whose content is unchanged, and what they lack."""
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

    def search_text(
        self, terms: Sequence[str], k: int, *, match: Literal["any", "all"] = "any", source: Source | None = None
    ) -> list[Hit]:
        """The k best chunks by BM25 over terms that `text.py` has segmented."""
        ...

    def search_vector(self, vector: Vector, k: int, *, source: Source | None = None) -> list[Hit]:
        """The k chunks nearest to a unit vector."""
        ...

    def similarities(self, vector: Vector, chunk_ids: Sequence[int]) -> Mapping[int, float]:
        """Cosine similarity of these chunks with a unit vector; chunks without a vector are left out."""
        ...

    def chunks(self, ids: Iterable[int]) -> list[StoredChunk]:
        """These chunks, in ascending order of id; unknown ids are left out."""
        ...

    def paths(self) -> list[str]:
        """The path of every indexed file, in no order."""
        ...

    def chunks_of(self, path: str) -> list[StoredChunk]:
        """All chunks of one file, in the order of its lines; none when it is not indexed."""
        ...

    def document_frequencies(self, terms: Iterable[str]) -> Mapping[str, int]:
        """In how many chunks each term occurs (0 when in none)."""
        ...

    def chunk_count(self) -> int:
        """How many chunks there are."""
        ...

    def stats(self) -> StoreStats:
        """Counts, sizes and which engine paths work; the vector path is verified by a real query."""
        ...

    def problems(self) -> tuple[str, ...]:
        """What a check of the whole index finds wrong; empty when it is sound. It reads everything."""
        ...

    def close(self) -> None:
        """Release the index. Calling it twice is allowed."""
        ...
