"""`Documents`: what frameworks put into a memory and find again by id, by question or by vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cache, partial
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from openclaw_memory._weakref import bind_weakly
from openclaw_memory.documents.filters import ChunkScope, DocumentFilter
from openclaw_memory.documents.places import DocumentPlaces
from openclaw_memory.documents.validation import (
    OURS,
    UNLIKE,
    WIDER,
    Where,
    above_text,
    check_ids,
    check_k,
    check_question,
    chunks_of,
    distinct,
    document_in,
    overlaps,
    owned,
    rows_of,
    stored_hits,
    unit_of,
    unit_rows,
)
from openclaw_memory.documents.vectors import AT_ONCE, DocumentVectors, made_by, vector_of_file
from openclaw_memory.errors import (
    EmbedderError,
    InvalidInputError,
    QueryError,
    StoreError,
    SyncBusyError,
    WorkspaceError,
)
from openclaw_memory.events import Location, locate_citation, locate_files, locate_paths, observed
from openclaw_memory.indexing.changes import compare
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.search.filters import SearchFilter
from openclaw_memory.search.request import MAX_RESULTS, SearchRequest
from openclaw_memory.text.front_matter import PART_OF
from openclaw_memory.text.terms import split_query
from openclaw_memory.types import Document, Embedder, Hit, Source, Store, StoredChunk, VectorSource
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
from openclaw_memory.workspace.documents import Fields, Upserted
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER
from openclaw_memory.workspace.scan import walk_notes

if TYPE_CHECKING:
    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import Matrix, Vector

# The most results of one search; see `Memory.search`.


_Result = TypeVar("_Result")
Hidden: TypeAlias = Callable[[Iterable[str]], frozenset[str]]
_Search: TypeAlias = Callable[..., list[Hit]]  # takes how many hits are wanted, and a filter of chunks as `where`


def _locate(document: Document) -> Location:
    return locate_citation(document.citation or document.path or document.id)


def _locate_hits(hits: Iterable[tuple[Document, float]], *_: Any, **__: Any) -> list[Location]:
    return [_locate(document) for document, _score in hits]


class DocumentFiles:
    """The documents of a memory by the paths of their files. Safe to use from several threads.

    What is written or deleted here is indexed by the next sync.
    """

    def __init__(self, workspace: Workspace, cache: DocumentCache, service: IndexService, hidden: Hidden) -> None:
        """`service` keeps the index of the workspace; `hidden` as for `Documents`."""
        self._files, self._cache, self._service = workspace.files, cache, service
        self._workspace, self._hidden, self.events = workspace, hidden, workspace.events

    def write(self, path: str, fields: Mapping[str, Any], text: str) -> None:
        """Write one document; see `write_many`.

        Args:
            path: Its file, below `memory/`.
            fields: JSON values by names of `a-z` and `_`, written above the text.
            text: The text that searches find.

        Raises:
            InvalidInputError, PathNotAllowedError, WriteError: As `write_many`.
        """
        self.write_many([(path, fields, text)])

    def write_many(self, given: Iterable[tuple[str, Mapping[str, Any], str]]) -> None:
        """Write documents at paths below `memory/`, each in place of the one there.

        Args:
            given: Path, fields and text of each, as `write` takes them.

        Raises:
            InvalidInputError: A field is not JSON, a text is not Unicode, or one of them holds a secret, which would be
                read masked and lost when it is written back. Nothing was written.
            PathNotAllowedError: A path is outside `memory/`, is that of a daily note, or of a person's own file.
                Nothing was written.
            WriteError: A document is larger than `files.max_bytes` (nothing was written), or could not be written.
        """
        self._service.check_open()
        if files := [Fields(*one) for one in given]:
            self._write(files)

    @observed("add", lambda _, __, files: locate_files(files), writes=True)
    def _write(self, files: Sequence[Fields]) -> None:
        for file in files:
            for name, value in {**file.fields, "text": file.text}.items():
                documents.check_no_secret(value, f"{name} of {file.path}")
        self._apply(documents.write, files)

    @observed("get", lambda content, _, path: [] if content is None else [(path, "")])
    def read(self, path: str) -> tuple[Mapping[str, Any], str] | None:
        """Return the fields and the text of a document; None if there is no file, a person's own, or a hidden record.

        The fields are the same object as long as the file is the same: do not change them, change a copy.

        Args:
            path: The file of the document, below `memory/`.

        Raises:
            PathNotAllowedError: The path cannot be that of a memory file.
        """
        self._service.check_open()
        path = self._files.find(path)
        content = self._cache.load(path).content
        if content is None or self._hidden((self._files.locate(path).path,)):
            return None
        return content.fields, content.text

    @observed("delete", lambda is_gone, _, *paths: locate_paths(paths) if is_gone else [], writes=True)
    def delete(self, *paths: str) -> bool:
        """Delete documents; return whether there was any.

        Args:
            paths: The files of the documents, below `memory/`. Missing ones are left out.

        Raises:
            PathNotAllowedError: A path is that of a person's own file.
            WriteError: A file could not be deleted.
        """
        self._service.check_open()
        return bool(self._apply(documents.remove, paths))

    @observed("list", lambda item, *_, **__: [(item[0], "")])
    def iterate(self, folder: str) -> Iterator[tuple[str, Mapping[str, Any], str]]:
        """Yield path, fields (do not change them) and text of each document in a folder, in the order of paths.

        Records that are shown nowhere, being expired or not vouched for by their signature, are left out.

        Args:
            folder: A folder in `memory/`, or `memory` itself; those inside it count too.

        Raises:
            PathNotAllowedError: The folder is outside `memory/`.
            WorkspaceError: A folder or a file cannot be read.
        """
        self._service.check_open()
        for path, content in documents.iterate_documents(self._cache, folder):
            if not self._hidden((path,)):
                yield path, content.fields, content.text

    def sync(self, paths: Iterable[str], *, wait: float | None = None) -> None:
        """Bring the index up to date with the documents at these paths, whatever else has changed.

        Args:
            paths: Files of documents, below `memory/`.
            wait: How many seconds to wait for another sync; as long as it takes if None.

        Raises:
            SyncBusyError: Another sync was not done after `wait` seconds.
            StoreError: The index cannot be written.
        """
        self._service.check_open()
        names = [self._files.find(path) for path in paths]
        files = self._workspace.list_notes_at(names)
        difference = None if files is None else compare(files, self._service.store().files(names))
        if difference is None or difference.to_read:
            self._service.record_write(None if difference is None else [file.path for file in difference.to_read])
            self._service.sync(wait=wait, only_written=True)

    def _apply(self, change: Callable[..., Any], *arguments: Any) -> Any:
        """Change files, and let the index know that they have changed, also if that failed half-way."""
        changed: Any = None
        try:
            changed = change(self._files, *arguments)
            return changed
        finally:
            if changed is None or changed:
                self._service.record_write(changed.changed if isinstance(changed, documents.Upserted) else changed)


class Documents:
    """The documents of a memory, each a file of its own in `memory/notes/`. Safe to use from several threads.

    The files are the truth: a person may edit the text of one, move it within that folder, or delete it; an `id` or
    `part_of` that is changed above the text counts from the next sync on. Passages of a person's own notes are found as
    documents too, with their citation as id; they are never changed or deleted here. Those of a `collection` have ids
    of their own, and are found in it alone. Secrets are masked in what is found; `get` and `iterate` return a program's
    own documents as it added them. `files` reads and writes documents by the paths of their files.
    """

    Filter: TypeAlias = DocumentFilter  # which documents a search finds, as `where`

    def __init__(
        self,
        workspace: Workspace,
        service: IndexService,
        search: Callable[..., SearchResults],
        embedder: Callable[[], Embedder | None],
        hidden: Hidden,
    ) -> None:
        """`service` keeps the index of the workspace; `search` answers a request, `embedder` returns its embedder.

        `hidden` returns those of some paths whose records are not to be shown, whatever the index has of them.
        """
        self._workspace, self._service, self._search, self._embedder = workspace, service, search, embedder
        self._cache = DocumentCache(workspace.files)
        self._places = DocumentPlaces(self._cache, service)
        self._vectors = DocumentVectors(self._cache, service, bind_weakly(self._reading))
        self._hidden, self.events = hidden, workspace.events
        self.files = DocumentFiles(workspace, self._cache, service, hidden)
        self._collection = ""

    def collection(self, name: str | None) -> Self:
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
        one = copy(self)
        one._collection = name or ""
        return one

    # --- by id ---------------------------------------------------------------------------------------------------

    @observed("add", lambda ids, part, *_, **__: locate_paths(chain(*part._paths(ids).values())), writes=True)
    def add(self, given: Iterable[Document], vectors: Any = None, source: VectorSource | None = None) -> list[str]:
        """Write documents, each in place of the one with its id, and index them; return their ids in order.

        If several have one id, the last one counts. If one of them cannot be written, none is. A file whose front
        matter a person has damaged is written again. A text, or a string in the metadata, that is the old one with its
        secrets masked keeps the old one.

        Args:
            given: The documents.
            vectors: Their vectors, shape (n, dims), of any length each. `vector_search` with the identity of `source`
                finds the documents by them. Default: only the memory's own index finds the documents.
            source: The model that made `vectors`; required with them.

        Raises:
            InvalidInputError: An id is blank, metadata are not JSON, a text is not Unicode, or a masked text would
                replace the secret.
            WriteError, WorkspaceError: A document is larger than `files.max_bytes`, or files cannot be written or read.
            StoreError: The memory is closed, its index cannot be written, or a sync is running in this very thread.
            EmbedderError: The vectors are not finite, or have other dimensions or another model than those added
                before. Nothing was written.
        """
        self._service.check_open()
        added = list(given)
        for one in added:
            if not isinstance(one.metadata, Mapping):
                raise InvalidInputError(f"the metadata of document {one.id!r} must be a mapping, not {one.metadata!r}")
            if ours := OURS & one.fields.keys():
                raise InvalidInputError(
                    f"a field of document {one.id!r} cannot be called {min(ours)!r}: call it another name"
                )
        if vectors is not None and source is None:
            raise EmbedderError("vectors came without their source: add source=VectorSource(identity, model)")
        if self._service.is_syncing_here:
            raise SyncBusyError("a sync is under way in this very thread: a progress callback may search, not add")
        if not added:
            return []
        self._vectors.use(source)
        if vectors is None or source is None:
            self._put(added, [{}] * len(added))
        else:
            self._put_with_vectors(added, rows_of(vectors, len(added)), source)
        return [one.id for one in added]

    def _put(
        self,
        added: Sequence[Document],
        about: Sequence[Mapping[str, Any]],
        vectors: Sequence[tuple[str, int]] = (),
    ) -> Upserted:
        """Write documents with more fields `about` each; `vectors` as for `upsert`."""
        wanted = {
            self._key(one.id): ({"metadata": one.metadata, **one.fields, **more}, one.text)
            for one, more in zip(added, about, strict=True)
        }
        upserted: Upserted = self.files._apply(documents.upsert, wanted, self._places.look, vectors)
        written = replace(upserted, paths={split_key(key)[1]: path for key, path in upserted.paths.items()})
        if written and not vectors:
            self._places.sync(written.was_followed, written.changed)
        return written

    def _put_with_vectors(
        self, added: Sequence[Document], rows: Matrix, source: VectorSource, also: Iterable[tuple[str, int]] = ()
    ) -> None:
        """Write documents with their vectors. Others may have vectors of the models `also`, with their dimensions."""
        import numpy as np

        units = unit_rows(rows)
        like = [*((model, rows.shape[1]) for model in self._vectors.models(source.identity)), *also]
        keyed = [above_text(row, source.identity, one.text) for row, one in zip(rows, added, strict=True)]
        above = keyed if source.make is None else [above_text(row, source.identity) for row in rows]
        written = self._put(added, above, like)
        latest = {one.id: at for at, one in enumerate(added)}
        same = [at for doc_id, at in latest.items() if written.paths[doc_id] not in written.changed]
        stored = self.vectors(self.get([added[at].id for at in same]), source.identity) if same else []
        # What the source would not make again of this document has a key of its own.
        odd = [
            at
            for at, row in zip(same, stored, strict=True)
            if row is not None and float(np.linalg.norm(row - units[at])) > UNLIKE
        ]
        embeddings = dict(written.embeddings)
        if source.make is not None and odd:
            embeddings |= self._put([added[at] for at in odd], [keyed[at] for at in odd], like).embeddings
        keys = {embeddings[path].key: units[latest[doc_id]] for doc_id, path in written.paths.items()}
        identity = f"{source.identity}#{rows.shape[1]}"

        def prepare(store: Store) -> None:
            if keys:
                store.add_vectors([*keys], np.array([*keys.values()]), identity)

        self._places.sync(written.was_followed and not odd, written.changed, prepare)

    @observed("get", lambda items, *_, **__: map(_locate, items))
    def get(self, ids: Sequence[str], *, masked: bool = False) -> list[Document]:
        """Return the documents with these ids, in their order, as they were added.

        Args:
            ids: Ids of documents, or citations of a person's lines, in which secrets are masked. Unknown ones are left
                out.
            masked: Whether secrets are masked in documents too, as in what a search returns.

        Raises:
            InvalidInputError: An id is not a string.
            WorkspaceError: A file cannot be read.
        """
        self._service.check_open()
        check_ids(ids)
        there: dict[str, Sequence[str]] | None = None
        found: list[Document | None] = []
        for doc_id in ids:
            document = self._by_name(doc_id, masked=masked)
            if document is None:
                there = there if there is not None else self._paths(ids)
                document = (
                    self._at(there[doc_id][0], self._key(doc_id), masked=masked)
                    if doc_id in there
                    else self._cited(doc_id)
                )
            found.append(document)
        return [owned(document) for document in found if document is not None]

    @observed("get", lambda item, *_: [] if item is None else [_locate(item)])
    def read(self, path: str) -> Document | None:
        """Return the document that a file holds now; None if it holds none, cannot be read, or is a hidden record.

        Args:
            path: The file, below `memory/`.

        Returns:
            A document that shares its metadata and fields with later calls: do not change them.
        """
        seen = self._cache.try_load(path)
        if seen is None or self._hidden((self._cache.files.locate(path).path,)):
            return None
        return document_in(path, seen)

    def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete the documents with these ids, and index that; return the ids of those that existed.

        Args:
            ids: Ids of documents. Unknown ones are left out.

        Raises:
            PathNotAllowedError: An id is a path or a citation, not the id of a document. Nothing was deleted.
            WriteError: A file could not be deleted.
        """
        return [*self._delete(ids)]

    @observed("delete", lambda there, *_: locate_paths(chain(*there.values())), writes=True)
    def _delete(self, ids: Sequence[str]) -> dict[str, Sequence[str]]:
        """Delete documents; return the files that each had."""
        self._service.check_open()
        check_ids(ids)
        was_followed, there = self._places.is_followed, self._paths(ids)
        for doc_id in ids:
            if doc_id not in there:
                check_names_no_file(self._workspace, self._cache, doc_id)
        gone = {doc_id: there[doc_id] for doc_id in dict.fromkeys(ids) if doc_id in there}
        if gone:
            removed = self.files._apply(documents.remove, [*chain(*gone.values())])
            self._places.sync(was_followed, removed)
        return gone

    @observed("list", lambda item, *_, **__: [_locate(item)])
    def iterate(
        self, where: Where | None = None, *, part_of: str | None = None, masked: bool = False
    ) -> Iterator[Document]:
        """Yield every document once, as it was added, in the order of the files; people's own notes are not among them.

        Args:
            where: Which documents count. Default: all.
            part_of: Only documents with this text as their field `part_of`. Default: all.
            masked: Whether secrets are masked, as in what a search returns.
        """
        self._service.check_open()
        known = None if part_of is None else self._places.parts_of(part_of)
        if known is None:
            known = [paths[0] for paths in documents.find_paths(self._cache).values()]
        seen: set[str] = set()
        for path in known:
            document = self._at(path, masked=masked)
            if document is None or document.collection != self._collection or document.id in seen:
                continue
            seen.add(document.id)
            if part_of in {None, document.fields.get(PART_OF)} and (where is None or where(document)):
                yield owned(document)

    def damaged(self, *, look: bool = False) -> list[str]:
        """Return a line for each document with damaged front matter, and for each reason why vectors are missing.

        Args:
            look: Whether to read every document first; default: only what was read before is reported.
        """
        if look:
            with suppress(WorkspaceError):  # what cannot be looked at is among the files that are left out
                documents.find_paths(self._cache)
        return [self._cache.unread[path] for path in sorted(self._cache.unread)] + self._vectors.in_words()

    # --- by what they say ----------------------------------------------------------------------------------------

    @observed("search", _locate_hits)
    def search(
        self,
        query: str,
        k: int,
        *,
        where: Where | None = None,
        min_score: float = 0.0,
        source: Source | None = None,
    ) -> list[tuple[Document, float]]:
        """Return the k documents that answer best, best first, each with the score in 0..1 of its best passage.

        Documents come whole, however long; of a person's notes only the lines that answer. With a `min_score` of 0, k
        documents come if there are k: after those that match come those that only their vectors find, by cosine and
        with no higher score than the last match, then all others with 0. Scores are those of one search: a larger k
        weighs more candidates, and if more match than `search.candidates`, the order may change.

        Args:
            query: The question. For a blank one the first k documents come in the order of their files, with 0.
            k: How many documents, at least 1.
            where: Which documents count. Default: all.
            min_score: The least score, 0..1.
            source: "memory" for notes alone, "sessions" for transcripts alone. Default: both.

        Raises:
            QueryError: An argument has a wrong type or value.
        """
        check_k(k)
        if isinstance(query, str) and not query.strip():
            all_of_them = self.iterate(where, masked=True) if min_score <= 0 and source != "sessions" else iter(())
            return [(document, 0.0) for document in islice(all_of_them, k)]
        wanted, counts, passes = min(MAX_RESULTS, k), self._counts(where), self._passing(where)
        scope, only = self._narrow(where), SearchFilter(source=source)
        while True:
            request = SearchRequest(
                query, max_results=wanted, min_score=min_score, filter=only, where=scope, passes=passes
            )
            results = self._search(request)
            hits = ((self._found(one.path, one.spans, one.snippet, one.source), one.score) for one in results)
            found = distinct(hits, k, counts)
            if len(found) >= k or len(results) < wanted or wanted == MAX_RESULTS:
                break
            wanted = min(MAX_RESULTS, WIDER * wanted)
        if min_score > 0 or source == "sessions" or len(found) >= k:
            return found
        last = found[-1][1] if found else 1.0
        near = ((one, cosine) for one, cosine in self._near(query, k, where) if not overlaps(one, found))
        by_vector = ((document, min(last, max(0.0, cosine))) for document, cosine in near)
        rest = ((document_in(path, seen), 0.0) for path in self._list(where) if (seen := self._cache.try_load(path)))
        return distinct(chain(found, by_vector, rest), k, counts)

    @observed("search", _locate_hits)
    def keyword_search(
        self, query: str, k: int, *, where: Where | None = None, source: Source | None = None
    ) -> list[tuple[Document, float]]:
        """Return the k documents that have words of the question, best first, each with the BM25 of its best chunk.

        Of a person's notes the matching chunks come.

        Args:
            query: The question; its words are looked up.
            k: How many documents, at least 1.
            where: Which documents count. Default: all.
            source: "memory" for notes alone, "sessions" for transcripts alone. Default: both.

        Raises:
            QueryError: k is less than 1, or the question is not a string.
        """
        check_k(k)
        if not isinstance(query, str):
            raise QueryError(f"query must be a string, not {type(query).__name__}")
        terms = split_query(query)
        counts, (narrowed, wanted) = self._counts(where), self._narrowing(where, k)

        def best(store: Store) -> list[tuple[Document, float]]:
            by_words = narrowed(partial(store.search_text, terms, source=source))
            return distinct(self._hits(stored_hits(store, by_words, wanted)), k, counts)

        return self._reading(best) if terms else []

    @observed("search", _locate_hits)
    def vector_search(
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
        check_k(k)
        unit, counts, (narrowed, wanted) = unit_of(vector), self._counts(where), self._narrowing(where, k)
        if identity is None:
            return self._reading(lambda store: self._by_chunks(store, unit, k, counts, narrowed))
        self._vectors.take(vector_source)

        def search(store: Store) -> tuple[list[tuple[Document, float]], bool, bool]:
            there = store.identities()
            found = self._by_own_vectors(store, there, unit, k, identity, counts, narrowed, wanted)
            is_current = self._vectors.are_current(store, (document for document, _ in found))
            return found, self._vectors.can_restore(there), is_current

        # One snapshot answers as a rule: each further one costs as much as the search itself.
        found, is_lacking, is_current = self._reading(search)
        if is_lacking:
            self._vectors.restore()
            found, _, is_current = self._reading(search)
        if not is_current:  # a person has changed what was found: its vector is that of another text
            with suppress(SyncBusyError, StoreError):
                self._service.sync(wait=0)
            self._vectors.restore()
            found, _, _ = self._reading(search)
        if not found:
            self._vectors.check_not_lost(identity)
        return found

    def vectors(self, found: Sequence[Document], identity: str | None = None) -> list[Vector | None]:
        """Return a unit vector for each document, shape (dims,), or None for one that has no vector.

        It is the mean of the vectors of its chunks. With an `identity` it is the vector of this model that the document
        came with, or else that mean, if the memory's own index is of this model too.

        Args:
            found: Documents, as a search returns them.
            identity: The identity of a model. Default: that of the memory's own index.
        """
        import numpy as np

        def all_of(store: Store) -> list[Vector | None]:
            own = [] if identity is None else self._vectors.row_identities(store.identities(), identity)
            ids = [[row.id for name in own for row in store.file_chunks(one.path, name)][:1] for one in found]
            rows = store.vectors([*chain.from_iterable(ids)])
            if identity is None or _is_of(store, identity):
                lacking = [at for at, own_id in enumerate(ids) if not rows.keys() & set(own_id)]
                for at in lacking:
                    ids[at] = [stored.id for stored in chunks_of(store, found[at])]
                rows = {**rows, **store.vectors([*chain.from_iterable(ids[at] for at in lacking)])}
            vectors = ([rows[one] for one in some if one in rows] for some in ids)
            return [unit_of(np.sum(some, axis=0)) if len(some) > 1 else next(iter(some), None) for some in vectors]

        return self._reading(all_of)

    def vector_identity(self, vector_source: VectorSource | None = None) -> str | None:
        """Return the identity of the model whose vectors documents came with; None if they came with none.

        If there are several, it is that of `vector_source`, or else the commonest one.

        Args:
            vector_source: Makes lost vectors again, if it is of the same model. Default: the one used last.
        """
        self._vectors.take(vector_source)
        return self._vectors.restore()

    def adopt(self, *sources: VectorSource) -> bool:
        """Count vectors of a model without a name as those of a model, if that makes the same of one stored text.

        They are then found, and made again if they are lost, by that model, as long as the memory is open; nothing is
        written. If all of them are lost, there is nothing to compare: the model counts as theirs.

        Args:
            sources: The model, once for each way in which it may have made them, such as with the metadata or without.

        Returns:
            Whether there are such vectors, and they are of this model.

        Raises:
            EmbedderError: The model failed.
        """
        self._service.check_open()
        return self._vectors.adopt(sources)

    @observed("reembed", writes=True)
    def reembed(self, source: VectorSource) -> int:
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
        if source.make is None:
            raise EmbedderError(f"{source.identity!r} cannot make vectors: pass a VectorSource with its make=")
        self._vectors.use(source)
        left = [document for document in self.iterate() if document.model != source.identity]
        for first in range(0, len(left), AT_ONCE):
            some = left[first : first + AT_ONCE]
            others = self._places.look([]).models
            self._put_with_vectors(some, made_by(source, some), source, sorted(others))
        self._vectors.restore()
        return len(left)

    def missing_vectors(self) -> int:
        """Return how many documents cannot be found by the vectors they came with; `damaged` says why."""
        return sum(self._vectors.missing().values())

    def _passing(self, where: Where | None) -> Callable[[str], bool] | None:
        """Return whether chunks of a file can be of a document that counts, as lines of a person's notes always may.

        It says what was true when the file was read last: what is found is looked at again.
        """
        if where is None or (isinstance(where, DocumentFilter) and not where.reads_documents):
            return None  # the index is asked for it
        counts = self._counts(where)

        @cache
        def passes(path: str) -> bool:
            seen = self._cache.load_latest(path)
            document = None if seen is None else document_in(path, seen)
            return not self._collection if document is None else counts(document)

        return passes

    # --- inside --------------------------------------------------------------------------------------------------

    def _reading(self, work: Callable[[Store], _Result]) -> _Result:
        """Return what `work` returns for the index as it is now, built first if missing and rebuilt if damaged."""

        def read() -> _Result:
            with self._service.snapshot() as state:
                self._service.sync_if_behind()
                return work(state.store)

        return self._service.run_recovering(read)[0]

    def _near(self, query: str, k: int, where: Where | None) -> list[tuple[Document, float]]:
        """Return what is near to a question by its vector alone; nothing if the index has no such vectors."""
        try:
            embedder = self._embedder()
            stored = self._reading(lambda store: store.meta())
            if embedder is None or stored is None or stored.identity != embedder.identity:
                return []
            return self.vector_search(embedder.embed_query(query), k, where=where)
        except EmbedderError:  # keywords have answered in its place
            return []

    def _by_chunks(
        self,
        store: Store,
        unit: Vector,
        k: int,
        where: Where | None,
        narrowed: Callable[[_Search], _Search],
        least: float = -1.0,
        left_out: Callable[[str], bool] | None = None,
    ) -> list[tuple[Document, float]]:
        """Return the k documents with the nearest chunks, down to a cosine of `least`, without `left_out` files."""
        hits = stored_hits(store, narrowed(partial(store.search_vector, unit)), WIDER * k, least)
        wanted = (hit for hit in hits if left_out is None or not left_out(hit[0].path))
        return distinct(self._hits(wanted), k, where)

    def _by_own_vectors(
        self,
        store: Store,
        there: Mapping[str, tuple[int, int]],
        unit: Vector,
        k: int,
        identity: str,
        where: Where,
        narrowed: Callable[[_Search], _Search],
        wanted: int,
    ) -> list[tuple[Document, float]]:
        """Answer `vector_search` with an identity from one state of the index, whose `identities()` are `there`."""
        own = self._vectors.row_identities(there, identity)
        for name in own:
            check_question(unit, int(name.rpartition("#")[2]))
        searches = [narrowed(partial(store.search_vector, unit, identity=name)) for name in own]
        hits = merge(*(stored_hits(store, search, wanted) for search in searches), key=lambda hit: -hit[1])
        models = self._vectors.models(identity)
        found = distinct(((self._of_models(hit.path, models), score) for hit, score in hits), k, where)
        if not _is_of(store, identity):
            return found
        least = found[-1][1] if len(found) == k else -1.0
        has_own = cache(lambda path: any(vector_of_file(store, path, name) is not None for name in own))
        others = self._by_chunks(store, unit, k, where, narrowed, least, has_own)
        return sorted([*found, *others], key=lambda pair: -pair[1])[:k]

    def _of_models(self, path: str, models: Sequence[str]) -> Document | None:
        document = self.read(path)
        return document if document is not None and document.model in models else None

    def _hits(self, hits: Iterable[tuple[StoredChunk, float]]) -> Iterator[tuple[Document | None, float]]:
        """Yield the documents that hold these chunks."""
        for stored, score in hits:
            chunk = stored.chunk
            yield self._found(stored.path, [(chunk.start_line, chunk.end_line)], chunk.text, stored.source), score

    def _paths(self, wanted: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the files of the documents of the collection, by id; others may be among them."""
        there = self._places.paths([self._key(doc_id) for doc_id in wanted if doc_id.strip()])
        parts = ((split_key(key), paths) for key, paths in there.items())
        return {doc_id: paths for (collection, doc_id), paths in parts if collection == self._collection}

    def _key(self, doc_id: str) -> str:
        return make_key(self._collection, doc_id)

    def _counts(self, where: Where | None) -> Where:
        """Return what passes `where` and is in the collection."""
        collection = self._collection
        return lambda one: one.collection == collection and (where is None or where(one))

    def _narrow(self, where: Where | None) -> ChunkScope | None:
        """Return the chunks that documents of the collection which pass a filter can have, or None for all."""
        return (where if isinstance(where, DocumentFilter) else DocumentFilter()).narrow(self._collection)

    def _narrowing(self, where: Where | None, k: int) -> tuple[Callable[[_Search], _Search], int]:
        """Return what lets a search find only what may pass a filter, and how many hits to fetch at first."""
        scope = self._narrow(where)
        is_exact = where is None or (isinstance(where, DocumentFilter) and where.is_exact)
        return lambda search: partial(search, where=scope), k if is_exact else WIDER * k

    def _list(self, where: Where | None) -> Iterator[str]:
        """Yield the paths of all documents that may pass a filter, from the index if it narrows them."""
        scope = self._narrow(where)
        if scope is None or (not scope.collection and scope.ids is None and scope.parts_of is None):
            return (path for path, _ in walk_notes(self._cache.files, DOCUMENTS_FOLDER))
        store = self._service.store()
        if scope.ids is not None:
            return iter(store.files(ids=[self._key(doc_id) for doc_id in scope.ids if doc_id.strip()]))
        if scope.parts_of is not None:
            return (path for whole in scope.parts_of for path in store.files(part_of=whole))
        return iter(store.files(id_prefix=self._key("")))

    def _cited(self, doc_id: str) -> Document | None:
        lines = None if self._collection else read_citation(self._workspace, doc_id)
        return None if lines is None or self._hidden((lines.path,)) else lines

    def _by_name(self, doc_id: str, *, masked: bool) -> Document | None:
        """The document with an id, if it is in the file that is named after it."""
        if not doc_id.strip():
            return None
        key = self._key(doc_id)
        path = documents.make_path(key)
        seen = self._cache.try_load(path)
        return self._at(path, masked=masked) if seen is not None and seen.doc_id == key else None

    def _at(self, path: str, name: str = "", *, masked: bool) -> Document | None:
        """Return the document in a file, or None; `name` is its id if none can be read in it."""
        return document_in(path, self._cache.load(path) if masked else self._cache.load_unmasked(path), name)

    def _found(self, path: str, spans: Sequence[Span], text: str, source: Source) -> Document | None:
        """Return the document, or the lines, that a passage of the index belongs to; None if it is gone or hidden."""
        if source == "memory":
            if self._hidden((path,)):
                return None
            seen = self._cache.try_load(path)
            if seen is None:
                return None
            if (document := document_in(path, seen)) is not None:
                return document
        return make_document(path, spans, self._workspace.policies.mask(text), source)


def _is_of(store: Store, identity: str) -> bool:
    """Whether the vectors of the chunks are of a model."""
    meta = store.meta()
    return meta is not None and meta.identity == identity
