"""Serve a memory over the Model Context Protocol: tools, resources and prompts for any client.

Importing this package needs the `mcp` extra. `openclaw-memory mcp` runs it.
"""

from importlib.util import find_spec

import lazy_loader

from openclaw_memory.errors import MissingExtraError

if find_spec("mcp") is None:
    raise MissingExtraError('openclaw_memory_mcp needs the MCP SDK: pip install ".[mcp]" in its checkout')

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
