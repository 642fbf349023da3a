"""Middleware for `create_agent`: show a memory to an agent, and save its conversation."""

from langchain_openclaw_memory.middleware.intent import OpenClawIntentMiddleware
from langchain_openclaw_memory.middleware.recall import OpenClawRecallMiddleware
from langchain_openclaw_memory.middleware.session_start import OpenClawSessionStartMiddleware
from langchain_openclaw_memory.middleware.summarization import OpenClawSummarizationMiddleware
from langchain_openclaw_memory.middleware.transcript import OpenClawTranscriptMiddleware

__all__ = [
    "OpenClawIntentMiddleware",
    "OpenClawRecallMiddleware",
    "OpenClawSessionStartMiddleware",
    "OpenClawSummarizationMiddleware",
    "OpenClawTranscriptMiddleware",
]
