"""`Documents`: what frameworks put into a memory and find again, by id, by a question, or by a vector."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_memory.errors import EmbedderError, NotFoundError, PathNotAllowedError, QueryError
from openclaw_memory.redaction import redact
from openclaw_memory.sync.upkeep import Upkeep
from openclaw_memory.types import Document, Embedder, SearchResult, Source, Store, StoredChunk, citation
from openclaw_memory.workspace import Workspace, documents
from openclaw_memory.workspace.documents import Fields, Known, id_in

if TYPE_CHECKING:
    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import Vector

# The most that one search brings; see `Memory.search`.
MOST_RESULTS = 1000
# Whoever filters, or has long documents, needs more than are wanted: so many times more with each look.
WIDER = 4

_CITATION = re.compile(r"(.+?)(?:#L([1-9]\d*)(?:-L([1-9]\d*))?)?", re.DOTALL)
_Result = TypeVar("_Result")

Where = Callable[[Document], bool]


class Documents:
    """The documents of a memory, each a file of its own in `memory/notes/`. Safe to use from several threads.

    The files are the truth: a person may edit the text of one, move it within that folder, or delete it. What is found
    in a person's own notes is a document too, with its citation as id; it is never changed or deleted here. Secrets are
    masked in all that is returned.
    """

    def __init__(
        self,
        workspace: Workspace,
        upkeep: Upkeep,
        search: Callable[..., SearchResults],
        embedder: Callable[[], Embedder | None],
    ) -> None:
        """`upkeep` keeps the index of the workspace; `search` is `Memory.search`, `embedder` asks the same index."""
        self._workspace, self._upkeep, self._search, self._embedder = workspace, upkeep, search, embedder
        self._root, self._rules = workspace.root, workspace.rules
        self._known: Known = {}

    # --- by id ---------------------------------------------------------------------------------------------------

    def add(self, given: Sequence[Document]) -> list[str]:
        """Write documents, each in the place of the one with its id, and index them; returns their ids in order.

        Of several with one id the last one counts. Nothing is written where one of them cannot be.

        Raises:
            QueryError: an id is blank, metadata are not JSON, or a text is no Unicode.
            WriteError: a document is larger than `files.max_bytes`, or could not be written.
            StoreError: the memory is closed, or its index cannot be written.
        """
        self._upkeep.check_open()
        for one in given:
            if not isinstance(one.metadata, Mapping):
                raise QueryError(f"the metadata of document {one.id!r} must be a mapping, not {one.metadata!r}")
        wanted = {one.id: ({"metadata": one.metadata}, one.text) for one in given}
        if wanted and self._told(documents.upsert, wanted, self._known):
            self._upkeep.sync()
        return [one.id for one in given]

    def get(self, ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in their order; unknown ones are left out. A citation is an id as well.

        Raises:
            QueryError: an id is no string.
            WorkspaceError: a file cannot be read.
        """
        self._upkeep.check_open()
        _check_ids(ids)
        there: dict[str, list[str]] | None = None
        found: list[Document | None] = []
        for doc_id in ids:
            document = self._by_name(doc_id)
            if document is None:
                there = there if there is not None else self._paths()
                document = self._at(there[doc_id][0]) if doc_id in there else self._cited(doc_id)
            found.append(document)
        return [document for document in found if document is not None]

    def delete(self, ids: Sequence[str]) -> list[str]:
        """Remove the documents with these ids, and index that; returns the ids of those that were there.

        Raises:
            PathNotAllowedError: an id cites a person's own file. Nothing was removed.
            WriteError: a file could not be removed.
        """
        self._upkeep.check_open()
        _check_ids(ids)
        there = self._paths()
        for doc_id in ids:
            if doc_id not in there:
                self._check_not_a_persons(doc_id)
        gone = [doc_id for doc_id in dict.fromkeys(ids) if doc_id in there]
        if gone:
            self._told(documents.remove, [path for doc_id in gone for path in there[doc_id]])
            self._upkeep.sync()
        return gone

    def all(self) -> Iterator[Document]:
        """Every document, each once, in the order of their files; what a person wrote is none here."""
        self._upkeep.check_open()
        for paths in self._paths().values():
            if (document := self._at(paths[0])) is not None:
                yield document

    # --- by what they say ----------------------------------------------------------------------------------------

    def find(
        self,
        query: str,
        k: int,
        *,
        where: Where | None = None,
        min_score: float = 0.0,
        source: Source | None = None,
    ) -> list[tuple[Document, float]]:
        """The k documents that answer best, best first, with the score in 0..1 of the best place in them.

        Documents come whole, however long; of people's notes the lines come that answer. With a `min_score` of 0 there
        are k where there are k documents: those that only their vectors find follow by their cosine, none of them with
        a higher score than the last one found, and all others with 0.

        Raises:
            QueryError: an argument has a wrong type or value.
        """
        _check_k(k)
        wanted = min(MOST_RESULTS, k if where is None else WIDER * k)
        while True:
            results = self._search(query, max_results=wanted, min_score=min_score, source=source)
            found = self._distinct(((self._of_result(hit), hit.score) for hit in results), k, where)
            if len(found) >= k or len(results) < wanted or wanted == MOST_RESULTS:
                break
            wanted = min(MOST_RESULTS, WIDER * wanted)
        if min_score > 0 or source == "sessions" or len(found) >= k or not query.strip():
            return found
        last = found[-1][1] if found else 1.0
        by_vector = ((document, min(last, max(0.0, cosine))) for document, cosine in self._near(query, k, where))
        rest = ((document, 0.0) for document in self.all())
        return self._distinct(chain(found, by_vector, rest), k, where)

    def near(
        self, vector: Vector | Sequence[float], k: int, *, where: Where | None = None
    ) -> list[tuple[Document, float]]:
        """The k documents nearest to a vector, shape (dims,), nearest first, with the cosine of the nearest chunk.

        Raises:
            QueryError: k is less than 1.
            EmbedderError: the vector is not of the index's dimensions.
        """
        _check_k(k)
        unit = _unit(vector)

        def nearest(store: Store) -> list[tuple[Document, float]]:
            wanted = WIDER * k
            while True:
                hits = store.search_vector(unit, wanted)
                chunks = {stored.id: stored for stored in store.chunks(hit.chunk_id for hit in hits)}
                pairs = ((self._of_chunk(chunks[hit.chunk_id]), hit.score) for hit in hits if hit.chunk_id in chunks)
                found = self._distinct(pairs, k, where)
                if len(found) >= k or len(hits) < wanted:
                    return found
                wanted *= WIDER

        return self._reading(nearest)

    def vectors(self, found: Sequence[Document]) -> list[Vector | None]:
        """A unit vector for each document, shape (dims,): the mean of those of its chunks; None where it has none."""
        import numpy as np

        def means(store: Store) -> list[Vector | None]:
            of_each = [[stored.id for stored in _chunks_of(store, document)] for document in found]
            stored = store.vectors([at for ids in of_each for at in ids])
            rows = [[stored[at] for at in ids if at in stored] for ids in of_each]
            return [_unit(np.sum(some, axis=0)) if some else None for some in rows]

        return self._reading(means)

    # --- by path -------------------------------------------------------------------------------------------------

    def put(self, path: str, fields: Mapping[str, Any], text: str) -> None:
        """Write the document at a path below `memory/`, with these fields above its text. The next sync indexes it.

        Raises:
            QueryError: a field is not JSON, or the text no Unicode.
            PathNotAllowedError: the path lies somewhere else, or a person's own file is there.
            WriteError: it would be larger than `files.max_bytes`, or could not be written.
        """
        self._upkeep.check_open()
        self._told(documents.write, [Fields(path, fields, text)])

    def fetch(self, path: str) -> tuple[dict[str, Any], str] | None:
        """Fields and text of the document at a path; None where there is none, or a person's own file.

        Raises:
            PathNotAllowedError: the path can be none of a memory file.
        """
        self._upkeep.check_open()
        content = documents.read(self._root, self._rules, path)
        return None if content is None else (_masked(content[0]), redact(content[1]))

    def drop(self, path: str) -> bool:
        """Remove the document at a path; whether there was one. The next sync takes it out of the index.

        Raises:
            PathNotAllowedError: a person's own file is there.
            WriteError: it could not be removed.
        """
        self._upkeep.check_open()
        return bool(self._told(documents.remove, [path]))

    def below(self, folder: str) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Path, fields and text of every document below a folder of `memory/`, in the order of the paths."""
        self._upkeep.check_open()
        for path, fields, text in documents.below(self._root, self._rules, folder):
            yield path, _masked(dict(fields)), redact(text)

    # --- inside --------------------------------------------------------------------------------------------------

    def _told(self, write: Callable[..., list[str]], *arguments: Any) -> list[str]:
        """Write through, and have the index know that files have changed, also where that failed half-way."""
        paths: list[str] | None = None
        try:
            paths = write(self._root, self._rules, *arguments)
            return paths
        finally:
            if paths is None or paths:
                self._upkeep.wrote()

    def _reading(self, work: Callable[[Store], _Result]) -> _Result:
        """What `work` returns of the index as it is now, built first where there is none, and healed where damaged."""

        def read() -> _Result:
            self._upkeep.make_searchable()
            with self._upkeep.store().snapshot() as frozen:
                return work(frozen)

        return self._upkeep.healing(read)[0]

    def _near(self, query: str, k: int, where: Where | None) -> list[tuple[Document, float]]:
        """What is near to a question by its vector alone, as far as this index can be asked for that now."""
        try:
            embedder = self._embedder()
            stored = self._reading(lambda store: store.meta())
            if embedder is None or stored is None or stored.identity != embedder.identity:
                return []
            return self.near(embedder.embed_query(query), k, where=where)
        except EmbedderError:  # keywords have answered in its place
            return []

    def _paths(self) -> dict[str, list[str]]:
        return documents.paths_by_id(self._root, self._rules, self._known)

    def _by_name(self, doc_id: str) -> Document | None:
        """The document with an id, if it is in the file that is named after it."""
        if not doc_id.strip():
            return None
        document = self._at(documents.path_of(doc_id))
        return document if document is not None and document.id == doc_id else None

    def _at(self, path: str) -> Document | None:
        content = documents.read(self._root, self._rules, path)
        doc_id = id_in(content)
        if content is None or doc_id is None:
            return None
        fields, text = content
        return Document(doc_id, redact(text), _masked(fields.get("metadata", {})), path)

    def _cited(self, doc_id: str) -> Document | None:
        """The lines of a person's file that an id cites, None where it cites none."""
        match = _CITATION.fullmatch(doc_id)
        if match is None or match[2] is None:
            return None
        start = int(match[2])
        try:
            lines = self._workspace.excerpt(match[1], start, int(match[3] or start) - start + 1)
        except (NotFoundError, PathNotAllowedError, QueryError):
            return None
        source: Source = "sessions" if lines.path.startswith("sessions/") else "memory"
        return _of_lines(lines.path, lines.start_line, lines.end_line, lines.text, source)

    def _check_not_a_persons(self, doc_id: str) -> None:
        match = _CITATION.fullmatch(doc_id)
        path = match[1] if match else doc_id
        try:
            self._workspace.excerpt(path, lines=1)
        except (NotFoundError, PathNotAllowedError):
            return
        raise PathNotAllowedError(
            f"{doc_id!r} cites {path} and is no document's id: a person's own file is changed by hand, or with `edit` "
            "and `delete` of the memory; a document is deleted by the id it was added with"
        )

    def _of_result(self, hit: SearchResult) -> Document | None:
        document = self._at(hit.path) if hit.source == "memory" else None
        return document or _of_lines(hit.path, hit.start_line, hit.end_line, hit.snippet, hit.source)

    def _of_chunk(self, stored: StoredChunk) -> Document | None:
        document = self._at(stored.path) if stored.source == "memory" else None
        chunk = stored.chunk
        return document or _of_lines(stored.path, chunk.start_line, chunk.end_line, redact(chunk.text), stored.source)

    def _distinct(
        self, pairs: Iterable[tuple[Document | None, float]], k: int, where: Where | None
    ) -> list[tuple[Document, float]]:
        """The first k of those that fit, each id once."""
        found: dict[str, tuple[Document, float]] = {}
        for document, score in pairs:
            if document is not None and document.id not in found and (where is None or where(document)):
                found[document.id] = (document, score)
                if len(found) == k:
                    break
        return list(found.values())


def _of_lines(path: str, start: int, end: int, text: str, source: Source) -> Document:
    cited = citation(path, start, end)
    metadata = {"path": path, "start_line": start, "end_line": end, "source": source, "citation": cited}
    return Document(cited, text, metadata, path)


def _chunks_of(store: Store, document: Document) -> list[StoredChunk]:
    """The chunks that hold any of a document: of a person's file those of its lines."""
    chunks = store.chunks_of(document.path)
    if document.metadata.get("citation") != document.id:
        return chunks
    first, last = document.metadata["start_line"], document.metadata["end_line"]
    return [one for one in chunks if one.chunk.start_line <= last and first <= one.chunk.end_line]


def _unit(vector: Any) -> Vector:
    """A vector scaled to length 1; one of zeros stays."""
    import numpy as np

    row: Vector = np.asarray(vector, dtype=np.float32)
    length = float(np.linalg.norm(row))
    return row / np.float32(length) if length > 0 else row


def _masked(value: Any) -> Any:
    """A value of JSON with the secrets in its texts masked."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _masked(inner) for key, inner in value.items()}
    return [_masked(inner) for inner in value] if isinstance(value, list) else value


def _check_ids(ids: object) -> None:
    if not isinstance(ids, Sequence) or isinstance(ids, str) or not all(isinstance(one, str) for one in ids):
        raise QueryError(f"ids must be a list of strings, not {ids!r}")


def _check_k(k: object) -> None:
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise QueryError(f"k must be a whole number of at least 1, not {k!r}")
