"""One run over files that may have changed: each is read and chunked, its texts are embedded, its rows are written."""

from __future__ import annotations

import codecs
import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from openclaw_memory.chunking import MOST_CHUNKS, chunk, moved_down
from openclaw_memory.config import ChunkingConfig
from openclaw_memory.embeddings.stream import Embedded, add_vectors, find_service, find_vectors, stream
from openclaw_memory.embeddings.vectors import make_vector_key
from openclaw_memory.errors import EmbedderError, NotFoundError, OpenClawMemoryError, SealedFileError, UndecodableError
from openclaw_memory.indexing.background import SearchPriority
from openclaw_memory.indexing.changes import IN_PART, UNREAD_SIZE
from openclaw_memory.indexing.metadata import day_of_change, metadata_of
from openclaw_memory.indexing.odd_files import OddFile, odd
from openclaw_memory.text.front_matter import PART_OF, Embedding, FrontMatter, get_embedding, parse
from openclaw_memory.text.policies import NONE, Policies, mask_note
from openclaw_memory.text.terms import join_terms
from openclaw_memory.types import Chunk, ChunkRow, Embedder, FileRecord, IndexMeta, MemoryFile, Progress, Skipped, Store
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.where import DAY
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.document_cache import get_key
from openclaw_memory.workspace.documents import derive_key
from openclaw_memory.workspace.paths import (
    DOCUMENTS_FOLDER,
    is_date_title,
    list_date_terms,
    parse_day_in_name,
    parse_note_date,
)
from openclaw_memory.workspace.transcripts import MAX_LINE_BYTES, Part

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.store.embedding_cache import EmbeddingCache
    from openclaw_memory.types import Vector


# A transaction holds so many files, or as many as give so many chunks: it bounds both memory and the time that
# other writers wait.
FILES_PER_WRITE = 64
CHUNKS_PER_WRITE = 512
# With a service transactions are short: nothing is asked for while one lasts, and what it waits for may be lost.
FILES_WITH_SERVICE = 8
CHUNKS_WITH_SERVICE = 64


@dataclass(slots=True)
class Group:
    """Pieces that are written together once the vectors under `missing` exist; then `done` files are complete."""

    pieces: list[Piece]
    missing: set[str]
    done: int


@dataclass(slots=True)
class Run:
    """The parts of a run, and what it has done so far.

    `embedder` is None for keywords alone; an error in its place says why wanted vectors are unavailable. `meta` says
    what the rows are made for: the run ends with a StoreError where another process builds the index for something else
    meanwhile. `before` is what the index knew when the run began; with `rebuilding` its rows are gone, and it only
    shows which files have changed. A file is listed as added or changed once it has been written; one in `waiting`
    lacks vectors. `lacking` holds the keys of vectors that are not asked for, or no longer, and why.
    """

    workspace: Workspace
    store: Store
    embedder: Embedder | EmbedderError | None
    chunking: ChunkingConfig
    meta: IndexMeta
    before: Mapping[str, FileRecord]
    rebuilding: bool
    priority: SearchPriority
    cache: EmbeddingCache | None = None
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)
    waiting: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    odd: dict[str, OddFile] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    unchanged: int = 0
    embedded: int = 0
    tokens: int = 0
    _groups: deque[Group] = field(default_factory=deque)
    _asked: set[str] = field(default_factory=set)
    _lacks: dict[str, str] = field(default_factory=dict)  # why files lack vectors of which a piece has been written
    _limits: tuple[int, int] = field(init=False)  # how many files, or chunks, make a group

    def __post_init__(self) -> None:
        remote = find_service(self.embedder) is not None
        self._limits = (FILES_WITH_SERVICE, CHUNKS_WITH_SERVICE) if remote else (FILES_PER_WRITE, CHUNKS_PER_WRITE)

    def over(self, files: Sequence[MemoryFile], progress: Callable[[Progress], None] | None) -> None:
        """Bring the rows of these files up to date; `progress` is called between transactions."""
        started, reported = time.perf_counter(), 0

        def report(done: int) -> None:
            nonlocal reported
            reported = done
            if progress:
                seconds = time.perf_counter() - started
                progress(Progress(done, len(files), "files", self.embedded, self.tokens, seconds))

        wanted = self._wanted(files, report)
        # Files are read, and written, while texts that were taken before are being embedded.
        for embedded in stream(self.embedder or EmbedderError("no embedder"), wanted):
            self._keep(embedded)
            self._write(report)
        if reported < len(files) and len(self.failed) + len(self.odd) < len(files):  # what was tried in vain is no work
            report(len(files))

    def _wanted(self, files: Sequence[MemoryFile], report: Callable[[int], None]) -> Iterator[tuple[str, str]]:
        """Prepare the files in groups; yield the key and the text of each vector that is not stored."""
        batch: list[Piece] = []
        same: list[FileRecord] = []
        for done, file in enumerate(files, start=1):
            for piece in self._prepared(file):
                self.priority.yield_to_searches()
                if isinstance(piece, FileRecord):
                    same.append(piece)
                    continue
                batch.append(piece)
                if self._is_full(batch):
                    yield from self._opened(batch, done if piece.last else done - 1)
                    self._write(report)
                    batch = []
        if batch:
            yield from self._opened(batch, len(files))
            self._write(report)
        if same:
            self.store.replace_files([(record, None) for record in same], self.meta)
            for record in same:
                self._count(record)

    def _prepared(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        """Yield the pieces of a file, or its record alone where all its rows are indexed.

        A file that cannot be prepared yields nothing and is listed with its reason.
        """
        record = _record(file)
        try:
            yield from self._transcript(file) if file.source == "sessions" else self._note(file)
        except NotFoundError:
            self.vanished.append(file.path)
        except UndecodableError as error:
            why = reason(error).removeprefix(f"{file.path} ")
            self.skipped.append(Skipped(file.path, why))
            if isinstance(error, SealedFileError):
                if self.workspace.files.codec.key_id is None:
                    self.vanished.append(file.path)  # a plain index keeps nothing of it
            elif file.source == "memory":  # a transcript grows, and may be one of ours yet
                self.odd[file.path] = odd(record, why, is_read=False)
        except Exception as error:  # noqa: BLE001 - one odd file must not cost all others; it is reported
            self.failed.append(Skipped(file.path, reason(error)))

    def _note(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        record, text = read(self.workspace, file)
        if (encoding := self._other_encoding(file, text)) is not None:
            self.odd[file.path] = odd(record, f"is {encoding}, and read as such: save it as UTF-8", is_read=True)
        known = None if self.rebuilding else self.before.get(file.path)
        if (
            known is not None
            and (known.hash, known.source, known.vectors_missing)
            == (
                record.hash,
                record.source,
                None,
            )
            and _is_of_same_day(known, record)
        ):
            yield record
        else:
            matter = document_in(file.path, text)
            policies, vectors = self.workspace.policies, self.embedder is not None
            mtime_ns = record.mtime_ns
            found = rows(text, file.path, self.chunking, matter, mtime_ns, vectors=vectors, policies=policies)
            embedding = None if matter is None else get_embedding(text, matter.fields)
            if matter is not None:
                whole = matter.fields.get(PART_OF)
                doc_id = get_key(matter) or derive_key(file.path)
                if policies.mask(doc_id) != doc_id:
                    doc_id = derive_key(file.path)
                is_kept = isinstance(whole, str) and policies.mask(whole) == whole
                record = replace(record, doc_id=doc_id, part_of=whole if is_kept else None)
            if policies:
                record = replace(record, left_out=policies.name_matches(text))
            if cut := cut_in_words(found, text):
                self.skipped.append(Skipped(file.path, cut))
            if embedding is not None:
                found.append(ChunkRow(Chunk(1, 1, 0, ""), "", "", embedding.key, embedding.identity))
            yield Piece(record, found, embedding=embedding)

    def _other_encoding(self, file: MemoryFile, text: str) -> str | None:
        """Return the encoding of a file that is not in UTF-8. Most are: their size says so."""
        size = len(text.encode("utf-8", "surrogatepass"))
        is_utf8 = text.isascii() or file.size - size in {0, len(codecs.BOM_UTF8)}
        return None if is_utf8 else self.workspace.find_encoding(file.path)

    def _transcript(self, file: MemoryFile) -> Iterator[Piece | FileRecord]:
        vectors, size = self.embedder is not None, self._limits[1]
        known = None if self.rebuilding else self._known_transcript(file)
        for piece in transcript_pieces(self.workspace, file, known, self.chunking, vectors=vectors, size=size):
            yield piece
            if isinstance(piece, Piece) and piece.left_out:
                self.skipped.append(Skipped(file.path, piece.left_out))

    def _known_transcript(self, file: MemoryFile) -> FileRecord | None:
        """Return the record from which reading continues; None where missing vectors may be available now."""
        known = self.before.get(file.path)
        if known is None or known.vectors_missing is None:
            return known
        return replace(known, vectors_missing=str(self.embedder)) if isinstance(self.embedder, EmbedderError) else None

    def _is_full(self, batch: Sequence[Piece]) -> bool:
        files, chunks = self._limits
        return len(batch) >= files or sum(len(piece.rows) for piece in batch) >= chunks

    def _opened(self, batch: list[Piece], done: int) -> Iterator[tuple[str, str]]:
        texts = {key: row.chunk.embedding_text for key, row in _embedded(_all_rows(batch))}
        known = find_vectors(self.store, texts, self.meta.identity, self.embedder, self.cache)
        missing = [key for key in texts if key not in known]
        self._groups.append(Group(batch, set(missing), done))
        fresh = [key for key in missing if key not in self._asked and key not in self.lacking]
        self._asked.update(fresh)
        return ((key, texts[key]) for key in fresh)

    def _keep(self, embedded: Embedded) -> None:
        """Store vectors as soon as they arrive, so that they are never requested twice."""
        self._asked.difference_update(embedded.keys)
        error = embedded.error
        if embedded.vectors is not None:
            try:
                add_vectors(self.store, embedded, self.meta.identity, self.cache)
            except EmbedderError as refused:  # of other dimensions than the index holds
                error = refused
            else:
                self.embedded += len(embedded.keys)
                self.tokens += embedded.tokens
        if error is not None:
            self.lacking.update(dict.fromkeys(embedded.keys, str(error)))

    def _write(self, report: Callable[[int], None]) -> None:
        """Write the groups, in their order, that wait for no more vectors."""
        while self._groups and self._groups[0].missing.isdisjoint(self._asked):
            group = self._groups.popleft()
            pieces = [self._without_lacking(piece, group.missing) for piece in group.pieces]
            self._keep_given(piece.embedding for piece in pieces if piece.embedding is not None)
            if whole := [(piece.record, piece.rows) for piece in pieces if piece.from_line == 1]:
                self.store.replace_files(whole, self.meta)
            for piece in pieces:
                if piece.from_line > 1:
                    self.store.extend_file(piece.record, piece.rows, piece.from_line, self.meta)
                # A new file without a line that could be read is reported as left out, and not as added.
                is_unreadable = piece.left_out and piece.from_line == 1 and not piece.rows
                if piece.last and not (is_unreadable and piece.record.path not in self.before):
                    self._count(piece.record)
            report(group.done)

    def _keep_given(self, embeddings: Iterable[Embedding]) -> None:
        """Store the vectors that are in the front matter of documents."""
        import numpy as np

        given: dict[str, dict[str, Vector]] = {}
        for one in embeddings:
            if (vector := _decoded(one)) is not None:
                given.setdefault(one.identity, {})[one.key] = vector
        for identity, vectors in given.items():
            self.store.add_vectors(list(vectors), np.stack(list(vectors.values())), identity)

    def _without_lacking(self, piece: Piece, missing: set[str]) -> Piece:
        """Return the piece without the keys of unavailable vectors; its record says what the file lacks so far."""
        record, found = piece.record, piece.rows
        keys = [key for key, _ in _embedded(found)]
        lacking = dict.fromkeys(key for key in keys if key in missing and key in self.lacking)
        lacks = self._lacks.get(record.path, record.vectors_missing)
        if lacking:
            found = [replace(row, vector_key=None) if row.vector_key in lacking else row for row in found]
            lacks = self.lacking[next(iter(lacking))]
        if lacks is None:
            return piece
        self._lacks[record.path] = lacks
        return piece._replace(record=replace(record, vectors_missing=lacks), rows=found)

    def _count(self, record: FileRecord) -> None:
        known = self.before.get(record.path)
        if known is None:
            self.added.append(record.path)
        elif known.hash != record.hash:
            self.changed.append(record.path)
        else:
            self.unchanged += 1
        if record.vectors_missing is not None:
            self.waiting.append(Skipped(record.path, record.vectors_missing))


def reason(error: Exception) -> str:
    """Return an error in words; a foreign one is named by its type, since its message alone may say nothing."""
    words = str(error)
    return words if words and isinstance(error, OSError | OpenClawMemoryError) else f"{type(error).__name__}: {words}"


def _all_rows(batch: Sequence[Piece]) -> Iterator[ChunkRow]:
    return (row for piece in batch for row in piece.rows)


def _embedded(found: Iterable[ChunkRow]) -> Iterator[tuple[str, ChunkRow]]:
    """Yield the rows whose vectors the embedder makes, with their keys: the others came with their documents."""
    return ((row.vector_key, row) for row in found if row.vector_key is not None and row.identity is None)


class Piece(NamedTuple):
    """What is written of a file at once: its rows from line `from_line` on, and its record afterwards.

    A note is one piece, a long transcript several. Until the `last` one is written, the record has no size, which marks
    the file as unfinished. `left_out` says which lines of the file could not be read, `embedding` what the front matter
    of a document says of the vector that came with it.
    """

    record: FileRecord
    rows: list[ChunkRow]
    from_line: int = 1
    last: bool = True
    left_out: str = ""
    embedding: Embedding | None = None


def read(workspace: Workspace, file: MemoryFile) -> tuple[FileRecord, str]:
    """Return the record and the text of a note.

    The time is taken before the content is read: a later write changes the stamp, or leaves it in doubt.

    Raises:
        OpenClawMemoryError: The file is no longer allowed, or cannot be read as text.
        OSError: The file has vanished or cannot be read.
    """
    record = _record(file)
    text = workspace.read(file.path)
    return replace(record, hash=sha256(text.encode("utf-8", "surrogatepass")).hexdigest()), text


def _is_of_same_day(known: FileRecord, record: FileRecord) -> bool:
    """Return whether chunks of a note of the same text have the same day, which may be that of its last change."""
    if known.mtime_ns == record.mtime_ns or parse_note_date(record.path) is not None:
        return True
    return day_of_change(known.mtime_ns) == day_of_change(record.mtime_ns)


def document_in(path: str, text: str) -> FrontMatter | None:
    """Return the document in a file; None for any other file."""
    return parse(text) if path.startswith(f"{DOCUMENTS_FOLDER}/") else None


def rows(
    text: str,
    path: str,
    rules: ChunkingConfig,
    document: FrontMatter | None,
    mtime_ns: int | None = None,
    *,
    vectors: bool,
    policies: Policies = NONE,
) -> list[ChunkRow]:
    """Return the chunks of a note, each with its terms and, where `vectors` are wanted, the key of its vector.

    With `mtime_ns`, when the file was last changed, they have what searches can filter by.

    The words of the path count as context for the keyword index, so that a file is found by its name. They are not
    embedded: every rename would embed the file again. Text recalled from the memory, and lines that policies leave out,
    are left out, and secrets are masked; lines keep their numbers, and offsets are those of the remaining text.
    """
    day = parse_day_in_name(path)
    pieces = chunk(mask_note(text, policies), path, rules, note_date=day)
    if policies:
        text = policies.mask(text)
        document = document and document._replace(fields=policies.mask_value(document.fields))
    if metadata := {} if mtime_ns is None else metadata_of(path, text, document, mtime_ns):
        pieces = [replace(piece, metadata=metadata) for piece in pieces]
    return _rows(pieces, path, day, vectors=vectors)


def _decoded(embedding: Embedding) -> Vector | None:
    """Return the unit vector, shape (dims,), in a file; None where it is missing or damaged."""
    import numpy as np

    try:
        numbers = np.frombuffer(b64decode(embedding.vector or "", validate=True), dtype="<f4").astype(np.float64)
    except ValueError:
        return None
    if not numbers.size or numbers.size != embedding.dims or not np.isfinite(numbers).all():
        return None
    unit: Vector = (numbers / (np.linalg.norm(numbers) or 1.0)).astype(np.float32)
    return unit


def cut_in_words(found: Sequence[ChunkRow], text: str) -> str:
    """Return how much of a note its rows hold where it has more chunks than are made of one file; "" for all of it."""
    if len(found) < MOST_CHUNKS:
        return ""
    last = found[-1].chunk
    end = last.start_char + len(last.text)
    if not text[end:].strip():
        return ""
    return (
        f"{IN_PART} {last.end_line:,} of {text.count(chr(10)) + 1:,}, character {end:,} of {len(text):,}: "
        f"of one file {MOST_CHUNKS:,} chunks are made; split it into several"
    )


def transcript_rows(part: Part, path: str, rules: ChunkingConfig, *, vectors: bool) -> list[ChunkRow]:
    """Return the chunks of a part of a transcript, cut as a note of its day is, with lines and offsets in the whole."""
    pieces = chunk(part.text, path, rules, note_date=part.day)
    day = {DAY: str(part.day)} if part.day else {}
    placed = (replace(moved_down(one, part.first_line - 1, part.start_char), metadata=day) for one in pieces)
    return _rows(placed, path, part.day, vectors=vectors)


def transcript_pieces(
    workspace: Workspace, file: MemoryFile, known: FileRecord | None, rules: ChunkingConfig, *, vectors: bool, size: int
) -> Iterator[Piece | FileRecord]:
    """Yield what is to be written of a transcript after `known`, its record in the index; None: all of it.

    A piece has at least `size` chunks, except the last one, and at most one part more. Where nothing was added, only
    the record with its new stamp is yielded.

    Raises:
        OpenClawMemoryError: As `read`, before any piece or between two of them.
        OSError: As `read`.
    """
    record = _record(file, known)
    found: list[ChunkRow] = []
    unreadable: list[tuple[int, int]] = []
    from_line, mark, lacks = 0, record.hash, record.vectors_missing
    for part in workspace.read_parts(file.path, record.hash):
        if len(found) >= size:
            so_far = replace(record, hash=mark, vectors_missing=lacks, size=UNREAD_SIZE)
            yield Piece(so_far, found, from_line, last=False)
            found, from_line = [], 0
        found += transcript_rows(part, file.path, rules, vectors=vectors)
        from_line = from_line or part.first_line
        mark = str(part.mark)
        lacks = None if part.first_line == 1 else lacks  # a file that was rewritten lacks nothing yet
        if part.unreadable:
            unreadable.append((part.first_unreadable, part.unreadable))
    record = replace(record, hash=mark, vectors_missing=lacks)
    yield Piece(record, found, from_line, left_out=_left_out(unreadable)) if from_line else record


def _left_out(unreadable: Sequence[tuple[int, int]]) -> str:
    """Return in words which lines of a transcript could not be read: the first one's number, and the count."""
    if not unreadable:
        return ""
    first, count = unreadable[0][0], sum(count for _, count in unreadable)
    what = f"JSON object of at most {MAX_LINE_BYTES >> 20} MiB"
    if count == 1:
        return f"line {first} is no {what} and was left out"
    return f"{count} lines are no {what} and were left out, the first is line {first}"


def _record(file: MemoryFile, known: FileRecord | None = None) -> FileRecord:
    """Return the record of a file before it is read: its stamp now, with the content and gaps of `known`."""
    digest, lacks = (known.hash, known.vectors_missing) if known else ("", None)
    return FileRecord(
        file.path, file.source, digest, file.size, file.mtime_ns, file.inode, time.time_ns(), lacks, file.ctime_ns
    )


def _rows(pieces: Iterable[Chunk], path: str, day: datetime.date | None, *, vectors: bool) -> list[ChunkRow]:
    name = get_plain_name(path).removesuffix(".md").removesuffix(".jsonl")
    dates = list_date_terms(day) if day else ()

    @cache  # most chunks have the context of the one before
    def about(context: str) -> str:
        return " ".join([join_terms(f"{context} {name}"), *dates])

    def row(piece: Chunk) -> ChunkRow:
        if is_date_title(piece.text):  # it would be found by its date, before what was written on that day
            return ChunkRow(piece, "", "", None)
        return ChunkRow(
            piece,
            join_terms(piece.text),
            about(piece.context),
            make_vector_key(piece.embedding_text) if vectors else None,
        )

    return [row(piece) for piece in pieces]
