"""A filter lets through what a plain reading of it in Python lets through; dates, texts and dotted names included."""

import fnmatch
import operator
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.documents.filters import compile_filter
from openclaw_memory.errors import QueryError

NAMES = ["a", "b", "a.b", "a.b.c", "b.c"]
scalars = st.sampled_from([None, True, 0, 1, 2.5, -1, "", "x", "xy", "2024-05-01", "2024-05-02T10:00:00+02:00"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("bc"), inner), max_leaves=4
)
metadata = st.dictionaries(st.sampled_from(["a", "b", "a.b"]), values, max_size=3)
dates = st.sampled_from(
    [
        date(2024, 5, 1),
        date(2024, 5, 2),
        datetime.fromisoformat("2024-05-02T08:00"),
        datetime(2024, 5, 2, 8, tzinfo=UTC),
    ]
)
ordered = st.sampled_from([0, 1, 2.5, "", "x", "2024-05-01"]) | dates
conditions = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne"]), scalars | dates | st.lists(scalars, max_size=2)),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), ordered),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(scalars | dates, max_size=3)),
    st.tuples(st.just("$exists"), st.booleans()),
    st.tuples(st.sampled_from(["$contains", "$within"]), scalars | st.lists(scalars, max_size=2)),
    st.tuples(st.sampled_from(["$like", "$ilike"]), st.sampled_from(["", "%", "x%", "_", "X%", "%y", "2024%T%"])),
)


def combine(inner):
    return st.tuples(st.sampled_from(["$and", "$or"]), st.lists(inner, max_size=3)) | st.tuples(st.just("$not"), inner)


tests = st.recursive(conditions, combine, max_leaves=3)
entries = st.tuples(st.sampled_from(NAMES), tests | st.tuples(st.just("equal"), scalars))
filters = st.recursive(entries, combine, max_leaves=4)


def as_data(part, *, is_entry=True):
    """What was drawn, as `matching` takes it."""
    name, inner = part
    if name in {"$and", "$or"}:
        return {name: [as_data(one, is_entry=is_entry) for one in inner]}
    if name == "$not":
        return {name: as_data(inner, is_entry=is_entry)}
    if is_entry:
        return {name: inner[1] if inner[0] == "equal" else as_data(inner, is_entry=False)}
    return {name: inner}


def looked_up(values, name):
    if name in values:
        return values[name]
    for part in name.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def compared(how, value, operand):
    if isinstance(operand, date):
        try:
            value = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            return False
        if isinstance(operand, datetime):
            value, operand = (one if one.tzinfo else one.replace(tzinfo=UTC) for one in (value, operand))
        else:
            value = value.date()
    try:
        return getattr(operator, how)(value, operand)
    except TypeError:
        return False


def there(operand, value):
    try:
        return operand in value
    except TypeError:
        return False


def like(value, pattern):
    return isinstance(value, str) and fnmatch.fnmatchcase(value, pattern.replace("%", "*").replace("_", "?"))


def passes(part, values):
    """Whether values pass, written without any cleverness."""
    name, inner = part
    if name == "$and":
        return all(passes(one, values) for one in inner)
    if name == "$or":
        return any(passes(one, values) for one in inner)
    if name == "$not":
        return not passes(inner, values)
    return holds(inner, looked_up(values, name))


def holds(test, value):
    name, operand = test
    each = [value, *value] if isinstance(value, list) else [value]
    return {
        "$and": lambda: all(holds(one, value) for one in operand),
        "$or": lambda: any(holds(one, value) for one in operand),
        "$not": lambda: not holds(operand, value),
        "equal": lambda: compared("eq", value, operand),
        "$eq": lambda: compared("eq", value, operand),
        "$ne": lambda: not compared("eq", value, operand),
        "$gt": lambda: compared("gt", value, operand),
        "$gte": lambda: compared("ge", value, operand),
        "$lt": lambda: compared("lt", value, operand),
        "$lte": lambda: compared("le", value, operand),
        "$in": lambda: any(compared("eq", one, wanted) for one in each for wanted in operand),
        "$nin": lambda: not any(compared("eq", one, wanted) for one in each for wanted in operand),
        "$exists": lambda: (value is not None) is operand,
        "$contains": lambda: there(operand, value),
        "$within": lambda: there(value, operand),
        "$like": lambda: like(value, operand),
        "$ilike": lambda: isinstance(value, str) and like(value.lower(), operand.lower()),
    }[name]()


@given(filters, metadata)
def test_a_filter_means_what_it_says(drawn, values):
    assert compile_filter(as_data(drawn))(values) is passes(drawn, values)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"at": {"$gte": date(2024, 5, 1), "$lte": date(2024, 5, 1)}}, {"day", "morning"}),
        ({"at": {"$gt": datetime.fromisoformat("2024-05-01T07:00")}}, {"morning", "later"}),
        ({"who.name": "Anna"}, {"nested", "dotted"}),
        ({"at": {"$like": "50\\% off"}}, {"percent"}),
    ],
    ids=["days", "moment", "dotted", "escaped"],
)  # fmt: skip
def test_dates_texts_and_dotted_names(wanted, expected):
    some = {
        "day": {"at": "2024-05-01"},
        "morning": {"at": "2024-05-01T09:30:00+02:00"},
        "later": {"at": "2025-01-01"},
        "percent": {"at": "50% off"},
        "nested": {"who": {"name": "Anna"}},
        "dotted": {"who.name": "Anna", "who": {"name": "Ben"}},
    }
    fits = compile_filter(wanted)
    assert {name for name, values in some.items() if fits(values)} == expected


@pytest.mark.parametrize(
    "wanted",
    [
        {"$nor": []},
        {"a": {"$near": 1}},
        {"a": {"$gt": None}},
        {"a": {"$in": "abc"}},
        {"a": {"$exists": 1}},
        {"a": {"$like": 3}},
        {"$not": 3},
        {"$or": [{"a": {"$and": [3]}}]},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_by_its_name(wanted):
    with pytest.raises(QueryError, match=r"\$"):
        compile_filter(wanted)
