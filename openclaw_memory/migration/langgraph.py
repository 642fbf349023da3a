"""Plan for items of a LangGraph store, from JSON or from rows of its database (pure)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from openclaw_memory.documents.item_files import MAX_DEPTH, is_too_deep
from openclaw_memory.types.migration import LeftOut, MigrationPlan, PlacedItem

NAMES = frozenset({"namespace", "key", "value"})  # what every item has


class Row(NamedTuple):
    """A row of the table `store`: namespace with periods, key, value as JSON, and times as text, "" for none."""

    prefix: str
    key: str
    value: str
    created_at: str
    updated_at: str
    expires_at: str


def plan(data: Any, now: datetime.datetime) -> MigrationPlan:
    """Plan for items as JSON, in lists and objects of any shape: each is an object with namespace, key and value.

    Args:
        data: What was dumped, such as `[item.dict() for item in store.search((), limit=1_000_000)]`.
        now: The time of items that have none.
    """
    return _plan(_found(data, "", now))


def plan_rows(rows: Iterable[Row], now: datetime.datetime) -> MigrationPlan:
    """Plan for the rows of a `SqliteStore`.

    Args:
        rows: The rows.
        now: Items whose time has expired by then are left out.
    """
    return _plan(_of_row(number, row, now) for number, row in enumerate(rows, 1))


def _plan(found: Iterable[PlacedItem | LeftOut]) -> MigrationPlan:
    """Return the plan for items. Where two have one name, the second is left out."""
    known: dict[tuple[tuple[str, ...], str], PlacedItem] = {}
    left_out: list[LeftOut] = []
    for one in found:
        if isinstance(one, LeftOut):
            left_out.append(one)
        elif known.setdefault((one.namespace, one.key), one).value != one.value:
            left_out.append(LeftOut(one.place, "an item before it has the same namespace and key, and another value"))
    return MigrationPlan("langgraph", items=tuple(known.values()), left_out=tuple(left_out))


def _found(data: Any, place: str, now: datetime.datetime) -> Iterator[PlacedItem | LeftOut]:
    waiting = [(place, data)]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, Mapping) and one.keys() >= NAMES:
            yield _item(place or "the item", one, now)
        elif isinstance(one, Mapping):
            waiting += reversed([(f"{place}.{name}".lstrip("."), inner) for name, inner in one.items()])
        elif isinstance(one, list):
            waiting += reversed([(f"{place}[{at}]", inner) for at, inner in enumerate(one)])
        elif one is not None and place.endswith("]"):  # a name next to the items is a count or a cursor
            yield LeftOut(place, "it is no item: it has no namespace, key and value")


def _of_row(number: int, row: Row, now: datetime.datetime) -> PlacedItem | LeftOut:
    place = f"row {number}"
    try:
        item = {"namespace": row.prefix.split("."), "key": row.key, "value": json.loads(row.value)}
    except (ValueError, TypeError, RecursionError) as error:
        return LeftOut(place, f"its value is no JSON ({error})")
    expires_at = moment_in(row.expires_at)
    if expires_at is not None and expires_at <= now:
        return LeftOut(place, f"it expired at {row.expires_at}")
    return _item(place, {**item, "created_at": row.created_at, "updated_at": row.updated_at}, now, expires_at)


def moment_in(written: object) -> datetime.datetime | None:
    """Return a point in time that is written as text, in UTC where it has no zone; None where it is something else.

    Args:
        written: The text, or what is in its place.
    """
    try:
        moment = datetime.datetime.fromisoformat(str(written))
        return moment.astimezone(datetime.UTC) if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        return None


def _item(
    place: str, item: Mapping[str, Any], now: datetime.datetime, expires_at: datetime.datetime | None = None
) -> PlacedItem | LeftOut:
    namespace, key, value = item["namespace"], item["key"], item["value"]
    labels = namespace.split(".") if isinstance(namespace, str) else namespace
    if not isinstance(labels, list) or not isinstance(key, str | int) or not isinstance(value, Mapping):
        return LeftOut(place, "namespace must be a list, key a text, and value an object")
    names = tuple(map(str, labels))
    if not names or not all(names) or any("." in name for name in names):
        return LeftOut(place, "a namespace has at least one label, and none of them is empty or has a period")
    if is_too_deep(value):
        return LeftOut(place, f"its value is nested deeper than {MAX_DEPTH} levels")
    created_at = moment_in(item.get("created_at")) or now
    updated_at = moment_in(item.get("updated_at")) or created_at
    return PlacedItem(place, names, str(key), value, created_at, updated_at, expires_at)
