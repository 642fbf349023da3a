"""OpenClaw's memory for LlamaIndex: a vector store, a retriever, embeddings, tools, and a memory block that flushes.

Importing this package needs the `llama-index` extra.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names
from openclaw_memory.errors import MissingExtraError

__all__ = [
    "LlamaIndexEmbedder",
    "MemoryFlushEventHandler",
    "OpenClawEmbedding",
    "OpenClawMemoryBlock",
    "OpenClawRetriever",
    "OpenClawToolSpec",
    "OpenClawVectorStore",
    "memory_tools",
]

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingExtraError(
        'llama_index_openclaw_memory needs LlamaIndex: pip install "openclaw-memory-index[llama-index]"'
    )

if TYPE_CHECKING:
    from llama_index_openclaw_memory.embeddings import LlamaIndexEmbedder, OpenClawEmbedding
    from llama_index_openclaw_memory.event_handler import MemoryFlushEventHandler
    from llama_index_openclaw_memory.memory_block import OpenClawMemoryBlock
    from llama_index_openclaw_memory.retriever import OpenClawRetriever
    from llama_index_openclaw_memory.tools import OpenClawToolSpec, memory_tools
    from llama_index_openclaw_memory.vectorstore import OpenClawVectorStore

# Where each public name lives: a name is imported when it is first asked for, so that a program pays for what it uses.
_MODULES = {
    "memory_block": ("OpenClawMemoryBlock",),
    "embeddings": ("LlamaIndexEmbedder", "OpenClawEmbedding"),
    "event_handler": ("MemoryFlushEventHandler",),
    "retriever": ("OpenClawRetriever",),
    "tools": ("OpenClawToolSpec", "memory_tools"),
    "vectorstore": ("OpenClawVectorStore",),
}

__getattr__, __dir__ = late_names(__name__, _MODULES, __all__)
