"""Embedders: those that ship, those of services and frameworks, and what a provider of your own is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names
from openclaw_memory.embeddings.registry import (
    from_callable,
    load_embedder,
)

if TYPE_CHECKING:
    from openclaw_memory.embeddings.framework import FrameworkEmbedder
    from openclaw_memory.embeddings.remote.http import http_client
    from openclaw_memory.embeddings.remote.service import Limits, RetryPolicy, Service
    from openclaw_memory.embeddings.selection import unguarded

__all__ = [
    "FrameworkEmbedder",
    "Limits",
    "RetryPolicy",
    "Service",
    "from_callable",
    "http_client",
    "load_embedder",
    "unguarded",
]

_LATE = {
    "selection": ("unguarded",),
    "framework": ("FrameworkEmbedder",),
    "remote.http": ("http_client",),
    "remote.service": ("Limits", "RetryPolicy", "Service"),
}

__getattr__, __dir__ = late_names(__name__, _LATE, __all__)
