"""The engines that answer searches: what a memory asks of one, the built-in one, QMD, and one in place of another."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = ["Backend", "FallbackBackend", "QmdBackend"]

if TYPE_CHECKING:
    from openclaw_memory.backends.fallback import FallbackBackend
    from openclaw_memory.backends.protocol import Backend
    from openclaw_memory.backends.qmd import QmdBackend

__getattr__, __dir__ = late_names(
    __name__,
    {
        "protocol": ("Backend",),
        "qmd": ("QmdBackend",),
        "fallback": ("FallbackBackend",),
    },
    __all__,
)
