"""Which items and namespaces of a LangGraph store match: filters with operators, prefixes and suffixes (pure)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from openclaw_memory.errors import QueryError

if TYPE_CHECKING:
    from langgraph.store.base import ListNamespacesOp, MatchCondition

_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value passes a filter. All of its entries must hold; a key that is not there is None.

    Raises:
        QueryError: the filter has an operator that is none of `$eq $ne $gt $gte $lt $lte`, or compares with no number.
    """
    return all(_equals(value.get(key), expected) for key, expected in (wanted or {}).items())


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, dict) and all(_equals(value.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(wanted)
            and all(_equals(part, expected) for part, expected in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name in {"$eq", "$ne"}:
        return (value == operand) is (name == "$eq")
    if name not in _ORDERS:
        raise QueryError(f"the filter's operator {name!r} is unknown: use $eq, $ne, $gt, $gte, $lt or $lte")
    limit = _number(operand)
    if limit is None:
        raise QueryError(f"the filter's {name} compares numbers, and {operand!r} is none")
    number = _number(value)
    # An item without a number there is neither above nor below: as SQL's NULL, it does not match.
    return number is not None and _ORDERS[name](number, limit)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def namespaces_of(namespaces: Iterable[tuple[str, ...]], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """The namespaces that an operation asks for: those that match, cut to its depth, each once, sorted, its page.

    Raises:
        QueryError: a condition is neither `prefix` nor `suffix`.
    """
    found = {
        namespace[: op.max_depth]
        for namespace in namespaces
        if all(_matches(namespace, condition) for condition in op.match_conditions or ())
    }
    return sorted(found)[op.offset : op.offset + op.limit]


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in {"prefix", "suffix"}:
        raise QueryError(f"namespaces match by 'prefix' or 'suffix', not by {condition.match_type!r}")
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))
