"""The vectors of a coming index, gathered before the index that still answers is given up for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from openclaw_memory.config import Chunking
from openclaw_memory.embeddings.stream import Embedded, stream
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.sync.courtesy import no_hurry
from openclaw_memory.sync.prepare import read, rows, transcript_rows
from openclaw_memory.types import ChunkRow, Embedder, FileRecord, MemoryFile, Progress, Store
from openclaw_memory.workspace import Workspace

# So many texts may be refused for themselves: more speak of a service that refuses any.
MOST_REFUSED = 10
REFUSED_SHARE = 0.05
# Progress is told after each so many files, also where all their vectors are there.
FILES_PER_STEP = 64


def gather(
    workspace: Workspace,
    store: Store,
    embedder: Embedder,
    chunking: Chunking,
    files: Sequence[MemoryFile],
    progress: Callable[[Progress], None] | None,
    *,
    held: Container[str] = (),
    give_way: Callable[[], None] = no_hurry,
) -> tuple[int, int]:
    """Store every vector that an index of these files will need under the embedder's identity, but for those `held`.

    Returns how many texts were embedded, and how many tokens they came to at most. A file that cannot be read, and a
    few texts that are refused for themselves, are left to the run that builds the index.

    Raises:
        EmbedderError: the embedder failed, or refuses many of the texts. What it gave before is stored.
    """
    gathering = _Gathering(store, embedder.identity, give_way)
    started = time.perf_counter()

    def tell(done: int, label: str) -> None:
        if progress:
            seconds = time.perf_counter() - started
            progress(Progress(done, len(files), label, gathering.embedded, gathering.tokens, seconds))

    texts = missing_texts(workspace, store, embedder.identity, chunking, gathering.reading(files, tell))
    for some in stream(embedder, gathering.under_way_too((key, text) for key, text in texts if key not in held)):
        gathering.keep(some)
        tell(gathering.done(), "files embedded")
    return gathering.embedded, gathering.tokens


@dataclass(slots=True)
class _Gathering:
    """What was gathered so far; `under_way` holds keys in their order, each with how many files were read before."""

    store: Store
    identity: str
    give_way: Callable[[], None]
    embedded: int = 0
    tokens: int = 0
    refused: int = 0
    read_files: int = 0
    under_way: dict[str, int] = field(default_factory=dict)

    def reading(self, files: Sequence[MemoryFile], tell: Callable[[int, str], None]) -> Iterator[MemoryFile]:
        for file in files:
            self.give_way()
            yield file
            self.read_files += 1
            if self.read_files % FILES_PER_STEP == 0:
                tell(self.read_files, "files looked through")

    def under_way_too(self, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for key, text in texts:
            self.under_way[key] = self.read_files
            yield key, text

    def keep(self, some: Embedded) -> None:
        for key in some.keys:
            del self.under_way[key]
        if some.vectors is not None:
            self.store.add_vectors(some.keys, some.vectors, self.identity)
            self.embedded, self.tokens = self.embedded + len(some.keys), self.tokens + some.tokens
        elif some.error is not None:
            self.refused += len(some.keys)
            if not some.isolated or self.refused > max(MOST_REFUSED, REFUSED_SHARE * self.embedded):
                raise some.error

    def done(self) -> int:
        """How many files have all their vectors."""
        return next(iter(self.under_way.values()), self.read_files)


def missing_texts(
    workspace: Workspace,
    store: Store,
    identity: str,
    chunking: Chunking,
    files: Iterable[MemoryFile],
    known: Mapping[str, FileRecord] | None = None,
) -> Iterator[tuple[str, str]]:
    """The key and the text of each vector that an index of these files needs and the store has not, each once.

    Of transcripts that are `known` and lack nothing, only what has been added counts.
    """
    seen: set[str] = set()
    for file in files:
        for some in _prepared(workspace, file, chunking, (known or {}).get(file.path)):
            keyed = ((row.vector_key, row.chunk.embedding_text) for row in some)
            texts = {key: text for key, text in keyed if key is not None and key not in seen}
            seen |= texts.keys()
            stored = store.known_vectors(texts, identity) if texts else set()
            yield from ((key, text) for key, text in texts.items() if key not in stored)


def _prepared(
    workspace: Workspace, file: MemoryFile, chunking: Chunking, known: FileRecord | None
) -> Iterator[list[ChunkRow]]:
    """The rows of a file, those of a transcript part by part."""
    try:
        if file.source == "sessions":
            mark = known.hash if known is not None and known.lacks is None else None
            for part in workspace.transcript(file.path, mark):
                yield transcript_rows(part, file.path, chunking, vectors=True)
        else:
            yield rows(read(workspace, file)[1], file.path, chunking, vectors=True)
    except (OpenClawMemoryError, OSError):  # told by the run that comes after
        return
