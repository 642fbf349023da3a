"""`OpenClawTranslator`: structured queries of `SelfQueryRetriever` as filters of `OpenClawVectorStore`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery, Visitor

from openclaw_memory.errors import QueryError


class OpenClawTranslator(Visitor):
    """Pass it as `structured_query_translator` to `SelfQueryRetriever.from_llm` of `langchain_classic`."""

    allowed_comparators = tuple(Comparator)
    allowed_operators = tuple(Operator)

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """Return the filter of joined conditions; `not` means none holds."""
        parts = [argument.accept(self) for argument in operation.arguments]
        if operation.operator is Operator.NOT:
            return {"$not": {"$or": parts}}
        return {f"${operation.operator.value}": parts}

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """Return the filter of one condition.

        Raises:
            QueryError: Its value is a date that is not written in ISO 8601.
        """
        kind, value = comparison.comparator, comparison.value
        if kind in {Comparator.IN, Comparator.NIN} and not isinstance(value, list | tuple):
            value = [value]
        values = [_read_date(item) for item in value] if isinstance(value, list | tuple) else _read_date(value)
        name = "contains" if kind is Comparator.CONTAIN else kind.value
        if kind is Comparator.LIKE and isinstance(values, str) and not {"%", "_"} & {*values}:
            name, values = "ilike", f"%{values}%"
        return {comparison.attribute: {f"${name}": values}}

    def visit_structured_query(self, structured_query: StructuredQuery) -> tuple[str, dict[str, Any]]:
        """Return the question, and the keywords of the search."""
        condition = structured_query.filter
        return structured_query.query, {} if condition is None else {"filter": condition.accept(self)}


def _read_date(value: Any) -> Any:
    """Return a value with the dates as the query language writes them, `{"type": "date", "date": ...}`, as dates."""
    if not isinstance(value, Mapping) or value.get("type") not in {"date", "datetime"}:
        return value
    kind = value["type"]
    written = value.get(kind)
    try:
        return (date if kind == "date" else datetime).fromisoformat(str(written))
    except ValueError as error:
        raise QueryError(f"{written!r} is no {kind}: write it as 2026-11-21, with T09:30 for the time") from error
