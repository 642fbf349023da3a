"""`OpenClawVectorStore`: LlamaIndex's vector store over a memory; what is added to it becomes Markdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: TC002 - pydantic reads it
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from llama_index_openclaw_memory import _ranking
from llama_index_openclaw_memory._filters import matching
from llama_index_openclaw_memory._makers import GIVEN, maker_by, maker_of
from llama_index_openclaw_memory._nodes import node_of, source_of, written_of
from llama_index_openclaw_memory.embeddings import LlamaIndexEmbedder, OpenClawEmbedding
from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError, EmbedderError, QueryError
from openclaw_memory.tools import checked_memory
from openclaw_memory.types import Document, Maker

if TYPE_CHECKING:
    from llama_index.core.indices.vector_store.base import VectorStoreIndex
    from llama_index.core.schema import BaseNode

    from openclaw_memory.types import Vector

Found: TypeAlias = list[tuple[Document, float]]
Where: TypeAlias = Callable[[Document], bool]

# As many as one search of a memory brings: of more, those far away would be chosen because they are far away.
_MMR_CANDIDATES = 1000
# What LlamaIndex's hybrid stores weigh the vectors with by default, and OpenClaw too.
_ALPHA = 0.7


class OpenClawVectorStore(BasePydanticVectorStore):
    """A memory as a vector store of LlamaIndex. Safe to use from several threads; what is async runs in one.

    Each node that is added becomes a Markdown file in `memory/notes/`, with what only LlamaIndex knows of it as JSON
    above the text; a person may read, edit or delete it. Searches find a person's own notes as well: lines of them, as
    nodes whose id is the citation. These are never changed or deleted from here.
    """

    stores_text: bool = True
    is_embedding_query: bool = True
    memory: Memory = Field(exclude=True, description="The memory that holds the nodes.")
    embed_model: BaseEmbedding | None = Field(
        default=None, exclude=True, description="What makes the vectors, where that is not the memory's own embedder."
    )
    _theirs: LlamaIndexEmbedder | None = PrivateAttr(default=None)

    def __init__(self, memory: Memory, embed_model: BaseEmbedding | None = None, **fields: Any) -> None:
        """A store over a memory that is open.

        Nodes come with vectors. Name the `embed_model` that makes them where it is not the memory's own embedder: it
        makes them again for a file that a person has changed, and when the index is gone. The vectors of a model that
        nobody names stand in the files.

        Raises:
            ConfigError: `memory` is none, or `embed_model` no embedding of LlamaIndex.
        """
        theirs = None if embed_model is None else LlamaIndexEmbedder(embed_model)
        super().__init__(**{**fields, "memory": checked_memory(memory), "embed_model": embed_model})
        self._theirs = theirs

    @classmethod
    def class_name(cls) -> str:
        """The name under which it is dumped."""
        return "OpenClawVectorStore"

    @property
    def client(self) -> Memory:
        """The memory."""
        return self.memory

    @property
    def embedding(self) -> BaseEmbedding:
        """What makes the vectors: the `embed_model`, or the memory's own embedder.

        Raises:
            ConfigError: the memory searches by keywords alone.
            EmbedderError: the memory's embedder cannot be had.
        """
        if self.embed_model is not None:
            return self.embed_model
        embedder = self.memory.embedder
        if embedder is None:
            raise ConfigError(
                "this memory searches by keywords alone and makes no vectors: open it with an embedder, such as "
                'Memory.open(folder, embedder="static"), or name one: OpenClawVectorStore(memory, embed_model=...)'
            )
        return OpenClawEmbedding(embedder)

    def as_index(self, **kwargs: Any) -> VectorStoreIndex:
        """A `VectorStoreIndex` over this store that embeds with `embedding`; takes what `from_vector_store` takes.

        Raises:
            ConfigError, EmbedderError: as `embedding`.
        """
        from llama_index.core.indices.vector_store.base import VectorStoreIndex

        return VectorStoreIndex.from_vector_store(self, embed_model=self.embedding, **kwargs)

    # --- by id ---------------------------------------------------------------------------------------------------

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Write the nodes, each to a file of its own in the place of the one with its id, and index them.

        Nodes that come without an embedding get one here, if there is something that makes them, and are otherwise
        found by their words. Returns the ids, in order.

        Raises:
            QueryError: an id is blank, or what a node holds is no JSON or no Unicode. Nothing was written.
            EmbedderError: the embeddings have other dimensions, or are of another model, than those that are there.
                Nothing was written.
            WriteError: a node is larger than `files.max_bytes`, or could not be written.
        """
        _refuse(kwargs, "add")
        written = {node.node_id: (written_of(node), node.embedding) for node in nodes}
        bare = [document for document, embedding in written.values() if embedding is None]
        dense = [(document, embedding) for document, embedding in written.values() if embedding is not None]
        documents = self.memory.documents
        if dense:
            maker = self._maker_of([node for node in nodes if node.embedding is not None])
            documents.add([document for document, _ in dense], [embedding for _, embedding in dense], maker)
        if bare:
            own = self._own_maker()
            if own is not None and own.make is not None and documents.precomputed.identity in {None, own.identity}:
                documents.add(bare, own.make(bare), own)
            else:
                documents.add(bare)
        return [node.node_id for node in nodes]

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The nodes with these ids, in their order, or all that were ever added; those that pass the filters.

        The id of a person's lines is their citation; without ids there are none of these.

        Raises:
            QueryError: a filter cannot work.
        """
        return [node_of(document) for document in self._documents(node_ids, filters)]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes that have this source; where there are none, nothing happens.

        Raises:
            PathNotAllowedError: it is the path of a person's own file, or a citation. Nothing was deleted.
        """
        _refuse(delete_kwargs, "delete")
        there = {document.id: source_of(document) for document in self.memory.documents.all()}
        gone = [node_id for node_id, source in there.items() if source == ref_doc_id]
        if gone or ref_doc_id not in there:
            # What is the id of nothing here may name a person's file: that is refused.
            self.memory.documents.delete(gone or [ref_doc_id])

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete the nodes with these ids that pass the filters; without ids all that pass; unknown ids are left out.

        Raises:
            PathNotAllowedError: an id is a path or a citation of a person's own lines. Nothing was deleted.
            QueryError: a filter cannot work, or neither ids nor filters were given.
        """
        _refuse(delete_kwargs, "delete_nodes")
        if node_ids is None and (filters is None or not filters.filters):
            raise QueryError("delete_nodes takes node_ids or filters: clear() deletes all nodes")
        if matching(filters) is None:
            self.memory.documents.delete(node_ids or [])
        else:
            self.memory.documents.delete([document.id for document in self._documents(node_ids, filters)])

    def clear(self) -> None:
        """Delete every document that a framework ever added; what people wrote stays."""
        self.memory.documents.delete([document.id for document in self.memory.documents.all()])

    # --- by what they say ----------------------------------------------------------------------------------------

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that answer, best first, with their similarities: larger is better.

        DEFAULT goes by the cosines of vectors, TEXT_SEARCH and SPARSE by words (BM25). HYBRID and SEMANTIC_HYBRID
        are the memory's own search, with scores of 0..1; with an `alpha`, or where the nodes came with vectors of
        another model than the memory's, both legs are scaled to 0..1 and added, those of vectors times alpha. MMR
        leaves out what repeats the node before it: `mmr_threshold` 1 goes by nearness alone, 0 by difference alone.

        Empty `node_ids` and `doc_ids` leave out nothing; a `doc_ids` is the source of a node, or a person's path.

        Raises:
            QueryError: a mode is not one of these, an argument is missing or has a wrong value, a filter cannot work.
            EmbedderError: the vector has other dimensions than those that are there.
        """
        _refuse({name: value for name, value in kwargs.items() if name != "mmr_threshold"}, "query")
        modes = {
            VectorStoreQueryMode.DEFAULT: self._by_vectors,
            VectorStoreQueryMode.TEXT_SEARCH: self._by_words,
            VectorStoreQueryMode.SPARSE: self._by_words,
            VectorStoreQueryMode.HYBRID: self._by_both,
            VectorStoreQueryMode.SEMANTIC_HYBRID: self._by_both,
        }
        where = _where(query)
        if query.mode == VectorStoreQueryMode.MMR:
            found = self._without_repeats(query, where, kwargs.get("mmr_threshold"))
        elif query.mode in modes:
            found = modes[query.mode](query, where)
        else:
            known = ", ".join(mode.value for mode in (*modes, VectorStoreQueryMode.MMR))
            raise QueryError(f"the mode {query.mode!r} is none of this store's: use one of {known}")
        return VectorStoreQueryResult(
            nodes=[node_of(document) for document, _ in found],
            similarities=[score for _, score in found],
            ids=[document.id for document, _ in found],
        )

    def _by_vectors(self, query: VectorStoreQuery, where: Where | None) -> Found:
        vector = self._vector(query)
        if not query.node_ids:
            return self._nearest(vector, query.similarity_top_k, where)
        # A few that are named are compared one by one: to look for them among all others would take longer.
        named = [one for one in self.memory.documents.get(query.node_ids) if where is None or where(one)]
        return _ranking.by_cosine(vector, self._with_vectors(named))[: query.similarity_top_k]

    def _nearest(self, vector: Sequence[float], k: int, where: Where | None) -> Found:
        precomputed = self.memory.documents.precomputed
        # First of all: what makes vectors again that are gone must be at hand before anybody misses them.
        found = precomputed.nearest(vector, k, where=where, maker=self._maker_at_hand())
        if not self._is_own(precomputed.identity):
            return found
        # What has no vector of its own is found by its chunks: people's notes, and what came without one.
        others = self._near(vector, k, where, precomputed.paths())
        return sorted([*found, *others], key=lambda pair: -pair[1])[:k]

    def _near(self, vector: Sequence[float], k: int, where: Where | None, beside: Collection[str]) -> Found:
        import numpy as np

        try:
            # Where nothing is left out, what lies beyond a first look is further away than what is found.
            return self.memory.documents.near(vector, k, where=where, widen=where is not None, beside=beside)
        except EmbedderError:
            if not np.isfinite(vector).all():
                raise
            # Before the first node is added, nothing says what makes the vectors: these are not the memory's.
            return []

    def _by_words(self, query: VectorStoreQuery, where: Where | None) -> Found:
        k = query.similarity_top_k if query.mode == VectorStoreQueryMode.TEXT_SEARCH else _sparse_k(query)
        return self.memory.documents.matching(_words(query), k, where=where)

    def _by_both(self, query: VectorStoreQuery, where: Where | None) -> Found:
        k = query.hybrid_top_k or query.similarity_top_k
        documents = self.memory.documents
        model = documents.precomputed.model_of(self._maker_at_hand())
        is_without = model is None and self._theirs is None
        if query.alpha is None and (is_without or self._is_own(model)):
            return documents.find(_words(query), k, where=where)
        alpha = _ALPHA if query.alpha is None else _share("alpha", query.alpha)
        dense = self._by_vectors(query, where) if alpha > 0 else []
        sparse = documents.matching(_words(query), _sparse_k(query), where=where) if alpha < 1 else []
        return _ranking.fused(dense, sparse, alpha)[:k]

    def _without_repeats(self, query: VectorStoreQuery, where: Where | None, threshold: float | None) -> Found:
        wanted = threshold if threshold is not None else query.mmr_threshold
        threshold = 0.5 if wanted is None else _share("mmr_threshold", wanted)
        vector = self._vector(query)
        near = [one for one, _ in self._nearest(vector, max(query.similarity_top_k, _MMR_CANDIDATES), where)]
        comparable = self._with_vectors(near)
        chosen = _ranking.marginal(vector, [row for _, row in comparable], query.similarity_top_k, threshold)
        return [(comparable[at][0], score) for at, score in chosen]

    def _with_vectors(self, found: Sequence[Document]) -> list[tuple[Document, Vector]]:
        """Documents with the vectors they came with, or else those of their chunks; without those that have none."""
        documents = self.memory.documents
        rows = documents.precomputed.vectors(found)
        if self._is_own(documents.precomputed.identity):
            lacking = [at for at, row in enumerate(rows) if row is None]
            for at, row in zip(lacking, documents.vectors([found[at] for at in lacking]), strict=True):
                rows[at] = row
        return [(one, row) for one, row in zip(found, rows, strict=True) if row is not None]

    # --- whose vectors -------------------------------------------------------------------------------------------

    def _maker_of(self, nodes: Sequence[BaseNode]) -> Maker:
        """What made the embeddings that nodes come with."""
        if self._theirs is not None:
            return maker_by(self._theirs)
        embedder = self.memory.embedder
        return GIVEN if embedder is None else maker_of(nodes, embedder)

    def _own_maker(self) -> Maker | None:
        """What makes vectors here; None where there are none of the memory's own."""
        embedder = self._theirs or self.memory.embedder
        return None if embedder is None else maker_by(embedder)

    def _maker_at_hand(self) -> Maker | None:
        """As `_own_maker`; None also where the embedder cannot be had: the memory then tells what lacks its vector."""
        try:
            return self._own_maker()
        except EmbedderError:
            return None

    def _is_own(self, model: str | None) -> bool:
        """Whether vectors of a model, None where there are none, can be compared with those of the memory's chunks."""
        if model == GIVEN.identity:
            return False
        asked = model or (self._theirs.identity if self._theirs is not None else None)
        embedder = self.memory.embedder
        return embedder is not None and asked in {None, embedder.identity}

    def _vector(self, query: VectorStoreQuery) -> Sequence[float]:
        if query.query_embedding is not None:
            return query.query_embedding
        if not query.query_str:
            raise QueryError("a search by vectors takes a query_embedding, or a query_str to make one of")
        return self.embedding.get_query_embedding(query.query_str)

    # --- inside --------------------------------------------------------------------------------------------------

    def _documents(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> list[Document]:
        where = matching(filters)
        documents = self.memory.documents
        there = documents.all() if node_ids is None else documents.get(node_ids)
        return [document for document in there if where is None or where(document)]

    # --- async ---------------------------------------------------------------------------------------------------

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As `add`, in a thread."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As `get_nodes`, in a thread."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As `delete`, in a thread."""
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """As `delete_nodes`, in a thread."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        """As `clear`, in a thread."""
        await asyncio.to_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As `query`, in a thread."""
        return await asyncio.to_thread(self.query, query, **kwargs)


def _where(query: VectorStoreQuery) -> Where | None:
    """Which documents count for a query; None where all do."""
    tests: list[Where] = []
    if query.node_ids:
        node_ids = frozenset(query.node_ids)
        tests.append(lambda document: document.id in node_ids)
    if query.doc_ids:
        doc_ids = frozenset(query.doc_ids)
        tests.append(lambda document: source_of(document) in doc_ids)
    if (by_filters := matching(query.filters)) is not None:
        tests.append(by_filters)
    return (lambda document: all(test(document) for test in tests)) if tests else None


def _words(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        raise QueryError(f"the mode {query.mode.value!r} searches by words: give a query_str")
    return query.query_str


def _sparse_k(query: VectorStoreQuery) -> int:
    return query.sparse_top_k or query.similarity_top_k


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise QueryError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)


def _refuse(unknown: Mapping[str, Any], call: str) -> None:
    if unknown:
        raise TypeError(f"{call} takes no {', '.join(sorted(unknown))}: leave it out")
