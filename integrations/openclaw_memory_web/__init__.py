"""Show a memory in a browser on this machine: search, notes, days, records, and forgetting with its plan.

Importing this package needs the `web` extra. `openclaw-memory web` runs it.
"""

from importlib.util import find_spec

import lazy_loader

from openclaw_memory.errors import MissingExtraError

for _needed in ("starlette", "uvicorn", "jinja2", "markdown_it"):
    if find_spec(_needed) is None:
        raise MissingExtraError(f'openclaw_memory_web needs {_needed}: pip install ".[web]" in its checkout')

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
