"""The files of a memory: which of them count, how they are read safely, and how they are written."""

from openclaw_memory.workspace.scan import Scan
from openclaw_memory.workspace.workspace import Workspace

__all__ = ["Scan", "Workspace"]
