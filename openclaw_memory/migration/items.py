"""What the formats of items with ids share: the plan of their documents (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from openclaw_memory.types.migration import Format, LeftOut, MigrationPlan, PlacedDocument


def items_plan(
    format_: Format, found: Iterable[PlacedDocument | LeftOut], notices: tuple[str, ...] = ()
) -> MigrationPlan:
    """Return the plan for items. Where two have one id, the second is left out, and so is one without a text.

    Args:
        format_: The format.
        found: The items, in their order.
        notices: What a person should know besides.
    """
    known: dict[str, str] = {}
    documents: list[PlacedDocument] = []
    left_out: list[LeftOut] = []
    for one in found:
        if isinstance(one, LeftOut):
            left_out.append(one)
            continue
        document, place = one.document, one.place
        if not document.text.strip():
            left_out.append(LeftOut(place, "it has no text"))
        elif known.get(document.id, document.text) != document.text:
            left_out.append(LeftOut(place, "an item before it has the same id, and another text"))
        elif document.id not in known:
            known[document.id] = document.text
            documents.append(one)
    return MigrationPlan(format_, documents=tuple(documents), left_out=tuple(left_out), notices=notices)


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
