"""Metadata filters of LlamaIndex as a function of a document, and as the filters of a search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_openclaw_memory._nodes import ADDED, NO_SOURCE, SOURCE_NAMES, value_of
from openclaw_memory import SearchFilter, documents
from openclaw_memory.errors import QueryError
from openclaw_memory.types import Document

Where: TypeAlias = Callable[[Document], bool]
_Conditions: TypeAlias = Mapping[str, Any]


def matching(
    filters: MetadataFilters | None, *, ids: Iterable[str] = (), parts_of: Iterable[str] = (), folder: str = ""
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
        return documents.Documents.Filter(**narrow) if any(narrow.values()) else None
    conditions, added = _conditions(filters), ADDED.intersection(names_in(filters))
    if not added:
        return documents.Documents.Filter(conditions, **narrow)
    fits = documents.compile_filter(conditions)

    def test(document: Document) -> bool:
        return fits({**document.metadata, **{name: value_of(document, name) for name in added}})

    if narrow["parts_of"] is None:  # else the test alone is asked of the few that are left
        narrow["parts_of"] = _find_wholes(filters)
    return documents.Documents.Filter(tests=[test], **narrow)


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


def names_in(filters: MetadataFilters) -> Iterator[str]:
    """Yield what filters, and filters in filters, are about."""
    for one in filters.filters:
        yield from names_in(one) if isinstance(one, MetadataFilters) else (one.key,)


def search_filter(filters: MetadataFilters | SearchFilter | Mapping[str, Any] | None) -> SearchFilter:
    """Return the filter of a search; filters of LlamaIndex, and those within, must all hold.

    Raises:
        QueryError: They are joined in another way, or a search does not filter by a key, with an operator or a value.
    """
    if not isinstance(filters, MetadataFilters):
        return SearchFilter.read(filters)
    found: dict[str, Any] = {}
    for one in _all_of(filters):
        several = _SEVERAL.get(one.key, FilterOperator.IN)
        if one.operator not in {FilterOperator.EQ, several, *_ALIKE.get(one.key, ())}:
            raise QueryError(
                f"a search does not filter by {one.key} {one.operator.value}: use == or {several.value}, or a "
                "filter of OpenClawVectorStore"
            )
        if one.key in found:
            raise QueryError(f"two filters are about {one.key}: make one of them")
        found[one.key] = one.value
    return SearchFilter.read(found)


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


def _all_of(filters: MetadataFilters) -> Iterator[MetadataFilter]:
    is_only = len(filters.filters) == 1 and filters.condition is FilterCondition.OR
    if filters.condition is not FilterCondition.AND and not is_only:
        raise QueryError("the filters of a search must all hold: join them by AND, or use OpenClawVectorStore")
    for one in filters.filters:
        yield from _all_of(one) if isinstance(one, MetadataFilters) else (one,)


def _conditions(given: MetadataFilter | MetadataFilters) -> _Conditions:
    if isinstance(given, MetadataFilter):
        return {given.key: _condition(given)}
    parts = [_conditions(one) for one in given.filters]
    if given.condition is FilterCondition.OR and parts:
        return {"$or": parts}
    return {"$not": {"$or": parts}} if given.condition is FilterCondition.NOT else {"$and": parts}


def _condition(given: MetadataFilter) -> _Conditions:
    wanted, kind = given.value, given.operator
    (types, words), condition = _CONDITIONS[kind]
    if not isinstance(wanted, types):
        raise QueryError(f"the filter {given.key} {kind.value} {wanted!r} cannot work: {kind.value!r} takes {words}")
    return condition(wanted)


def _in(wanted: Any) -> _Conditions:
    return {"$within": wanted} if isinstance(wanted, str) else _there(_one_of(wanted))


def _part(wanted: str) -> str:
    return "%" + re.sub(r"([%_\\])", r"\\\1", wanted) + "%"


def _one_of(values: list[Any]) -> _Conditions:
    return {"$or": [{"$eq": one} for one in values]}


def _there(condition: _Conditions) -> _Conditions:
    return {"$exists": True, **condition}


# What the value of a filter must be, by the types and in words.
_ANYTHING: tuple[tuple[type, ...], str] = (object,), ""
_LIMIT = (int, float, str, list), "a number or a text"
_LIST = (list, str), "a list"
_TEXT = (str,), "a text"
# `in` and `contains` look for one text in another where both are texts; what is not there is unlike everything.
_CONDITIONS: Mapping[FilterOperator, tuple[tuple[tuple[type, ...], str], Callable[[Any], _Conditions]]] = {
    FilterOperator.EQ: (_ANYTHING, lambda wanted: _there({"$eq": wanted})),
    FilterOperator.NE: (_ANYTHING, lambda wanted: {"$not": _there({"$eq": wanted})}),
    FilterOperator.GT: (_LIMIT, lambda wanted: {"$gt": wanted}),
    FilterOperator.GTE: (_LIMIT, lambda wanted: {"$gte": wanted}),
    FilterOperator.LT: (_LIMIT, lambda wanted: {"$lt": wanted}),
    FilterOperator.LTE: (_LIMIT, lambda wanted: {"$lte": wanted}),
    FilterOperator.IN: (_LIST, _in),
    FilterOperator.NIN: (_LIST, lambda wanted: {"$not": _in(wanted)}),
    FilterOperator.CONTAINS: (_ANYTHING, lambda wanted: {"$contains": wanted}),
    FilterOperator.ANY: (_LIST, lambda wanted: {"$or": [{"$contains": one} for one in wanted]}),
    FilterOperator.ALL: (_LIST, lambda wanted: _there({"$and": [{"$contains": one} for one in wanted]})),
    FilterOperator.TEXT_MATCH: (_TEXT, lambda wanted: {"$like": _part(wanted)}),
    FilterOperator.TEXT_MATCH_INSENSITIVE: (_TEXT, lambda wanted: {"$ilike": _part(wanted)}),
    FilterOperator.IS_EMPTY: (_ANYTHING, lambda _: _one_of([None, "", []])),
}
