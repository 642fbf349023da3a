"""Metadata filters of LlamaIndex as a function of a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_openclaw_memory._nodes import value_of
from openclaw_memory import documents
from openclaw_memory.errors import QueryError
from openclaw_memory.types import Document

_Conditions: TypeAlias = Mapping[str, Any]

# What the value of a filter must be, for the operators that do not take every one.
_TAKES: Mapping[FilterOperator, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(
        (FilterOperator.GT, FilterOperator.GTE, FilterOperator.LT, FilterOperator.LTE),
        ((int, float, str, list), "a number or a text"),
    ),
    **dict.fromkeys(
        (FilterOperator.IN, FilterOperator.NIN, FilterOperator.ANY, FilterOperator.ALL), ((list, str), "a list")
    ),
    **dict.fromkeys((FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE), ((str,), "a text")),
}
# Names that LlamaIndex adds to the metadata when it stores a node.
_ADDED = {"document_id", "doc_id", "ref_doc_id", "_node_type"}


def matching(filters: MetadataFilters | None) -> Callable[[Document], bool] | None:
    """Whether a document passes filters, with filters in filters; None where they leave out nothing.

    Each means what it means in LlamaIndex's own `SimpleVectorStore`. Where that one raises, as the document's value is
    of another type than the operator takes, the document does not match (and with `nin` does). `a.b` means the entry
    `b` of the dict `a`, unless there is a value of that very name.

    Raises:
        QueryError: an operator cannot work with the value it was given, whatever the documents hold.
    """
    if filters is None:
        return None
    if not isinstance(filters, MetadataFilters):
        raise QueryError(f"filters must be MetadataFilters, not {filters!r:.80}: MetadataFilters(filters=[...])")
    if not filters.filters:
        return None
    fits, added = documents.matching(_conditions(filters)), _ADDED.intersection(_names(filters))
    if not added:
        return lambda document: fits(document.metadata)
    return lambda document: fits({**document.metadata, **{name: value_of(document, name) for name in added}})


def says_anything(filters: MetadataFilters | None) -> bool:
    """Whether there is a filter in filters, and not only empty lists of them, which everything passes."""
    return filters is not None and any(True for _ in _names(filters))


def _names(filters: MetadataFilters) -> Iterator[str]:
    for one in filters.filters:
        yield from _names(one) if isinstance(one, MetadataFilters) else (one.key,)


def _conditions(given: MetadataFilter | MetadataFilters) -> _Conditions:
    if isinstance(given, MetadataFilter):
        return {given.key: _condition(given)}
    parts = [_conditions(one) for one in given.filters]
    if given.condition is FilterCondition.OR and parts:
        return {"$or": parts}
    return {"$not": {"$or": parts}} if given.condition is FilterCondition.NOT else {"$and": parts}


def _condition(given: MetadataFilter) -> _Conditions:
    wanted, kind = given.value, given.operator
    types, words = _TAKES.get(kind, ((object,), ""))
    if not isinstance(wanted, types):
        raise QueryError(f"the filter {given.key} {kind.value} {wanted!r} cannot work: {kind.value!r} takes {words}")
    return _CONDITIONS[kind](wanted)


def _in(wanted: Any) -> _Conditions:
    return {"$within": wanted} if isinstance(wanted, str) else _there(_one_of(wanted))


def _text(name: str, wanted: str) -> _Conditions:
    part = re.sub(r"([%_\\])", r"\\\1", wanted)
    return {name: f"%{part}%"}


def _one_of(values: list[Any]) -> _Conditions:
    return {"$or": [{"$eq": one} for one in values]}


def _there(condition: _Conditions) -> _Conditions:
    return {"$exists": True, **condition}


# `in` and `contains` look for one text in another where both are texts; what is not there is unlike everything.
_CONDITIONS: Mapping[FilterOperator, Callable[[Any], _Conditions]] = {
    FilterOperator.EQ: lambda wanted: _there({"$eq": wanted}),
    FilterOperator.NE: lambda wanted: {"$not": _there({"$eq": wanted})},
    FilterOperator.GT: lambda wanted: {"$gt": wanted},
    FilterOperator.GTE: lambda wanted: {"$gte": wanted},
    FilterOperator.LT: lambda wanted: {"$lt": wanted},
    FilterOperator.LTE: lambda wanted: {"$lte": wanted},
    FilterOperator.IN: _in,
    FilterOperator.NIN: lambda wanted: {"$not": _in(wanted)},
    FilterOperator.CONTAINS: lambda wanted: {"$contains": wanted},
    FilterOperator.ANY: lambda wanted: {"$or": [{"$contains": one} for one in wanted]},
    FilterOperator.ALL: lambda wanted: _there({"$and": [{"$contains": one} for one in wanted]}),
    FilterOperator.TEXT_MATCH: partial(_text, "$like"),
    FilterOperator.TEXT_MATCH_INSENSITIVE: partial(_text, "$ilike"),
    FilterOperator.IS_EMPTY: lambda _: _one_of([None, "", []]),
}
