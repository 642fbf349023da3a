"""`OpenClawVectorStore`: LlamaIndex's vector store over a memory; what is added to it becomes Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: TC002 - pydantic reads it
from llama_index.core.bridge.pydantic import Field
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from llama_index_openclaw_memory._filters import matching
from llama_index_openclaw_memory._nodes import found_node, is_cited, node_of, source_of, written_of
from llama_index_openclaw_memory._query_modes import answer
from llama_index_openclaw_memory._vector_origin import VectorOrigins
from llama_index_openclaw_memory.embeddings import LlamaIndexEmbedder
from openclaw_memory import Memory
from openclaw_memory.aio import in_thread
from openclaw_memory.errors import ConfigError, EmbedderError, InvalidInputError
from openclaw_memory.tools import checked_memory

if TYPE_CHECKING:
    from llama_index.core.indices.vector_store.base import VectorStoreIndex
    from llama_index.core.schema import BaseNode
    from llama_index.core.storage.storage_context import StorageContext

    from openclaw_memory.types import Document, VectorSource


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

    def __init__(self, memory: Memory, embed_model: BaseEmbedding | None = None, **fields: Any) -> None:
        """A store over a memory that is open.

        Nodes come with vectors. Name the `embed_model` that makes them where it is not the memory's own embedder: it
        makes them again for a file that a person has changed, and when the index is gone. The vectors of a model that
        nobody names stand in the files.

        Raises:
            ConfigError: `memory` is none, `embed_model` no embedding of LlamaIndex, or a keyword no field.
        """
        if unknown := fields.keys() - type(self).model_fields:
            raise ConfigError(f"OpenClawVectorStore takes no {', '.join(sorted(unknown))}: leave it out")
        if embed_model is not None:
            LlamaIndexEmbedder(embed_model)  # refuses what is none
        super().__init__(**{**fields, "memory": checked_memory(memory), "embed_model": embed_model})

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
        return self._origins.embedding()

    @property
    def _origins(self) -> VectorOrigins:
        return VectorOrigins(self.memory, None if self.embed_model is None else LlamaIndexEmbedder(self.embed_model))

    def as_index(self, storage_context: StorageContext | None = None, **kwargs: Any) -> VectorStoreIndex:
        """A `VectorStoreIndex` over all of this store that embeds with `embedding`.

        Where no `vector_store_query_mode` is given to what is made of it, `hybrid` is meant. The docstore and the index
        store are those of `storage_context`, whatever vector store is in there: with what was persisted, it goes on
        with the index that was, and `refresh_ref_docs` knows what it has seen. `kwargs` are further ones of
        `VectorStoreIndex`.

        Raises:
            ConfigError: as `embedding`, or an `embed_model` is named here.
            EmbedderError: as `embedding`, or the nodes that are there came with vectors of another model.
        """
        from llama_index_openclaw_memory._index import index_over

        if "embed_model" in kwargs:
            raise ConfigError(
                "as_index embeds with what its store embeds with and takes no embed_model: name it to the store, "
                "OpenClawVectorStore(memory, embed_model=...), or open the memory with it, "
                "Memory.open(folder, embedder=LlamaIndexEmbedder(...))"
            )
        embedding, origins = self.embedding, self._origins
        origins.check(origins.identity())
        return index_over(self, storage_context, embed_model=embedding, **kwargs)

    def __deepcopy__(self, _memo: dict[int, Any] | None = None) -> Self:
        return self.model_copy()  # the memory and the model are shared

    def __reduce__(self) -> NoReturn:
        # LlamaIndex would take out of this very store what cannot be pickled.
        raise TypeError("a store over a memory that is open cannot be pickled: hand over its path, and open it there")

    # --- by id ---------------------------------------------------------------------------------------------------

    def add(self, nodes: Iterable[BaseNode], **kwargs: Any) -> list[str]:
        """Write the nodes, each to a file of its own in the place of the one with its id, and index them.

        Nodes that come without an embedding get one here, if there is something that makes them, and are otherwise
        found by their words. Returns the ids, in order.

        Raises:
            InvalidInputError: an id is blank, or what a node holds is no JSON or no Unicode. Nothing was written.
            EmbedderError: the embeddings have other dimensions, or are of another model, than those that are there; or
                some nodes have none, and nobody knows what made those of the others. Nothing was written.
            WriteError: a node is larger than `files.max_bytes`, or could not be written.
        """
        _refuse(kwargs, "add")
        given = list(nodes)
        if not given:
            return []
        once = {node.node_id: node for node in given}
        documents = [written_of(node) for node in once.values()]
        rows = [node.embedding for node in once.values()]
        embedded = [node for node in once.values() if node.embedding is not None]
        source = self._origins.of_nodes(embedded) if embedded else self._origins.source_for_new()
        if source is None:
            self.memory.documents.add(documents)
        else:
            self.memory.documents.add(documents, _completed(rows, documents, source), source)
        return [node.node_id for node in given]

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The nodes with these ids, in their order, or all that were ever added; those that pass the filters.

        The id of a person's lines is their citation; without ids there are none of these.

        Raises:
            InvalidInputError: a filter cannot work.
        """
        return [node_of(document) for document in self._documents(node_ids, filters)]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes that have this source; where there are none, nothing happens.

        Raises:
            PathNotAllowedError: it is the path of a person's own file, or a citation. Nothing was deleted.
            InvalidInputError: it is no text.
        """
        _refuse(delete_kwargs, "delete")
        if not isinstance(ref_doc_id, str):
            raise InvalidInputError(f"ref_doc_id must be the id of a source, not {ref_doc_id!r}")
        documents = self.memory.documents
        gone = [document.id for document in documents.iterate(where=lambda document: source_of(document) == ref_doc_id)]
        if gone or all(is_cited(document) for document in documents.get([ref_doc_id])):
            # What is the id of nothing here may name a person's file: that is refused.
            documents.delete(gone or [ref_doc_id])

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete the nodes with these ids that pass the filters; without ids all that pass; unknown ids are left out.

        Filters alone look at nodes that were added: a person's lines that would pass are no error, and stay.

        Raises:
            PathNotAllowedError: an id is a path or a citation of a person's own lines. Nothing was deleted.
            InvalidInputError: a filter cannot work, or neither ids nor filters were given.
        """
        _refuse(delete_kwargs, "delete_nodes")
        if node_ids is None and (filters is None or not filters.filters):
            raise InvalidInputError("delete_nodes takes node_ids or filters: clear() deletes all nodes")
        if matching(filters) is None:
            self.memory.documents.delete(node_ids or [])
        else:
            self.memory.documents.delete([document.id for document in self._documents(node_ids, filters)])

    def clear(self) -> None:
        """Delete every document that a framework ever added; what people wrote stays."""
        self.memory.documents.delete([document.id for document in self.memory.documents.iterate()])

    # --- by what they say ----------------------------------------------------------------------------------------

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that answer, best first, with their similarities: larger is better.

        Each has the lines where its text stands as `metadata["citation"]`, which neither an LLM nor an embedding model
        is shown of what was added; `get_nodes` returns nodes as they were added.

        DEFAULT goes by the cosines of vectors, TEXT_SEARCH and SPARSE by words (BM25). HYBRID and SEMANTIC_HYBRID
        are the memory's own search, with scores of 0..1; with an `alpha`, or where the nodes came with vectors of
        another model than the memory's, both legs are scaled to 0..1 and added, those of vectors times alpha. MMR
        leaves out what repeats the node before it: `mmr_threshold` 1 goes by nearness alone, 0 by difference alone.

        Empty `node_ids` and `doc_ids` leave out nothing; a `doc_ids` is the source of a node, or a person's path. With
        these or filters alone, neither a vector nor a text, the first nodes come that pass, with similarities of 0.

        Raises:
            QueryError: a mode is not one of these, an argument is missing or has a wrong value, a filter cannot work.
            EmbedderError: the vector has other dimensions than those that are there, or is of another model: the one
                that was named for this store, or the memory's where it is made here.
        """
        _refuse({name: value for name, value in kwargs.items() if name != "mmr_threshold"}, "query")
        if kwargs.get("mmr_threshold") is not None:
            query = replace(query, mmr_threshold=kwargs["mmr_threshold"])
        found = answer(self._origins, query)
        return VectorStoreQueryResult(
            nodes=[found_node(document) for document, _ in found],
            similarities=[score for _, score in found],
            ids=[document.id for document, _ in found],
        )

    # --- inside --------------------------------------------------------------------------------------------------

    def _documents(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> list[Document]:
        where = matching(filters)
        documents = self.memory.documents
        if node_ids is None:
            return list(documents.iterate(where=where))
        return [document for document in documents.get(node_ids) if where is None or where(document)]

    # --- async ---------------------------------------------------------------------------------------------------

    async def async_add(self, nodes: Iterable[BaseNode], **kwargs: Any) -> list[str]:
        """As `add`, in a thread."""
        return await in_thread(self.add, nodes, **kwargs)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As `get_nodes`, in a thread."""
        return await in_thread(self.get_nodes, node_ids, filters)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As `delete`, in a thread."""
        await in_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """As `delete_nodes`, in a thread."""
        await in_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        """As `clear`, in a thread."""
        await in_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As `query`, in a thread."""
        return await in_thread(self.query, query, **kwargs)


def _completed(
    rows: Sequence[Sequence[float] | None], documents: Sequence[Document], source: VectorSource
) -> list[Any]:
    """The vectors of documents, with those that are lacking made.

    Raises:
        EmbedderError: nobody can make them, or what makes them failed.
    """
    lacking = [document for row, document in zip(rows, documents, strict=True) if row is None]
    if lacking and source.make is None:
        raise EmbedderError(
            f"node {lacking[0].id!r} came without an embedding, and nobody knows what made those of the others: embed "
            "it too, or name the model: OpenClawVectorStore(memory, embed_model=...)"
        )
    made: Iterator[Any] = iter(source.make(lacking) if lacking and source.make is not None else ())
    return [next(made) if row is None else row for row in rows]


def _refuse(unknown: Mapping[str, Any], call: str) -> None:
    if unknown:
        raise InvalidInputError(f"{call} takes no {', '.join(sorted(unknown))}: leave it out")
