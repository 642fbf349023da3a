"""The memory that a part is given: checked, and shared by whoever copies the part."""

from __future__ import annotations

from typing import Any, TypeVar

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError

_Part = TypeVar("_Part")


def checked_memory(memory: Any) -> Memory:
    """The memory, where it is one.

    Raises:
        ConfigError: it is something else, such as the path of its folder.
    """
    if not isinstance(memory, Memory):
        raise ConfigError(f"memory must be a Memory, not {memory!r:.80}: open one with Memory.open(folder)")
    return memory


def itself(part: _Part, _memo: object) -> _Part:
    """As `__deepcopy__`: a part with a memory that is open is shared, like the memory, by frameworks that copy it."""
    return part
