"""The memory that a part is given: checked where the part is made."""

from __future__ import annotations

from typing import Any

from openclaw_memory import Memory
from openclaw_memory.errors import ConfigError


def checked_memory(memory: Any) -> Memory:
    """The memory, where it is one.

    Raises:
        ConfigError: it is something else, such as the path of its folder.
    """
    if not isinstance(memory, Memory):
        raise ConfigError(f"memory must be a Memory, not {memory!r:.80}: open one with Memory.open(folder)")
    return memory
