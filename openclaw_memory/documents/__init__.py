"""The documents that a framework adds to a memory, filters of their metadata, their vectors, and files of items."""

from typing import TYPE_CHECKING

import lazy_loader

from openclaw_memory.documents import item_files

if TYPE_CHECKING:
    from openclaw_memory.documents.collection import Documents
    from openclaw_memory.documents.conversion import is_same
    from openclaw_memory.documents.filters import compile_filter

__all__ = ["Documents", "compile_filter", "is_same", "item_files"]

_MODULES = {"conversion": ["is_same"], "collection": ["Documents"], "filters": ["compile_filter"]}

__getattr__, __dir__ = lazy_loader.attach(__name__, submod_attrs=_MODULES)[0], __all__.copy
