"""A part with a memory that is open is shared by whoever copies the part, like the memory itself."""

from __future__ import annotations

from typing import TypeVar

_Part = TypeVar("_Part")


def itself(part: _Part, _memo: object) -> _Part:
    """As `__deepcopy__`, for frameworks that copy their parts."""
    return part
