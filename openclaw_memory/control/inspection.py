"""List the items of a memory, filtered by kind, time, type, source and sensitivity, and sorted."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from msgspec.structs import replace

from openclaw_memory.control.contents import read_contents
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.types.control import Item, Kind
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.days import get_local_now, to_day

Order: TypeAlias = Literal["path", "date", "size", "changed"]

# Newest and largest first; ties by path.
_ORDERS: Mapping[str, Callable[[Item], Any]] = {
    "path": lambda item: item.path,
    "date": lambda item: -(item.last_date or item.changed.date()).toordinal(),
    "size": lambda item: -item.size,
    "changed": lambda item: -item.changed.timestamp(),
}


def inspect(
    workspace: Workspace,
    *,
    kind: Kind | None = None,
    since: datetime.date | str | None = None,
    until: datetime.date | str | None = None,
    type: str | None = None,  # noqa: A002 - the field's name
    source: str | None = None,
    sensitivity: str | None = None,
    sort: Order = "path",
) -> tuple[Item, ...]:
    """List the items of a memory; see `Memory.control.inspect`."""
    if kind is not None and kind not in get_args(Kind):
        raise InvalidInputError(f"kind is {kind!r}, not one of {', '.join(get_args(Kind))}")
    if sort not in _ORDERS:
        raise InvalidInputError(f"sort is {sort!r}, not one of {', '.join(_ORDERS)}")
    timezone = workspace.sessions.timezone
    first, last = to_day(since, "since", timezone), to_day(until, "until", timezone)
    zone = get_zone(workspace)

    def is_selected(item: Item) -> bool:
        changed = item.changed.astimezone(zone).date()
        return (
            kind in {None, item.kind}
            and (first is None or first <= (item.last_date or changed))
            and (last is None or (item.date or changed) <= last)
            and type in {None, item.type}
            and source in {None, item.source}
            and sensitivity in {None, item.sensitivity}
        )

    items = [_mask_item(workspace, item.item) for item in read_contents(workspace, zone)[0] if is_selected(item.item)]
    return tuple(sorted(sorted(items, key=_ORDERS["path"]), key=_ORDERS[sort]))


def _mask_item(workspace: Workspace, item: Item) -> Item:
    """Return an item with the fields that a person may have written masked by policies."""
    if not (policies := workspace.policies):
        return item
    masked = {name: policies.mask_value(getattr(item, name)) for name in ("type", "key", "source", "sensitivity")}
    return replace(item, **masked)


def get_zone(workspace: Workspace) -> datetime.tzinfo | None:
    """Return the zone of the journal's days; None for the machine's, which may change with the season.

    Args:
        workspace: The files, and the settings of the journal.

    Raises:
        ConfigError: The time zone is unknown.
    """
    return get_local_now(workspace.sessions.timezone).tzinfo if workspace.sessions.timezone else None
