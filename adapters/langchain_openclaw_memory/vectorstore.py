"""`OpenClawVectorStore`: LangChain's vector store over a memory; what is added to it becomes Markdown."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_openclaw_memory.embeddings import LangChainEmbedder, OpenClawEmbeddings
from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import ConfigError, QueryError
from openclaw_memory.types import Document as Written

if TYPE_CHECKING:
    import os

    from langchain_core.embeddings import Embeddings

    from openclaw_memory.types import Source

# Metadata that must be the same, or a function that says of a document whether it counts.
Filter: TypeAlias = Mapping[str, Any] | Callable[[Document], bool]


class OpenClawVectorStore(VectorStore):
    """A memory as a vector store of LangChain. Safe to use from several threads; what is async runs in one.

    Each document that is added becomes a Markdown file in `memory/notes/` with its id and metadata (JSON) above the
    text; a person may read, edit or delete it. Searches are the memory's own, by words and vectors together, and find
    a person's notes as well: lines of them, whose id is the citation. These are never changed or deleted from here.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._documents = memory.documents

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
        **kwargs: Any,
    ) -> Self:
        """A store over the memory in the folder `workspace`, which is made where there is none, with these texts added.

        The index is of `embedding`. `store.memory` is the memory, to be closed when it is needed no more.

        Raises:
            ConfigError: no `workspace` is named, or `embedding` are no embeddings.
            QueryError, WriteError: as `add_texts`.
        """
        _refuse(kwargs, "from_texts")
        if workspace is None:
            raise ConfigError(
                "from_texts writes each text to a file and must know where: give workspace=PATH, the folder of the "
                "memory, or use OpenClawVectorStore(memory).add_texts(texts)"
            )
        embedder = embedding.embedder if isinstance(embedding, OpenClawEmbeddings) else LangChainEmbedder(embedding)
        Path(workspace).expanduser().mkdir(mode=0o700, parents=True, exist_ok=True)
        store = cls(Memory.open(workspace, embedder=embedder, config=config))
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @property
    def embeddings(self) -> Embeddings | None:
        """What makes the vectors; None where search is by keywords alone."""
        embedder = self.memory.embedder
        inner = getattr(embedder, "inner", embedder)
        if isinstance(inner, LangChainEmbedder):
            return inner.embeddings
        return None if embedder is None else OpenClawEmbeddings(embedder)

    # --- by id ---------------------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Write the texts, each to a file of its own, index them, and return their ids.

        A text takes the place of the one that has its id; where an id is None, or none are given, new ones are made.
        LangChain's indexing hands on its own `batch_size`, which means nothing here: all are indexed at once.

        Raises:
            QueryError: the counts differ, an id is blank, metadata are not JSON (the message names the key), or a text
                is no Unicode. Nothing was written.
            WriteError: a text is larger than `files.max_bytes`, or could not be written.
        """
        _refuse({name: value for name, value in kwargs.items() if name != "batch_size"}, "add_texts")
        written = list(texts)
        about = metadatas or [{}] * len(written)
        names = ids if ids is not None else [None] * len(written)
        if not len(written) == len(about) == len(names):
            raise QueryError(
                f"{len(written)} texts came with {len(about)} metadatas and {len(names)} ids: give one of each a text"
            )
        return self._documents.add(
            [
                Written(str(uuid.uuid4()) if name is None else name, text, metadata)
                for text, metadata, name in zip(written, about, names, strict=True)
            ]
        )

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents by their ids, or all that were ever added; True also where some were not there.

        Raises:
            PathNotAllowedError: an id is the citation of a person's own lines. Nothing was deleted.
        """
        _refuse(kwargs, "delete")
        self._documents.delete([one.id for one in self._documents.all()] if ids is None else ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in their order; those that are not there are left out."""
        return [_shown(one) for one in self._documents.get(ids)]

    # --- by what they say ----------------------------------------------------------------------------------------

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The k documents that answer best; takes what `similarity_search_with_score` takes."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

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
        """The k documents that answer best, best first, with their scores from 0 to 1: larger is better.

        `filter` is metadata that must be the same, or a function of a document. `source` "memory" leaves out
        transcripts, "sessions" leaves out all else. There are k results, if there are k documents and no `min_score`.

        Raises:
            QueryError: an argument has a wrong type or value.
        """
        _refuse(kwargs, "similarity_search")
        found = self._documents.find(query, k, where=_where(filter), min_score=min_score, source=source)
        return [(_shown(one), score) for one, score in found]

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: Filter | None = None,  # noqa: A002 - LangChain's name
        **kwargs: Any,
    ) -> list[Document]:
        """The k documents nearest to a vector of the store's own embeddings.

        Raises:
            EmbedderError: it has other dimensions than the vectors of the index.
        """
        _refuse(kwargs, "similarity_search_by_vector")
        return [_shown(one) for one, _ in self._documents.near(embedding, k, where=_where(filter))]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return _within_bounds

    # --- without saying the same twice ---------------------------------------------------------------------------

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """The k of the `fetch_k` documents nearest to `query` that say different things; `filter` as elsewhere.

        `lambda_mult` of 1 looks at nearness alone, 0 at difference alone. Where search is by keywords alone there are
        no vectors to compare: the k that answer best are returned.

        Raises:
            EmbedderError: the question cannot be embedded.
        """
        embedder = self.memory.embedder
        if embedder is None:
            return self.similarity_search(query, k, **kwargs)
        vector = embedder.embed_query(query).tolist()
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,  # noqa: A002 - LangChain's name
        **kwargs: Any,
    ) -> list[Document]:
        """As `max_marginal_relevance_search`, for a vector of the store's own embeddings.

        Carbonell & Goldstein (1998): lambda_mult * nearness - (1 - lambda_mult) * likeness to what was chosen before.
        """
        _refuse(kwargs, "max_marginal_relevance_search")
        import numpy as np
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        near = [one for one, _ in self._documents.near(embedding, max(k, fetch_k), where=_where(filter))]
        pairs = zip(near, self._documents.vectors(near), strict=True)
        comparable = [(one, vector) for one, vector in pairs if vector is not None]
        vectors: list[Any] = [vector for _, vector in comparable]
        chosen = maximal_marginal_relevance(np.array(embedding, dtype=np.float32), vectors, lambda_mult, k)
        return [_shown(comparable[at][0]) for at in chosen]


def _shown(document: Written) -> Document:
    return Document(id=document.id, page_content=document.text, metadata=dict(document.metadata))


def _where(wanted: Filter | None) -> Callable[[Written], bool] | None:
    """The filter as a function of our documents.

    Raises:
        QueryError: it is neither metadata nor a function.
    """
    if wanted is None:
        return None
    if callable(wanted):
        return lambda document: bool(wanted(_shown(document)))
    if isinstance(wanted, Mapping):
        return lambda document: all(
            name in document.metadata and document.metadata[name] == value for name, value in wanted.items()
        )
    raise QueryError(f"filter must be a mapping of metadata, or a function of a document, not {wanted!r}")


def _within_bounds(score: float) -> float:
    """A score is its own relevance, 0..1."""
    return min(1.0, max(0.0, score))


def _refuse(unknown: Mapping[str, Any], call: str) -> None:
    if unknown:
        raise TypeError(f"{call} takes no {', '.join(sorted(unknown))}: leave it out")
