"""What a model asks of `SelfQueryRetriever` becomes a filter that the vector store understands."""

import pytest
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery
from langchain_openclaw_memory import OpenClawTranslator, OpenClawVectorStore

from openclaw_memory.errors import QueryError

BOOKS = {
    "old": {"year": 1994, "genre": "crime", "tags": ["a", "b"], "out": "1994-03-01"},
    "new": {"year": 2021, "genre": "science fiction", "tags": ["b"], "out": "2021-03-01T10:00:00"},
    "bare": {"year": 2000},
}
DATE, TIME = {"type": "date", "date": "2021-03-01"}, {"type": "datetime", "datetime": "2021-03-01T09:00:00"}


def joined(kind):
    return Operation(kind, [Comparison(Comparator.EQ, "genre", "crime"), Comparison(Comparator.GT, "year", 2010)])


def asked(directive):
    return OpenClawTranslator().visit_structured_query(StructuredQuery("book", directive))


def test_each_comparison_and_how_they_are_joined(memory):
    store = OpenClawVectorStore(memory)
    store.add_texts([f"The {name} book." for name in BOOKS], [*BOOKS.values()], ids=[*BOOKS])
    for directive, expected in (
        *(
            (Comparison(kind, *condition), expected)
            for kind, *condition, expected in (
                (Comparator.EQ, "genre", "crime", {"old"}), (Comparator.NE, "genre", "crime", {"new", "bare"}),
                (Comparator.GT, "year", 2000, {"new"}), (Comparator.GTE, "year", 2000, {"new", "bare"}),
                (Comparator.LT, "out", DATE, {"old"}), (Comparator.LTE, "out", DATE, {"old", "new"}),
                (Comparator.GT, "out", TIME, {"new"}), (Comparator.CONTAIN, "tags", "a", {"old"}),
                (Comparator.LIKE, "genre", "Fiction", {"new"}), (Comparator.LIKE, "genre", "sci%", {"new"}),
                (Comparator.IN, "genre", ["crime", "romance"], {"old"}), (Comparator.NIN, "genre", "crime", {"new", "bare"}),
            )
        ),
        (joined(Operator.AND), set()), (joined(Operator.OR), {"old", "new"}), (joined(Operator.NOT), {"bare"}),
        (None, {*BOOKS}),
    ):  # fmt: skip
        query, keywords = asked(directive)
        assert {one.id for one in store.similarity_search(query, k=9, **keywords)} == expected, directive
    with pytest.raises(QueryError, match="soon"):
        asked(Comparison(Comparator.EQ, "out", {"type": "date", "date": "soon"}))
