"""OpenClaw's memory for LlamaIndex: a vector store, a retriever, embeddings, tools, and a memory block that flushes.

Importing this package needs the `llama-index` extra.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import MissingExtraError

__all__ = [
    "IntentBlock",
    "LlamaIndexEmbedder",
    "MemoryFlushEventHandler",
    "OpenClawEmbedding",
    "OpenClawMemoryBlock",
    "OpenClawRetriever",
    "OpenClawToolSpec",
    "OpenClawVectorStore",
    "SessionStartBlock",
    "memory_tools",
    "resume_messages",
    "save_snapshot",
]

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingExtraError(
        'llama_index_openclaw_memory needs LlamaIndex: pip install ".[llama-index]" in a checkout of openclaw_memory'
    )

if TYPE_CHECKING:
    from llama_index_openclaw_memory.embeddings import LlamaIndexEmbedder, OpenClawEmbedding
    from llama_index_openclaw_memory.event_handler import MemoryFlushEventHandler
    from llama_index_openclaw_memory.intent import IntentBlock
    from llama_index_openclaw_memory.memory_block import OpenClawMemoryBlock
    from llama_index_openclaw_memory.resuming import resume_messages, save_snapshot
    from llama_index_openclaw_memory.retriever import OpenClawRetriever
    from llama_index_openclaw_memory.session_start import SessionStartBlock
    from llama_index_openclaw_memory.tools import OpenClawToolSpec, memory_tools
    from llama_index_openclaw_memory.vectorstore import OpenClawVectorStore

# Where each public name lives: a name is imported when it is first asked for, so that a program pays for what it uses.
_MODULES = {
    "memory_block": ("OpenClawMemoryBlock",),
    "embeddings": ("LlamaIndexEmbedder", "OpenClawEmbedding"),
    "event_handler": ("MemoryFlushEventHandler",),
    "intent": ("IntentBlock",),
    "resuming": ("resume_messages", "save_snapshot"),
    "retriever": ("OpenClawRetriever",),
    "session_start": ("SessionStartBlock",),
    "tools": ("OpenClawToolSpec", "memory_tools"),
    "vectorstore": ("OpenClawVectorStore",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
