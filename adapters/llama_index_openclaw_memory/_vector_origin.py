"""Track the model that made the vectors of nodes, makes new ones, or may be compared with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_openclaw_memory._nodes import to_node
from llama_index_openclaw_memory.embeddings import LlamaIndexEmbedder, OpenClawEmbedding
from openclaw_memory.documents import Documents
from openclaw_memory.errors import ConfigError, EmbedderError
from openclaw_memory.types import Document, Embedder, VectorSource

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.vector_stores.types import VectorStoreQuery

    from openclaw_memory import Memory
    from openclaw_memory.types import Matrix, Vector

# The source of vectors whose model is unknown: they are in the index alone, and made again once it is named.
UNKNOWN_SOURCE = VectorSource(VectorSource.UNNAMED, VectorSource.UNNAMED)


@dataclass(frozen=True)
class VectorOrigins:
    """The model that makes vectors for a store: `theirs`, which was named for it, or else the memory's own embedder.

    One object serves one call of the store: what it has read of the index is not read again.
    """

    memory: Memory
    theirs: LlamaIndexEmbedder | None
    collection: str | None = None

    @cached_property
    def documents(self) -> Documents:
        """The documents of the store's collection."""
        return self.memory.documents.get_collection(self.collection)

    @cached_property
    def own(self) -> Embedder | None:
        """The memory's own embedder; None also if it is not available, which the memory itself reports."""
        try:
            return self.memory.embedder
        except EmbedderError:
            return None

    @property
    def known_model(self) -> Embedder | None:
        """The model that makes vectors; None if there is no model, or it is not available."""
        return self.theirs or self.own

    def require_embedder(self) -> Embedder:
        """Return the model that makes vectors.

        Raises:
            ConfigError: The memory searches by keywords alone.
            EmbedderError: The memory's embedder is not available.
        """
        embedder = self.theirs or self.memory.embedder
        if embedder is None:
            raise ConfigError(
                "this memory searches by keywords alone and makes no vectors: open it with an embedder, such as "
                'Memory.open(folder, embedder="static"), or name one: OpenClawVectorStore(memory, embed_model=...)'
            )
        return embedder

    def get_embedding(self) -> BaseEmbedding:
        """Return the model that `require_embedder` returns as an embedding of LlamaIndex."""
        return OpenClawEmbedding(self.require_embedder()) if self.theirs is None else self.theirs.embed_model

    def choose_source(self) -> VectorSource | None:
        """Return a source of vectors that can be compared with those in the store; None if there is no such model."""
        embedder = self.theirs or self.memory.embedder
        if embedder is None or self.model_there not in {None, embedder.identity}:
            return None
        return make_source(embedder)

    @cached_property
    def model_there(self) -> str | None:
        """The identity of the model that made the vectors of the nodes; None if they have none."""
        if self.known_model is None:
            return self.documents.get_vector_identity()
        # The source that makes lost vectors again comes before the search that would miss them.
        return self.documents.get_vector_identity(make_source(self.known_model))

    def detect_source(self, nodes: Sequence[BaseNode]) -> VectorSource:
        """Return the source of the embeddings that nodes come with: `UNKNOWN_SOURCE` if no known model made them.

        The first node that has a text and a vector other than zeros is embedded again and compared. Without such a
        node, the source is the model that was named, or the memory's own if the dimensions are the same.

        Raises:
            EmbedderError: The embedder failed, or is named and makes other vectors.
        """
        embedder = self.known_model
        if embedder is None:
            return UNKNOWN_SOURCE
        for sample in nodes:
            if any(sample.embedding or []) and (texts := _list_texts(sample)):
                vectors = zip(texts.values(), embedder.embed_documents(list(texts)), strict=True)
                modes = (mode for mode, row in vectors if _is_same(row, sample.embedding))
                if (mode := next(modes, None)) is not None:
                    return make_source(embedder, mode)
                if self.theirs is None:
                    return UNKNOWN_SOURCE
                raise EmbedderError(
                    f"node {sample.node_id!r} came with a vector that {self.theirs.identity!r}, which this store "
                    "names, does not make of its text: embed with store.embedding, as store.as_index() does, or name "
                    "what made it: OpenClawVectorStore(memory, embed_model=...)"
                )
        is_its = self.theirs is not None or self.model_there == embedder.identity
        if self.theirs is None and self.model_there is None:
            is_its = embedder.embed_query("how long is a vector?").shape[0] == len(nodes[0].embedding or [])
        return make_source(embedder) if is_its else UNKNOWN_SOURCE

    def is_own(self, model: str | None) -> bool:
        """Tell whether vectors of a model can be compared with those of the memory's chunks; None: nodes have none."""
        model_asked = model or (self.theirs.identity if self.theirs is not None else None)
        return self.own is not None and model_asked in {None, self.own.identity}

    def get_query_model(self, query: VectorStoreQuery) -> str | None:
        """Return the identity of the model that made the vector of a query, or makes it; None if it is unknown."""
        if self.known_model is None or (self.theirs is None and query.query_embedding is not None):
            return None
        return self.known_model.identity

    def check(self, query_model: str | None) -> None:
        """Raise EmbedderError for a query by another model than the one of the vectors in the store; None passes."""
        there = self.model_there if query_model is not None else None
        if there in {None, query_model}:
            return
        if there == VectorSource.UNNAMED:
            raise EmbedderError(
                f"the nodes that are there came with vectors of a model that was not named: have {query_model!r} make "
                "them again with `reembed()` of this store, or delete those nodes and add them again"
            )
        raise EmbedderError(
            f"this search is by vectors of {query_model!r}, the nodes that are there came with some of {there!r}, and "
            f"the two cannot be compared: search with that model, "
            "OpenClawVectorStore(memory, embed_model=...), or delete those nodes and add them again"
        )


def make_source(embedder: Embedder, mode: MetadataMode = MetadataMode.EMBED) -> VectorSource:
    """Return an embedder as the source of the vectors of nodes, of their texts in this mode."""

    def make(documents: Sequence[Document]) -> Matrix:
        return embedder.embed_documents([to_node(document).get_content(mode) for document in documents])

    return VectorSource(embedder.identity, embedder.model, make)


def _is_same(vector: Vector, candidate: Any) -> bool:
    """Tell whether two vectors are those of one text by one model: of equal shape and nearly the same direction."""
    import numpy as np

    row = np.asarray(candidate, dtype=np.float64)
    return vector.shape == row.shape and float(vector @ row) >= 0.99 * float(np.linalg.norm(row))


def _list_texts(node: BaseNode) -> dict[str, MetadataMode]:
    """Return the texts of a node that may have been embedded, each once, with the mode that makes it."""
    texts = {node.get_content(mode): mode for mode in (MetadataMode.NONE, MetadataMode.EMBED)}
    return {text: texts[text] for text in reversed(texts) if text.strip()}
