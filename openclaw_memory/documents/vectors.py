"""The vectors that documents came with: which exist, which are lost, and how those are made again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from openclaw_memory import _forks
from openclaw_memory._log import warn
from openclaw_memory.documents.validation import document_in, is_same, rows_of, unit_rows
from openclaw_memory.errors import EmbedderError, OpenClawMemoryError
from openclaw_memory.indexing.staleness import PATIENCE_SECONDS
from openclaw_memory.text.front_matter import UNNAMED, is_vector_of
from openclaw_memory.types import Document, Store, VectorSource
from openclaw_memory.workspace.document_cache import DocumentCache
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER
from openclaw_memory.workspace.scan import walk_notes

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.types import Matrix, Vector

AT_ONCE = 1000  # in one call of what makes vectors, and in one transaction


class DocumentVectors:
    """The state of the vectors that documents came with. Safe to use from several threads.

    In the index each is a row under its own identity, the model and the dimensions; the file of the document names
    both.
    """

    def __init__(
        self,
        cache: DocumentCache,
        service: IndexService,
        reading: Callable[[Callable[[Store], Any]], Any],
    ) -> None:
        """`reading` runs what reads the index as it is now, on a snapshot of it."""
        self._cache, self._service, self._reading = cache, service, reading
        self._source: VectorSource | None = None  # the latest that was handed in
        self._failed = ""  # why it could not make what is gone
        self._tried: object = None  # when, and with what missing, it was tried in vain
        self._said: list[str] = []
        self._making = _forks.lock()
        self._adopted: str | None = None  # the model that the unnamed one was found to be
        # Of models that were compared with it: the path and key of the document by which, and whether they are alike.
        self._compared: dict[str, tuple[str, str, bool]] = {}

    def models(self, identity: str) -> list[str]:
        """Return a model, and the unnamed one if its vectors were found to be of this model."""
        return [identity, *([UNNAMED] if self._adopted == identity else [])]

    def row_identities(self, there: Mapping[str, tuple[int, int]], model: str) -> list[str]:
        """Return the identities of the rows that are vectors of a model; all have the same dimensions."""
        own = [name for one in self.models(model) if (name := row_identity(there, one)) is not None]
        return [name for name in own if name.rpartition("#")[2] == own[0].rpartition("#")[2]]

    def adopt(self, sources: Sequence[VectorSource]) -> bool:
        """Do as `Documents.adopt` says. What was found is remembered until the document compared is another one."""
        there = self._there()
        rows = row_identity(there, UNNAMED)
        if rows is None or not sources:
            return False
        model = sources[0].identity
        if model in self._compared:
            path, key, is_alike = self._compared[model]
            seen = self._cache.try_load(path)
            if seen is not None and seen.embedding is not None and seen.embedding.key == key:
                return is_alike
        self._adopted = None if self._adopted == model else self._adopted
        sample = next(self._samples(rows, has_any=there[rows][1] > 0), None)
        if sample is None:
            return False
        path, key, document, stored = sample
        alike = next((one for one in sources if _is_by(one, document, stored, int(rows.rpartition("#")[2]))), None)
        self._compared[model] = path, key, alike is not None
        if alike is not None:
            self._adopted, self._source, self._tried = model, alike, None
        return alike is not None

    def _samples(self, rows: str, *, has_any: bool) -> Iterator[tuple[str, str, Document, Vector | None]]:
        """Yield documents with a text and a vector of the unnamed model; without the vector unless `has_any`."""
        for path, _ in walk_notes(self._cache.files, DOCUMENTS_FOLDER):
            seen = self._cache.try_load(path)
            if seen is None or seen.embedding is None or seen.embedding.identity != rows:
                continue
            document = document_in(path, seen)
            if document is None or not document.text.strip() or not is_vector_of(seen.embedding, document.text):
                continue
            stored = self._reading(partial(vector_of_file, path=path, identity=rows)) if has_any else None
            if not has_any or (stored is not None and stored.any()):
                yield path, seen.embedding.key, document, stored

    def check_not_lost(self, model: str) -> None:
        """Raise EmbedderError if the vectors of the unnamed model are asked for, and all of them are lost."""
        there = self._there() if UNNAMED in self.models(model) else {}
        if any(rows for rows, _ in there.values()) and not any(found for _, found in there.values()):
            raise EmbedderError("; ".join(_lines(self._missing(there))))

    def use(self, source: VectorSource | None) -> None:
        """Use this source, or the latest one, to make lost vectors again, even if it failed just now."""
        self._source, self._tried = source or self._source, None

    def take(self, source: VectorSource | None) -> None:
        """Keep this source as the latest one, if one is given."""
        self._source = source or self._source

    def can_restore(self, there: Mapping[str, tuple[int, int]]) -> bool:
        """Whether vectors are lost that `restore` would make again now; those that it cannot make are logged."""
        if self._attempt(there) is not None:
            return True
        self._warn(there)
        return False

    def restore(self) -> str | None:
        """Make lost vectors again with the latest source, if they are of its model.

        Returns the model whose vectors there are, as `Documents.vector_identity`. A source that failed is called again
        when other vectors are missing, or after a minute.
        """
        there = self._there()
        if self._attempt(there) is not None and self._making.acquire(blocking=False):
            try:
                if self._restored(there):
                    there = self._there()
            finally:
                self._making.release()
        self._warn(there)
        return self._model(there)

    def missing(self) -> Mapping[str, int]:
        """Return how many documents cannot be found by the vectors they came with, by the reason."""
        self._service.check_open()
        return self._missing(self._service.store().identities()) if self._service.has_index() else {}

    def in_words(self) -> list[str]:
        """Return `missing` as a line for each reason."""
        return _lines(self.missing())

    def are_current(self, store: Store, documents: Iterable[Document]) -> bool:
        """Whether the index has the vectors of these documents as their files are now."""
        keys: dict[str, set[str]] = {}
        for document in documents:
            seen = self._cache.try_load(document.path)
            if seen is not None and seen.embedding is not None and document.model:
                keys.setdefault(seen.embedding.identity, set()).add(seen.embedding.key)
        return all(wanted == store.known_vectors(wanted, identity) for identity, wanted in keys.items())

    def _warn(self, there: Mapping[str, tuple[int, int]]) -> None:
        """Log what is missing, each reason once."""
        words = _lines(self._missing(there))
        for line in (line for line in words if line not in self._said):
            warn(line)
        self._said = words

    def _there(self) -> Mapping[str, tuple[int, int]]:
        there: Mapping[str, tuple[int, int]] = self._reading(lambda store: store.identities())
        return there

    def _model(self, there: Mapping[str, tuple[int, int]]) -> str | None:
        models: Counter[str] = Counter()
        for identity, (rows, _) in sorted(there.items()):
            model = identity.rpartition("#")[0]
            models[self._adopted or model if model == UNNAMED else model] += rows
        if self._source is not None and self._source.identity in models:
            return self._source.identity
        return models.most_common(1)[0][0] if models else None

    def _missing(self, there: Mapping[str, tuple[int, int]]) -> dict[str, int]:
        if len(there) < 2 and all(rows == found for rows, found in there.values()):
            return {}
        model, counts = self._model(there), Counter[str]()
        models = self.models(model or "")
        own = self.row_identities(there, model or "")
        for identity, (rows, found) in there.items():
            other, _, dims = identity.rpartition("#")
            if other not in models:
                counts[f"they are of {other!r}, those of the others are of {model!r}: add these again"] += rows
            elif own and identity not in own:
                counts[f"they have {dims} dimensions, those of the others have {own[0].rpartition('#')[2]}"] += rows
            elif found < rows:
                can_make = self._source is not None and self._source.make is not None and self._source.identity == model
                if can_make and not self._failed and self._attempt(there) is None:
                    continue  # their files are gone: the next sync removes the rows
                why = f"only {model!r} can make them again: hand that model in, or add the documents again"
                if model == UNNAMED:
                    why = (
                        "their model was not named, and they were in the index alone: name it, as in "
                        "OpenClawVectorStore(memory, embed_model=...), and it makes them again, or add the documents "
                        "again"
                    )
                counts[(can_make and self._failed) or why] += rows - found
        return dict(counts)

    # --- making them again ---------------------------------------------------------------------------------------

    def _attempt(self, there: Mapping[str, tuple[int, int]]) -> object | None:
        """Return what would be tried now: the source, what it can make and the minute. None: nothing, or not again."""
        source = self._source
        if source is None or source.make is None:
            return None
        lacking = {name: counts for name, counts in there.items() if counts[1] < counts[0]}
        models = self.models(source.identity)
        lacking = {name: counts for name, counts in lacking.items() if name.rpartition("#")[0] in models}
        attempt = (source.identity, lacking, time.monotonic() // PATIENCE_SECONDS)
        return attempt if lacking and attempt != self._tried else None

    def _restored(self, there: Mapping[str, tuple[int, int]]) -> bool:
        """Make lost vectors again; return whether any was made."""
        source, attempt = self._source, self._attempt(there)
        if source is None or attempt is None:  # another thread has tried it meanwhile
            return False
        self._tried, self._failed, made = attempt, "", 0
        try:
            for identity, documents in self._gone(self.models(source.identity)).items():
                for first in range(0, len(documents), AT_ONCE):
                    keys = [*documents][first : first + AT_ONCE]
                    self._add(keys, made_by(source, [documents[key] for key in keys]), identity)
                    made += len(keys)
        except OpenClawMemoryError as error:
            self._failed = str(error)
        else:
            self._tried = None if made else attempt
        return made > 0

    def _gone(self, models: Sequence[str]) -> dict[str, dict[str, Document]]:
        """Return the documents whose vectors of models are lost and not in their files, by identity and key."""
        wanted: dict[str, dict[str, Document]] = {}
        for path, _ in walk_notes(self._cache.files, DOCUMENTS_FOLDER):
            seen = self._cache.try_load(path)
            if seen is None or seen.embedding is None or seen.embedding.model not in models or seen.embedding.vector:
                continue
            if (document := document_in(path, seen)) is not None:
                wanted.setdefault(seen.embedding.identity, {})[seen.embedding.key] = document

        def gone(store: Store) -> dict[str, dict[str, Document]]:
            known = {identity: store.known_vectors(documents, identity) for identity, documents in wanted.items()}
            return {
                identity: {key: one for key, one in documents.items() if key not in known[identity]}
                for identity, documents in wanted.items()
            }

        found: dict[str, dict[str, Document]] = self._reading(gone)
        return found

    def _add(self, keys: Sequence[str], rows: Matrix, identity: str) -> None:
        self._service.run_recovering(lambda: self._service.store().add_vectors(keys, rows, identity))


def row_identity(there: Mapping[str, tuple[int, int]], model: str | None) -> str | None:
    """Return the identity, model and dimensions, of most rows of a model; None if it has no rows."""
    own = [identity for identity in there if identity.rpartition("#")[0] == model]
    return max(own, key=lambda identity: (there[identity], identity), default=None)


def vector_of_file(store: Store, path: str, identity: str) -> Vector | None:
    """Return the vector that the document in a file came with, under this identity; None if it has none."""
    ids = [stored.id for stored in store.file_chunks(path, identity)]
    return next(iter(store.vectors(ids).values()), None) if ids else None


def made_by(source: VectorSource, documents: Sequence[Document]) -> Matrix:
    """Return the unit vectors that a source makes of documents.

    Raises:
        EmbedderError: The source failed, or returned something else.
    """
    if source.make is None:
        raise EmbedderError(f"{source.identity!r} cannot make vectors: pass a VectorSource with its make=")
    try:
        return unit_rows(rows_of(source.make(documents), len(documents)))
    except OpenClawMemoryError:
        raise
    except Exception as error:  # the model is not ours
        raise EmbedderError(
            f"{source.identity!r} could not make them again: {type(error).__name__}: {error}"
        ) from error


def _is_by(source: VectorSource, document: Document, stored: Vector | None, dims: int) -> bool:
    """Whether a source makes this vector of a document; if there is none, whether it makes one of as many dimensions.

    Raises:
        EmbedderError: As `made_by`.
    """
    made = made_by(source, [document])[0]
    return made.shape == (dims,) if stored is None else is_same(made, stored)


def _lines(missing: Mapping[str, int]) -> list[str]:
    return [
        f"{count} {'document has' if count == 1 else 'documents have'} lost the vectors they came with: {why}"
        for why, count in missing.items()
    ]
