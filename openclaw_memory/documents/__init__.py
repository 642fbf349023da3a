"""The documents that a framework adds to a memory, filters of their metadata, their vectors, and files of items."""

from typing import TYPE_CHECKING

import lazy_loader

from openclaw_memory.documents import item_files

if TYPE_CHECKING:
    from openclaw_memory.documents.collection import Documents

__all__ = ["Documents", "item_files"]

__getattr__, __dir__ = lazy_loader.attach(__name__, submod_attrs={"collection": ["Documents"]})[0], __all__.copy
