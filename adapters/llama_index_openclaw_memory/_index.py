"""A `VectorStoreIndex` over all that is in a store."""

from __future__ import annotations

from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever


class WholeIndex(VectorStoreIndex):
    """LlamaIndex's own keeps to the nodes it holds objects for, once one such was inserted; this one finds all."""

    def as_retriever(self, **kwargs: Any) -> VectorIndexRetriever:
        """A retriever over the whole store; `kwargs` are those of `VectorIndexRetriever`."""
        options = {"callback_manager": self._callback_manager, "object_map": self._object_map, **kwargs}
        return VectorIndexRetriever(self, **options)
