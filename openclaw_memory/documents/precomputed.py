"""The vectors that came with documents: one each, all of one model, in an index of their own beside the memory's.

Like that one it is derived, follows the files, and may be deleted: a vector that nobody can make again stands above the
text of its document, and every other one is made again by whoever is at hand that can.
"""

from __future__ import annotations

import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory.chunking.matter import EMBEDDING, MODEL, VECTOR
from openclaw_memory.documents.checks import check_k, rows_of, unit_of
from openclaw_memory.documents.following import Read, begin, follow
from openclaw_memory.documents.found import WIDER, Where, distinct, stored_hits
from openclaw_memory.errors import CorruptIndexError, EmbedderError
from openclaw_memory.say import say
from openclaw_memory.sync.compare import compare
from openclaw_memory.sync.records import LAST_SYNC
from openclaw_memory.types import Document, FileRecord, Maker, MemoryFile
from openclaw_memory.workspace.documents import vector_above
from openclaw_memory.workspace.files import notes_below
from openclaw_memory.workspace.known import DOCUMENTS_FOLDER

if TYPE_CHECKING:
    from openclaw_memory.store import SqliteStore
    from openclaw_memory.sync.upkeep import Upkeep
    from openclaw_memory.types import Matrix, Vector
    from openclaw_memory.workspace import Workspace

_Result = TypeVar("_Result")

# The name of the note in this index that says up to which sync of the memory's own it follows the files.
_FOLLOWED = "documents"


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
        self._store: SqliteStore | None = None
        self._records: Mapping[str, FileRecord] = {}
        self._followed: str | None = None  # the note that goes with the records
        self._nothing_at: str | None = None  # up to which sync no document had a vector, and there was no index
        self._lacks: dict[str, str] = {}
        self._tried: object = None  # up to which sync, and by whom, it was tried to make what is gone
        self._said: list[str] = []
        self._lock = threading.RLock()

    @property
    def identity(self) -> str | None:
        """The identity of the model whose vectors are there; None where there are none."""
        return self.model_of(None)

    def model_of(self, maker: Maker | None) -> str | None:
        """As `identity`, once the vectors that are gone were made again by `maker`, if it is the one that made them."""
        return self._sound(lambda: self._model(maker))

    def paths(self) -> Collection[str]:
        """The files of the documents that can be found by their vectors."""
        return self._sound(self._paths)

    @property
    def lacking(self) -> int:
        """How many documents came with vectors that are gone, as far as that was looked at; `told` says why."""
        return len(self._lacks)

    def checked(self, vectors: Any, count: int, maker: Maker) -> Matrix:
        """The vectors of documents that are to be added, as float32 of shape (count, dims).

        Raises:
            EmbedderError: they have another shape, are not finite, have other dimensions than the vectors that are
                there, or come from another model.
        """
        rows = rows_of(vectors, count)
        self._sound(lambda: self._check_fits(maker, rows.shape[1]))
        return rows

    @staticmethod
    def above(rows: Matrix, maker: Maker) -> list[dict[str, Any]]:
        """The fields above the texts of documents that come with these vectors."""
        about = {MODEL: maker.identity, "dims": rows.shape[1]}
        if maker.make is not None:
            return [{EMBEDDING: about}] * len(rows)
        return [{EMBEDDING: {**about, VECTOR: b64encode(row.astype("<f4").tobytes()).decode()}} for row in rows]

    def index(self, vectors: Mapping[str, Vector], maker: Maker) -> None:
        """Follow the files now, with the vectors of the documents that were just written, by their ids."""
        self._sound(lambda: self._follow(maker, vectors))

    def nearest(
        self,
        vector: Any,
        k: int,
        *,
        where: Where | None = None,
        maker: Maker | None = None,
    ) -> list[tuple[Document, float]]:
        """The k documents whose vectors are nearest to one of shape (dims,), nearest first, with their cosines.

        `maker` makes those again that are gone, if it is the one that made them.

        Raises:
            QueryError: k is less than 1, or the vector is not of numbers.
            EmbedderError: it has other dimensions than the vectors have, or holds a NaN or an infinity.
        """
        check_k(k)
        unit = unit_of(vector)
        return self._sound(lambda: self._nearest(unit, k, where, maker))

    def vectors(self, documents: Sequence[Document]) -> list[Vector | None]:
        """The unit vector that each document came with, shape (dims,); None where none did."""
        return self._sound(lambda: self._vectors(documents))

    def close(self) -> None:
        """Close the index. Calling it twice is allowed."""
        with self._lock:
            self._forget_store()

    # --- asking --------------------------------------------------------------------------------------------------

    def _model(self, maker: Maker | None = None) -> str | None:
        store = self._current(maker)
        meta = store.meta() if store is not None and store.chunk_count() else None
        return None if meta is None else meta.model

    def _check_fits(self, new: Maker, dims: int) -> None:
        there = self._model(new)
        if there is None:
            return
        if there != new.identity:
            raise EmbedderError(
                f"these vectors are of {new.identity!r}, the documents that are there came with some of {there!r}, and "
                "the two cannot be compared: embed with that model, or delete those documents and add them again"
            )
        kept = self._dims()
        if kept is not None and kept != dims:
            raise EmbedderError(
                f"these vectors have {dims} dimensions, those of the documents that are there have {kept}, and the two "
                "cannot be compared: embed with the same model, or delete those documents and add them again"
            )

    def _dims(self) -> int | None:
        meta = self._store.meta() if self._store is not None else None
        return None if meta is None else meta.dims

    def _nearest(self, unit: Vector, k: int, where: Where | None, maker: Maker | None) -> list[tuple[Document, float]]:
        store = self._current(maker)
        if store is None or not store.chunk_count():
            return []
        if where is None:
            return distinct(self._hits(store, unit, k), k, None)
        first = WIDER * k
        found = distinct(self._hits(store, unit, first, widen=False), k, where)
        if len(found) == k or store.chunk_count() <= first:
            return found
        # A filter that few pass: it is cheaper to ask all documents than to look through all vectors in their order.
        passed = [one for path in self._paths() if (one := self._document_at(path)) is not None and where(one)]
        rows = self._vectors(passed)
        near = [(one, float(row @ unit)) for one, row in zip(passed, rows, strict=True) if row is not None]
        return distinct(sorted(near, key=lambda pair: -pair[1]), k, None)

    def _hits(
        self, store: SqliteStore, unit: Vector, wanted: int, *, widen: bool = True
    ) -> Iterator[tuple[Document | None, float]]:
        for stored, cosine in stored_hits(store, partial(store.search_vector, unit), wanted, widen=widen):
            document = self._document_at(stored.path)
            yield (document if document is not None and document.model else None), cosine

    def _paths(self) -> Collection[str]:
        return self._records.keys() - self._lacks.keys() if self._current(None) is not None else ()

    def _vectors(self, documents: Sequence[Document]) -> list[Vector | None]:
        store = self._current(None)
        if store is None:
            return [None] * len(documents)
        ids = [next((stored.id for stored in store.chunks_of(document.path)), None) for document in documents]
        kept = store.vectors([at for at in ids if at is not None])
        return [None if at is None else kept.get(at) for at in ids]

    # --- following the files -------------------------------------------------------------------------------------

    def _current(self, maker: Maker | None) -> SqliteStore | None:
        """The index, once it follows the files as far as the memory's own does; None where no document has a vector."""
        self._upkeep.make_searchable()
        synced = self._upkeep.store().noted(LAST_SYNC) or ""
        with self._lock:
            store = self._opened()
            followed = self._nothing_at if store is None else store.noted(_FOLLOWED)
            # Who may make what is gone is asked once after each sync.
            tried = (synced, maker.identity) if maker is not None and maker.make is not None else self._tried
            if followed != synced or (self._lacks and tried != self._tried):
                self._follow(maker, {})
            self._tried = tried
            return self._store

    def _follow(self, maker: Maker | None, given: Mapping[str, Vector]) -> None:
        with self._lock:
            synced = self._upkeep.store().noted(LAST_SYNC) or ""
            there = [
                MemoryFile(path, "memory", info.st_size, info.st_mtime_ns, info.st_ino)
                for path, info in notes_below(self._workspace.root, DOCUMENTS_FOLDER, self._workspace.rules)
            ]
            store = self._opened()
            known = {} if store is None else self._known(store)
            difference = compare(there, known)
            if store is None:
                if not any(self._model_in(file.path) for file in difference.to_read):
                    self._nothing_at = synced
                    return
                store = self._made()
            if not store.chunk_count():
                models = Counter(model for file in difference.to_read if (model := self._model_in(file.path)))
                if models:
                    begin(store, models, maker)
                    known = {}
            self._records = follow(store, difference, known, self._read, maker, given)
            self._lacks = {path: record.lacks for path, record in self._records.items() if record.lacks}
            self._say_what_lacks()
            store.note(_FOLLOWED, synced)
            self._followed = synced

    def _known(self, store: SqliteStore) -> Mapping[str, FileRecord]:
        """What the index knows of the files; kept for as long as nobody else has followed them."""
        if self._followed is None or store.noted(_FOLLOWED) != self._followed:
            self._records = dict(store.files())
        return self._records

    def _model_in(self, path: str) -> str:
        document = self._document_at(path)
        return document.model if document is not None else ""

    def _read(self, file: MemoryFile) -> Read:
        checked_ns = time.time_ns()
        document = self._document_at(file.path)
        above = None
        if document is not None and document.model:
            above = vector_above(self._workspace.root, self._workspace.rules, file.path)
        return Read(file, document, above, checked_ns)

    def _say_what_lacks(self) -> None:
        words = self.told()
        for word in words:
            if word not in self._said:
                say(word)
        self._said = words

    def told(self) -> list[str]:
        """In words, how many documents cannot be found by the vectors they came with, and why."""
        return [
            f"{count} documents have lost their vectors: {why}" for why, count in Counter(self._lacks.values()).items()
        ]

    # --- the store -----------------------------------------------------------------------------------------------

    def _path(self) -> Path:
        from openclaw_memory.store.place import index_place

        own = self._index_path or index_place(self._workspace.root)[0]
        return own.with_name(f"{own.stem}-documents{own.suffix}")

    def _opened(self) -> SqliteStore | None:
        """The index as it is now; None where there is none."""
        if self._store is not None and not self._store.is_current():
            self._forget_store()
        if self._store is None and self._path().is_file():
            self._made()
        return self._store

    def _made(self) -> SqliteStore:
        from openclaw_memory.store import SqliteStore

        self._upkeep.check_open()
        self._store = SqliteStore.open(self._path())
        return self._store

    def _forget_store(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store, self._records, self._followed, self._nothing_at = None, {}, None, None

    def _sound(self, work: Callable[[], _Result]) -> _Result:
        """What `work` returns; an index that is found damaged is set aside, and made again from the files."""
        from openclaw_memory.sync.damage import set_aside

        self._upkeep.check_open()
        try:
            return work()
        except CorruptIndexError as damage:
            with self._lock:
                path = self._path()
                self._forget_store()
                if not path.is_file() or str(path) not in str(damage):
                    raise
                say(f"{damage}; it is kept as {set_aside(path)}, and made again from the files")
            return work()
