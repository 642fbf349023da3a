"""Markdown to chunks with true line numbers."""

from openclaw_memory.chunking.chunking import MOST_CHUNKS, STYLES, Chunker, chunk, move_down

__all__ = ["MOST_CHUNKS", "STYLES", "Chunker", "chunk", "move_down"]
