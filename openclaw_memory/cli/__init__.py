"""The command `openclaw-memory`."""

from openclaw_memory.cli.app import main

__all__ = ["main"]
