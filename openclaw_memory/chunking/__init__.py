"""Markdown to chunks with true line numbers."""

from openclaw_memory.chunking.chunking import STYLES, Chunker, chunk, moved_down

__all__ = ["STYLES", "Chunker", "chunk", "moved_down"]
