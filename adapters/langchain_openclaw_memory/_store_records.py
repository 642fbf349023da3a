"""Show the records of a memory as items of a LangGraph store, and read what a put observes.

The namespace of a record is `("records", type)`, or `("records", type, user)`; besides them, only items of an earlier
time are below `records`.
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

_GIVEN = ("value", "confidence", "source", "sensitivity", "ttl", "version")
# The library says these of a record. They come back from a caller who changes what was read, and count for nothing.
_SAID = (
    *("memory_id", "user_id", "type", "key", "last_confirmed_at", "embedding_ref", "created_at", "updated_at"),
    *("expires_at", "waiting"),
)
_SAME_CONFIDENCE = 0.005  # that of a preference falls while its reader thinks


class Name(NamedTuple):
    """What names a record besides its key."""

    type: Any
    user_id: str | None


def name_of(namespace: tuple[str, ...]) -> Name | None:
    """Return type and user of the records of a namespace, which may be unknown to the memory; None for another one."""
    if len(namespace) not in {2, 3} or namespace[0] != RECORDS:
        return None
    return Name(namespace[1], namespace[2] if len(namespace) == 3 else None)


def namespace_of(record: Record) -> tuple[str, ...]:
    """Return the namespace of a record."""
    return (RECORDS, record.type) if record.user_id is None else (RECORDS, record.type, record.user_id)


def item_of(record: Record) -> Item:
    """Return the item of a record, whose value is its fields, and what waits."""
    expires = record.expires_at
    value = {
        **record.to_dict(),
        "expires_at": None if expires is None else f"{expires:%Y-%m-%dT%H:%M:%SZ}",
        "waiting": [one.to_dict() for one in record.waiting],
    }
    return Item(
        value=value,
        key=record.key,
        namespace=namespace_of(record),
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def check_put(op: PutOp) -> Name:
    """Return the type and user of the record that is put.

    Raises:
        InvalidInputError: It is no record, or the put says how to index it.
    """
    name = name_of(op.namespace)
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


def observed(
    op: PutOp, name: Name, stored: Record | None, session: str | None, default_ttl: float | None
) -> dict[str, Any]:
    """Return what a put observes, as the named arguments of `Records.remember`.

    What comes back as it was read says nothing new: the source, with which the observation would be late, and the
    confidence, which is that of the value that was read.

    Args:
        op: The put, whose value is a mapping.
        name: What names the record besides its key.
        stored: The record as it is shown now; None if there is none.
        session: That of the run, which is the source where none is given: to repeat itself settles nothing.
        default_ttl: The minutes of a put that names none.

    Raises:
        InvalidInputError: A field is missing, unknown or wrong.
    """
    said = op.value or {}
    if "value" not in said:
        raise InvalidInputError(f"a record is put as {{'value': ...}}, with {', '.join(_GIVEN[1:])} if you like")
    if unknown := sorted(str(field) for field in said if field not in _GIVEN and field not in _SAID):
        raise InvalidInputError(f"a record has no field {unknown[0]!r}: put {', '.join(_GIVEN)}")
    for field, named in (("type", name.type), ("user_id", name.user_id), ("key", op.key)):
        if field in said and said[field] != named:
            raise InvalidInputError(f"{field} is {said[field]!r}, and {named!r} where it is put: leave it out")
    given: dict[str, Any] = {
        "user_id": name.user_id,
        "source": _source(said.get("source"), stored, session),
        "sensitivity": said.get("sensitivity"),
        "expected_version": said.get("version"),
    }
    if "confidence" in said and not _is_as_read(said, stored):
        given["confidence"] = said["confidence"]
    if op.ttl is not None and (op.ttl != default_ttl or "ttl" not in said):
        given["ttl"] = _seconds(op.ttl)
    elif "ttl" in said:
        given["ttl"] = said["ttl"]
    return given


def _source(given: Any, stored: Record | None, session: str | None) -> RecordSource:
    now = datetime.now(UTC)
    if given is None or (stored is not None and given == stored.to_dict()["source"]):
        return RecordSource("tool", session or "no session key", now)
    try:
        moment = datetime.fromisoformat(given["observed_at"]) if "observed_at" in given else now
        if isinstance(given, Mapping) and isinstance(given["ref"], str):
            return RecordSource(given["kind"], given["ref"], moment)
    except (KeyError, TypeError, ValueError):
        pass
    raise InvalidInputError(
        f"source is {given!r:.80}, not {{'kind': 'user', 'ref': 'message 7', 'observed_at': '2026-01-31T09:00:00Z'}}"
    )


def _is_as_read(said: Mapping[str, Any], stored: Record | None) -> bool:
    confidence = said["confidence"]
    return (
        stored is not None
        and said.get("memory_id") == stored.memory_id
        and isinstance(confidence, int | float)
        and math.isclose(confidence, stored.confidence, abs_tol=_SAME_CONFIDENCE)
    )


def _seconds(minutes: float) -> int:
    if not math.isfinite(minutes):
        raise InvalidInputError(f"the time to live of a record is a number of minutes, not {minutes!r}: leave it out")
    return max(1, round(60 * minutes))
