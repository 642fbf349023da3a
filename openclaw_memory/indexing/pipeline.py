"""Run over files that may have changed: read and chunk each, embed its texts, write its rows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from openclaw_memory.embeddings.stream import Embedded, add_vectors, find_service, find_vectors, stream
from openclaw_memory.errors import EmbedderError, NotFoundError, OpenClawMemoryError, SealedFileError, UndecodableError
from openclaw_memory.indexing.changes import SyncParts
from openclaw_memory.indexing.file_rows import Piece, is_unchanged, make_note_piece, read_note, split_transcript
from openclaw_memory.types import ChunkRow, FileRecord, IndexMeta, MemoryFile, Progress, Store, SyncReport
from openclaw_memory.types.files import Skipped

# A transaction holds so many files, or as many as give so many chunks: it bounds both memory and the time that
# other writers wait.
FILES_PER_WRITE = 64
CHUNKS_PER_WRITE = 512
# With a service transactions are short: nothing is asked for while one lasts, and the vectors of its rows may be lost.
FILES_WITH_SERVICE = 8
CHUNKS_WITH_SERVICE = 64


class Group(NamedTuple):
    """Pieces that are written together once the vectors under `missing` exist; then `files` files are complete."""

    pieces: list[Piece]
    missing: set[str]
    files: int


class Run:
    """One run over files, and its results so far.

    Attributes:
        vanished: Files that were gone when they were to be read.
    """

    def __init__(
        self,
        parts: SyncParts,
        store: Store,
        meta: IndexMeta,
        indexed: Mapping[str, FileRecord],
        before: Mapping[str, FileRecord],
        error: EmbedderError | None,
        lacking: dict[str, str],
    ) -> None:
        """Take the parts.

        Args:
            parts: The parts of the sync.
            store: The index to write to.
            meta: Its description. The run ends with a StoreError if another process builds it for something else.
            indexed: The files whose rows are in that index.
            before: The files of the index before, by which files are counted as added or changed.
            error: Why vectors are unavailable.
            lacking: The keys of vectors that are not asked for, and why.
        """
        self.vanished: list[str] = []
        self._parts, self._store, self._meta = parts, store, meta
        self._indexed, self._before, self._lacking = indexed, before, lacking
        self._embedder = error or parts.embedder
        self._added: list[str] = []
        self._changed: list[str] = []
        self._failed: list[Skipped] = []
        self._waiting: list[Skipped] = []
        self._skipped: list[Skipped] = []
        self._unchanged = self._embedded = self._tokens = 0
        self._groups: deque[Group] = deque()
        self._requested: set[str] = set()  # keys of texts that are being embedded
        self._gaps: dict[str, str] = {}  # why files lack vectors of which a piece has been written
        self._max_files, self._max_chunks = (
            (FILES_WITH_SERVICE, CHUNKS_WITH_SERVICE)
            if find_service(self._embedder) is not None
            else (FILES_PER_WRITE, CHUNKS_PER_WRITE)
        )

    def update(self, files: Sequence[MemoryFile]) -> None:
        """Bring the rows of these files up to date; progress is reported between transactions."""
        started, reported = time.perf_counter(), 0

        def report(count: int) -> None:
            nonlocal reported
            reported = count
            if self._parts.progress:
                seconds = time.perf_counter() - started
                self._parts.progress(Progress(count, len(files), "files", self._embedded, self._tokens, seconds))

        # Files are read, and written, while texts that were taken before are being embedded.
        for batch in stream(self._embedder or EmbedderError("no embedder"), self._take_texts(files, report)):
            self._keep_vectors(batch)
            self._write(report)
        if reported < len(files) and len(self._failed) + len(self._skipped) < len(files):  # failed tries are no work
            report(len(files))

    def extend_report(self, report: SyncReport) -> SyncReport:
        """Return a report with the results of this run added."""
        return replace(
            report,
            added=tuple(sorted(self._added)),
            changed=tuple(sorted(self._changed)),
            unchanged=report.unchanged + self._unchanged,
            failed=tuple(self._failed),
            waiting=tuple(self._waiting),
            skipped=(*report.skipped, *self._skipped),
            embedded=report.embedded + self._embedded,
            tokens=report.tokens + self._tokens,
        )

    def _take_texts(self, files: Sequence[MemoryFile], report: Callable[[int], None]) -> Iterator[tuple[str, str]]:
        """Prepare the files in groups; yield the key and the text of each vector that is not stored."""
        pieces: list[Piece] = []
        stamps: list[FileRecord] = []
        for number, file in enumerate(files, start=1):
            for piece in self._prepare(file):
                self._parts.priority.yield_to_searches()
                if isinstance(piece, FileRecord):
                    stamps.append(piece)
                    continue
                pieces.append(piece)
                chunks = sum(len(piece.rows) for piece in pieces)
                if len(pieces) >= self._max_files or chunks >= self._max_chunks:
                    yield from self._open_group(pieces, number if piece.is_last else number - 1)
                    self._write(report)
                    pieces = []
        if pieces:
            yield from self._open_group(pieces, len(files))
            self._write(report)
        if stamps:
            self._store.replace_files([(record, None) for record in stamps], self._meta)
            for record in stamps:
                self._count(record)

    def _prepare(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        """Yield the pieces of a file, or its record alone if all its rows are indexed.

        A file that cannot be prepared yields nothing and is listed with its reason.
        """
        try:
            for piece in self._split(file):
                yield piece
                if isinstance(piece, Piece) and piece.left_out:
                    self._skipped.append(Skipped(file.path, piece.left_out))
        except NotFoundError:
            self.vanished.append(file.path)
        except UndecodableError as error:
            reason = _explain(error).removeprefix(f"{file.path} ")
            self._skipped.append(Skipped(file.path, reason))
            if isinstance(error, SealedFileError) and self._parts.workspace.files.codec.key_id is None:
                self.vanished.append(file.path)  # a plain index keeps nothing of it
        except Exception as error:  # noqa: BLE001 - one odd file must not cost all others; it is reported
            self._failed.append(Skipped(file.path, _explain(error)))

    def _split(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        workspace, chunking = self._parts.workspace, self._parts.config.chunking
        last, with_vectors = self._indexed.get(file.path), self._embedder is not None
        if file.source == "sessions":
            if last is not None and last.vectors_missing is not None:  # they may be available now
                unavailable = str(self._embedder) if isinstance(self._embedder, EmbedderError) else None
                last = replace(last, vectors_missing=unavailable) if unavailable else None
            yield from split_transcript(
                workspace, file, last, chunking, with_vectors=with_vectors, size=self._max_chunks
            )
            return
        record, text = read_note(workspace, file)
        if is_unchanged(record, last):
            yield record
        else:
            yield make_note_piece(record, text, chunking, workspace.policies, with_vectors=with_vectors)

    def _open_group(self, pieces: list[Piece], files: int) -> Iterator[tuple[str, str]]:
        texts = {key: row.chunk.embedding_text for piece in pieces for key, row in _list_keyed(piece.rows)}
        stored = find_vectors(self._store, texts, self._meta.identity, self._embedder, self._parts.cache)
        missing = [key for key in texts if key not in stored]
        self._groups.append(Group(pieces, set(missing), files))
        fresh = [key for key in missing if key not in self._requested and key not in self._lacking]
        self._requested.update(fresh)
        return ((key, texts[key]) for key in fresh)

    def _keep_vectors(self, batch: Embedded) -> None:
        """Store vectors as soon as they arrive, so that they are never requested twice."""
        self._requested.difference_update(batch.keys)
        error = batch.error
        if batch.vectors is not None:
            try:
                add_vectors(self._store, batch, self._meta.identity, self._parts.cache)
            except EmbedderError as refusal:  # of other dimensions than the index holds
                error = refusal
            else:
                self._embedded += len(batch.keys)
                self._tokens += batch.tokens
        if error is not None:
            self._lacking.update(dict.fromkeys(batch.keys, str(error)))

    def _write(self, report: Callable[[int], None]) -> None:
        """Write the groups, in their order, that wait for no more vectors."""
        while self._groups and self._groups[0].missing.isdisjoint(self._requested):
            group = self._groups.popleft()
            pieces = [self._drop_lacking(piece, group.missing) for piece in group.pieces]
            if whole := [(piece.record, piece.rows) for piece in pieces if piece.from_line == 1]:
                self._store.replace_files(whole, self._meta)
            for piece in pieces:
                if piece.from_line > 1:
                    self._store.extend_file(piece.record, piece.rows, piece.from_line, self._meta)
                # A new file without a line that could be read is reported as left out, and not as added.
                is_unreadable = piece.left_out and piece.from_line == 1 and not piece.rows
                if piece.is_last and not (is_unreadable and piece.record.path not in self._before):
                    self._count(piece.record)
            report(group.files)

    def _drop_lacking(self, piece: Piece, missing: set[str]) -> Piece:
        """Return the piece without the keys of unavailable vectors; its record has the reason."""
        record, rows = piece.record, piece.rows
        lacking = [key for key, _ in _list_keyed(rows) if key in missing and key in self._lacking]
        reason = self._lacking[lacking[0]] if lacking else self._gaps.get(record.path, record.vectors_missing)
        if reason is None:
            return piece
        self._gaps[record.path] = reason
        if lacking:
            keys = set(lacking)
            rows = [replace(row, vector_key=None) if row.vector_key in keys else row for row in rows]
        return piece._replace(record=replace(record, vectors_missing=reason), rows=rows)

    def _count(self, record: FileRecord) -> None:
        before = self._before.get(record.path)
        if before is None:
            self._added.append(record.path)
        elif before.hash != record.hash:
            self._changed.append(record.path)
        else:
            self._unchanged += 1
        if record.vectors_missing is not None:
            self._waiting.append(Skipped(record.path, record.vectors_missing))


def _explain(error: Exception) -> str:
    """Return the message of an error; a foreign one is named by its type, since its message alone may say nothing."""
    message = str(error)
    is_own = message and isinstance(error, OSError | OpenClawMemoryError)
    return message if is_own else f"{type(error).__name__}: {message}"


def _list_keyed(rows: Iterable[ChunkRow]) -> Iterator[tuple[str, ChunkRow]]:
    """Yield the rows with vectors of the embedder, with their keys: other vectors came with their documents."""
    return ((row.vector_key, row) for row in rows if row.vector_key is not None and row.identity is None)
