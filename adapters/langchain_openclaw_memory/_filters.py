"""Match values: filters with operators, for the store and the vector store, and prefixes and suffixes of namespaces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from openclaw_memory.errors import QueryError

if TYPE_CHECKING:
    from langgraph.store.base import ListNamespacesOp, MatchCondition

_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_JOINED: Mapping[str, Callable[[Iterable[bool]], bool]] = {"$and": all, "$or": any}


Test: TypeAlias = Callable[[Any], bool]


def matching(wanted: Mapping[str, Any] | None) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that says whether a value passes a filter: all entries must hold; a missing one is like None.

    An entry is a name with what its value must be: an equal value, equal entries of a dict, or operators: `$eq $ne $gt
    $gte $lt $lte` (of numbers), `$in` and `$nin` (of a list: any of its elements), `$not`. `$and`, `$or` and `$not`
    take filters in place of a name.

    Raises:
        QueryError: An operator is unknown, or does not take its operand.
    """
    tests = [_entry(str(name), name, expected) for name, expected in (wanted or {}).items()]
    return lambda value: all(test(value) for test in tests)


def _entry(label: str, name: Any, wanted: Any) -> Test:
    if label in _JOINED:
        return _joined(label, wanted, matching)
    if label == "$not":
        return _inverse(matching(_mapping(label, wanted)))
    if label.startswith("$"):
        raise _unknown(label)
    test = _test(wanted)
    return lambda value: test(value.get(name))


def _test(wanted: Any) -> Test:
    """Return the test of a value: the operators hold, or it is equal."""
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            held = [_operator(str(name), operand) for name, operand in wanted.items()]
            return lambda value: all(test(value) for test in held)
        parts = {name: _test(part) for name, part in wanted.items()}
        return lambda value: isinstance(value, dict) and all(test(value.get(name)) for name, test in parts.items())
    if isinstance(wanted, (list, tuple)):
        elements = [_test(part) for part in wanted]
        return lambda value: (
            isinstance(value, (list, tuple))
            and len(value) == len(elements)
            and all(test(part) for part, test in zip(value, elements, strict=True))
        )
    return lambda value: bool(value == wanted)


def _operator(name: str, operand: Any) -> Test:
    if name in {"$eq", "$ne"}:
        return lambda value: (value == operand) is (name == "$eq")
    if name in {"$in", "$nin"}:
        allowed = [_test(one) for one in _list(name, operand)]
        return lambda value: any(test(one) for test in allowed for one in _each(value)) is (name == "$in")
    if name in _JOINED:
        return _joined(name, operand, _test)
    if name == "$not":
        return _inverse(_test(operand))
    if name not in _ORDERS:
        raise _unknown(name)
    limit, holds = _number(operand), _ORDERS[name]
    if limit is None:
        raise QueryError(f"the filter's {name} compares numbers, not {operand!r}: use a function for the rest")
    # What is not a number is neither above nor below: like SQL's NULL, it does not match.
    return lambda value: (number := _number(value)) is not None and holds(number, limit)


def _joined(name: str, operand: Any, test_of: Callable[[Any], Test]) -> Test:
    parts = [test_of(_mapping(name, part)) for part in _list(name, operand)]
    join = _JOINED[name]
    return lambda value: join(test(value) for test in parts)


def _inverse(test: Test) -> Test:
    return lambda value: not test(value)


def _each(value: Any) -> list[Any]:
    """Return a value, and the elements of a list."""
    return [value, *value] if isinstance(value, (list, tuple)) else [value]


def _list(name: str, operand: Any) -> Sequence[Any]:
    if not isinstance(operand, (list, tuple)):
        raise QueryError(f"the filter's {name} takes a list, not {operand!r}")
    return operand


def _mapping(name: str, operand: Any) -> Mapping[str, Any]:
    if not isinstance(operand, Mapping):
        raise QueryError(f"the filter's {name} takes conditions as a dict, not {operand!r}")
    return operand


def _unknown(name: str) -> QueryError:
    return QueryError(
        f"the filter's operator {name!r} is unknown: use a function, which a vector store takes as its `filter`, or "
        "one of $eq $ne $gt $gte $lt $lte $in $nin, and $and $or $not around them"
    )


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def namespaces_of(namespaces: Iterable[tuple[str, ...]], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """Return the namespaces that an operation asks for: those that match, cut to its depth, unique, sorted, its page.

    Raises:
        QueryError: A condition is neither `prefix` nor `suffix`.
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
