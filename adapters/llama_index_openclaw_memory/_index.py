"""A `VectorStoreIndex` over all that is in a store."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.query_engine.retriever_query_engine import RetrieverQueryEngine
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import DEFAULT_VECTOR_STORE
from llama_index.core.vector_stores.types import VectorStoreQueryMode

from openclaw_memory.errors import ConfigError

if TYPE_CHECKING:
    from llama_index.core.vector_stores.types import BasePydanticVectorStore


@cache
def _list_arguments() -> frozenset[str]:
    """List the arguments of a retriever, and of the engines over it: LlamaIndex hands these on to it."""
    engines = (ContextChatEngine, CondenseQuestionChatEngine, CondensePlusContextChatEngine, SimpleChatEngine)
    makers = (VectorIndexRetriever, RetrieverQueryEngine.from_args, *(engine.from_defaults for engine in engines))
    return frozenset({"vector_store_kwargs"}.union(*(signature(maker).parameters for maker in makers)) - {"kwargs"})


class WholeIndex(VectorStoreIndex):
    """LlamaIndex's own keeps to the nodes it holds objects for, once one such was inserted; this one finds all.

    It searches in the mode `hybrid` where none is given.
    """

    def as_retriever(self, **kwargs: Any) -> VectorIndexRetriever:
        """Return a retriever over the whole store; `kwargs` are those of `VectorIndexRetriever`.

        Raises:
            ConfigError: Neither it nor an engine of LlamaIndex, which is made with the same ones, takes one of them.
        """
        if unknown := kwargs.keys() - _list_arguments():
            raise ConfigError(f"a retriever takes no {', '.join(sorted(unknown))}: filter with filters=MetadataFilters")
        options = {
            "callback_manager": self._callback_manager,
            "object_map": self._object_map,
            "vector_store_query_mode": VectorStoreQueryMode.HYBRID,
            **kwargs,
        }
        return VectorIndexRetriever(self, **options)


def index_over(store: BasePydanticVectorStore, context: StorageContext | None, **kwargs: Any) -> WholeIndex:
    """Make an index over a store, continuing the one index of a storage context."""
    context = context or StorageContext.from_defaults(vector_store=store)
    if context.vector_store is not store:
        context = replace(context, vector_stores={**context.vector_stores, DEFAULT_VECTOR_STORE: store})
    structs = [struct for struct in context.index_store.index_structs() if isinstance(struct, IndexDict)]
    over: dict[str, Any] = {"index_struct": structs[0]} if len(structs) == 1 else {"nodes": []}
    return WholeIndex(storage_context=context, **{**over, **kwargs})
