"""Define the engine that answers searches, and the built-in one."""

from openclaw_memory.backends.protocol import Backend

__all__ = ["Backend"]
