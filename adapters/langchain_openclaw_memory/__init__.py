"""Memory for LangChain: importing this package needs the `langchain` extra."""

from importlib.util import find_spec

from openclaw_memory.errors import MissingExtraError

__all__: list[str] = []

if find_spec("langchain_core") is None:
    raise MissingExtraError('langchain_openclaw_memory needs LangChain: pip install "openclaw-memory-index[langchain]"')
