"""`OpenClawVectorStore`: LlamaIndex's vector store over a memory; nodes become Markdown files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: TC002 - pydantic reads it
from llama_index.core.bridge.pydantic import Field
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult

from llama_index_openclaw_memory._filters import build_filter, list_names
from llama_index_openclaw_memory._nodes import is_cited, to_document, to_found_node, to_node
from llama_index_openclaw_memory._query_modes import answer
from llama_index_openclaw_memory._session import find_session, use_run_memory
from llama_index_openclaw_memory._vector_origin import VectorOrigins, make_source
from llama_index_openclaw_memory.embeddings import LlamaIndexEmbedder, check_embedding
from openclaw_memory import Memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import ConfigError, EmbedderError, InvalidInputError, WorkspaceError, WriteError
from openclaw_memory.runs import MemoryChoice, RunMemory
from openclaw_memory.tools import find_audience
from openclaw_memory.workspace import SafeFolder

if TYPE_CHECKING:
    import os

    from llama_index.core.indices.vector_store.base import VectorStoreIndex
    from llama_index.core.schema import BaseNode
    from llama_index.core.storage.storage_context import StorageContext
    from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQuery

    from openclaw_memory.types import Document, VectorSource


_log = logging.getLogger(__name__)
_ADDED = "memory/notes/"  # the folder of what frameworks add


class OpenClawVectorStore(BasePydanticVectorStore):
    """A memory as a vector store of LlamaIndex. Safe to use from several threads; async methods run in one.

    Each node that is added becomes a Markdown file in `memory/notes/`, which a person may read, edit or delete. With
    `include_notes`, searches find a person's own notes as well: lines of them, as nodes whose id is the citation.
    These are never changed or deleted from here.
    """

    stores_text: bool = True
    is_embedding_query: bool = True
    memory: Any = Field(exclude=True)
    embed_model: BaseEmbedding | None = Field(default=None, exclude=True)
    collection: str | None = Field(default=None, exclude=True)
    session_key: str | None = Field(default=None, exclude=True)
    include_notes: bool = Field(default=False, exclude=True)

    def __init__(
        self,
        memory: MemoryChoice,
        embed_model: BaseEmbedding | None = None,
        *,
        collection: str | None = None,
        session_key: str | None = None,
        include_notes: bool = False,
    ) -> None:
        """Make a store over an open memory.

        Args:
            memory: The memory that holds the nodes, or a selector of one for each run, see `OpenClawToolSpec`.
            embed_model: The model that makes the vectors of nodes, if it is not the memory's own embedder. It makes
                them again for a file that a person has changed, and when the index is gone. Vectors of a model that is
                not named are in the index alone; naming it later is enough.
            collection: A name: nodes lie in `memory/notes/<collection>/` with ids of their own, and only these are
                found and deleted. Default: nodes in no collection.
            session_key: Where answers are read, as for `OpenClawToolSpec`.
            include_notes: Whether searches find people's notes and transcripts too.

        Raises:
            TypeError: `memory` is not a memory.
            ConfigError: `embed_model` is not an embedding of LlamaIndex.
        """
        if embed_model is not None:
            check_embedding(embed_model)
        own: dict[str, Any] = {"memory": RunMemory.read_choice(memory), "embed_model": embed_model}
        own |= {"collection": collection, "session_key": session_key, "include_notes": include_notes}
        super().__init__(**own)

    @classmethod
    def from_params(
        cls, folder: str | os.PathLike[str], embed_model: BaseEmbedding | None = None, **fields: Any
    ) -> Self:
        """Return a store over the memory in a folder, which is made if it is missing. Close the memory at the end.

        Args:
            folder: The folder.
            embed_model: As for the class.
            **fields: As for the class.

        Raises:
            WorkspaceError: The folder cannot be made or read.
        """
        try:
            SafeFolder(Path(folder).expanduser(), create=True).make_folder()
        except WriteError as error:
            raise WorkspaceError(f"the folder of the memory cannot be made: {error}") from error
        memory = Memory.open(folder)
        try:
            return cls(memory, embed_model, **fields)
        except BaseException:
            memory.close()  # nobody else could
            raise

    @classmethod
    def class_name(cls) -> str:
        return "OpenClawVectorStore"

    @property
    def client(self) -> Memory:
        """The memory, or the template or function that chooses that of a run."""
        return self.memory  # type: ignore[no-any-return]

    @property
    @use_run_memory
    def embedding(self) -> BaseEmbedding:
        """The model that makes the vectors: the `embed_model`, or the memory's own embedder.

        Raises:
            ConfigError: The memory searches by keywords alone.
            EmbedderError: The memory's embedder is not available.
        """
        return self._origins.get_embedding()

    @property
    def _origins(self) -> VectorOrigins:
        theirs = None if self.embed_model is None else LlamaIndexEmbedder(self.embed_model)
        return VectorOrigins(self.memory, theirs, self.collection)

    def as_index(self, storage_context: StorageContext | None = None, **kwargs: Any) -> VectorStoreIndex:
        """Return a `VectorStoreIndex` over this store that embeds with `embedding` and searches in the mode `hybrid`.

        Args:
            storage_context: Its docstore and index store are used, whatever vector store it has: with those that were
                persisted, `refresh_ref_docs` knows which documents were seen. Default: new ones.
            kwargs: Further arguments of `VectorStoreIndex`, except `embed_model`.

        Raises:
            ConfigError: As `embedding`, or an `embed_model` is passed.
            EmbedderError: As `embedding`, or the nodes in the store came with vectors of another model.
        """
        from llama_index_openclaw_memory._index import index_over

        if "embed_model" in kwargs:
            raise ConfigError(
                "as_index embeds with what its store embeds with and takes no embed_model: name it to the store, "
                "OpenClawVectorStore(memory, embed_model=...), or open the memory with it, "
                "Memory.open(folder, embedder=LlamaIndexEmbedder(...))"
            )
        return index_over(self, storage_context, embed_model=self._check_embedding(), **kwargs)

    @use_run_memory
    def _check_embedding(self) -> BaseEmbedding:
        origins = self._origins
        origins.check(origins.require_embedder().identity)
        return origins.get_embedding()

    def __deepcopy__(self, _memo: dict[int, Any] | None = None) -> Self:
        return self.model_copy()  # the memory and the model are shared

    def __reduce__(self) -> NoReturn:
        # LlamaIndex would take out of this very store what cannot be pickled.
        raise TypeError("a store over a memory that is open cannot be pickled: hand over its path, and open it there")

    # --- by id ---------------------------------------------------------------------------------------------------

    @use_run_memory
    def add(self, nodes: Iterable[BaseNode], **kwargs: Any) -> list[str]:
        """Write the nodes, each to a file of its own in place of the one with its id, and index them; return the ids.

        Args:
            nodes: The nodes. Those without an embedding are embedded here if a model is available, and are otherwise
                found by their words.
            kwargs: None are used; a warning names them.

        Raises:
            InvalidInputError: An id is blank, or a value of a node is not JSON or not Unicode.
            EmbedderError: The embeddings have other dimensions, or are of another model, than those in the store; or
                some nodes have none, and the model of the others is unknown.
            WriteError: A node is larger than `files.max_bytes`, or could not be written.
        """
        _log_unused(kwargs, "add")
        nodes_given = list(nodes)
        if not nodes_given:
            return []
        once = {node.node_id: node for node in nodes_given}
        documents = [to_document(node) for node in once.values()]
        rows = [node.embedding for node in once.values()]
        embedded = [node for node in once.values() if node.embedding is not None]
        origins = self._origins
        source = origins.detect_source(embedded) if embedded else origins.choose_source()
        vectors = None if source is None else _complete(rows, documents, source)
        origins.documents.add(documents, vectors, source)
        return [node.node_id for node in nodes_given]

    @use_run_memory
    def get_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        with_embeddings: bool = False,
    ) -> list[BaseNode]:
        """Return nodes by id, in the order of the ids, or all that were ever added.

        Args:
            node_ids: The ids; that of a person's lines is their citation. Default: all nodes, without a person's lines.
            filters: Only nodes that pass. Default: all.
            with_embeddings: Whether they come with the vectors that they are found by, of length 1, as `embedding`.
        """
        documents = self._list_documents(node_ids, filters)
        nodes = [to_node(document) for document in documents]
        if with_embeddings:
            origins = self._origins
            vectors = origins.documents.get_vectors(documents, origins.model_there)
            for node, vector in zip(nodes, vectors, strict=True):
                node.embedding = None if vector is None else vector.tolist()
        return nodes

    @use_run_memory
    def reembed(self) -> int:
        """Embed all nodes of this store again, by the model that it names or else the memory's own.

        After a failure, call it again: nothing is done twice.

        Returns:
            How many nodes got new vectors: those that had none of this model.

        Raises:
            ConfigError: There is no model: the memory searches by keywords alone, and the store names none.
            EmbedderError: The model failed, or is not available.
        """
        origins = self._origins
        return origins.documents.rebuild_vectors(make_source(origins.require_embedder()))

    @use_run_memory
    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes that have this source; without any, nothing happens.

        Raises:
            PathNotAllowedError: It is the path of a person's own file, or a citation. Nothing was deleted.
            InvalidInputError: It is not a string.
        """
        _log_unused(delete_kwargs, "delete")
        if not isinstance(ref_doc_id, str):
            raise InvalidInputError(f"ref_doc_id must be the id of a source, not {ref_doc_id!r}")
        documents = self._origins.documents
        ids = [document.id for document in documents.iterate(documents.Filter(parts_of=[ref_doc_id]))]
        if ids or all(is_cited(document) for document in documents.get([ref_doc_id])):
            # What is the id of nothing here may name a person's file: that is refused.
            documents.delete(ids or [ref_doc_id])

    @use_run_memory
    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete the nodes with these ids that pass the filters.

        Args:
            node_ids: The ids; unknown ones are left out. Default: all nodes that were added, never a person's lines.
            filters: Only nodes that pass. Default: all; required without `node_ids`.
            delete_kwargs: None are used; a warning names them.

        Raises:
            PathNotAllowedError: An id is a path or a citation of a person's own lines. Nothing was deleted.
            InvalidInputError: A filter is not valid, or neither ids nor filters were given.
        """
        _log_unused(delete_kwargs, "delete_nodes")
        is_filtered = build_filter(filters) is not None
        if node_ids is None and not (filters and any(list_names(filters))):
            raise InvalidInputError("delete_nodes takes node_ids or filters: clear() deletes all nodes")
        if is_filtered or node_ids is None:
            node_ids = [document.id for document in self._list_documents(node_ids, filters)]
        self._origins.documents.delete(node_ids)

    @use_run_memory
    def clear(self, **kwargs: Any) -> None:
        """Delete every document that a framework added; notes of people stay."""
        _log_unused(kwargs, "clear")
        documents = self._origins.documents
        documents.delete([document.id for document in documents.iterate()])

    # --- by what they say ----------------------------------------------------------------------------------------

    @use_run_memory
    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the nodes that answer, best first, with their similarities: larger is better.

        Nodes that were added come as they were, with the same hash; `node.source_node.metadata["citation"]` says where
        their lines are.

        DEFAULT ranks by cosines. TEXT_SEARCH and SPARSE go by words (BM25). HYBRID and SEMANTIC_HYBRID are the memory's
        own search, with scores of 0..1; with an `alpha`, or if the nodes came with vectors of another model than the
        memory's, both legs are scaled to 0..1 and added, vectors times alpha. MMR leaves out nodes that repeat the one
        before: `mmr_threshold` 1 ranks by nearness alone, 0 by difference alone.

        Args:
            query: Mode, vector or text, counts and filters. Empty `node_ids` and `doc_ids` leave out nothing; a
                `doc_ids` is the source of a node, or the path of a person's file. With filters alone, neither a vector
                nor a text, the first nodes that pass are returned, with similarities of 0.
            kwargs: `mmr_threshold` alone, 0..1.

        Raises:
            QueryError: A mode is not one of these, an argument is missing or has a wrong value, or a filter is not
                valid.
            EmbedderError: The vector has other dimensions than those in the store, or is of another model: the one
                named for this store, or the memory's if the vector is made here.
        """
        if unknown := kwargs.keys() - {"mmr_threshold"}:
            raise InvalidInputError(f"query takes no {', '.join(sorted(unknown))}: leave it out")
        if kwargs.get("mmr_threshold") is not None:
            query = replace(query, mmr_threshold=kwargs["mmr_threshold"])
        audience = find_audience(self.memory, find_session(self.session_key))
        is_shown = None if audience.is_user_alone else audience.may_see
        results = answer(self._origins, query, is_shown, folder=self._folder)
        return VectorStoreQueryResult(
            nodes=[to_found_node(document) for document, _ in results],
            similarities=[score for _, score in results],
            ids=[document.id for document, _ in results],
        )

    @property
    def _folder(self) -> str:
        """The folder of the documents that count, or ""."""
        return "" if self.include_notes else _ADDED

    def _list_documents(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> list[Document]:
        where = build_filter(filters, folder=self._folder)
        if node_ids is None:
            return list(self._origins.documents.iterate(where=where))
        audience = find_audience(self.memory, find_session(self.session_key))
        visible = [item for item in self._origins.documents.get(node_ids) if audience.may_see(item.path)]
        return [document for document in visible if where is None or where(document)]

    # --- async ---------------------------------------------------------------------------------------------------

    async def async_add(self, nodes: Iterable[BaseNode], **kwargs: Any) -> list[str]:
        return await run_in_thread(self.add, nodes, **kwargs)

    async def aget_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        with_embeddings: bool = False,
    ) -> list[BaseNode]:
        return await run_in_thread(self.get_nodes, node_ids, filters, with_embeddings=with_embeddings)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        await run_in_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        await run_in_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self, **kwargs: Any) -> None:
        await run_in_thread(self.clear, **kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        return await run_in_thread(self.query, query, **kwargs)


def _complete(rows: Sequence[Sequence[float] | None], documents: Sequence[Document], source: VectorSource) -> list[Any]:
    """Return the vectors of documents, and make those that are missing."""
    lacking = [document for row, document in zip(rows, documents, strict=True) if row is None]
    if lacking and source.make is None:
        raise EmbedderError(
            f"node {lacking[0].id!r} came without an embedding, and the model of the others is unknown: embed "
            "it too, or name the model: OpenClawVectorStore(memory, embed_model=...)"
        )
    vectors: Iterator[Any] = iter(source.make(lacking) if lacking and source.make is not None else ())
    return [next(vectors) if row is None else row for row in rows]


def _log_unused(unused: Mapping[str, Any], call: str) -> None:
    """Log arguments that a call does not use: LlamaIndex passes those for other parts too."""
    if unused:
        _log.warning(f"{call} uses no {', '.join(sorted(unused))}")
