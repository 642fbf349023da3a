"""Plan for items of a LangGraph store, from JSON or from rows of its database (pure)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from openclaw_memory.migration.items import items_plan, text_in
from openclaw_memory.types import Document
from openclaw_memory.types.migration import LeftOut, MigrationPlan, PlacedDocument

NAMES = frozenset({"namespace", "key", "value"})  # what every item has
TEXTS = ("text", "content", "memory", "data")


class Row(NamedTuple):
    """A row of the table `store`: namespace with periods, key, value as JSON, and times as text, "" for none."""

    prefix: str
    key: str
    value: str
    created_at: str
    updated_at: str
    expires_at: str


def plan(data: Any) -> MigrationPlan:
    """Plan for items as JSON, in lists and objects of any shape: each is an object with namespace, key and value.

    Args:
        data: What was dumped, such as `[item.dict() for item in store.search(())]`.
    """
    return items_plan("langgraph", _found(data, ""))


def plan_rows(rows: Iterable[Row], now: datetime.datetime) -> MigrationPlan:
    """Plan for the rows of a `SqliteStore`.

    Args:
        rows: The rows.
        now: Items whose time has expired by then are left out.
    """
    return items_plan("langgraph", (_of_row(number, row, now) for number, row in enumerate(rows, 1)))


def _found(data: Any, place: str) -> Iterator[PlacedDocument | LeftOut]:
    waiting = [(place, data)]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, Mapping) and one.keys() >= NAMES:
            yield _item(place or "the item", one)
        elif isinstance(one, Mapping):
            waiting += reversed([(f"{place}.{name}".lstrip("."), inner) for name, inner in one.items()])
        elif isinstance(one, list):
            waiting += reversed([(f"{place}[{at}]", inner) for at, inner in enumerate(one)])
        elif one is not None and place.endswith("]"):  # a name next to the items is a count or a cursor
            yield LeftOut(place, "it is no item: it has no namespace, key and value")


def _of_row(number: int, row: Row, now: datetime.datetime) -> PlacedDocument | LeftOut:
    place = f"row {number}"
    try:
        item = {"namespace": row.prefix.split("."), "key": row.key, "value": json.loads(row.value)}
    except (ValueError, TypeError, RecursionError) as error:
        return LeftOut(place, f"its value is no JSON ({error})")
    if (moment := _moment(row.expires_at)) is not None and moment <= now:
        return LeftOut(place, f"it expired at {row.expires_at}")
    return _item(place, {**item, "created_at": row.created_at, "updated_at": row.updated_at})


def _moment(written: str) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _item(place: str, item: Mapping[str, Any]) -> PlacedDocument | LeftOut:
    namespace, key, value = item["namespace"], item["key"], item["value"]
    labels = namespace.split(".") if isinstance(namespace, str) else namespace
    if not isinstance(labels, list) or not isinstance(key, str | int) or not isinstance(value, Mapping):
        return LeftOut(place, "namespace must be a list, key a text, and value an object")
    inner = value.get("content")
    text = text_in(value, TEXTS) or (text_in(inner, TEXTS) if isinstance(inner, Mapping) else None)  # LangMem nests it
    times = {name: item[name] for name in ("created_at", "updated_at") if item.get(name)}
    metadata = {"source": "langgraph", "namespace": [*map(str, labels)], "key": str(key), **times}
    if text is None or {**value} != {"text": text}:
        metadata["value"] = {**value}
    doc_id = ":".join(("langgraph", *map(str, labels), str(key)))
    written = text if text is not None else "\n".join(_lines(value)) if value else ""
    return PlacedDocument(place, Document(doc_id, written, metadata))


def _lines(value: Mapping[str, Any]) -> Iterator[str]:
    for name, inner in value.items():
        yield f"- {name}: {inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)}"
