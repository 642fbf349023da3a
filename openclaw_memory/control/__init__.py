"""Inspect a memory as a whole, forget for good, and seal files."""

from openclaw_memory.types.control import Item

__all__ = ["Item"]
