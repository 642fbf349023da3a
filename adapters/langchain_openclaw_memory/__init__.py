"""OpenClaw's memory for LangChain: a retriever, a vector store, tools, and middleware for agents that remember.

Importing this package needs the `langchain` extra. What works with `create_agent` or LangGraph (the middleware and the
store) needs `langchain-agents`; it is imported when it is first asked for.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import MissingExtraError

__all__ = [
    "IntentMiddleware",
    "LangChainEmbedder",
    "MemoryFlushCallback",
    "MemoryFlushMiddleware",
    "OpenClawEmbeddings",
    "OpenClawRetriever",
    "OpenClawStore",
    "OpenClawSummarizationMiddleware",
    "OpenClawToolkit",
    "OpenClawTranslator",
    "OpenClawVectorStore",
    "RecallMiddleware",
    "SessionStartMiddleware",
    "TranscriptMiddleware",
    "memory_tools",
    "resume_messages",
    "save_snapshot",
]

if find_spec("langchain_core") is None:
    raise MissingExtraError(
        'langchain_openclaw_memory needs LangChain: pip install ".[langchain]" in a checkout of openclaw_memory'
    )

if TYPE_CHECKING:
    from langchain_openclaw_memory.callback import MemoryFlushCallback
    from langchain_openclaw_memory.embeddings import LangChainEmbedder, OpenClawEmbeddings
    from langchain_openclaw_memory.intent import IntentMiddleware
    from langchain_openclaw_memory.langgraph_store import OpenClawStore
    from langchain_openclaw_memory.middleware import MemoryFlushMiddleware, OpenClawSummarizationMiddleware
    from langchain_openclaw_memory.recall import RecallMiddleware
    from langchain_openclaw_memory.resuming import resume_messages, save_snapshot
    from langchain_openclaw_memory.retriever import OpenClawRetriever
    from langchain_openclaw_memory.self_query import OpenClawTranslator
    from langchain_openclaw_memory.session_start import SessionStartMiddleware
    from langchain_openclaw_memory.tools import OpenClawToolkit, memory_tools
    from langchain_openclaw_memory.transcripts import TranscriptMiddleware
    from langchain_openclaw_memory.vectorstore import OpenClawVectorStore

# Where each public name lives: a name is imported when it is first asked for, so that a program pays for what it uses.
_MODULES = {
    "callback": ("MemoryFlushCallback",),
    "embeddings": ("LangChainEmbedder", "OpenClawEmbeddings"),
    "intent": ("IntentMiddleware",),
    "middleware": ("MemoryFlushMiddleware", "OpenClawSummarizationMiddleware"),
    "recall": ("RecallMiddleware",),
    "resuming": ("resume_messages", "save_snapshot"),
    "retriever": ("OpenClawRetriever",),
    "langgraph_store": ("OpenClawStore",),
    "self_query": ("OpenClawTranslator",),
    "session_start": ("SessionStartMiddleware",),
    "tools": ("OpenClawToolkit", "memory_tools"),
    "transcripts": ("TranscriptMiddleware",),
    "vectorstore": ("OpenClawVectorStore",),
}


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        # Its own modules import no others that an extra brings.
        if (error.name or "").partition(".")[0] not in {"langchain", "langgraph"}:
            raise
        raise MissingExtraError(
            f'{name} needs LangChain\'s agents: pip install ".[langchain-agents]" in a checkout of openclaw_memory'
        ) from error
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
