"""Metadata filters of LlamaIndex as a function of a document, and as the filters of a search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_openclaw_memory._nodes import ADDED, NO_SOURCE, SOURCE_NAMES, get_value
from openclaw_memory import SearchFilter, documents
from openclaw_memory.errors import QueryError
from openclaw_memory.types import Document

Where: TypeAlias = Callable[[Document], bool]
_Conditions: TypeAlias = Mapping[str, Any]


def build_filter(
    filters: MetadataFilters | None,
    tests: Sequence[Where] = (),
    *,
    ids: Iterable[str] = (),
    parts_of: Iterable[str] = (),
    folder: str = "",
) -> documents.Documents.Filter | None:
    """Return a filter of documents for filters, with filters in filters, ids and wholes; None if all documents pass.

    Each means what it means in LlamaIndex's own `SimpleVectorStore`. Where that one raises, as the document's value is
    of another type than the operator takes, the document does not match (and with `nin` does). `a.b` means the entry
    `b` of the dict `a`, unless there is a value of that very name.

    Raises:
        QueryError: An operator cannot work with the value it was given, whatever the documents hold.
    """
    if filters is not None and not isinstance(filters, MetadataFilters):
        raise QueryError(f"filters must be MetadataFilters, not {filters!r:.80}: MetadataFilters(filters=[...])")
    narrow: dict[str, Any] = {"ids": frozenset(ids) or None, "parts_of": frozenset(parts_of) or None, "folder": folder}
    if filters is None or not filters.filters:
        return documents.Documents.Filter(None, tests, **narrow) if tests or any(narrow.values()) else None
    conditions, added = _build_conditions(filters), ADDED.intersection(list_names(filters))
    if not added:
        return documents.Documents.Filter(conditions, tests, **narrow)
    fits = documents.Documents.compile_filter(conditions)

    def test(document: Document) -> bool:
        return fits({**document.metadata, **{name: get_value(document, name) for name in added}})

    if narrow["parts_of"] is None:  # else the test alone is asked of the few that are left
        narrow["parts_of"] = _find_wholes(filters)
    return documents.Documents.Filter(None, [*tests, test], **narrow)


def _find_wholes(condition: MetadataFilter | MetadataFilters) -> frozenset[str] | None:
    """Return the only sources that nodes which pass can have; None if they can have any, or none."""
    if isinstance(condition, MetadataFilter):
        is_listed = condition.operator is FilterOperator.IN and isinstance(condition.value, list)
        if condition.key not in SOURCE_NAMES or not (is_listed or condition.operator is FilterOperator.EQ):
            return None
        values: Any = condition.value if is_listed else [condition.value]
        is_whole = all(isinstance(value, str) and value != NO_SOURCE for value in values)
        return frozenset(values) if is_whole else None
    parts = [_find_wholes(part) for part in condition.filters]
    wholes = [part for part in parts if part is not None]
    if condition.condition is FilterCondition.AND:
        return frozenset.intersection(*wholes) if wholes else None
    is_any = condition.condition is FilterCondition.OR and len(wholes) == len(parts)
    return frozenset[str]().union(*wholes) if is_any and wholes else None


def list_names(filters: MetadataFilters) -> Iterator[str]:
    """Yield the keys of filters, nested ones included."""
    for condition in filters.filters:
        yield from list_names(condition) if isinstance(condition, MetadataFilters) else (condition.key,)


def to_search_filter(filters: MetadataFilters | SearchFilter | Mapping[str, Any] | None) -> SearchFilter:
    """Return the filter of a search; filters of LlamaIndex, and those within, must all hold.

    Raises:
        QueryError: They are joined in another way, or a search does not filter by a key, with an operator or a value.
    """
    if not isinstance(filters, MetadataFilters):
        return SearchFilter.read(filters)
    fields: dict[str, Any] = {}
    for condition in _list_all(filters):
        several = _SEVERAL.get(condition.key, FilterOperator.IN)
        if condition.operator not in {FilterOperator.EQ, several, *_ALIKE.get(condition.key, ())}:
            raise QueryError(
                f"a search does not filter by {condition.key} {condition.operator.value}: use == or {several.value}, "
                "or a filter of OpenClawVectorStore"
            )
        if condition.key in fields:
            raise QueryError(f"two filters are about {condition.key}: make one of them")
        fields[condition.key] = condition.value
    return SearchFilter.read(fields)


# What says of a name that its value is a list, or a limit; for others it is `in`.
_SEVERAL: Mapping[str, FilterOperator] = {
    "tags": FilterOperator.ALL,
    "phrases": FilterOperator.ALL,
    "without": FilterOperator.ANY,
    "since": FilterOperator.GTE,
    "until": FilterOperator.LTE,
    "min_confidence": FilterOperator.GTE,
}
_ALIKE: Mapping[str, tuple[FilterOperator, ...]] = {"tags": (FilterOperator.CONTAINS,)}


def _list_all(filters: MetadataFilters) -> Iterator[MetadataFilter]:
    is_only = len(filters.filters) == 1 and filters.condition is FilterCondition.OR
    if filters.condition is not FilterCondition.AND and not is_only:
        raise QueryError("the filters of a search must all hold: join them by AND, or use OpenClawVectorStore")
    for condition in filters.filters:
        yield from _list_all(condition) if isinstance(condition, MetadataFilters) else (condition,)


def _build_conditions(filters: MetadataFilter | MetadataFilters) -> _Conditions:
    if isinstance(filters, MetadataFilter):
        return {filters.key: _build_condition(filters)}
    parts = [_build_conditions(part) for part in filters.filters]
    if filters.condition is FilterCondition.OR and parts:
        return {"$or": parts}
    return {"$not": {"$or": parts}} if filters.condition is FilterCondition.NOT else {"$and": parts}


def _build_condition(leaf: MetadataFilter) -> _Conditions:
    value, kind = leaf.value, leaf.operator
    (types, words), condition = _CONDITIONS[kind]
    if not isinstance(value, types):
        raise QueryError(f"the filter {leaf.key} {kind.value} {value!r} cannot work: {kind.value!r} takes {words}")
    return condition(value)


def _match_any(value: Any) -> _Conditions:
    return {"$within": value} if isinstance(value, str) else _require_value(_join_equal(value))


def _escape_pattern(text: str) -> str:
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"


def _join_equal(values: list[Any]) -> _Conditions:
    return {"$or": [{"$eq": value} for value in values]}


def _require_value(condition: _Conditions) -> _Conditions:
    return {"$exists": True, **condition}


# What the value of a filter must be, by the types and in words.
_ANYTHING: tuple[tuple[type, ...], str] = (object,), ""
_LIMIT = (int, float, str, list), "a number or a text"
_LIST = (list, str), "a list"
_TEXT = (str,), "a text"
# `in` and `contains` look for one text in another where both are texts; what is not there is unlike everything.
_CONDITIONS: Mapping[FilterOperator, tuple[tuple[tuple[type, ...], str], Callable[[Any], _Conditions]]] = {
    FilterOperator.EQ: (_ANYTHING, lambda value: _require_value({"$eq": value})),
    FilterOperator.NE: (_ANYTHING, lambda value: {"$not": _require_value({"$eq": value})}),
    FilterOperator.GT: (_LIMIT, lambda value: {"$gt": value}),
    FilterOperator.GTE: (_LIMIT, lambda value: {"$gte": value}),
    FilterOperator.LT: (_LIMIT, lambda value: {"$lt": value}),
    FilterOperator.LTE: (_LIMIT, lambda value: {"$lte": value}),
    FilterOperator.IN: (_LIST, _match_any),
    FilterOperator.NIN: (_LIST, lambda value: {"$not": _match_any(value)}),
    FilterOperator.CONTAINS: (_ANYTHING, lambda value: {"$contains": value}),
    FilterOperator.ANY: (_LIST, lambda value: {"$or": [{"$contains": item} for item in value]}),
    FilterOperator.ALL: (_LIST, lambda value: _require_value({"$and": [{"$contains": item} for item in value]})),
    FilterOperator.TEXT_MATCH: (_TEXT, lambda value: {"$like": _escape_pattern(value)}),
    FilterOperator.TEXT_MATCH_INSENSITIVE: (_TEXT, lambda value: {"$ilike": _escape_pattern(value)}),
    FilterOperator.IS_EMPTY: (_ANYTHING, lambda _: _join_equal([None, "", []])),
}
