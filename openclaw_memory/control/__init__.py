"""Inspect a memory as a whole, forget for good, and seal files."""

from typing import TYPE_CHECKING

import lazy_loader

from openclaw_memory.types.control import Item

if TYPE_CHECKING:
    from openclaw_memory.control.sealing import list_sealed, reseal

__all__ = ["Item", "list_sealed", "reseal"]

_MODULES = {"sealing": ["list_sealed", "reseal"]}

__getattr__, __dir__ = lazy_loader.attach(__name__, submod_attrs=_MODULES)[0], __all__.copy
