"""Write the items of a LangGraph store in the form that `OpenClawStore` reads; those below `records` become records."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from openclaw_memory.documents import item_files
from openclaw_memory.errors import InvalidInputError, OpenClawMemoryError
from openclaw_memory.migration.langgraph import moment_in
from openclaw_memory.records import RecordSource
from openclaw_memory.types.migration import LeftOut, MigratedFile, PlacedItem

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory

_RECORDS = "records"  # the first label of the items that are records
_DIFFERS = "is there, says something else, and was left as it is"


def write_items(
    memory: Memory, items: Sequence[PlacedItem], left_out: list[LeftOut], now: datetime, *, dry_run: bool
) -> list[MigratedFile]:
    """Write the items that are not there; return what the folder of each first label got.

    Args:
        memory: The memory.
        items: The items.
        left_out: Gets those that cannot be written, and those that are there and say something else.
        now: What is left of the time of an item counts from then.
        dry_run: Whether to write nothing.
    """
    there: list[PlacedItem] = []
    missing: list[PlacedItem] = []
    for item in items:
        try:
            is_there = _is_record(memory, item, now) if item.namespace[0] == _RECORDS else _is_file(memory, item)
        except OpenClawMemoryError as error:
            left_out.append(LeftOut(item.place, str(error)))
        else:
            (there if is_there else missing).append(item)
    if not dry_run:
        plain = [one for one in missing if one.namespace[0] != _RECORDS]
        records = [one for one in missing if one.namespace[0] == _RECORDS]
        missing = [*_put(memory, plain, left_out, now), *(one for one in records if _kept(memory, one, left_out, now))]
    added, existed = (Counter(item_files.folder_of(one.namespace[:1]) for one in some) for some in (missing, there))
    return [MigratedFile(folder, added[folder], existed[folder]) for folder in sorted(added | existed)]


def _is_file(memory: Memory, item: PlacedItem) -> bool:
    """Whether an item is there with this value.

    Raises:
        InvalidInputError: It has another one, or a person's own file is in its place.
    """
    path = item_files.path_of(item.namespace, item.key)
    found = memory.documents.files.read(path)
    if found is None and not os.path.lexists(memory.workspace.root / path):
        return False
    if found is None or not item_files.is_item(path, found[0]):
        raise InvalidInputError(f"{path} is there and holds no item: move that file")
    try:
        is_same = item_files.value_in(*found) == {**item.value}
    except (KeyError, TypeError, ValueError):
        is_same = False
    if not is_same:
        raise InvalidInputError(f"{path} {_DIFFERS}")
    return True


def _put(memory: Memory, items: Sequence[PlacedItem], left_out: list[LeftOut], now: datetime) -> list[PlacedItem]:
    """Write items, and return those that were; where one cannot be, halve what is tried, until it alone is left out."""
    try:
        memory.documents.files.write_many(_file(one, now) for one in items)
    except OpenClawMemoryError as error:
        if len(items) == 1:
            left_out.append(LeftOut(items[0].place, str(error)))
            return []
        middle = len(items) // 2
        return [*_put(memory, items[:middle], left_out, now), *_put(memory, items[middle:], left_out, now)]
    return [*items]


def _file(item: PlacedItem, now: datetime) -> tuple[str, Mapping[str, Any], str]:
    times = (item.created_at, item.updated_at)
    fields, body = item_files.file_of(item.namespace, item.key, item.value, times)
    if item.expires_at is not None:  # a time to live counts from the writing of the file, in minutes
        fields["ttl"] = (item.expires_at - now).total_seconds() / 60
    return item_files.path_of(item.namespace, item.key), fields, body


def _is_record(memory: Memory, item: PlacedItem, now: datetime) -> bool:
    """Whether a record is there with this value.

    Raises:
        InvalidInputError: It has another one, or the item is no record, or has expired.
    """
    kind, user_id = _name(item)
    stored = memory.records.get(kind, item.key, user_id=user_id)
    if stored is not None and stored.value != item.value["value"]:
        raise InvalidInputError(f"{stored.path} {_DIFFERS}")
    ends = moment_in(item.value.get("expires_at"))
    if stored is None and ends is not None and ends <= now:
        raise InvalidInputError(f"it expired at {ends.isoformat()}")
    return stored is not None


def _name(item: PlacedItem) -> tuple[Any, str | None]:
    """Return type and user of the record that an item is.

    Raises:
        InvalidInputError: It is not a record.
    """
    if len(item.namespace) not in {2, 3} or "value" not in item.value:
        raise InvalidInputError(
            f"below {_RECORDS!r} are records alone, in ('{_RECORDS}', type) or ('{_RECORDS}', type, user), and each "
            "has a `value`"
        )
    return item.namespace[1], item.namespace[2] if len(item.namespace) == 3 else None


def _kept(memory: Memory, item: PlacedItem, left_out: list[LeftOut], now: datetime) -> bool:
    """Remember the record that an item is; return whether that could be."""
    kind, user_id = _name(item)
    said = item.value
    given = {name: said[name] for name in ("confidence", "sensitivity") if name in said}
    ends = moment_in(said.get("expires_at"))
    if "ttl" in said:
        given["ttl"] = said["ttl"] if ends is None else max(1, int((ends - now).total_seconds()))
    try:
        memory.records.remember(kind, item.key, said["value"], user_id=user_id, source=_source(item), **given)
    except OpenClawMemoryError as error:
        left_out.append(LeftOut(item.place, str(error)))
        return False
    return True


def _source(item: PlacedItem) -> RecordSource:
    """Return who said what a record says; the item itself, when it was put, where the record does not name it."""
    said = item.value.get("source")
    if isinstance(said, Mapping):
        moment = moment_in(said.get("observed_at"))
        if moment is not None and isinstance(said.get("ref"), str) and isinstance(said.get("kind"), str):
            return RecordSource(said["kind"], said["ref"], moment)
    return RecordSource("file", f"{item.place} of a LangGraph store", item.updated_at)
