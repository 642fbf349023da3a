"""Filters on the metadata of chunks: field -> value, or field -> (operator, value); or a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from openclaw_memory.errors import QueryError

Scalar: TypeAlias = str | int | float | bool
Metadata: TypeAlias = Mapping[str, Scalar | None]  # None for a value that a store does not keep
# Says by the path of its file and its metadata whether a chunk counts. It is hashable, and what it says never changes:
# a store may remember it for equal ones. It may have `files`, a tuple of `FileRange` outside of which no file passes: a
# store then reads the chunks of these files alone.
ChunkTest: TypeAlias = Callable[[str, Metadata], bool]
# A value means equality; else one of OPERATORS and a value, which for "in" and "not in" is a sequence of values.
Where: TypeAlias = Mapping[str, Scalar | tuple[str, Scalar | Sequence[Scalar]]] | ChunkTest

OPERATORS = ("=", "!=", "in", "not in", "<", "<=", ">", ">=")
ORDERED = ("<", "<=", ">", ">=")
# Names of metadata that are the library's own: a document's metadata of such a name are not filtered by in the index.
OWN = ":"
DAY, TAGS = ":day", ":tags"
TYPE, KEY, USER, CONFIDENCE, SURE_AT = ":type", ":key", ":user", ":confidence", ":sure_at"  # of records
DOCUMENT, PART_OF = ":document", ":part_of"  # of documents: their key, and the id of what they are a part of
LARGEST = 2**63  # whole numbers beyond it are not the same in every store


class FileRange(NamedTuple):
    """The indexed files with `text` in a column or, with `is_prefix`, at its beginning; it is not empty."""

    column: Literal["path", "doc_id", "part_of"]
    text: str
    is_prefix: bool = False


def get_ranges(test: ChunkTest) -> tuple[FileRange, ...]:
    """Return the ranges that hold all files that pass a test, or () if they are unknown.

    Args:
        test: The test.
    """
    ranges: tuple[FileRange, ...] = getattr(test, "files", ())
    return ranges


class Condition(NamedTuple):
    """One field of a mapping. `operator` is "in", "not in" or one of ORDERED, which takes one value.

    `kind` is that of the values: "text", "number" or "bool". A field of another kind, or a missing one, does not match.
    """

    field: str
    operator: str
    values: tuple[Scalar, ...]
    kind: str


class Conditions(Struct, frozen=True):
    """A mapping as a function of a chunk: all of its conditions must hold."""

    conditions: tuple[Condition, ...]

    def __call__(self, _path: str, metadata: Metadata) -> bool:
        return all(_is_met(metadata.get(item.field), item) for item in self.conditions)


def make_chunk_test(where: Where) -> ChunkTest:
    """Return a filter as a function of a chunk; equal filters give equal ones.

    Args:
        where: The filter.

    Raises:
        QueryError: The filter is not valid; the message names the field.
    """
    if callable(where):
        return where
    return Conditions(tuple(_read_condition(field, condition) for field, condition in where.items()))


def classify(value: object) -> str | None:
    """Return "text", "number" or "bool", or None for a value that a store cannot filter by."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "text" if _is_unicode(value) else None
    if isinstance(value, int):
        return "number" if -LARGEST <= value < LARGEST else None
    return "number" if isinstance(value, float) and math.isfinite(value) else None


def _read_condition(field: str, condition: Any) -> Condition:
    operator, value = condition if isinstance(condition, tuple) and len(condition) == 2 else ("=", condition)
    if not isinstance(field, str) or operator not in OPERATORS:
        raise QueryError(
            f"where[{field!r}] is {condition!r}: give a value, or one of {', '.join(OPERATORS)} and a value"
        )
    several = operator in {"in", "not in"}
    if several and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise QueryError(f"where[{field!r}] is {condition!r}: {operator!r} needs a list of values")
    values: tuple[Any, ...] = tuple(value) if several else (value,)
    kinds = {classify(item) for item in values}
    if None in kinds or len(kinds) > 1 or classify(field) is None:
        raise QueryError(f"where[{field!r}] is {condition!r}: give text, numbers, or True or False, all of one kind")
    kind = kinds.pop() if kinds else "text"
    if operator in ORDERED and kind == "bool":
        raise QueryError(f"where[{field!r}] is {condition!r}: True and False have no order; use '='")
    return Condition(field, {"=": "in", "!=": "not in"}.get(operator, operator), values, str(kind))


def _is_met(value: Scalar | None, condition: Condition) -> bool:
    if value is None or classify(value) != condition.kind:
        return False
    if condition.operator in {"in", "not in"}:
        return (value in condition.values) == (condition.operator == "in")
    bound = condition.values[0]
    below, same = value < bound, value == bound  # type: ignore[operator]  # both are of one kind
    return {"<": below, "<=": below or same, ">": not (below or same), ">=": not below}[condition.operator]


def _is_unicode(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)
