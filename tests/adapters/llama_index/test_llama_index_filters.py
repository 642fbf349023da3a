"""Filters mean what they mean in LlamaIndex's own store, and nest."""

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index_openclaw_memory._filters import build_filter
from llama_index_openclaw_memory._nodes import to_document

from openclaw_memory.errors import QueryError


@pytest.mark.parametrize("condition", [None, *FilterCondition], ids=str)
@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (FilterOperator.NIN, [1, 2], {"word", "list", "empty", "none"}),
        (FilterOperator.TEXT_MATCH_INSENSITIVE, "boa", {"word"}),
        (FilterOperator.IS_EMPTY, None, {"empty", "none"}),
    ],
)
def test_operators_whose_meaning_is_not_that_of_their_word(kind, value, expected, condition):
    some = {"one": 1, "two": 2, "word": "A Boat", "list": ["red", "green"], "empty": "", "none": None}
    one = MetadataFilter(key="k", value=value, operator=kind)
    test = build_filter(MetadataFilters(filters=[one], condition=condition))
    found = {name for name, inner in some.items() if test(to_document(TextNode(metadata={"k": inner})))}
    assert found == (some.keys() - expected if condition is FilterCondition.NOT else expected)


def test_a_filter_that_cannot_work_is_refused_by_its_name():
    for kind, value in (
        (FilterOperator.TEXT_MATCH, 3), (FilterOperator.TEXT_MATCH_INSENSITIVE, ["a"]), (FilterOperator.IN, 3),
        (FilterOperator.NIN, None), (FilterOperator.ANY, 0.5), (FilterOperator.ALL, None), (FilterOperator.GT, None),
    ):  # fmt: skip
        broken = MetadataFilter(key="page", value=value, operator=kind)
        inside = MetadataFilters(filters=[MetadataFilters(filters=[broken], condition=FilterCondition.NOT)])
        with pytest.raises(QueryError, match=rf"page {kind.value} .*{kind.value}.* takes"):
            build_filter(inside)


def test_no_filters_leave_out_nothing_and_what_are_none_is_refused():
    assert build_filter(None) is build_filter(MetadataFilters(filters=[])) is None
    for wrong in ({"page": 3}, [], "page"):
        with pytest.raises(QueryError, match="MetadataFilters"):
            build_filter(wrong)
