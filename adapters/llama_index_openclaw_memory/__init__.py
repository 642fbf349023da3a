"""Memory for LlamaIndex: importing this package needs the `llama-index` extra."""

from importlib.util import find_spec

from openclaw_memory.errors import MissingExtraError

__all__: list[str] = []

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingExtraError(
        'llama_index_openclaw_memory needs LlamaIndex: pip install "openclaw-memory-index[llama-index]"'
    )
