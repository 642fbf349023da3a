"""OpenClaw's memory for LangChain: a retriever, a vector store, tools, and middleware for agents that remember.

Importing this package needs the `langchain` extra. What works with `create_agent` or LangGraph (the middleware and the
store) needs `langchain-agents`; it is imported when it is first asked for.
"""

from importlib.util import find_spec
from typing import Any

import lazy_loader

from openclaw_memory.errors import MissingExtraError

if find_spec("langchain_core") is None:
    raise MissingExtraError('langchain_openclaw_memory needs LangChain: pip install ".[langchain]" in its checkout')

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        # Its own modules import no others that an extra brings.
        if (error.name or "").partition(".")[0] not in {"langchain", "langgraph"}:
            raise
        raise MissingExtraError(
            f'{name} needs LangChain\'s agents: pip install ".[langchain-agents]" in its checkout'
        ) from error
