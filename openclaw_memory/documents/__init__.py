"""The documents that a framework adds to a memory, and filters of their metadata."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

if TYPE_CHECKING:
    from openclaw_memory.documents.collection import Documents
    from openclaw_memory.documents.filters import matching

__all__ = ["Documents", "matching"]

__getattr__, __dir__ = late_names(__name__, {"collection": ("Documents",), "filters": ("matching",)}, __all__)
