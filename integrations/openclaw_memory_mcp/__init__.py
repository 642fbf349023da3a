"""Serve a memory over the Model Context Protocol: tools, resources and prompts for any client.

Importing this package needs the `mcp` extra. `openclaw-memory mcp` runs it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import MissingExtraError

__all__ = ["MemoryServer", "serve_http", "serve_stdio"]

if find_spec("mcp") is None:
    raise MissingExtraError(
        'openclaw_memory_mcp needs the MCP SDK: pip install ".[mcp]" in a checkout of openclaw_memory'
    )

if TYPE_CHECKING:
    from openclaw_memory_mcp.server import MemoryServer
    from openclaw_memory_mcp.transports import serve_http, serve_stdio

# Where each public name lives: a name is imported when it is first asked for, so that a program pays for what it uses.
_MODULES = {"server": ("MemoryServer",), "transports": ("serve_http", "serve_stdio")}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
