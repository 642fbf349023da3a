"""Which model made the vectors of nodes, which one makes new ones, and which may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_openclaw_memory._nodes import node_of
from llama_index_openclaw_memory.embeddings import LlamaIndexEmbedder, OpenClawEmbedding
from openclaw_memory.errors import ConfigError, EmbedderError
from openclaw_memory.types import Document, Embedder, VectorSource

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.vector_stores.types import VectorStoreQuery

    from openclaw_memory import Memory
    from openclaw_memory.documents import Documents
    from openclaw_memory.types import Matrix

# The source of vectors whose model is unknown: they are in the index alone, and made again once it is named.
UNKNOWN_SOURCE = VectorSource("given", "given")
# Two vectors of one text by one model are as like as this, whatever rounding and batches do to them.
_SAME = 0.99


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
        return self.memory.documents.collection(self.collection)

    def embedding(self) -> BaseEmbedding:
        """Return the model that makes vectors, as an embedding of LlamaIndex.

        Raises:
            ConfigError: The memory searches by keywords alone.
            EmbedderError: The memory's embedder is not available.
        """
        return OpenClawEmbedding(self._named_or_own()) if self.theirs is None else self.theirs.embed_model

    def source(self) -> VectorSource:
        """Return the model that makes vectors.

        Raises:
            ConfigError, EmbedderError: As `embedding`.
        """
        return source_by(self._named_or_own())

    def identity(self) -> str | None:
        """Return the identity of the model that makes vectors; None if there is no model, or it is not available."""
        embedder = self.theirs or self._own()
        return None if embedder is None else embedder.identity

    def source_for_new(self) -> VectorSource | None:
        """Return a source of vectors that can be compared with those in the store; None if there is no such model.

        Raises:
            EmbedderError: The memory's embedder is not available.
        """
        embedder = self.theirs or self.memory.embedder
        if embedder is None or self.model_there not in {None, embedder.identity}:
            return None
        return source_by(embedder)

    @cached_property
    def model_there(self) -> str | None:
        """The model whose vectors the nodes came with, read once a call; None if they came with none."""
        embedder = self.theirs or self._own()
        if embedder is None:
            return self.documents.vector_identity()
        # The source that makes lost vectors again comes before the search that would miss them.
        source = source_by(embedder)
        there = self.documents.vector_identity(source)
        if there != UNKNOWN_SOURCE.identity:
            return there
        try:
            is_it = self.documents.adopt(source, source_by(embedder, MetadataMode.NONE))
        except EmbedderError:
            if self.theirs is not None:
                raise
            return there
        return self.documents.vector_identity() if is_it else there

    def of_nodes(self, nodes: Sequence[BaseNode]) -> VectorSource:
        """Return the source of the embeddings that nodes come with: `UNKNOWN_SOURCE` if no known model made them.

        The first node that has a text and a vector other than zeros is embedded again and compared. Without such a
        node, the source is the model that was named, or the memory's own if the dimensions are the same.

        Raises:
            EmbedderError: The embedder failed, or is named and makes other vectors.
        """
        embedder = self.theirs or self._own()
        if embedder is None:
            return UNKNOWN_SOURCE
        sample = next((one for one in nodes if any(one.embedding or []) and _texts_of(one)), None)
        if sample is not None:
            made_by = _compared(sample, embedder)
            if made_by is UNKNOWN_SOURCE and self.theirs is not None:
                raise EmbedderError(
                    f"node {sample.node_id!r} came with a vector that {self.theirs.identity!r}, which this store "
                    "names, does not make of its text: embed with store.embedding, as store.as_index() does, or name "
                    "what made it: OpenClawVectorStore(memory, embed_model=...)"
                )
            _ = made_by is not UNKNOWN_SOURCE and self.model_there  # vectors whose model was not named may be of it too
            return made_by
        is_own = self.theirs is not None or self.model_there == embedder.identity
        if self.theirs is None and self.model_there is None:
            is_own = embedder.embed_query("how long is a vector?").shape[0] == len(nodes[0].embedding or [])
        return source_by(embedder) if is_own else UNKNOWN_SOURCE

    def is_own(self, model: str | None) -> bool:
        """Whether vectors of a model (None: nodes have none) can be compared with those of the memory's chunks."""
        asked = model or (self.theirs.identity if self.theirs is not None else None)
        embedder = self._own()
        return embedder is not None and asked in {None, embedder.identity}

    def model_of(self, query: VectorStoreQuery) -> str | None:
        """Return the identity of the model that made the vector of a query; None if it is unknown."""
        return None if self.theirs is None and query.query_embedding is not None else self.identity()

    def check(self, asked: str | None) -> None:
        """Refuse a query by a model other than the one of the vectors in the store; None, an unknown model, passes.

        Raises:
            EmbedderError: It is another one.
        """
        there = self.model_there if asked is not None else None
        if there == UNKNOWN_SOURCE.identity != asked:
            raise EmbedderError(
                f"the nodes that are there came with vectors of a model that was not named, and {asked!r} does not "
                "make the same of their texts: name the one that made them, OpenClawVectorStore(memory, "
                "embed_model=...), or delete those nodes and add them again"
            )
        if there not in {None, asked}:
            raise EmbedderError(
                f"this search is by vectors of {asked!r}, the nodes that are there came with some of {there!r}, and "
                "the two cannot be compared: search with that model, OpenClawVectorStore(memory, embed_model=...), or "
                "delete those nodes and add them again"
            )

    def makes(self, vector: Sequence[float], question: str) -> bool:
        """Whether the memory's own embedder makes this vector of a question; not if it fails."""
        import numpy as np

        row, embedder = np.asarray(vector, dtype=np.float64), self._own()
        try:
            made = None if embedder is None else embedder.embed_query(question)
        except EmbedderError:
            return False
        return made is not None and made.shape == row.shape and float(made @ row) >= _SAME * float(np.linalg.norm(row))

    def _named_or_own(self) -> Embedder:
        embedder = self.theirs or self.memory.embedder
        if embedder is None:
            raise ConfigError(
                "this memory searches by keywords alone and makes no vectors: open it with an embedder, such as "
                'Memory.open(folder, embedder="static"), or name one: OpenClawVectorStore(memory, embed_model=...)'
            )
        return embedder

    def _own(self) -> Embedder | None:
        """Return the memory's own embedder; None also if it is not available, which the memory itself reports."""
        try:
            return self.memory.embedder
        except EmbedderError:
            return None


def source_by(embedder: Embedder, mode: MetadataMode = MetadataMode.EMBED) -> VectorSource:
    """Return an embedder as the source of the vectors of nodes, of their texts in this mode."""

    def make(documents: Sequence[Document]) -> Matrix:
        return embedder.embed_documents([node_of(one).get_content(mode) for one in documents])

    return VectorSource(embedder.identity, embedder.model, make)


def _texts_of(node: BaseNode) -> dict[str, MetadataMode]:
    """Return the texts of a node that may have been embedded, each once, with the mode that makes it."""
    texts: dict[str, MetadataMode] = {}
    for mode in (MetadataMode.EMBED, MetadataMode.NONE):
        texts.setdefault(node.get_content(mode), mode)
    return {text: mode for text, mode in texts.items() if text.strip()}


def _compared(node: BaseNode, embedder: Embedder) -> VectorSource:
    """Return the embedder as the source if it makes the embedding of a node from its text, or else `UNKNOWN_SOURCE`."""
    import numpy as np

    row = np.asarray(node.embedding, dtype=np.float64)
    texts = _texts_of(node)
    for mode, made in zip(texts.values(), embedder.embed_documents(list(texts)), strict=True):
        if made.shape == row.shape and float(made @ row) > _SAME * float(np.linalg.norm(row)):
            return source_by(embedder, mode)
    return UNKNOWN_SOURCE
