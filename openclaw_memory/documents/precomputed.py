"""The vectors that came with documents: one each, all of one model, which finds them by their exact cosine.

They are kept in a file of their own beside the memory's index. Like that one it is derived, follows the notes, and may
be deleted: a vector that nobody can make again stands above the text of its document, and every other one is made again
by whoever is at hand that can.
"""

from __future__ import annotations

import os
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory._log import warn
from openclaw_memory.documents.following import Read, follow
from openclaw_memory.documents.validation import Where, check_k, distinct, rows_of, unit_of
from openclaw_memory.errors import (
    CorruptIndexError,
    EmbedderError,
    NotFoundError,
    StoreError,
    SyncBusyError,
    WorkspaceError,
)
from openclaw_memory.indexing.changes import compare, same_stamp
from openclaw_memory.indexing.history import DOCUMENTS
from openclaw_memory.indexing.lock import one_at_a_time
from openclaw_memory.indexing.staleness import PATIENCE_SECONDS
from openclaw_memory.text.front_matter import EMBEDDING, MODEL, VECTOR
from openclaw_memory.types import Document, Maker, MemoryFile
from openclaw_memory.workspace.documents import vector_above
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER
from openclaw_memory.workspace.scan import notes_below

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import Upkeep
    from openclaw_memory.store.document_vectors import DocumentVectors, Kept
    from openclaw_memory.types import Matrix, Vector
    from openclaw_memory.workspace import Workspace

_Result = TypeVar("_Result")


class Precomputed:
    """What finds documents by the vectors that they came with. Safe to use from several threads and processes."""

    def __init__(
        self,
        workspace: Workspace,
        upkeep: Upkeep,
        document_at: Callable[[str], Document | None],
        index_path: Path | None,
    ) -> None:
        """`upkeep` keeps the memory's own index, in the file `index_path`; `document_at` reads a document's file."""
        self._workspace, self._upkeep, self._document_at = workspace, upkeep, document_at
        self._index_path = index_path
        self._store: DocumentVectors | None = None
        self._kept: Kept | None = None
        self._followed: str | None = None  # up to which change of the documents this process has followed them
        self._nothing_at: str | None = None  # up to which change there was no document at all
        self._maker: Maker | None = None  # the latest that was at hand
        self._tried: object = None  # when, up to which change and by whom it was tried to make what is gone
        self._said: list[str] = []
        self._lock = threading.Lock()  # for what is above, never while notes are read or vectors made

    @property
    def identity(self) -> str | None:
        """The identity of the model whose vectors are there; None where there are none."""
        return self.model_of(None)

    @property
    def lacking(self) -> int:
        """How many documents came with vectors that are gone, as far as that was looked at; `told` says why."""
        return len(self._kept.lacks) if self._kept is not None else 0

    def model_of(self, maker: Maker | None) -> str | None:
        """As `identity`, once the vectors that are gone were made again by `maker`, if it is the one that made them."""
        kept = self._current(maker)
        return None if kept is None else kept.model

    def paths(self) -> Collection[str]:
        """The files of the documents that can be found by their vectors."""
        kept = self._current(None)
        return () if kept is None else kept.places.keys()

    def told(self) -> list[str]:
        """In words, how many documents cannot be found by the vectors they came with, and why."""
        counts = Counter(self._kept.lacks.values()) if self._kept is not None else {}
        return [
            f"{count} {'document has' if count == 1 else 'documents have'} lost the vectors they came with: {why}"
            for why, count in counts.items()
        ]

    def nearest(
        self, vector: Any, k: int, *, where: Where | None = None, maker: Maker | None = None
    ) -> list[tuple[Document, float]]:
        """The k documents whose vectors are nearest to one of shape (dims,), nearest first, with their cosines.

        With a vector of zeros, the question's or a document's, the cosine counts as 0. `maker` makes those again that
        are gone, if it is the one that made them.

        Raises:
            QueryError: k is less than 1, or the vector is not of numbers.
            EmbedderError: it has other dimensions than the vectors have, or holds a NaN or an infinity.
        """
        check_k(k)
        if maker is not None:
            self._maker = maker
        return self._nearest(unit_of(vector), k, where)

    def _nearest(
        self, unit: Vector, k: int, where: Where | None, *, is_second: bool = False
    ) -> list[tuple[Document, float]]:
        kept = self._current(None)
        if kept is None or not kept.paths:
            return []
        _check_question(unit, kept.matrix.shape[1])
        scores = (kept.matrix @ unit).clip(-1, 1)
        in_order = ((self._of_model(kept.paths[at], kept.model), float(scores[at])) for at in _descending(scores, k))
        found = distinct(in_order, k, where)
        if is_second or all(self._is_as_kept(document.path, kept) for document, _ in found):
            return found
        # A person has changed what was found: its vector is that of another text.
        with suppress(SyncBusyError), one_at_a_time(self._path(), 0):
            self._sound(lambda: self._follow(self._changed_documents(), {}))
        return self._nearest(unit, k, where, is_second=True)

    def vectors(self, documents: Sequence[Document]) -> list[Vector | None]:
        """The unit vector that each document came with, shape (dims,), or zeros; None where none did."""
        kept = self._current(None)
        if kept is None:
            return [None] * len(documents)
        places = [kept.places.get(document.path) for document in documents]
        return [None if at is None else kept.matrix[at] for at in places]

    # --- what comes with documents -------------------------------------------------------------------------------

    def turn(self) -> AbstractContextManager[bool]:
        """Keep everybody else, in any thread or process, from changing the vectors, for as long as the block runs.

        Raises:
            SyncBusyError: this is called by the progress of a sync, which others that have the turn may wait for.
        """
        if self._upkeep.is_syncing_here:
            raise SyncBusyError("a sync is under way in this very thread: a progress callback may search, not add")
        self._upkeep.store()  # the lock lies beside the index, and its folder is made with it
        return one_at_a_time(self._path())

    def checked(self, vectors: Any, count: int, maker: Maker) -> Matrix:
        """The vectors of documents that are to be added, as float32 of shape (count, dims).

        Raises:
            EmbedderError: they have another shape, are not finite, have other dimensions than the vectors that are
                there, or come from another model.
        """
        rows = rows_of(vectors, count)
        if self._misfit(self._current(maker), rows, maker):
            # Whoever has deleted the others by hand is not to wait until the memory has noticed that.
            self._sound(lambda: self._follow(self._changed_documents(), {}))
        if words := self._misfit(self._as_kept(), rows, maker):
            raise EmbedderError(
                f"these vectors {words}, and the two cannot be compared: embed with the same model, or delete those "
                "documents and add them again"
            )
        return rows

    @staticmethod
    def _misfit(kept: Kept | None, rows: Matrix, maker: Maker) -> str:
        """Why vectors do not fit to those that are there, in words; "" where they do."""
        if kept is not None and (others := kept.models - {maker.identity}):
            return f"are of {maker.identity!r}, the documents that are there came with some of {min(others)!r}"
        if kept is not None and kept.dims not in {None, rows.shape[1]}:
            return f"have {rows.shape[1]} dimensions, those of the documents that are there have {kept.dims}"
        return ""

    @staticmethod
    def above(rows: Matrix, maker: Maker) -> list[dict[str, Any]]:
        """The fields above the texts of documents that come with these vectors."""
        about = {MODEL: maker.identity, "dims": rows.shape[1]}
        if maker.make is not None:
            return [{EMBEDDING: about}] * len(rows)
        return [{EMBEDDING: {**about, VECTOR: b64encode(row.astype("<f4").tobytes()).decode()}} for row in rows]

    def index(self, vectors: Mapping[str, Vector], maker: Maker) -> None:
        """Take up the vectors of documents that were just written, by the paths of their files."""
        self._maker = maker
        self._sound(lambda: self._follow(self._changed_documents(), vectors))

    # --- following the files -------------------------------------------------------------------------------------

    def _current(self, maker: Maker | None) -> Kept | None:
        """What is kept, once it follows the files as far as the memory's own index does; None where that is nothing.

        While somebody else is following them, the answer comes from what there is.
        """
        if maker is not None:
            self._maker = maker
        return self._sound(self._up_to_date)

    def _up_to_date(self) -> Kept | None:
        changed = self._changed_documents()
        kept = self._as_kept()
        tried = None
        if self._maker is not None and self._maker.make is not None:
            tried = (changed, self._maker.identity, time.monotonic() // PATIENCE_SECONDS)
        if kept is None and (self._nothing_at == changed or not self._there()):
            self._nothing_at = changed
            return None
        may_make = kept is not None and bool(kept.lacks) and tried not in {None, self._tried}
        if kept is not None and kept.followed == self._followed == changed and not may_make:
            return kept
        # Whoever has the turn may wait for the sync that a progress callback asks in.
        wait = None if (kept is None or kept.followed is None) and not self._upkeep.is_syncing_here else 0
        self._tried = tried
        with suppress(SyncBusyError), one_at_a_time(self._path(), wait):
            return self._follow(changed, {})
        return self._as_kept() or kept

    def _changed_documents(self) -> str:
        """Says something new each time that the memory's own index has taken up changed documents."""

        def read() -> str:
            self._upkeep.make_searchable()
            self._upkeep.look()
            return self._upkeep.store().noted(DOCUMENTS) or ""

        return self._upkeep.healing(read)[0]

    def _follow(self, changed: str, given: Mapping[str, Vector]) -> Kept:
        """Take up what differs between the files and what is kept; what is kept then. Nobody else does at once."""
        with self._lock:
            store = self._opened() or self._made()
        before = self._as_kept()
        kept = before if before is not None and before.change == store.stamp()[0] else store.kept()
        there = self._there()
        difference = compare(there, kept.records)
        named = {file.path for file in difference.to_read}
        more = [file for file in there if file.path in given and file.path not in named]
        difference = replace(difference, touched=(*difference.touched, *more))
        if store.read_only:
            self._followed = changed
            if difference.dirty:
                warn(f"{store.path} may not be written: documents that changed are found by their old vectors")
            return kept
        change = follow(store, kept, difference, self._read, self._maker, given)
        store.follow(changed, change)
        self._followed = changed
        # From the same file, which may have been deleted meanwhile: the next question makes another one.
        now = self._kept = store.kept() if change != kept.change else replace(kept, followed=changed)
        words = self.told()
        for word in words:
            if word not in self._said:
                warn(word)
        self._said = words
        return now

    def _there(self) -> list[MemoryFile]:
        return [
            _file(path, info)
            for path, info in notes_below(self._workspace.root, DOCUMENTS_FOLDER, self._workspace.rules)
        ]

    def _read(self, file: MemoryFile) -> Read | None:
        """A file as it is now; None where it cannot be read, so that nobody knows what it holds."""
        checked_ns = time.time_ns()
        try:
            document = self._document_at(file.path)
        except WorkspaceError:
            return None
        above = None
        if document is not None and document.model:
            above = vector_above(self._workspace.root, self._workspace.rules, file.path)
        return Read(file, document, above, checked_ns)

    def _is_as_kept(self, path: str, kept: Kept) -> bool:
        """Whether a file is, by its stamp, the one whose vector is kept."""
        try:
            info = os.lstat(os.path.join(self._workspace.root, path))
        except OSError:
            return True
        return same_stamp(_file(path, info), kept.records[path])

    def _of_model(self, path: str, model: str | None) -> Document | None:
        with suppress(NotFoundError, WorkspaceError):
            document = self._document_at(path)
            return document if document is not None and document.model == model else None
        return None

    # --- the file ------------------------------------------------------------------------------------------------

    def _path(self) -> Path:
        from openclaw_memory.store.location import index_place

        own = self._index_path or index_place(self._workspace.root)[0]
        # No index of an agent can have this name: ids hold no dots.
        return own.with_name(f"{own.stem}.documents{own.suffix}")

    def _as_kept(self) -> Kept | None:
        """What the file holds now, read again where that has changed; None where there is no file."""
        with self._lock:
            store = self._opened()
            if store is None:
                self._kept = None
            elif self._kept is None or store.stamp() != (self._kept.change, self._kept.followed):
                self._kept = store.kept()
            return self._kept

    def _opened(self) -> DocumentVectors | None:
        if self._store is not None and not self._store.is_current():
            self._store = self._kept = self._followed = None  # who reads from it goes on, and ends by itself
        if self._store is None and self._path().is_file():
            self._made()
        return self._store

    def _made(self) -> DocumentVectors:
        from openclaw_memory.store.document_vectors import DocumentVectors

        self._upkeep.check_open()
        self._store = DocumentVectors.open(self._path())
        return self._store

    def close(self) -> None:
        """Close the file. Calling it twice is allowed."""
        store, self._store, self._kept = self._store, None, None
        if store is not None:
            store.close()

    def _sound(self, work: Callable[[], _Result], attempts: int = 3) -> _Result:
        """What `work` returns; a file that is found damaged is set aside, and made again from the notes."""
        self._upkeep.check_open()
        before = self._store
        try:
            return work()
        except CorruptIndexError as damage:
            if str(self._path()) not in str(damage) or attempts == 1 or self._upkeep.is_syncing_here:
                raise
            self._set_aside(damage)
        except StoreError:
            # The file may have been deleted, or set aside, while this read it.
            if attempts == 1 or (before is not None and before is self._store and before.is_current()):
                raise
        return self._sound(work, attempts - 1)

    def _set_aside(self, damage: CorruptIndexError) -> None:
        from openclaw_memory.indexing.recovery import set_aside

        self.close()
        self._followed = None
        with one_at_a_time(self._path()):
            if self._path().is_file():
                warn(f"{damage}; it is kept as {set_aside(self._path())}, and made again from the notes")


def _file(path: str, info: os.stat_result) -> MemoryFile:
    return MemoryFile(path, "memory", info.st_size, info.st_mtime_ns, info.st_ino)


def _check_question(unit: Vector, dims: int) -> None:
    import numpy as np

    if unit.shape != (dims,):
        raise EmbedderError(
            f"the query vector has shape {unit.shape}, the vectors that came with documents have {dims} dimensions: "
            "embed the question with the model of the documents"
        )
    if not np.isfinite(unit).all():
        raise EmbedderError("the query vector holds a NaN or an infinity; check the embedder")


def _descending(scores: Vector, first: int) -> Iterator[int]:
    """The places of the scores, the largest first; equal ones in their order. The first few cost little."""
    import numpy as np

    if first < len(scores) // 4:
        least = np.partition(scores, len(scores) - first)[len(scores) - first]
        top = np.flatnonzero(scores >= least)
        yield from top[np.argsort(-scores[top], kind="stable")].tolist()
        rest = np.flatnonzero(scores < least)
        yield from rest[np.argsort(-scores[rest], kind="stable")].tolist()
    else:
        yield from np.argsort(-scores, kind="stable").tolist()
