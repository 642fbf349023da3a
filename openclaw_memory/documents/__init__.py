"""The documents that a framework adds to a memory."""

from openclaw_memory.documents.collection import Documents

__all__ = ["Documents"]
