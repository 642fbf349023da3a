"""The schemas of the tools, and the check of the arguments that a model sends."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.tools.handlers import TOOLS, build_schema, parse_arguments

EDIT = {"path": "memory/a.md", "from": 3, "lines": 1, "text": "new", "hash": "0123456789ab"}


@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_is_a_closed_object_whose_arguments_are_described(name):
    schema = build_schema(TOOLS[name])
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for argument in schema["properties"].values():
        assert next(iter(argument)) == "type"
        assert list(argument)[-1] == "description"
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("name", "sent", "words"),
    [
        ("memory_search", {}, "missing required field `query`: the arguments of memory_search are query, maxResults?,"),
        ("memory_search", {"query": "x", "k": 3}, "unknown field `k`: the arguments of memory_search are query,"),
        ("memory_search", ["x"], "Expected `object`, got `array`: the arguments of memory_search are"),
        ("memory_search", {"query": "x", "maxResults": 0}, "maxResults is 0: Expected `int` >= 1. The most results"),
        ("memory_search", {"query": "x", "minScore": float("nan")}, "minScore is nan: Expected `float` >= 0"),
        ("memory_get", {"path": "a.md", "from_": 1}, "unknown field `from_`: the arguments of memory_get are path, from?"),
        ("memory_edit", EDIT | {"hash": "abc"}, "hash is 'abc': Expected `str` matching regex"),
        ("memory_remember", {"type": "opinion"}, "Expected one of preference, fact, decision, entity, reminder, other"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_with_the_remedy(name, sent, words):
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        parse_arguments(TOOLS[name], sent)


@pytest.mark.parametrize(
    ("sent", "value"),
    [({"maxResults": "3"}, 3), ({"maxResults": 3.0}, 3), ({"minScore": "0.5"}, 0.5), ({"minScore": None}, None)],
)
def test_a_number_may_come_as_a_string_and_null_is_left_out(sent, value):
    arguments = parse_arguments(TOOLS["memory_search"], {"query": "7", **sent})
    assert (arguments.max_results or arguments.min_score) == value


def test_a_long_value_is_not_repeated_whole():
    with pytest.raises(InvalidInputError) as caught:
        parse_arguments(TOOLS["memory_get"], {"path": ["x" * 10_000]})
    assert len(str(caught.value)) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = sorted({argument for tool in TOOLS.values() for argument in build_schema(tool)["properties"]} | {"other"})


@settings(max_examples=15)
@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(st.sampled_from(NAMES), JSON))
def test_a_refusal_names_an_argument(name, sent):
    refusal = ""
    try:
        parse_arguments(TOOLS[name], sent)
    except InvalidInputError as error:
        refusal = str(error)
    assert not refusal or any(argument in refusal for argument in build_schema(TOOLS[name])["properties"])
