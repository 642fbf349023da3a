"""`OpenClawVectorStore`: LangChain's vector store over a memory; documents become Markdown files."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from langchain_openclaw_memory._session import SessionRetriever, find_session, get_run_config, refuse, use_run_memory
from langchain_openclaw_memory.embeddings import OpenClawEmbeddings
from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.embeddings import CustomEmbedder
from openclaw_memory.errors import ConfigError, EmbedderError, InvalidInputError, QueryError
from openclaw_memory.runs import MemoryChoice, RunMemory
from openclaw_memory.tools import find_audience
from openclaw_memory.types import Document as Written
from openclaw_memory.workspace import SafeFolder

if TYPE_CHECKING:
    import os

    from openclaw_memory.documents import Documents
    from openclaw_memory.types import Embedder, Source


class _StoreRetriever(SessionRetriever, VectorStoreRetriever):
    """A retriever over a store that knows the session of its run."""


# Metadata that must be the same or pass operators, or a function that says of a document whether it counts.
Filter: TypeAlias = Mapping[str, Any] | Callable[[Document], bool]


class OpenClawVectorStore(VectorStore):
    """A memory as a LangChain vector store. Safe to use from several threads; async calls run in one.

    Each added document becomes a Markdown file in `memory/notes/` with its id and metadata (JSON) above the text; a
    person may read, edit or delete it. Searches are the memory's own hybrid search, and find a person's notes as well:
    lines of them, whose id is the citation. These are never changed or deleted from here.
    """

    memory: Memory

    def __init__(self, memory: MemoryChoice, session_key: str | None = None, *, collection: str | None = None) -> None:
        """Make a store over an open memory.

        Args:
            memory: The memory, then `store.memory`; or a selector of one for each run, see `memory_tools`.
            session_key: Where its answers are read: in groups and channels less is shown, see `memory_tools`. By
                default that of each run, as for `OpenClawRetriever`.
            collection: A name: documents added here lie in `memory/notes/<collection>/` with ids of their own, and only
                these are found and deleted. Default: documents in no collection, and people's notes.

        Raises:
            TypeError: `memory` is not a `Memory`.
            InvalidInputError: The name of the collection is blank.
        """
        try:
            self._choice = RunMemory.read_choice(memory)
        except TypeError as error:
            raise TypeError(f"{error}; from_texts(texts, embedding, workspace=PATH) opens one by itself") from None
        self.session_key, self.collection = session_key, collection
        if isinstance(self._choice, Memory):
            self.memory = self._choice
            self._documents = self.memory.documents.get_collection(collection)

    def _use(self, memory: Memory) -> Self:
        """Return the same store over one memory."""
        store = copy(self)
        store._choice = store.memory = memory
        store._documents = memory.documents.get_collection(self.collection)
        return store

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # shared like its memory, by frameworks that copy their parts

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        workspace: str | os.PathLike[str] | None = None,
        config: MemoryConfig | None = None,
        index_path: str | os.PathLike[str] | None = None,
        collection: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Return a store over the memory in the folder `workspace`, with these texts added.

        Close the memory, `store.memory`, when it is no longer needed. An `embedding` that is not what
        `Memory.open(workspace, config=config)` uses has an index of its own next to the usual one: its first use embeds
        all notes once. Open that again with `Memory.open(workspace, embedder=embedding,
        index_path=store.memory.index_path)`.

        Args:
            texts: The texts to add.
            embedding: Makes the vectors.
            metadatas: The metadata of each text, as JSON.
            ids: The id of each text, by default that of its content.
            workspace: The folder of the memory, which is made if it is missing; required.
            config: The settings of the memory.
            index_path: The file of the index, by default as above.
            collection: The collection of the store, see `OpenClawVectorStore`.
            **kwargs: None are taken.

        Raises:
            ConfigError: No `workspace` is named, or `embedding` is not LangChain's `Embeddings`.
            InvalidInputError, WriteError: As `add_texts`.
        """
        refuse(kwargs, "from_texts", ("metadatas", "ids", "workspace", "config", "index_path", "collection"))
        if workspace is None:
            raise ConfigError(
                "from_texts writes each text to a file and must know where: give workspace=PATH, the folder of the "
                "memory, or use OpenClawVectorStore(memory).add_texts(texts)"
            )
        if not isinstance(embedding, Embeddings):
            raise ConfigError(f"embedding must be LangChain's Embeddings, not {embedding!r}")
        embedder = embedding.embedder if isinstance(embedding, OpenClawEmbeddings) else CustomEmbedder(embedding)
        SafeFolder(Path(workspace).expanduser(), create=True).make_folder()
        index = index_path or _index_of(workspace, embedder, config)
        store = cls(Memory.open(workspace, embedder=embedder, config=config, index_path=index), collection=collection)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @property
    @use_run_memory
    def embeddings(self) -> Embeddings | None:
        """The embeddings of the store; None if the search is by keywords alone."""
        embedder = self.memory.embedder
        inner = getattr(embedder, "inner", embedder)
        if isinstance(inner, CustomEmbedder) and isinstance(inner.theirs, Embeddings):
            return inner.theirs
        return None if embedder is None else OpenClawEmbeddings(embedder)

    @use_run_memory
    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Write each text to a file of its own, index them, and return their ids; one that exists is replaced.

        Without an id a text has that of its content: the same one with the same metadata is there once.
        The only other argument is `batch_size`, which LangChain's indexing passes on; all are indexed at once.

        Raises:
            InvalidInputError: It is a single text, the counts differ, an id is blank, metadata are neither JSON nor
                dates nor UUIDs (it says at which key), or a text is not Unicode or holds a NUL. Nothing was written.
            WriteError: A text is larger than `files.max_bytes`, or could not be written.
        """
        refuse(kwargs.keys() - {"batch_size"}, "add_texts", ("metadatas", "ids", "batch_size"))
        if isinstance(texts, str):  # else each of its letters would become a document
            raise InvalidInputError(f"texts is a single text, {texts!r:.80}: give a list of texts")
        written = list(texts)
        about = metadatas or [{}] * len(written)
        names = ids if ids is not None else [None] * len(written)
        if not len(written) == len(about) == len(names):
            raise InvalidInputError(f"{len(written)} texts, {len(about)} metadatas and {len(names)} ids: give as many")
        return self._documents.add(
            [
                Written(_make_id(text, metadata) if name is None else name, text, metadata)
                for text, metadata, name in zip(written, about, names, strict=True)
            ]
        )

    @use_run_memory
    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents, all of the collection if no ids are given; return True even if some did not exist.

        Raises:
            PathNotAllowedError: An id is the citation of a person's own lines. Nothing was deleted.
        """
        refuse(kwargs, "delete", ("ids",))
        self._documents.delete([document.id for document in self._documents.iterate()] if ids is None else ids)
        return True

    @use_run_memory
    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in their order, without those that do not exist."""
        where = self._make_filter(None)
        return [_to_document(document) for document in self._documents.get(ids) if where is None or where(document)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the k documents that answer best; other arguments are those of `similarity_search_with_score`."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    @use_run_memory
    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,  # noqa: A002 - LangChain's name
        min_score: float = 0.0,
        source: Source | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Return the k documents that answer best, best first, with their scores from 0 to 1: larger is better.

        There are k results if there are k documents and no `min_score`.

        Args:
            query: The question. For a blank one, the documents that were added and pass the filter are listed.
            k: How many documents to return.
            filter: Metadata that must be equal, a function of a document, or operators: `{"page": {"$gte": 3}}`,
                `{"$or": [{"kind": "a"}, {"tags": {"$in": ["b", "c"]}}]}`; see
                `Documents.compile_filter`. A list is equal to a list; `$in` looks into one.
            min_score: The lowest score, 0..1.
            source: "memory" leaves out transcripts, "sessions" everything else; None searches both.
            **kwargs: None are taken.

        Raises:
            QueryError: An argument has a wrong type or value.
        """
        refuse(kwargs, "similarity_search", ("k", "filter", "min_score", "source"))
        results = self._documents.search(query, k, where=self._make_filter(filter), min_score=min_score, source=source)
        return [(_to_document(document), score) for document, score in results]

    @use_run_memory
    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the k documents nearest to a vector of the store's own embeddings.

        `filter` and `source` are as for `similarity_search_with_score`; `min_score` is the lowest cosine.

        Raises:
            EmbedderError: The vector has other dimensions than those of the index.
        """
        return [_to_document(document) for document in self._find_nearest(embedding, k, **kwargs)]

    def _find_nearest(
        self,
        embedding: list[float],
        k: int,
        *,
        filter: Filter | None = None,  # noqa: A002 - LangChain's name
        min_score: float = 0.0,
        source: Source | None = None,
        **kwargs: Any,
    ) -> list[Written]:
        refuse(kwargs, "a search by a vector", ("k", "filter", "min_score", "source"))
        if source not in {None, "memory", "sessions"}:
            raise QueryError(f"source must be 'memory', 'sessions' or None, not {source!r}")
        near = self._documents.search_vector(embedding, k, where=self._make_filter(filter, source))
        # A cosine may be below 0: without a least score there are k of k documents.
        return [document for document, cosine in near if not 0 < min_score > cosine]

    def _make_filter(self, condition: Filter | None, source: Source | None = None) -> Documents.Filter | None:
        """Return which documents count: those that pass the filter, and that the readers of the run may be shown."""
        tests: list[Callable[[Written], bool]] = []
        audience = find_audience(self.memory, find_session(self.session_key, get_run_config()))
        if not audience.is_user_alone:
            tests.append(lambda document: audience.may_see(document.path))
        if source is not None:  # transcripts, and nothing else, are cited below `sessions/`
            tests.append(lambda document: document.path.startswith("sessions/") is (source == "sessions"))
        metadata = condition if isinstance(condition, Mapping) else None
        if metadata is None and callable(condition):
            tests.append(lambda document: bool(condition(_to_document(document))))
        elif metadata is None and condition is not None:
            raise QueryError(f"filter must be a mapping of metadata, or a function of a document, not {condition!r}")
        return None if metadata is None and not tests else self.memory.documents.Filter(metadata, tests)

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return a retriever over this store, which reads the session of the run that it is invoked in."""
        own = self._get_retriever_tags() if isinstance(self._choice, Memory) else [type(self).__name__]
        tags = [*(kwargs.pop("tags", None) or []), *own]
        return _StoreRetriever(vectorstore=self, tags=tags, **kwargs)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: min(1.0, max(0.0, score))  # a score is its own relevance

    @use_run_memory
    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return the k of the `fetch_k` documents nearest to `query` that differ most from each other.

        In a search by keywords alone there are no vectors to compare: the k that answer best are returned. `filter`,
        `source` and `min_score` are as for `similarity_search_by_vector`.

        Raises:
            EmbedderError: The question cannot be embedded.
        """
        embedder = self.memory.embedder
        if embedder is None or not query.strip():
            return self.similarity_search(query, k, **kwargs)
        vector = embedder.embed_query(query).tolist()
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    @use_run_memory
    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Search by a vector as `max_marginal_relevance_search` does by a question."""
        import numpy as np
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        near = self._find_nearest(embedding, max(k, fetch_k), **kwargs)
        pairs = zip(near, self._documents.get_vectors(near), strict=True)
        comparable = [(document, vector) for document, vector in pairs if vector is not None]
        vectors: list[Any] = [vector for _, vector in comparable]
        positions = maximal_marginal_relevance(np.array(embedding, dtype=np.float32), vectors, lambda_mult, k)
        return [_to_document(comparable[at][0]) for at in positions]


def _make_id(text: str, metadata: Mapping[str, Any]) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([text, metadata], default=str)))


def _index_of(workspace: str | os.PathLike[str], embedder: Embedder, config: MemoryConfig | None) -> Path | None:
    """Return the index file of an embedder; None if it is the one that the workspace itself uses."""
    with Memory.open(workspace, config=config) as usual:
        try:
            own = usual.embedder
        except EmbedderError:  # it cannot be had, and is another one
            own = None
        if usual.index_path is None or (own is not None and own.identity == embedder.identity):
            return None
        return usual.index_path.with_name(f"index-{sha256(embedder.identity.encode()).hexdigest()[:12]}.sqlite")


def _to_document(document: Written) -> Document:
    return Document(id=document.id, page_content=document.text, metadata=dict(document.metadata))
