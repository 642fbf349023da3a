"""Collects the vectors that an index of some files will need, before a working one is given up for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from openclaw_memory.embeddings.stream import Embedded, add_vectors, find_vectors, stream
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.indexing.background import SearchPriority
from openclaw_memory.indexing.changes import SyncParts
from openclaw_memory.indexing.pipeline import document_in, read, rows, transcript_rows
from openclaw_memory.store.embedding_cache import EmbeddingCache
from openclaw_memory.types import ChunkRow, Embedder, FileRecord, MemoryFile, Progress, Store

# So many texts may be refused for themselves: more speak of a service that refuses any.
MOST_REFUSED = 10
REFUSED_SHARE = 0.05
# Progress is reported after each so many files, even if they lack no vectors.
FILES_PER_STEP = 64


def gather(
    parts: SyncParts, embedder: Embedder, files: Sequence[MemoryFile], *, held: Container[str] = ()
) -> tuple[int, int]:
    """Store every vector that an index of these files will need under the embedder's identity, except those `held`.

    Files that cannot be read, and a few texts that are refused for themselves, are left to the run that builds the
    index.

    Returns:
        How many texts were embedded, and their tokens at most.

    Raises:
        EmbedderError: The embedder failed, or refuses many of the texts. What it returned before is stored.
    """
    gathering = _Gathering(parts.store, embedder.identity, parts.priority, parts.cache)
    started = time.perf_counter()

    def report(done: int, label: str) -> None:
        if parts.progress:
            seconds = time.perf_counter() - started
            parts.progress(Progress(done, len(files), label, gathering.embedded, gathering.tokens, seconds))

    texts = missing_texts(parts, embedder.identity, gathering.reading(files, report))
    for some in stream(embedder, gathering.under_way_too((key, text) for key, text in texts if key not in held)):
        gathering.keep(some)
        report(gathering.done(), "files embedded")
    return gathering.embedded, gathering.tokens


@dataclass(slots=True)
class _Gathering:
    """What was gathered so far; `under_way` holds keys in their order, each with how many files were read before."""

    store: Store
    identity: str
    priority: SearchPriority
    cache: EmbeddingCache | None
    embedded: int = 0
    tokens: int = 0
    refused: int = 0
    read_files: int = 0
    under_way: dict[str, int] = field(default_factory=dict)

    def reading(self, files: Sequence[MemoryFile], report: Callable[[int, str], None]) -> Iterator[MemoryFile]:
        for file in files:
            self.priority.yield_to_searches()
            yield file
            self.read_files += 1
            if self.read_files % FILES_PER_STEP == 0:
                report(self.read_files, "files looked through")

    def under_way_too(self, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for key, text in texts:
            self.under_way[key] = self.read_files
            yield key, text

    def keep(self, some: Embedded) -> None:
        for key in some.keys:
            del self.under_way[key]
        if some.vectors is not None:
            add_vectors(self.store, some, self.identity, self.cache)
            self.embedded, self.tokens = self.embedded + len(some.keys), self.tokens + some.tokens
        elif some.error is not None:
            self.refused += len(some.keys)
            if not some.isolated or self.refused > max(MOST_REFUSED, REFUSED_SHARE * self.embedded):
                raise some.error

    def done(self) -> int:
        """Return how many files have all their vectors."""
        return next(iter(self.under_way.values()), self.read_files)


def missing_texts(
    parts: SyncParts, identity: str, files: Iterable[MemoryFile], known: Mapping[str, FileRecord] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield key and text of each vector that an index of these files needs and the store lacks, each once.

    Of transcripts that are `known` and lack nothing, only the new part counts.
    """
    seen: set[str] = set()
    for file in files:
        for some in _prepared(parts, file, (known or {}).get(file.path)):
            keyed = ((row.vector_key, row.chunk.embedding_text) for row in some)
            texts = {key: text for key, text in keyed if key is not None and key not in seen}
            seen |= texts.keys()
            stored = find_vectors(parts.store, texts, identity, parts.embedder, parts.cache)
            yield from ((key, text) for key, text in texts.items() if key not in stored)


def _prepared(parts: SyncParts, file: MemoryFile, known: FileRecord | None) -> Iterator[list[ChunkRow]]:
    """Yield the rows of a file, those of a transcript part by part."""
    workspace, chunking = parts.workspace, parts.config.chunking
    try:
        if file.source == "sessions":
            mark = known.hash if known is not None and known.vectors_missing is None else None
            for part in workspace.read_parts(file.path, mark):
                yield transcript_rows(part, file.path, chunking, vectors=True)
        else:
            text = read(workspace, file)[1]
            matter = document_in(file.path, text)
            yield rows(text, file.path, chunking, matter, vectors=True, policies=workspace.policies)
    except (OpenClawMemoryError, OSError):  # the run that follows reports it
        return
