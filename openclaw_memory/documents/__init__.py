"""The documents that a framework adds to a memory, filters of their metadata, their vectors, and files of items."""

from typing import TYPE_CHECKING

import lazy_loader

from openclaw_memory.documents import item_files
from openclaw_memory.text.front_matter import UNNAMED

if TYPE_CHECKING:
    from openclaw_memory.documents.collection import Documents
    from openclaw_memory.documents.filters import matching
    from openclaw_memory.documents.validation import is_same

__all__ = ["UNNAMED", "Documents", "is_same", "item_files", "matching"]

_MODULES = {"collection": ["Documents"], "filters": ["matching"], "validation": ["is_same"]}

__getattr__, __dir__ = lazy_loader.attach(__name__, submod_attrs=_MODULES)[0], __all__.copy
