"""One run over files that may have changed: each is read and cut, its texts are embedded, and its rows are written."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from openclaw_memory.config import Chunking
from openclaw_memory.embeddings.stream import Embedded, asks_service, stream
from openclaw_memory.errors import EmbedderError, NotFoundError, OpenClawMemoryError, UndecodableError
from openclaw_memory.sync.courtesy import no_hurry
from openclaw_memory.sync.prepare import Piece, read, rows, transcript_pieces
from openclaw_memory.types import (
    ChunkRow,
    Embedder,
    FileRecord,
    IndexMeta,
    MemoryFile,
    Progress,
    Skipped,
    Store,
)
from openclaw_memory.workspace import Workspace

# A transaction holds so many files, or as many as give so many chunks: it bounds both memory and the time that
# other writers wait.
FILES_PER_WRITE = 64
CHUNKS_PER_WRITE = 512
# Beside a service transactions are short: nothing is asked for while one lasts, and what it waits for may be lost.
FILES_BESIDE_SERVICE = 8
CHUNKS_BESIDE_SERVICE = 64


@dataclass(slots=True)
class Group:
    """Pieces that are written together, as soon as the vectors under `missing` are there; `done` files are then."""

    pieces: list[Piece]
    missing: set[str]
    done: int


@dataclass(slots=True)
class Run:
    """The parts of a run, and what it has done so far.

    `embedder` is None for keywords alone; an error in its place says why there are no vectors, though they are
    wanted. `meta` says what the rows are made for: where another process makes the index another one meanwhile, the run
    ends with a StoreError. `before` is what the index knew when the run began; with `anew` its rows are gone, and it
    only tells which files have changed. A file is listed as added or changed once it has been written; one in
    `waiting` lacks vectors. `lacking` holds the keys of vectors that are not asked for, or not any more, and why.
    """

    workspace: Workspace
    store: Store
    embedder: Embedder | EmbedderError | None
    chunking: Chunking
    meta: IndexMeta
    before: Mapping[str, FileRecord]
    anew: bool
    give_way: Callable[[], None] = no_hurry
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)
    waiting: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    unchanged: int = 0
    embedded: int = 0
    tokens: int = 0
    _groups: deque[Group] = field(default_factory=deque)
    _asked: set[str] = field(default_factory=set)
    _lacks: dict[str, str] = field(default_factory=dict)  # why files lack vectors of which a piece has been written

    def over(self, files: Sequence[MemoryFile], progress: Callable[[Progress], None] | None) -> None:
        """Bring the rows of these files up to date; `progress` is called between transactions."""
        started, told = time.perf_counter(), 0

        def tell(done: int) -> None:
            nonlocal told
            told = done
            if progress:
                seconds = time.perf_counter() - started
                progress(Progress(done, len(files), "files", self.embedded, self.tokens, seconds))

        wanted = self._wanted(files, tell)
        # Files are read, and written, while texts that were taken before are being embedded.
        for embedded in stream(self.embedder or EmbedderError("no embedder"), wanted):
            self._keep(embedded)
            self._write(tell)
        if told < len(files):
            tell(len(files))

    def _wanted(self, files: Sequence[MemoryFile], tell: Callable[[int], None]) -> Iterator[tuple[str, str]]:
        """Prepare the files in groups; yields the key and the text of each vector that is not stored."""
        batch: list[Piece] = []
        same: list[FileRecord] = []
        for done, file in enumerate(files, start=1):
            for piece in self._prepared(file):
                self.give_way()
                if isinstance(piece, FileRecord):
                    same.append(piece)
                    continue
                batch.append(piece)
                if self._is_full(batch):
                    yield from self._opened(batch, done if piece.last else done - 1)
                    self._write(tell)
                    batch = []
        if batch:
            yield from self._opened(batch, len(files))
            self._write(tell)
        if same:
            self.store.touch_files(same, self.meta)
            for record in same:
                self._count(record)

    def _prepared(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        """The pieces of a file, its record alone where the index holds all rows already; none where it cannot be read.

        What cannot be prepared is listed with its reason.
        """
        try:
            yield from self._transcript(file) if file.source == "sessions" else self._note(file)
        except NotFoundError:
            self.vanished.append(file.path)
        except UndecodableError as error:
            self.skipped.append(Skipped(file.path, reason(error)))
        except Exception as error:  # noqa: BLE001 - one odd file must not cost all others; it is reported
            self.failed.append(Skipped(file.path, reason(error)))

    def _note(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        record, text = read(self.workspace, file)
        known = None if self.anew else self.before.get(file.path)
        if known is not None and (known.hash, known.source, known.lacks) == (record.hash, record.source, None):
            yield record
        else:
            yield Piece(record, rows(text, file.path, self.chunking, vectors=self.embedder is not None))

    def _transcript(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        vectors, size = self.embedder is not None, self._limits()[1]
        known = None if self.anew else self._known_transcript(file)
        for piece in transcript_pieces(self.workspace, file, known, self.chunking, vectors=vectors, size=size):
            yield piece
            if isinstance(piece, Piece) and piece.left_out:
                self.skipped.append(Skipped(file.path, piece.left_out))

    def _known_transcript(self, file: MemoryFile) -> FileRecord | None:
        """The record from which the reading goes on; None where vectors are lacking that may be had now."""
        known = self.before.get(file.path)
        if known is None or known.lacks is None:
            return known
        return replace(known, lacks=str(self.embedder)) if isinstance(self.embedder, EmbedderError) else None

    def _limits(self) -> tuple[int, int]:
        """How many files, or chunks, make a group."""
        beside = asks_service(self.embedder)
        return (FILES_BESIDE_SERVICE, CHUNKS_BESIDE_SERVICE) if beside else (FILES_PER_WRITE, CHUNKS_PER_WRITE)

    def _is_full(self, batch: Sequence[Piece]) -> bool:
        files, chunks = self._limits()
        return len(batch) >= files or sum(len(piece.rows) for piece in batch) >= chunks

    def _opened(self, batch: list[Piece], done: int) -> Iterator[tuple[str, str]]:
        texts = {row.vector_key: row.chunk.embedding_text for row in _rows(batch) if row.vector_key is not None}
        known = self.store.known_vectors(texts, self.meta.identity) if texts else set()
        missing = [key for key in texts if key not in known]
        self._groups.append(Group(batch, set(missing), done))
        fresh = [key for key in missing if key not in self._asked and key not in self.lacking]
        self._asked.update(fresh)
        return ((key, texts[key]) for key in fresh)

    def _keep(self, embedded: Embedded) -> None:
        """Store vectors as soon as they are there, so that they are not asked for again whatever comes."""
        self._asked.difference_update(embedded.keys)
        error = embedded.error
        if embedded.vectors is not None:
            try:
                self.store.add_vectors(embedded.keys, embedded.vectors, self.meta.identity)
            except EmbedderError as refused:  # of other dimensions than the index holds
                error = refused
            else:
                self.embedded += len(embedded.keys)
                self.tokens += embedded.tokens
        if error is not None:
            self.lacking.update(dict.fromkeys(embedded.keys, str(error)))

    def _write(self, tell: Callable[[int], None]) -> None:
        """Write the groups, in their order, that wait for no vector any more."""
        while self._groups and self._groups[0].missing.isdisjoint(self._asked):
            group = self._groups.popleft()
            pieces = [self._without_lacking(piece, group.missing) for piece in group.pieces]
            if whole := [(piece.record, piece.rows) for piece in pieces if piece.from_line == 1]:
                self.store.replace_files(whole, self.meta)
            for piece in pieces:
                if piece.from_line > 1:
                    self.store.extend_file(piece.record, piece.rows, piece.from_line, self.meta)
                if piece.last:
                    self._count(piece.record)
            tell(group.done)

    def _without_lacking(self, piece: Piece, missing: set[str]) -> Piece:
        """The piece with no vector key where no vector could be had; its record says what the file lacks so far."""
        record, found = piece.record, piece.rows
        keys = [row.vector_key for row in found if row.vector_key is not None]
        lacking = dict.fromkeys(key for key in keys if key in missing and key in self.lacking)
        lacks = self._lacks.get(record.path, record.lacks)
        if lacking:
            found = [replace(row, vector_key=None) if row.vector_key in lacking else row for row in found]
            lacks = self.lacking[next(iter(lacking))]
        if lacks is None:
            return piece
        self._lacks[record.path] = lacks
        return piece._replace(record=replace(record, lacks=lacks), rows=found)

    def _count(self, record: FileRecord) -> None:
        known = self.before.get(record.path)
        if known is None:
            self.added.append(record.path)
        elif known.hash != record.hash:
            self.changed.append(record.path)
        else:
            self.unchanged += 1
        if record.lacks is not None:
            self.waiting.append(Skipped(record.path, record.lacks))


def reason(error: Exception) -> str:
    """An error in words; one that is not ours is named by its type, since its message alone may say nothing."""
    words = str(error)
    return words if words and isinstance(error, OSError | OpenClawMemoryError) else f"{type(error).__name__}: {words}"


def _rows(batch: Sequence[Piece]) -> Iterator[ChunkRow]:
    return (row for piece in batch for row in piece.rows)
