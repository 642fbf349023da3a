"""The vectors of a coming index, gathered before the index that still answers is given up for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from openclaw_memory.config import Chunking
from openclaw_memory.embeddings._stream import stream
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.sync.prepare import read, rows
from openclaw_memory.types import Embedder, MemoryFile, Progress, Store
from openclaw_memory.workspace import Workspace


def gather(
    workspace: Workspace,
    store: Store,
    embedder: Embedder,
    chunking: Chunking,
    files: Sequence[MemoryFile],
    progress: Callable[[Progress], None] | None,
    *,
    held: Container[str] = (),
) -> tuple[int, int]:
    """Store every vector that an index of these files will need under the embedder's identity, but for those `held`.

    Returns how many texts were embedded, and how many tokens they came to at most. A file that cannot be read, and a
    text that is refused for itself, are left to the run that builds the index.

    Raises:
        EmbedderError: the embedder failed. What it gave before is stored.
    """
    embedded = tokens = done = 0
    started = time.perf_counter()

    def counted() -> Iterator[MemoryFile]:
        nonlocal done
        for file in files:
            done += 1
            yield file

    wanted = missing_texts(workspace, store, embedder.identity, chunking, counted())
    for some in stream(embedder, ((key, text) for key, text in wanted if key not in held)):
        if some.vectors is not None:
            store.add_vectors(some.keys, some.vectors, embedder.identity)
            embedded, tokens = embedded + len(some.keys), tokens + some.tokens
        elif some.error is not None and not some.isolated:
            raise some.error
        if progress:
            seconds = time.perf_counter() - started
            progress(Progress(done, len(files), "files embedded", embedded, tokens, seconds))
    return embedded, tokens


def missing_texts(
    workspace: Workspace, store: Store, identity: str, chunking: Chunking, files: Iterable[MemoryFile]
) -> Iterator[tuple[str, str]]:
    """The key and the text of each vector that an index of these files needs and the store has not, each once."""
    seen: set[str] = set()
    for file in files:
        texts = {key: text for key, text in _texts(workspace, file, chunking) if key not in seen}
        seen |= texts.keys()
        known = store.known_vectors(texts, identity) if texts else set()
        yield from ((key, text) for key, text in texts.items() if key not in known)


def _texts(workspace: Workspace, file: MemoryFile, chunking: Chunking) -> Iterator[tuple[str, str]]:
    try:
        _, text = read(workspace, file)
        prepared = rows(text, file.path, chunking, vectors=True)
    except (OpenClawMemoryError, OSError):  # told by the run that comes after
        return
    yield from ((row.vector_key, row.chunk.embedding_text) for row in prepared if row.vector_key is not None)
