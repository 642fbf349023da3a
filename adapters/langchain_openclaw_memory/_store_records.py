"""Convert records to items of a LangGraph store, and puts to observations.

The namespace of a record is `("records", type)`, or `("records", type, user)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from langgraph.store.base import Item, PutOp

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.records import Record, RecordSource

RECORDS = "records"

_FIELDS = ("value", "confidence", "source", "sensitivity", "ttl", "version")
# The library says these of a record. They come back from a caller who changes what was read, and count for nothing.
_READ_ONLY = (
    *("memory_id", "user_id", "type", "key", "last_confirmed_at", "embedding_ref", "created_at", "updated_at"),
    *("expires_at", "waiting"),
)
_SAME_CONFIDENCE = 0.005  # that of a preference falls while its reader thinks


class Name(NamedTuple):
    """Name the type and the user of records."""

    type: Any
    user_id: str | None


def parse_namespace(namespace: tuple[str, ...]) -> Name | None:
    """Return type and user of the records of a namespace, which may be unknown to the memory; None for another one."""
    if len(namespace) not in {2, 3} or namespace[0] != RECORDS:
        return None
    return Name(namespace[1], namespace[2] if len(namespace) == 3 else None)


def get_namespace(record: Record) -> tuple[str, ...]:
    """Return the namespace of a record."""
    return (RECORDS, record.type) if record.user_id is None else (RECORDS, record.type, record.user_id)


def to_item(record: Record) -> Item:
    """Return a record as an item, with its fields and the values that wait."""
    expires = record.expires_at
    value = {
        **record.to_dict(),
        "expires_at": None if expires is None else f"{expires:%Y-%m-%dT%H:%M:%SZ}",
        "waiting": [record_waiting.to_dict() for record_waiting in record.waiting],
    }
    return Item(
        value=value,
        key=record.key,
        namespace=get_namespace(record),
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def check_put(op: PutOp) -> Name:
    """Return the type and user of the record that is put.

    Raises:
        InvalidInputError: It is no record, or the put says how to index it.
    """
    name = parse_namespace(op.namespace)
    if name is None:
        raise InvalidInputError(
            f'{op.namespace!r} is no place for an item: below {RECORDS!r} are records alone, in ("{RECORDS}", type) or '
            f'("{RECORDS}", type, user)'
        )
    if op.index is not None:
        raise InvalidInputError(
            f"index={op.index!r} cannot be told of a record, which is found by its key and its value: leave out index="
        )
    return name


def read_observation(
    op: PutOp, name: Name, stored: Record | None, session: str | None, default_ttl: float | None
) -> dict[str, Any]:
    """Return a put as the named arguments of `Records.remember`.

    What comes back as it was read says nothing new: the source, with which the observation would be late, and the
    confidence, which is that of the value that was read.

    Args:
        op: The put, whose value is a mapping.
        name: A further part of the record's name besides its key.
        stored: The record as it is shown now; None if there is none.
        session: That of the run, which is the source where none is given: to repeat itself settles nothing.
        default_ttl: The minutes of a put that names none.

    Raises:
        InvalidInputError: A field is missing, unknown or wrong.
    """
    value = op.value or {}
    if "value" not in value:
        raise InvalidInputError(f"a record is put as {{'value': ...}}, with {', '.join(_FIELDS[1:])} if you like")
    if unknown := sorted(str(field) for field in value if field not in _FIELDS and field not in _READ_ONLY):
        raise InvalidInputError(f"a record has no field {unknown[0]!r}: put {', '.join(_FIELDS)}")
    for field, expected in (("type", name.type), ("user_id", name.user_id), ("key", op.key)):
        if field in value and value[field] != expected:
            raise InvalidInputError(f"{field} is {value[field]!r}, and {expected!r} where it is put: leave it out")
    arguments: dict[str, Any] = {
        "user_id": name.user_id,
        "source": _read_source(value.get("source"), stored, session),
        "sensitivity": value.get("sensitivity"),
        "expected_version": value.get("version"),
    }
    if "confidence" in value and not _is_as_read(value, stored):
        arguments["confidence"] = value["confidence"]
    if op.ttl is not None and (op.ttl != default_ttl or "ttl" not in value):
        arguments["ttl"] = _to_seconds(op.ttl)
    elif "ttl" in value:
        arguments["ttl"] = value["ttl"]
    return arguments


def _read_source(source: Any, stored: Record | None, session: str | None) -> RecordSource:
    now = datetime.now(UTC)
    if source is None or (stored is not None and source == stored.to_dict()["source"]):
        return RecordSource("tool", session or "no session key", now)
    try:
        moment = datetime.fromisoformat(source["observed_at"]) if "observed_at" in source else now
        if isinstance(source, Mapping) and isinstance(source["ref"], str):
            return RecordSource(source["kind"], source["ref"], moment)
    except (KeyError, TypeError, ValueError):
        pass
    raise InvalidInputError(
        f"source is {source!r:.80}, not {{'kind': 'user', 'ref': 'message 7', 'observed_at': '2026-01-31T09:00:00Z'}}"
    )


def _is_as_read(value: Mapping[str, Any], stored: Record | None) -> bool:
    confidence = value["confidence"]
    return (
        stored is not None
        and value.get("memory_id") == stored.memory_id
        and isinstance(confidence, int | float)
        and math.isclose(confidence, stored.confidence, abs_tol=_SAME_CONFIDENCE)
    )


def _to_seconds(minutes: float) -> int:
    if not math.isfinite(minutes):
        raise InvalidInputError(f"the time to live of a record is a number of minutes, not {minutes!r}: leave it out")
    return max(1, round(60 * minutes))
