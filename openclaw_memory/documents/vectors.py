"""Keep the vectors that documents came with: find those that are lost, and have them made again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from openclaw_memory.documents.conversion import read_document, to_rows, to_unit
from openclaw_memory.embeddings.vectors import translate_errors
from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.indexing.staleness import PATIENCE_SECONDS
from openclaw_memory.types import Document, Store, VectorSource
from openclaw_memory.workspace.document_cache import DocumentCache
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER
from openclaw_memory.workspace.scan import walk_notes

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.types import Matrix

# How many rows of documents, and how many of their vectors, the index has under each identity: `MODEL#DIMS`.
Counts: TypeAlias = Mapping[str, tuple[int, int]]
AT_ONCE = 1000  # documents in one call of a source, and in one transaction


class DocumentVectors:
    """The vectors that documents came with. Safe to use from several threads.

    In the index each is a row under its own identity, the model and the dimensions; the file of the document names
    both.
    """

    def __init__(self, cache: DocumentCache, service: IndexService) -> None:
        self._cache, self._service = cache, service
        self._source: VectorSource | None = None  # the latest
        self._error = ""  # of the source, when it was to make lost vectors
        self._attempt: object = None  # the latest one in vain
        self._lock = threading.Lock()
        self._counted: tuple[object, int] = None, 0

    def use(self, source: VectorSource | None) -> None:
        """Use this source, or the latest one, to make lost vectors again, even if it failed just now."""
        self._source, self._attempt = source or self._source, None

    def take(self, source: VectorSource | None) -> None:
        """Keep this source as the latest one, if there is one."""
        self._source = source or self._source

    def count_files(self, store: Store) -> int:
        """Return the number of indexed files in the folder of documents."""
        files = store.get_files()
        if self._counted[0] is not files:
            self._counted = files, sum(path.startswith(f"{DOCUMENTS_FOLDER}/") for path in files)
        return self._counted[1]

    def check_not_lost(self, model: str) -> None:
        """Raise EmbedderError if all vectors of the unnamed model are lost, and this is it."""
        counts = self._count() if model == VectorSource.UNNAMED else {}
        if any(rows for rows, _ in counts.values()) and not any(vectors for _, vectors in counts.values()):
            raise EmbedderError("; ".join(_to_lines(self._count_missing(counts))))

    def can_restore(self, counts: Counts) -> bool:
        """Return whether `restore` would make lost vectors again now."""
        return self._plan_attempt(counts) is not None

    def restore(self) -> str | None:
        """Make lost vectors again with the latest source, if they are of its model.

        Returns the model of the vectors, as `Documents.get_vector_identity`. A source that failed is called again when
        other vectors are missing, or after a minute.
        """
        with self._lock:  # another thread may be making them: this one needs them too
            counts = self._count()
            if self._make_lost(counts):
                counts = self._count()
        return self._find_model(counts)

    def count_missing(self) -> Mapping[str, int]:
        """Return how many documents cannot be found by the vectors they came with, by the reason."""
        self._service.check_open()
        return self._count_missing(self._service.store().count_identities()) if self._service.has_index() else {}

    def list_problems(self) -> list[str]:
        """Return `count_missing` as a line for each reason."""
        return _to_lines(self.count_missing())

    def _count(self) -> Counts:
        return self._service.read(lambda store: store.count_identities())

    def _find_model(self, counts: Counts) -> str | None:
        """Return the model of the latest source if it has vectors, else the commonest one."""
        models: Counter[str] = Counter()
        for identity, (rows, _) in sorted(counts.items()):
            models[identity.rpartition("#")[0]] += rows
        if self._source is not None and self._source.identity in models:
            return self._source.identity
        return models.most_common(1)[0][0] if models else None

    def _count_missing(self, counts: Counts) -> dict[str, int]:
        if len(counts) < 2 and all(rows == vectors for rows, vectors in counts.values()):
            return {}
        model, missing = self._find_model(counts) or "", Counter[str]()
        own = find_identity(counts, model) or ""
        for identity, (rows, vectors) in counts.items():
            name, _, dims = identity.rpartition("#")
            if identity != own:
                _, _, usual = own.rpartition("#")
                reason = f"they are of {name!r} with {dims} dimensions, those of the others of {model!r} with {usual}"
                missing[f"{reason}: add these again"] += rows
            elif vectors < rows:
                can_make = self._source is not None and self._source.make is not None and self._source.identity == model
                if can_make and not self._error and self._plan_attempt(counts) is None:
                    continue  # their files are gone: the next sync removes the rows
                reason = f"only {model!r} can make them again: hand that model in, or add the documents again"
                if model == VectorSource.UNNAMED:
                    reason = (
                        "their model was not named: have another one make them again, as "
                        "OpenClawVectorStore(memory, embed_model=...).reembed() does, or add the documents again"
                    )
                missing[(can_make and self._error) or reason] += rows - vectors
        return dict(missing)

    def _plan_attempt(self, counts: Counts) -> object | None:
        """Return the source, the vectors that it could make and the minute; None if there is nothing new to try."""
        source = self._source
        if source is None or source.make is None:
            return None
        lacking = {
            identity: (rows, vectors)
            for identity, (rows, vectors) in counts.items()
            if vectors < rows and identity.rpartition("#")[0] == source.identity
        }
        attempt = (source.identity, lacking, time.monotonic() // PATIENCE_SECONDS)
        return attempt if lacking and attempt != self._attempt else None

    def _make_lost(self, counts: Counts) -> bool:
        """Make lost vectors again; return whether any was made."""
        source, attempt = self._source, self._plan_attempt(counts)
        if source is None or attempt is None:
            return False
        self._error, total = "", 0
        try:
            for identity, documents in self._find_lost(source.identity).items():
                for first in range(0, len(documents), AT_ONCE):
                    keys = [*documents][first : first + AT_ONCE]
                    rows = make_vectors(source, [documents[key] for key in keys])
                    self._service.run_recovering(partial(self._add, keys, rows, identity))
                    total += len(keys)
        except OpenClawMemoryError as error:
            self._error = str(error)
        else:
            attempt = None if total else attempt
        self._attempt = attempt
        return total > 0

    def _find_lost(self, model: str) -> dict[str, dict[str, Document]]:
        """Return the documents with lost vectors of a model, by identity and key."""
        documents: dict[str, dict[str, Document]] = {}
        for path, _ in walk_notes(self._cache.files, DOCUMENTS_FOLDER):
            cached = self._cache.try_load(path)
            document, embedding = read_document(path, cached), cached and cached.embedding
            if document is not None and embedding is not None and embedding.model == model:
                documents.setdefault(embedding.identity, {})[embedding.key] = document

        def drop_stored(store: Store) -> dict[str, dict[str, Document]]:
            stored = {identity: store.find_keys(keys, identity) for identity, keys in documents.items()}
            return {
                identity: {key: document for key, document in keyed.items() if key not in stored[identity]}
                for identity, keyed in documents.items()
            }

        return self._service.read(drop_stored)

    def _add(self, keys: Sequence[str], rows: Matrix, identity: str) -> None:
        self._service.store().add_vectors(keys, rows, identity)


def find_identity(counts: Counts, model: str | None) -> str | None:
    """Return the identity, model and dimensions, of most rows of a model; None if it has no rows."""
    own = [identity for identity in counts if identity.rpartition("#")[0] == model]
    return max(own, key=lambda identity: (counts[identity], identity), default=None)


def make_vectors(source: VectorSource, documents: Sequence[Document]) -> Matrix:
    """Return the unit vectors that a source makes of documents.

    Raises:
        EmbedderError: The source failed, or returned something else.
    """
    import numpy as np

    if source.make is None:
        raise EmbedderError(f"{source.identity!r} cannot make vectors: pass a VectorSource with its make=")
    with translate_errors(f"{source.identity!r} could not make them again"):
        return np.stack([to_unit(row) for row in to_rows(source.make(documents), len(documents))])


def _to_lines(missing: Mapping[str, int]) -> list[str]:
    return [
        f"{count} {'document has' if count == 1 else 'documents have'} lost the vectors they came with: {reason}"
        for reason, count in missing.items()
    ]
