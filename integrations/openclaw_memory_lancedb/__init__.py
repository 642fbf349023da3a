"""Entries of a memory with vectors of their own in LanceDB; the text of each is a Markdown document of the memory.

Importing this package loads nothing of LanceDB; `LanceEntries` needs the `lancedb` extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["CATEGORIES", "Category", "LanceEntries", "MemoryEntry"]

if TYPE_CHECKING:
    from openclaw_memory_lancedb.collection import LanceEntries
    from openclaw_memory_lancedb.entries import CATEGORIES, Category, MemoryEntry

# Where each public name lives: a name is imported when it is first asked for, so that a program pays for what it uses.
_MODULES = {"collection": ("LanceEntries",), "entries": ("CATEGORIES", "Category", "MemoryEntry")}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
