"""What a model asks of `SelfQueryRetriever` becomes a filter that the vector store understands."""

from datetime import date, datetime

import pytest
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery
from langchain_openclaw_memory import OpenClawTranslator, OpenClawVectorStore

from openclaw_memory import Memory
from openclaw_memory.errors import QueryError

BOOKS = {
    "old": {"year": 1994, "genre": "crime", "tags": ["a", "b"], "out": "1994-03-01"},
    "new": {"year": 2021, "genre": "science fiction", "tags": ["b"], "out": "2021-03-01T10:00:00"},
    "bare": {"year": 2000},
}


@pytest.fixture
def store(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        store = OpenClawVectorStore(memory)
        store.add_texts([f"The {name} book." for name in BOOKS], [*BOOKS.values()], ids=[*BOOKS])
        yield store


def asked(directive):
    return OpenClawTranslator().visit_structured_query(StructuredQuery("book", directive))


def test_each_comparison(store):
    for kind, name, value, expected in (
        (Comparator.EQ, "genre", "crime", {"old"}),
        (Comparator.NE, "genre", "crime", {"new", "bare"}),
        (Comparator.GT, "year", 2000, {"new"}),
        (Comparator.GTE, "year", 2000, {"new", "bare"}),
        (Comparator.LT, "out", {"type": "date", "date": "2021-03-01"}, {"old"}),
        (Comparator.LTE, "out", {"type": "date", "date": "2021-03-01"}, {"old", "new"}),
        (Comparator.GT, "out", {"type": "datetime", "datetime": "2021-03-01T09:00:00"}, {"new"}),
        (Comparator.CONTAIN, "tags", "a", {"old"}),
        (Comparator.LIKE, "genre", "Fiction", {"new"}),
        (Comparator.LIKE, "genre", "sci%", {"new"}),
        (Comparator.IN, "genre", ["crime", "romance"], {"old"}),
        (Comparator.NIN, "genre", "crime", {"new", "bare"}),
    ):
        query, keywords = asked(Comparison(kind, name, value))
        assert {one.id for one in store.similarity_search(query, k=9, **keywords)} == expected


def test_conditions_are_joined(store):
    crime = Comparison(Comparator.EQ, "genre", "crime")
    late = Comparison(Comparator.GT, "year", 2010)
    for kind, expected in ((Operator.AND, set()), (Operator.OR, {"old", "new"}), (Operator.NOT, {"bare"})):
        query, keywords = asked(Operation(kind, [crime, late]))
        assert {one.id for one in store.similarity_search(query, k=9, **keywords)} == expected


def test_without_a_condition_there_is_no_filter():
    assert asked(None) == ("book", {})


def test_dates_are_dates():
    _, keywords = asked(Comparison(Comparator.EQ, "out", {"type": "date", "date": "2021-03-01"}))
    assert keywords == {"filter": {"out": {"$eq": date(2021, 3, 1)}}}
    _, keywords = asked(Comparison(Comparator.EQ, "out", {"type": "datetime", "datetime": "2021-03-01T10:00:00"}))
    assert keywords == {"filter": {"out": {"$eq": datetime.fromisoformat("2021-03-01T10:00:00")}}}
    with pytest.raises(QueryError, match="soon"):
        asked(Comparison(Comparator.EQ, "out", {"type": "date", "date": "soon"}))
