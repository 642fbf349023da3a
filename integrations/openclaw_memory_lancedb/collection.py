"""`LanceEntries`: entries as documents of a memory, with the vectors of their texts in a table of LanceDB."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Self, TypeAlias

from openclaw_memory import Memory, load_embedder
from openclaw_memory.errors import ConfigError, EmbedderError, InvalidInputError, QueryError, StoreError
from openclaw_memory.types import Document, Embedder
from openclaw_memory_lancedb import entries as items
from openclaw_memory_lancedb.table import Row, Table

if TYPE_CHECKING:
    from openclaw_memory.types import Matrix, Vector

COLLECTION = "entries"  # their documents are in `memory/notes/entries/`
_FOLDER = ".memory/lancedb"

# Named here: inside the class, `list` is a method.
Entries: TypeAlias = list[items.MemoryEntry]
Found: TypeAlias = list[tuple[items.MemoryEntry, float]]

_AT_ONCE = 256  # texts are embedded and written by so many when the table is made again


class LanceEntries:
    """The entries of an agent, searched by vectors in LanceDB. Safe to use from several threads and processes.

    The text of an entry is a Markdown document of the memory, with importance, category and time above it: a person
    reads and edits it, the memory's own search finds it, and deleting it there deletes the entry. The table holds
    vectors and no text. Missing and superfluous rows are fixed when it is first used, and when a search meets it.

    >>> import tempfile
    >>> from openclaw_memory import Memory, load_embedder
    >>> from openclaw_memory_lancedb import LanceEntries
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Memory.open(folder.name) as memory, LanceEntries(memory, load_embedder("static")) as entries:
    ...     tea = entries.add("Anna drinks green tea.", importance=0.8, category="preference")
    ...     [(found, score)] = entries.search("What does Anna drink?", category="preference")
    ...     found.text, entries.delete(found.id), len(entries)
    ('Anna drinks green tea.', True, 0)
    >>> folder.cleanup()
    """

    def __init__(
        self, memory: Memory, embedder: Embedder | str = "openai", *, uri: str | os.PathLike[str] | None = None
    ) -> None:
        """Name the entries of a memory. Nothing is loaded, read or written yet.

        Args:
            memory: The memory that keeps them; it stays open when they are closed.
            embedder: Makes their vectors: the name of a provider, or an embedder, such as
                `load_embedder("openai", "text-embedding-3-large")`. It need not be that of the memory.
            uri: The folder of the table, or an address that LanceDB knows, such as `s3://bucket/path`. Default:
                `.memory/lancedb` in the workspace.

        Raises:
            MissingExtraError: LanceDB is not installed.
            ConfigError: There is no embedder.
        """
        if not isinstance(embedder, str | Embedder) or embedder == "none":
            raise ConfigError(f"entries need an embedder or the name of a provider, not {embedder!r:.80}")
        self._table = Table(memory.workspace.root, _FOLDER, None if uri is None else os.fspath(uri))
        self._memory, self._documents = memory, memory.documents.get_collection(COLLECTION)
        self._choice, self._made = embedder, None if isinstance(embedder, str) else embedder
        self._lock = Lock()
        self._is_current = self._closed = self._is_plain = False

    # --- what is remembered --------------------------------------------------------------------------------------

    def add(
        self,
        text: str,
        *,
        importance: float = items.USUAL_IMPORTANCE,
        category: items.Category = items.USUAL_CATEGORY,
        id: str | None = None,  # noqa: A002 - the documented name
        created_at: int | None = None,
    ) -> items.MemoryEntry:
        """Remember a text and return its entry. One with the same id is replaced.

        Args:
            text: The text to remember.
            importance: How much it matters, 0..1.
            category: "preference", "fact", "decision", "entity" or "other".
            id: The id; by default a new one.
            created_at: Milliseconds since 1970; by default now.

        Raises:
            InvalidInputError, PolicyError, EmbedderError, ConfigError, WriteError, StoreError: As `add_many`.
        """
        options = {name: value for name, value in (("id", id), ("created_at", created_at)) if value is not None}
        (entry,) = self.add_many([items.MemoryEntry(text, importance, category, **options)])  # type: ignore[arg-type]
        return entry

    def add_many(self, entries: Iterable[items.MemoryEntry]) -> Entries:
        """Remember entries and return them as they are found, in order. Those with the same ids are replaced.

        First they are written as documents, then their vectors. If the second fails, the documents are there, and the
        next use makes the vectors.

        Args:
            entries: The entries. Their vectors are made by the embedder of this collection, whatever they hold.

        Raises:
            InvalidInputError: A value is not one for `MemoryEntry`, or one id comes twice.
            PolicyError: A rule says never to store one of the texts. Nothing was written.
            EmbedderError: There is no key or no embedder, it failed, or the table is that of another one.
            ConfigError: The memory is encrypted, which LanceDB is not.
            WriteError: A document could not be written.
            StoreError: The table could not be written, or this is closed.
        """
        added = list(entries)
        if len({entry.id for entry in added}) < len(added):
            raise InvalidInputError("two entries have one id: give each an id of its own")
        self._prepare()
        if not added:
            return []
        self._documents.add(map(items.make_document, added))
        was_current, self._is_current = self._is_current, False
        entries = self._put([*self._load([entry.id for entry in added]).values()])
        self._is_current = was_current
        return entries

    def delete(self, *ids: str) -> bool:
        """Forget entries, their documents and vectors; return whether there was any.

        The bytes of their vectors go with the next compaction, at the latest when this is closed.

        Args:
            ids: The ids. Unknown ones are left out.

        Raises:
            WriteError: A document could not be deleted.
            StoreError: The table could not be written, or this is closed. The documents are gone.
        """
        self._check_open()
        deleted = self._documents.delete(ids)
        self._table.remove(ids)
        return bool(deleted)

    def get(self, id: str) -> items.MemoryEntry | None:  # noqa: A002 - the documented name
        """Return an entry by its id, with its vector if it has one; None if there is no such entry.

        Args:
            id: The id.
        """
        self._check_open()
        matches = self._load([id])
        return items.make_entry(matches[id], self._table.read_vector(id)) if matches else None

    def list(
        self,
        *,
        category: items.Category | Collection[items.Category] | None = None,
        min_importance: float = 0.0,
        since: items.Since | None = None,
        limit: int | None = None,
    ) -> Entries:
        """Return entries without their vectors, the latest first.

        Args:
            category: Only those of a category, or of one of several.
            min_importance: Only those that matter at least so much, 0..1.
            since: Only those made at this time or later: a datetime (UTC if it names no zone), a date, or milliseconds.
            limit: At most so many.

        Raises:
            QueryError: An argument has a wrong type or value.
        """
        self._check_open()
        if limit is not None:
            _check_number("limit", limit)
        counts = items.make_filter(category, min_importance, since)
        entries = filter(counts, map(items.make_entry, self._iterate()))
        return [*islice(sorted(entries, key=lambda entry: (-entry.created_at, entry.id)), limit)]

    def __len__(self) -> int:
        self._check_open()
        return sum(1 for _ in self._iterate())

    # --- what is found -------------------------------------------------------------------------------------------

    def search(
        self,
        query: str | Sequence[float] | Vector,
        k: int = 5,
        *,
        category: items.Category | Collection[items.Category] | None = None,
        min_importance: float = 0.0,
        since: items.Since | None = None,
        min_score: float = -1.0,
    ) -> Found:
        """Return the k entries nearest to a question, nearest first, each with its cosine. Every entry is compared.

        Args:
            query: A question, or a vector of the embedder, shape (dims,). A blank question finds nothing.
            k: At most so many, at least 1.
            category: Only those of a category, or of one of several.
            min_importance: Only those that matter at least so much, 0..1.
            since: Only those made at this time or later: a datetime (UTC if it names no zone), a date, or milliseconds.
            min_score: Only those with at least this cosine, -1..1.

        Raises:
            QueryError: An argument has a wrong type or value.
            EmbedderError: There is no key or no embedder, it failed, the table is that of another one, or a vector has
                other dimensions than those of the table.
            ConfigError: The memory is encrypted, which LanceDB is not.
            StoreError: The table could not be read, or this is closed.
        """
        _check_number("k", k)
        counts = items.make_filter(category, min_importance, since)
        if isinstance(query, str) and not query.strip():
            return []
        dims = self._prepare()
        if dims is None:
            return []
        vector = self._embed(query, dims)
        for is_last in (False, True):
            rows = self._table.find_nearest(vector, k, counts)
            documents = self._load([row.id for row, _, _ in rows])
            current = [row for row in rows if row[0].id in documents and _make_row(documents[row[0].id]) == row[0]]
            if is_last or len(current) == len(rows):
                break
            self.sync()  # a document was changed or deleted by another hand
        return [
            (items.make_entry(documents[row.id], vector), score) for row, vector, score in current if score >= min_score
        ]

    # --- the table -----------------------------------------------------------------------------------------------

    def sync(self) -> int:
        """Bring the table up to date with the documents, and return the number of changed rows.

        Raises:
            EmbedderError, ConfigError, StoreError: As `search`. Rows written before the failure stay.
        """
        self._check_open()
        self._check_plain()
        self._check_model()
        # First the rows: an entry that another process adds meanwhile has its document before its row.
        rows, ids, lacking = self._table.read_rows(), set(), []
        for document in self._iterate():
            ids.add(document.id)
            if rows.get(document.id) != _make_row(document):
                lacking.append(document)
        stale = rows.keys() - ids
        self._table.remove(stale)
        for first in range(0, len(lacking), _AT_ONCE):
            self._put(lacking[first : first + _AT_ONCE])
        self._is_current = True
        return len(stale) + len(lacking)

    def rebuild(self) -> int:
        """Make all vectors again, by this embedder, which may be another one than before; return how many.

        Raises:
            EmbedderError: The embedder failed. Where it did so at once, the table stays as it was.
            ConfigError: The memory is encrypted, which LanceDB is not.
            StoreError: The table could not be written, or this is closed.
        """
        self._check_open()
        self._check_plain()
        documents = [*self._iterate()]
        for first in range(0, len(documents), _AT_ONCE):
            self._put(documents[first : first + _AT_ONCE], fresh=first == 0)
        self._is_current = True
        return len(documents)

    def compact(self) -> None:
        """Merge the files of the table and remove its old versions. `close` and every 20th write see to it.

        Raises:
            StoreError: The table could not be written, or this is closed.
        """
        self._check_open()
        self._table.compact()

    def close(self) -> None:
        """Compact the table where that is due, and close an embedder made here. Calling it twice is allowed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            if self._table.has_writes:
                self._table.compact(if_due=True)
        finally:
            if self._made is not None and self._made is not self._choice:
                self._made.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LanceEntries({self._memory!r}, uri={self._table.uri!r})"

    # --- inside --------------------------------------------------------------------------------------------------

    def _iterate(self) -> Iterator[Document]:
        """Yield the documents as they are shown; those that a person has emptied are left out."""
        return (document for document in self._documents.iterate(masked=True) if document.text.strip())

    def _load(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return those of some documents that are there, by id and in their order, as they are shown."""
        return {document.id: document for document in self._documents.get(ids, masked=True) if document.text.strip()}

    def _prepare(self) -> int | None:
        """Return the dimensions of the table, made or fixed at the first use; None if there is nothing to search."""
        self._check_open()
        self._check_plain()
        meta = self._check_model()
        if meta is None or not self._is_current:
            self.sync()
            meta = self._table.read_meta()
        return None if meta is None else meta[1]

    def _check_plain(self) -> None:
        """Refuse an encrypted memory: its vectors, and checksums that let a text be guessed, would be in the open."""
        if self._is_plain:
            return
        if self._memory.workspace.files.codec.is_active:
            raise ConfigError(
                f"this memory is encrypted, and LanceDB encrypts nothing: {self._table.uri} would tell of its texts. "
                "Keep entries in a plain memory of their own, or on an encrypted disk; delete the table if it is there"
            )
        self._is_plain = True

    def _check_model(self) -> tuple[str, int] | None:
        meta, identity = self._table.read_meta(), self._embedder.identity
        if meta is not None and meta[0] != identity:
            raise EmbedderError(
                f"{self._table.uri} holds vectors of {meta[0]!r} ({meta[1]} dimensions), and this embedder is "
                f"{identity!r}: open it with the one that made them, or call rebuild()"
            )
        return meta

    @property
    def _embedder(self) -> Embedder:
        with self._lock:
            if self._made is None:
                embedder = load_embedder(str(self._choice))
                if embedder is None:
                    raise ConfigError("entries need an embedder: name a provider")
                self._made = embedder
        rules = self._memory.config.embedding
        if not rules.allow_remote and self._made.leaves_machine is not False:
            raise EmbedderError(
                f"the embedder {self._made.provider} {self._made.model} may send text to another machine, and "
                "embedding.allow_remote is off: allow it, or pass another one, such as load_embedder('static')"
            )
        return self._made

    def _put(self, documents: Sequence[Document], *, fresh: bool = False) -> Entries:
        """Write the rows of documents as they are shown, and return their entries."""
        if not documents:
            return []
        texts = [document.text for document in documents]
        vectors = _check(self._embedder.embed_documents(texts), len(texts), self._embedder)

        def reload() -> set[Row]:  # another process may have replaced or deleted a document meanwhile
            return {_make_row(document) for document in self._load([document.id for document in documents]).values()}

        self._table.put([*map(_make_row, documents)], vectors, self._embedder.identity, still=reload, fresh=fresh)
        return [items.make_entry(document, vector) for document, vector in zip(documents, vectors, strict=True)]

    def _embed(self, query: str | Sequence[float] | Vector, dims: int) -> Vector:
        import numpy as np

        if isinstance(query, str):
            vector: Vector = np.asarray(self._embedder.embed_query(query), "float32")
            maker = f"the embedder {self._embedder.identity!r} made a vector"
        else:
            try:
                vector, maker = np.asarray(query, "float32"), "the question is a vector"
            except (TypeError, ValueError) as error:
                raise QueryError(f"a question is a text or a vector of numbers, not {query!r:.80}") from error
        if vector.shape != (dims,):
            raise EmbedderError(
                f"{maker} of shape {vector.shape}, and those of {self._table.uri} have {dims} dimensions: ask with the "
                "embedder that made them, or call rebuild()"
            )
        if not np.isfinite(vector).all():
            raise EmbedderError(f"{maker} with values that are not finite")
        return vector

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self!r} is closed: make another one")


def _make_row(document: Document) -> Row:
    entry = items.make_entry(document)
    digest = sha256(entry.text.encode("utf-8", "surrogatepass")).hexdigest()
    return Row(entry.id, digest, entry.importance, entry.category, entry.created_at)


def _check(vectors: Matrix, texts: int, embedder: Embedder) -> Matrix:
    import numpy as np

    rows: Matrix = np.asarray(vectors, "float32")
    if rows.ndim != 2 or rows.shape[0] != texts or not rows.shape[1] or not np.isfinite(rows).all():
        raise EmbedderError(
            f"the embedder {embedder.identity!r} made an array of shape {rows.shape} of {texts} texts: it must be "
            f"({texts}, dims), of finite numbers"
        )
    return rows


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise QueryError(f"{name}={value!r:.80} is not a whole number above 0")
