"""Metadata filters of LlamaIndex as a function of a document."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_openclaw_memory._nodes import value_of
from openclaw_memory.errors import QueryError
from openclaw_memory.types import Document

_Test: TypeAlias = Callable[[Document], bool]
_Holds: TypeAlias = Callable[[Any, Any], bool]


def _text_match(text: Any, wanted: str) -> bool:
    return isinstance(text, str) and wanted in text


def _text_match_insensitive(text: Any, wanted: str) -> bool:
    return isinstance(text, str) and wanted.lower() in text.lower()


# What must hold between the value of a document, which is not None, and that of the filter. As in LlamaIndex's
# `build_metadata_filter_fn`, `in` and `contains` look for one text in another where both are texts.
_HOLDS: Mapping[FilterOperator, _Holds] = {
    FilterOperator.EQ: operator.eq,
    FilterOperator.NE: operator.ne,
    FilterOperator.GT: operator.gt,
    FilterOperator.GTE: operator.ge,
    FilterOperator.LT: operator.lt,
    FilterOperator.LTE: operator.le,
    FilterOperator.IN: lambda value, wanted: value in wanted,
    FilterOperator.NIN: lambda value, wanted: value not in wanted,
    FilterOperator.CONTAINS: lambda value, wanted: wanted in value,
    FilterOperator.ANY: lambda value, wanted: any(one in value for one in wanted),
    FilterOperator.ALL: lambda value, wanted: all(one in value for one in wanted),
    FilterOperator.TEXT_MATCH: _text_match,
    FilterOperator.TEXT_MATCH_INSENSITIVE: _text_match_insensitive,
}
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
# What is not there is unlike everything.
_WITHOUT_A_VALUE = {FilterOperator.NE, FilterOperator.NIN}
_JOINED: Mapping[FilterCondition, Callable[[Iterable[bool]], bool]] = {
    FilterCondition.AND: all,
    FilterCondition.OR: any,
    FilterCondition.NOT: lambda held: not any(held),
}


def matching(filters: MetadataFilters | None) -> _Test | None:
    """Whether a document passes filters, with filters in filters; None where they leave out nothing.

    Each means what it means in LlamaIndex's own `SimpleVectorStore`. Where that one raises, as the document's value is
    of another type than the operator takes, the document does not match (and with `nin` does).

    Raises:
        QueryError: an operator cannot work with the value it was given, whatever the documents hold.
    """
    if filters is None:
        return None
    if not isinstance(filters, MetadataFilters):
        raise QueryError(f"filters must be MetadataFilters, not {filters!r:.80}: MetadataFilters(filters=[...])")
    if not filters.filters:
        return None
    tests = [_test(one) for one in filters.filters]
    join = _JOINED[filters.condition or FilterCondition.AND]
    return lambda document: join(test(document) for test in tests)


def _test(given: MetadataFilter | MetadataFilters) -> _Test:
    if isinstance(given, MetadataFilters):
        return matching(given) or (lambda _: True)
    name, wanted, kind = given.key, given.value, given.operator
    if kind is FilterOperator.IS_EMPTY:
        return lambda document: value_of(document, name) in (None, "", [])
    holds = _HOLDS[kind]
    types, words = _TAKES.get(kind, ((object,), ""))
    if not isinstance(wanted, types):
        raise QueryError(f"the filter {name} {kind.value} {wanted!r} cannot work: {kind.value!r} takes {words}")
    without_a_value, of_another_type = kind in _WITHOUT_A_VALUE, kind is FilterOperator.NIN

    def test(document: Document) -> bool:
        value = value_of(document, name)
        if value is None:
            return without_a_value
        try:
            return bool(holds(value, wanted))
        except TypeError:  # a number was compared with a text, or looked into
            return of_another_type

    return test
