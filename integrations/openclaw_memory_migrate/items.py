"""Read the id and the text of an item (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any


def id_of(given: object, prefix: str, *of: object) -> str:
    """Return an id as text; where there is none, one made of what the item says, so that it stays the same.

    Args:
        given: The id in the file.
        prefix: What an id that is made begins with.
        of: What the item says.
    """
    if isinstance(given, str | int) and not isinstance(given, bool) and str(given).strip():
        return str(given)
    return f"{prefix}-{sha256(json.dumps(of, default=str).encode()).hexdigest()[:16]}"


def text_in(value: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the first text that the value has under one of these names; None if there is none."""
    return next((value[name] for name in names if isinstance(value.get(name), str) and value[name].strip()), None)
