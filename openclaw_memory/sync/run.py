"""One run over files that may have changed: each is read and cut, batches are embedded and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from openclaw_memory.config import Chunking
from openclaw_memory.embeddings import checked_vectors
from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, UndecodableError
from openclaw_memory.sync.prepare import read, rows
from openclaw_memory.types import (
    ChunkRow,
    Embedder,
    FileRecord,
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
# Texts handed to the embedder at once; a provider splits further by its own limits.
TEXTS_PER_CALL = 256

PreparedFile = tuple[FileRecord, list[ChunkRow]]


@dataclass(slots=True)
class Run:
    """The parts of a run, and what it has done so far.

    `before` is what the index knew when the run began; with `anew` its rows are gone, and it only tells which files
    have changed. A file is listed as added or changed once it has been written.
    """

    workspace: Workspace
    store: Store
    embedder: Embedder | None
    chunking: Chunking
    before: Mapping[str, FileRecord]
    anew: bool
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    unchanged: int = 0
    embedded: int = 0

    def over(self, files: Sequence[MemoryFile], progress: Callable[[Progress], None] | None) -> None:
        """Bring the rows of these files up to date; `progress` is called between transactions."""
        batch: list[PreparedFile] = []
        same: list[FileRecord] = []
        for done, file in enumerate(files, start=1):
            try:
                prepared = self._prepare(file)
            except NotFoundError:
                self.vanished.append(file.path)
            except UndecodableError as error:
                self.skipped.append(Skipped(file.path, reason(error)))
            except Exception as error:  # noqa: BLE001 - one odd file must not cost all others; it is reported
                self.failed.append(Skipped(file.path, reason(error)))
            else:
                if isinstance(prepared, FileRecord):
                    same.append(prepared)
                else:
                    batch.append(prepared)
            if done == len(files) or _is_full(batch):
                self._write(batch)
                batch = []
                if progress:
                    progress(Progress(done, len(files), "files"))
        if same:
            self.store.touch_files(same)
            self.unchanged += len(same)

    def _prepare(self, file: MemoryFile) -> PreparedFile | FileRecord:
        """The file with its rows, or its record alone where the index holds these rows already."""
        record, text = read(self.workspace, file)
        known = self.before.get(file.path)
        if not self.anew and known is not None and (known.hash, known.source) == (record.hash, record.source):
            return record
        return record, rows(text, file.path, self.chunking, vectors=self.embedder is not None)

    def _write(self, batch: Sequence[PreparedFile]) -> None:
        if not batch:
            return
        self._embed([row for _, file_rows in batch for row in file_rows])
        self.store.replace_files(batch)
        for record, _ in batch:
            known = self.before.get(record.path)
            if known is None:
                self.added.append(record.path)
            elif known.hash != record.hash:
                self.changed.append(record.path)
            else:
                self.unchanged += 1

    def _embed(self, file_rows: Sequence[ChunkRow]) -> None:
        """Embed the texts whose vectors are not stored yet; each call's vectors are kept at once."""
        if self.embedder is None:
            return
        texts = {row.vector_key: row.chunk.embedding_text for row in file_rows if row.vector_key is not None}
        known = self.store.known_vectors(texts)
        missing = [key for key in texts if key not in known]
        for first in range(0, len(missing), TEXTS_PER_CALL):
            keys = missing[first : first + TEXTS_PER_CALL]
            answer = self.embedder.embed_documents([texts[key] for key in keys])
            origin = f"embedder {self.embedder.provider} {self.embedder.model}".strip()
            self.store.add_vectors(keys, checked_vectors(answer, len(keys), origin))
            self.embedded += len(keys)


def reason(error: Exception) -> str:
    """An error in words; one that is not ours is named by its type, since its message alone may say nothing."""
    words = str(error)
    return words if words and isinstance(error, OSError | OpenClawMemoryError) else f"{type(error).__name__}: {words}"


def _is_full(batch: Sequence[PreparedFile]) -> bool:
    return len(batch) >= FILES_PER_WRITE or sum(len(file_rows) for _, file_rows in batch) >= CHUNKS_PER_WRITE
