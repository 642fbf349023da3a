"""`Documents`: the documents that frameworks put into a memory and find again by id, question or vector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from msgspec import structs

from openclaw_memory.config.sections import MAX_RESULTS
from openclaw_memory.documents.conversion import (
    OWN_FIELDS,
    WIDER,
    Where,
    check_ids,
    copy_document,
    describe_vector,
    has_chunk,
    iterate_hits,
    read_document,
    take_distinct,
    to_rows,
    to_unit,
)
from openclaw_memory.documents.files import DocumentFiles, Hidden, apply_change
from openclaw_memory.documents.filters import ChunkScope, DocumentFilter, compile_filter
from openclaw_memory.documents.locations import DocumentLocations
from openclaw_memory.documents.vectors import AT_ONCE, Counts, DocumentVectors, find_identity, make_vectors
from openclaw_memory.errors import EmbedderError, InvalidInputError, QueryError, SyncBusyError, WorkspaceError
from openclaw_memory.events import Location, locate_citation, locate_paths, observed
from openclaw_memory.search.candidates import list_languages
from openclaw_memory.search.filters import SearchFilter
from openclaw_memory.search.request import SearchRequest, check_count
from openclaw_memory.text.terms import split_query
from openclaw_memory.types import Document, Source, Store, StoredChunk, VectorSource
from openclaw_memory.types.files import Span
from openclaw_memory.workspace import Workspace, documents
from openclaw_memory.workspace.document_cache import (
    DocumentCache,
    check_names_no_file,
    make_document,
    make_key,
    read_citation,
    split_key,
)
from openclaw_memory.workspace.documents import Upserted
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER
from openclaw_memory.workspace.scan import walk_notes

if TYPE_CHECKING:
    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.types import Matrix, Vector

Results: TypeAlias = list[tuple[Document, float]]


def _locate(document: Document) -> Location:
    return locate_citation(document.citation or document.path or document.id)


def _locate_results(results: Results, *_: Any, **__: Any) -> list[Location]:
    return [_locate(document) for document, _score in results]


class Documents:
    """The documents of a memory, each a file of its own in `memory/notes/`. Safe to use from several threads.

    The files are the truth: a person may edit the text of one, move it within that folder, or delete it; an `id` or
    `part_of` that is changed above the text counts from the next sync on. Passages of a person's own notes are found as
    documents too, with their citation as id; they are never changed or deleted here. Those of a collection have ids
    of their own, and are found in it alone. Secrets are masked in results; `get` and `iterate` return a program's
    own documents as it added them.

    Attributes:
        files: Reads and writes documents by the paths of their files.
    """

    Filter: TypeAlias = DocumentFilter  # which documents a search finds, as `where`
    compile_filter = staticmethod(compile_filter)

    def __init__(
        self, workspace: Workspace, service: IndexService, search: Callable[..., SearchResults], hidden: Hidden
    ) -> None:
        """Find documents by the index that `service` keeps, and the function `search`.

        `hidden` returns the paths, of those it is given, of records that must not be shown.
        """
        self._workspace, self._service, self._search = workspace, service, search
        self._cache = DocumentCache(workspace.files)
        self._locations = DocumentLocations(self._cache, service)
        self._vectors = DocumentVectors(self._cache, service)
        self._hidden, self.events = hidden, workspace.events
        self.files = DocumentFiles(workspace, self._cache, service, search, hidden)
        self._collection = ""

    def get_collection(self, name: str | None) -> Self:
        """Return the documents of a collection, in `memory/notes/<name>/`: only these are found in it.

        Args:
            name: The name of the collection; None for the documents that are in none.

        Raises:
            InvalidInputError: The name is blank or not Unicode.
        """
        if name is not None:
            if not isinstance(name, str) or not name.strip():
                raise InvalidInputError(f"a collection needs a name of at least one character, not {name!r}")
            documents.make_file_name(make_key(name, name))
        collection = copy(self)
        collection._collection = name or ""
        return collection

    # --- by id ---------------------------------------------------------------------------------------------------

    @observed("add", lambda ids, part, *_, **__: locate_paths(chain(*part._find_paths(ids).values())), writes=True)
    def add(self, items: Iterable[Document], vectors: Any = None, source: VectorSource | None = None) -> list[str]:
        """Write documents, each in place of the one with its id, and index them; return their ids in order.

        If several have one id, the last one counts. If one of them cannot be written, none is. A file whose front
        matter a person has damaged is written again. A text, or a string in the metadata, that is the old one with its
        secrets masked keeps the old one.

        Args:
            items: The documents. Dates, times and UUIDs in their metadata come back as text.
            vectors: Their vectors, shape (n, dims), of any length each. `search_vector` with the identity of `source`
                finds the documents by them. Default: only the memory's own index finds the documents.
            source: The model that made `vectors`; required with them. The same text keeps the vector that it has of a
                model which makes vectors again.

        Raises:
            InvalidInputError: An id is blank, metadata are neither JSON nor dates nor UUIDs, a text is not Unicode or
                holds a NUL, or a masked text would replace the secret.
            WriteError, WorkspaceError: A document is larger than `files.max_bytes`, or files cannot be written or read.
            StoreError: The memory is closed, its index cannot be written, or a sync is running in this very thread.
            EmbedderError: The vectors are not finite, or have other dimensions or another model than those added
                before. Nothing was written.
        """
        self._service.check_open()
        added = list(items)
        for document in added:
            if not isinstance(document.metadata, Mapping):
                raise InvalidInputError(f"document {document.id!r} has metadata {document.metadata!r}, not a mapping")
            if names := OWN_FIELDS & document.fields.keys():
                raise InvalidInputError(f"document {document.id!r} cannot have a field {min(names)!r}: rename it")
            if "\0" in f"{document.id}{document.text}":
                raise InvalidInputError(f"document {document.id!r} holds a NUL character: remove it from id and text")
        if vectors is not None and source is None:
            raise EmbedderError("vectors came without their source: add source=VectorSource(identity, model)")
        if self._service.is_syncing_here:
            raise SyncBusyError("a sync is under way in this very thread: a progress callback may search, not add")
        if not added:
            return []
        self._vectors.use(source)
        if vectors is None or source is None:
            written = self._write(added, [{}] * len(added))
            if written:
                self._locations.sync(written.was_followed, written.changed)
        else:
            self._write_with_vectors(added, to_rows(vectors, len(added)), source)
        return [document.id for document in added]

    def _write(
        self, added: Sequence[Document], extra: Sequence[Mapping[str, Any]], vectors: Sequence[tuple[str, int]] = ()
    ) -> Upserted:
        """Write documents with extra fields; `vectors` as for `upsert`."""
        keyed = {
            self._make_key(document.id): ({"metadata": document.metadata, **document.fields, **fields}, document.text)
            for document, fields in zip(added, extra, strict=True)
        }
        written: Upserted = apply_change(
            self._service, documents.upsert, self._workspace.files, keyed, self._locations.look, vectors
        )
        return structs.replace(written, paths={split_key(key)[1]: path for key, path in written.paths.items()})

    def _write_with_vectors(
        self, added: Sequence[Document], rows: Matrix, source: VectorSource, also: Iterable[tuple[str, int]] = ()
    ) -> None:
        """Write documents with their vectors. Others may have vectors of the models `also`, with their dimensions."""
        import numpy as np

        dims = rows.shape[1]
        comparable = [(source.identity, dims), *also]
        # A model that makes vectors again makes that of the file as it is; others are kept by a key.
        extra = [describe_vector(row, source.identity, is_kept=source.make is None) for row in rows]
        written = self._write(added, extra, comparable)
        latest = {document.id: row for document, row in zip(added, rows, strict=True)}
        units = {written.embeddings[path].key: to_unit(latest[doc_id]) for doc_id, path in written.paths.items()}

        def add_vectors(store: Store) -> None:
            store.add_vectors([*units], np.array([*units.values()]), f"{source.identity}#{dims}")

        self._locations.sync(written.was_followed, written.changed, add_vectors)

    @observed("get", lambda items, *_, **__: map(_locate, items))
    def get(self, ids: Sequence[str], *, masked: bool = False) -> list[Document]:
        """Return the documents with these ids, in their order, as they were added.

        Args:
            ids: Ids of documents, or citations of a person's lines, in which secrets are masked. Unknown ones are left
                out.
            masked: Whether secrets are masked in documents too, as in the results of a search.

        Raises:
            InvalidInputError: An id is not a string.
            WorkspaceError: A file cannot be read.
        """
        self._service.check_open()
        check_ids(ids)
        by_name = {doc_id: self._read_by_name(doc_id, masked=masked) for doc_id in dict.fromkeys(ids)}
        paths = self._find_paths(ids) if None in by_name.values() else {}
        results: list[Document] = []
        for doc_id in ids:
            document = by_name[doc_id]
            if document is None and doc_id in paths:
                document = self._read_file(paths[doc_id][0], self._make_key(doc_id), masked=masked)
            elif document is None and not self._collection:
                lines = read_citation(self._workspace, doc_id)
                document = None if lines is None or self._hidden((lines.path,)) else lines
            if document is not None:
                results.append(copy_document(document))
        return results

    @observed("get", lambda item, *_: [] if item is None else [_locate(item)])
    def read(self, path: str) -> Document | None:
        """Return the document that a file holds now; None if it holds none, cannot be read, or is a hidden record.

        Args:
            path: The file, below `memory/`.

        Returns:
            A document that shares its metadata and fields with later calls: do not change them.
        """
        cached = self._cache.try_load(path)
        if cached is None or self._hidden((self._cache.files.locate(path).path,)):
            return None
        return read_document(path, cached)

    def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete the documents with these ids, and index that; return the ids of those that existed.

        Args:
            ids: Ids of documents. Unknown ones are left out.

        Raises:
            PathNotAllowedError: An id is a path or a citation, not the id of a document. Nothing was deleted.
            WriteError: A file could not be deleted.
        """
        return [*self._delete(ids)]

    @observed("delete", lambda paths, *_: locate_paths(chain(*paths.values())), writes=True)
    def _delete(self, ids: Sequence[str]) -> dict[str, Sequence[str]]:
        """Delete documents; return the files that each had."""
        self._service.check_open()
        check_ids(ids)
        was_followed, paths = self._locations.is_followed, self._find_paths(ids)
        for doc_id in ids:
            if doc_id not in paths:
                check_names_no_file(self._workspace, doc_id)
        deleted = {doc_id: paths[doc_id] for doc_id in dict.fromkeys(ids) if doc_id in paths}
        if deleted:
            files = [*chain(*deleted.values())]
            removed = apply_change(self._service, documents.remove, self._workspace.files, files)
            self._locations.sync(was_followed, removed)
        return deleted

    @observed("list", lambda item, *_, **__: [_locate(item)])
    def iterate(self, where: Where | None = None, *, masked: bool = False) -> Iterator[Document]:
        """Yield every document once, as it was added, in the order of the files; people's own notes are not among them.

        Args:
            where: Which documents count. Default: all.
            masked: Whether secrets are masked, as in the results of a search.
        """
        self._service.check_open()
        scope = self._narrow(where)
        is_narrow = scope is not None and (scope.ids is not None or scope.parts_of is not None)
        by_key = {} if is_narrow and self._locations.is_followed else documents.find_paths(self._cache)
        yielded: set[str] = set()
        for path in [own[0] for own in by_key.values()] or self._list_paths(where):
            document = self._read_file(path, masked=masked)
            if document is None or document.collection != self._collection or document.id in yielded:
                continue
            yielded.add(document.id)
            if where is None or where(document):
                yield copy_document(document)

    def list_problems(self, *, look: bool = False) -> list[str]:
        """Return a line for each document with damaged front matter, and for each reason why vectors are missing.

        Args:
            look: Whether to read every document first; default: only those that were read before are reported.
        """
        if look:
            with suppress(WorkspaceError):  # such a file is among those that a sync reports
                documents.find_paths(self._cache)
        return [self._cache.unread[path] for path in sorted(self._cache.unread)] + self._vectors.list_problems()

    # --- by question or vector -----------------------------------------------------------------------------------

    @observed("search", _locate_results)
    def search(
        self, query: str, k: int, *, where: Where | None = None, min_score: float = 0.0, source: Source | None = None
    ) -> list[tuple[Document, float]]:
        """Return the k documents that answer best, best first, each with the score in 0..1 of its best passage.

        Documents come whole, however long; of a person's notes only the lines that answer. With a `min_score` of 0, k
        documents come if there are k: after those that match come all others with 0. Scores are those of one search: a
        larger k weighs more candidates, and if more match than `search.candidates`, the order may change.

        Args:
            query: The question. For a blank one the first k documents come in the order of their files, with 0.
            k: How many documents, at least 1.
            where: Which documents count. Default: all.
            min_score: The least score, 0..1.
            source: "memory" for notes alone, "sessions" for transcripts alone. Default: both.

        Raises:
            QueryError: An argument has a wrong type or value.
        """
        check_count("k", k)
        if isinstance(query, str) and not query.strip():
            all_of_them = self.iterate(where, masked=True) if min_score <= 0 and source != "sessions" else iter(())
            return [(document, 0.0) for document in islice(all_of_them, k)]
        accepts, scope, test = self._accept(where), self._narrow(where), self._make_path_test(where)
        count, only = min(MAX_RESULTS, k), SearchFilter(source=source)
        passes = test if getattr(where, "tests", True) else None  # as a rule the index knows all metadata
        while True:
            request = SearchRequest(
                query, max_results=count, min_score=min_score, filter=only, where=scope, passes=passes
            )
            hits = self._search(request)
            pairs = ((self._resolve(hit.path, hit.spans, hit.snippet, hit.source), hit.score) for hit in hits)
            results = take_distinct(pairs, k, accepts)
            if len(results) >= k or (passes is test and (len(hits) < count or count == MAX_RESULTS)):
                break
            passes, count = test, min(MAX_RESULTS, WIDER * count) if passes is test else count
        if min_score > 0 or source == "sessions" or len(results) >= k:
            return results
        unranked = ((read_document(path, self._cache.try_load(path)), 0.0) for path in self._list_paths(where))
        return take_distinct(chain(results, unranked), k, accepts)

    @observed("search", _locate_results)
    def search_keywords(self, query: str, k: int, *, where: Where | None = None) -> list[tuple[Document, float]]:
        """Return the k documents that have words of the question, best first, each with the BM25 of its best chunk.

        Of a person's notes the matching chunks come.

        Args:
            query: The question; its words are looked up.
            k: How many documents, at least 1.
            where: Which documents count. Default: all.

        Raises:
            QueryError: k is less than 1, or the question is not a string.
        """
        check_count("k", k)
        if not isinstance(query, str):
            raise QueryError(f"query must be a string, not {type(query).__name__}")
        accepts, scope = self._accept(where), self._narrow(where)

        def search(store: Store) -> Results:
            terms = split_query(query, list_languages(store))
            hits = iterate_hits(store, partial(store.search_text, terms, where=scope), k)
            return take_distinct(self._resolve_hits(hits), k, accepts)

        return self._service.read(search) if query.strip() else []

    @observed("search", _locate_results)
    def search_vector(
        self,
        vector: Vector | Sequence[float],
        k: int,
        *,
        identity: str | None = None,
        vector_source: VectorSource | None = None,
        where: Where | None = None,
    ) -> list[tuple[Document, float]]:
        """Return the k documents nearest to a vector, nearest first, with their cosines.

        Without an `identity`, documents are ranked by the nearest of their chunks in the memory's own index. With one,
        documents that came with vectors of that model are ranked by these, exactly; all others by their chunks, if the
        memory's own index is of that model too. A vector of zeros, the question's or a document's, has the cosine 0.

        Args:
            vector: The vector of the question, shape (dims,), of any length.
            k: How many documents, at least 1.
            identity: The identity of the model that made `vector`. Default: the memory's own embedder made it.
            vector_source: Makes lost vectors of documents again, if it has this identity. Default: the one used last.
            where: Which documents count. Default: all.

        Raises:
            QueryError: k is less than 1, or the vector does not consist of numbers.
            EmbedderError: The vector has other dimensions than those it is compared with, or is not finite; or all
                vectors of a model without a name are lost.
        """
        check_count("k", k)
        unit, accepts, scope = to_unit(vector), self._accept(where), self._narrow(where)
        if identity is None:
            return self._service.read(lambda store: self._rank_by_chunks(store, unit, k, accepts, scope))
        self._vectors.take(vector_source)

        def search(store: Store) -> tuple[Results, bool]:
            counts = store.count_identities()
            results = self._rank_by_own_vectors(store, counts, unit, k, identity, accepts, scope)
            return results, self._vectors.can_restore(counts)

        # One snapshot answers as a rule: each further one costs as much as the search itself.
        results, is_lacking = self._service.read(search)
        while is_lacking:  # `restore` tries the same vectors once
            self._vectors.restore()
            results, is_lacking = self._service.read(search)
        if not results:
            self._vectors.check_not_lost(identity)
        return results

    def get_vectors(self, items: Sequence[Document], identity: str | None = None) -> list[Vector | None]:
        """Return a unit vector for each document, shape (dims,), or None for one that has no vector.

        It is the mean of the vectors of its chunks. With an `identity` it is the vector of this model that the document
        came with, or else that mean, if the memory's own index is of this model too.

        Args:
            items: Documents, as a search returns them.
            identity: The identity of a model. Default: that of the memory's own index.
        """
        import numpy as np

        def get(store: Store) -> list[Vector | None]:
            name, paths = find_identity(store.count_identities(), identity), {item.path for item in items}
            by_path: dict[str, list[tuple[StoredChunk, Vector]]] = {}

            def add(stored: Sequence[StoredChunk]) -> None:
                rows = store.get_vectors([row.id for row in stored])
                for row in stored:
                    if row.id in rows:
                        by_path.setdefault(row.path, []).append((row, rows[row.id]))

            if name is not None:
                add(store.get_file_chunks(*paths, identity=name))
            if identity is None or _is_of(store, identity):
                add(store.get_file_chunks(*(paths - by_path.keys())))
            vectors = ([row for stored, row in by_path.get(own.path, ()) if has_chunk(own, stored)] for own in items)
            return [to_unit(np.sum(own, axis=0)) if len(own) > 1 else next(iter(own), None) for own in vectors]

        return self._service.read(get)

    def get_vector_identity(self, vector_source: VectorSource | None = None) -> str | None:
        """Return the identity of the model of the vectors that documents came with; None if they came with none.

        If there are several, it is that of `vector_source`, or else the commonest one.

        Args:
            vector_source: Makes lost vectors again, if it is of the same model. Default: the one used last.
        """
        self._vectors.take(vector_source)
        return self._vectors.restore()

    @observed("reembed", writes=True)
    def rebuild_vectors(self, source: VectorSource) -> int:
        """Make the vectors of all documents of this collection by a model, which may be another one than before.

        Texts, ids, metadata and files stay; the front matter names the new model. It is done in batches: in between,
        searches by a model find the documents that have its vectors. After a failure, a second call does the rest.

        Args:
            source: The model; its `make` is called.

        Returns:
            How many documents got new vectors: those that had none of this model.

        Raises:
            EmbedderError: The model makes nothing, or failed. Documents of the batches before have its vectors.
            WriteError, WorkspaceError: A file cannot be written or read. Likewise.
        """
        self._service.check_open()
        self._vectors.use(source)
        outdated = [document for document in self.iterate() if document.model != source.identity]
        for first in range(0, len(outdated), AT_ONCE):
            batch = outdated[first : first + AT_ONCE]
            models = sorted(self._locations.look([]).models)
            self._write_with_vectors(batch, make_vectors(source, batch), source, models)
        self._vectors.restore()
        return len(outdated)

    def count_missing_vectors(self) -> int:
        """Return how many documents cannot be found by their vectors; `list_problems` gives the reasons."""
        return sum(self._vectors.count_missing().values())

    # --- inside --------------------------------------------------------------------------------------------------

    def _rank_by_chunks(
        self,
        store: Store,
        unit: Vector,
        k: int,
        accepts: Where,
        scope: ChunkScope | None,
        min_score: float = -1.0,
        skip: Callable[[str], bool] = lambda _: False,
    ) -> Results:
        """Return the k documents with the nearest chunks, without the files to `skip`."""
        hits = iterate_hits(store, partial(store.search_vector, unit, where=scope), WIDER * k, min_score)
        return take_distinct(self._resolve_hits(hit for hit in hits if not skip(hit[0].path)), k, accepts)

    def _rank_by_own_vectors(
        self, store: Store, counts: Counts, unit: Vector, k: int, identity: str, accept: Where, scope: ChunkScope | None
    ) -> Results:
        """Return the k documents nearest by vectors of a model, from one state of the index."""
        name = find_identity(counts, identity)
        results: Results = []
        if name is not None:
            hits = iterate_hits(store, partial(store.search_vector, unit, identity=name, where=scope), k)
            own = self._resolve_hits(hits)
            of_model = ((document, score) for document, score in own if document and document.model == identity)
            results = take_distinct(of_model, k, accept)
        if not _is_of(store, identity):
            return results
        if name is not None and counts[name] == (self._vectors.count_files(store),) * 2:  # no document needs its chunks
            scope = dataclasses.replace(scope or ChunkScope(self._collection), is_of_people=True)
        least = results[-1][1] if len(results) == k else -1.0
        list_own = cache(lambda path: store.get_file_chunks(path, identity=name) if name else [])
        has_own = cache(lambda path: bool(store.get_vectors([row.id for row in list_own(path)])))
        by_chunks = self._rank_by_chunks(store, unit, k, accept, scope, least, has_own)
        return sorted([*results, *by_chunks], key=lambda pair: -pair[1])[:k]

    def _resolve_hits(self, hits: Iterable[tuple[StoredChunk, float]]) -> Iterator[tuple[Document | None, float]]:
        """Yield the documents that hold these chunks."""
        for stored, score in hits:
            chunk = stored.chunk
            yield self._resolve(stored.path, [(chunk.start_line, chunk.end_line)], chunk.text, stored.source), score

    def _resolve(self, path: str, spans: Sequence[Span], text: str, source: Source) -> Document | None:
        """Return the document, or the lines, of a passage of the index; None if it is missing or hidden."""
        if source == "memory":
            cached = None if self._hidden((path,)) else self._cache.try_load(path)
            if cached is None:
                return None
            if (document := read_document(path, cached)) is not None:
                return document
        return make_document(path, spans, self._workspace.policies.mask(text), source)

    def _make_path_test(self, where: Where | None) -> Callable[[str], bool] | None:
        """Return whether chunks of a file can be of a document that counts, as lines of a person's notes always may.

        Results are looked at again.
        """
        if where is None or (isinstance(where, DocumentFilter) and not where.reads_documents):
            return None  # the index is asked for it
        accepts = self._accept(where)

        @cache
        def is_possible(path: str) -> bool:
            document = read_document(path, self._cache.try_load(path))
            return not self._collection if document is None else accepts(document)

        return is_possible

    def _accept(self, where: Where | None) -> Where:
        """Return a test that `where` and the collection must pass."""
        collection = self._collection
        return lambda document: document.collection == collection and (where is None or where(document))

    def _narrow(self, where: Where | None) -> ChunkScope | None:
        """Return the chunks that documents of the collection which pass a filter can have, or None for all."""
        return (where if isinstance(where, DocumentFilter) else DocumentFilter()).narrow(self._collection)

    def _list_paths(self, where: Where | None) -> Iterator[str]:
        """Yield the paths of all documents that may pass a filter, from the index if it narrows them."""
        scope = self._narrow(where)
        if scope is None or (not scope.collection and scope.ids is None and scope.parts_of is None):
            return (path for path, _ in walk_notes(self._cache.files, DOCUMENTS_FOLDER))
        store = self._service.store()
        if scope.ids is not None:
            return iter(store.get_files(ids=[self._make_key(doc_id) for doc_id in scope.ids if doc_id.strip()]))
        if scope.parts_of is not None:
            return (path for whole in scope.parts_of for path in store.get_files(part_of=whole))
        return iter(store.get_files(id_prefix=self._make_key("")))

    def _find_paths(self, ids: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the files of the documents of the collection, by id; others may be among them."""
        paths = self._locations.find_paths([self._make_key(doc_id) for doc_id in ids if doc_id.strip()])
        return {split_key(key)[1]: own for key, own in paths.items() if split_key(key)[0] == self._collection}

    def _make_key(self, doc_id: str) -> str:
        return make_key(self._collection, doc_id)

    def _read_by_name(self, doc_id: str, *, masked: bool) -> Document | None:
        """Return the document with an id, if it is in the file that is named after it."""
        if not doc_id.strip():
            return None
        key = self._make_key(doc_id)
        path = documents.make_path(key)
        cached = self._cache.try_load(path)
        return self._read_file(path, masked=masked) if cached is not None and cached.doc_id == key else None

    def _read_file(self, path: str, name: str = "", *, masked: bool) -> Document | None:
        """Return the document in a file, or None; `name` is its id if none can be read in it."""
        return read_document(path, self._cache.load(path) if masked else self._cache.load_unmasked(path), name)


def _is_of(store: Store, identity: str) -> bool:
    """Return whether the vectors of the chunks are of a model."""
    meta = store.read_meta()
    return meta is not None and meta.identity == identity
