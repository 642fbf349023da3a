"""Filters on the metadata of chunks, compared with what Python finds."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory.errors import QueryError
from openclaw_memory.store import SqliteStore
from openclaw_memory.types import CandidateRequest
from openclaw_memory.types.where import chunk_test

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-2, 2)
FIELDS = st.sampled_from(["a", "b", 'q"uote', "b\\s", "ä.b", "$", ""]) | TEXT
METADATA = st.dictionaries(FIELDS, TEXT | NUMBER | st.booleans(), max_size=4)


@st.composite
def filters(draw):
    kind = draw(st.sampled_from([TEXT, NUMBER, st.booleans()]))
    value = draw(kind)
    ordered = [] if isinstance(value, bool) else ["<", "<=", ">", ">="]
    operator = draw(st.sampled_from(["", "=", "!=", "in", "not in", *ordered]))
    if operator in {"in", "not in"}:
        return operator, draw(st.lists(kind, max_size=3))
    return (operator, value) if operator else value


@settings(max_examples=40)
@given(st.lists(METADATA, min_size=1, max_size=6), st.data())
def test_sqlite_finds_the_chunks_that_python_finds(build, held, data):
    known = [(name, value) for one in held for name, value in one.items()] or [("a", 1)]
    wheres = [data.draw(st.dictionaries(FIELDS, filters(), max_size=2)) for _ in range(6)]
    wheres += [{name: value} for name, value in known]
    wheres += [{name: ("<=", value)} for name, value in known if not isinstance(value, bool)]
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder, "index.sqlite"))
        vectors = build.units(len(held))
        store.begin_build(build.META).publish()
        store.add_vectors([build.key(at) for at in range(len(held))], vectors)
        rows = [build.row(at) for at in range(len(held))]
        rows = [replace(row, chunk=replace(row.chunk, metadata=one)) for row, one in zip(rows, held, strict=True)]
        store.replace_files([(build.record("memory/a.md"), rows)])
        assert [dict(stored.chunk.metadata) for stored in store.chunks(range(9))] == held
        for where in wheres:
            right = {at for at, one in enumerate(held, 1) if chunk_test(where)("memory/a.md", one)}
            assert {hit.chunk_id for hit in store.search_text(["term"], 9, where=where)} == right, where
            assert {hit.chunk_id for hit in store.search_vector(vectors[0], 9, where=where)} == right, where
            (hits,) = store.candidates(CandidateRequest(["term"], vectors[0], where=where)).hits
            assert set(hits.cosines) == right
        assert store.verify() == ()
        store.close()


@pytest.mark.parametrize(
    "where",
    [
        {"a": None}, {"a": ("like", "x")}, {"a": ("in", "x")}, {"a": ("in", [1, "x"])}, {"a": ("<", True)},
        {"a": float("nan")}, {"a": 2**63}, {"a": "x\0"}, {"a": [1]}, {1: "x"},
    ],
)  # fmt: skip
def test_a_filter_that_is_not_valid_is_refused_by_its_field(store, build, where):
    build.fill(store, build.units(3))
    with pytest.raises(QueryError, match=rf"where\[{next(iter(where))!r}\]"):
        store.search_text(["all"], 5, where=where)
