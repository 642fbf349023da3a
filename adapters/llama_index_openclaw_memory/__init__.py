"""OpenClaw's memory for LlamaIndex: a vector store, a retriever, embeddings, tools, and a memory block that flushes.

Importing this package needs the `llama-index` extra.
"""

from importlib.util import find_spec

import lazy_loader

from openclaw_memory.errors import MissingExtraError

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingExtraError(
        'llama_index_openclaw_memory needs LlamaIndex: pip install ".[llama-index]" in its checkout'
    )

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
