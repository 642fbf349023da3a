"""Show a memory in a browser on this machine: search, notes, days, records, and forgetting with its plan.

Importing this package needs the `web` extra. `openclaw-memory web` runs it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import MissingExtraError

__all__ = ["create_app", "serve"]

for _needed in ("starlette", "uvicorn", "jinja2", "markdown_it"):
    if find_spec(_needed) is None:
        raise MissingExtraError(
            f'openclaw_memory_web needs {_needed}: pip install ".[web]" in a checkout of openclaw_memory'
        )

if TYPE_CHECKING:
    from openclaw_memory_web.app import create_app
    from openclaw_memory_web.server import serve

# Where each public name lives: a name is imported when it is first asked for.
_MODULES = {"create_app": "app", "serve": "server"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
