"""Read the id and the text of an item (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any


def make_id(own_id: object, prefix: str, *of: object) -> str:
    """Return an id as text, or a stable id made from the item's content if it has none."""
    if isinstance(own_id, str | int) and not isinstance(own_id, bool) and str(own_id).strip():
        return str(own_id)
    return f"{prefix}-{sha256(json.dumps(of, default=str).encode()).hexdigest()[:16]}"


def find_text(value: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Return the first text that the value has under one of these names; None if there is none."""
    return next((value[name] for name in names if isinstance(value.get(name), str) and value[name].strip()), None)
