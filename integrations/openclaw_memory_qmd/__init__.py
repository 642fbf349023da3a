"""Answer searches with QMD, a program of its own, and with the built-in engine where QMD fails."""

from openclaw_memory_qmd.backend import QmdBackend
from openclaw_memory_qmd.settings import QmdSettings

__all__ = ["QmdBackend", "QmdSettings"]
