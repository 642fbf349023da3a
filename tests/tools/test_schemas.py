"""The schemas and descriptions of the tools, and the check of what a model sends."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.tools.handlers import TOOL_SCHEMAS as SCHEMAS
from openclaw_memory.tools.handlers import checked_arguments

EDIT = {"path": "memory/a.md", "from": 3, "lines": 1, "text": "new", "hash": "0123456789ab"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_a_closed_object_whose_arguments_are_described(name):
    schema = SCHEMAS[name]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    assert all(argument["description"] for argument in schema["properties"].values())
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("name", "sent", "words"),
    [
        ("memory_search", {}, "the argument query is missing"),
        ("memory_search", {"query": ""}, "query must be a string that is not empty, not ''"),
        (
            "memory_search",
            {"query": "x", "k": 3},
            "no argument 'k': the arguments are query, maxResults?, minScore?, path?, since?, until?",
        ),
        ("memory_search", {"query": "x", "maxResults": 0}, "maxResults must be a whole number from 1 to 100, not 0"),
        ("memory_search", {"query": "x", "maxResults": "three"}, "maxResults must be a whole number"),
        ("memory_search", {"query": "x", "maxResults": True}, "maxResults must be a whole number"),
        ("memory_search", {"query": "x", "minScore": float("nan")}, "minScore must be a number from 0 to 1, not nan"),
        ("memory_get", {"path": "a.md", "from": 0}, "from must be a whole number of at least 1, not 0"),
        ("memory_get", {"path": "a.md", "from_": 1}, "no argument 'from_': the arguments are path, from?, lines?"),
        ("memory_append", {"text": ["a"]}, "text must be a string"),
        ("memory_edit", EDIT | {"hash": "abc"}, "hash must be a string of 12 to 64 digits"),
        ("memory_forget", {"path": "a.md", "from": 1, "lines": 1}, "the argument hash is missing: The `hash` that"),
        (
            "memory_remember",
            {"type": "opinion"},
            "type must be one of preference, fact, decision, entity, reminder, other",
        ),
        ("memory_search", ["x"], "the arguments must be an object, not ['x']"),
    ],
)
def test_a_wrong_argument_is_named_with_the_remedy(name, sent, words):
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        checked_arguments(SCHEMAS[name], sent)


@pytest.mark.parametrize(
    ("sent", "understood"),
    [
        ({"maxResults": "3"}, {"maxResults": 3}),
        ({"maxResults": " 3.0 "}, {"maxResults": 3}),
        ({"minScore": "0.5"}, {"minScore": 0.5}),
    ],
)
def test_a_number_may_come_as_a_string(sent, understood):
    arguments = checked_arguments(SCHEMAS["memory_search"], {"query": "7", **sent})
    assert arguments == {"query": "7", **understood}
    assert isinstance(arguments.get("maxResults", 1), int)


def test_a_whole_number_may_come_as_a_float_and_null_means_left_out():
    sent = {"query": "x", "maxResults": 3.0, "minScore": None}
    assert checked_arguments(SCHEMAS["memory_search"], sent) == {"query": "x", "maxResults": 3}
    assert isinstance(checked_arguments(SCHEMAS["memory_search"], sent)["maxResults"], int)


def test_a_long_value_is_not_repeated_whole():
    with pytest.raises(InvalidInputError) as caught:
        checked_arguments(SCHEMAS["memory_get"], {"path": ["x" * 10_000]})
    assert len(str(caught.value)) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = sorted({argument for schema in SCHEMAS.values() for argument in schema["properties"]} | {"other"})


@settings(max_examples=15)
@given(st.sampled_from(sorted(SCHEMAS)), st.dictionaries(st.sampled_from(NAMES), JSON))
def test_whatever_a_model_sends_is_taken_as_the_schema_says_or_refused(name, sent):
    schema = SCHEMAS[name]
    try:
        arguments = checked_arguments(schema, sent)
    except InvalidInputError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert any(argument in refusal for argument in (*schema["properties"], "other"))
        return
    assert set(schema["required"]) <= set(arguments) <= set(schema["properties"])
    for argument, value in arguments.items():
        wanted = schema["properties"][argument]
        if wanted["type"] == "string":
            assert isinstance(value, str)
            assert len(value) >= wanted.get("minLength", 0)
        else:
            assert type(value) in ((int,) if wanted["type"] == "integer" else (int, float))
            assert wanted["minimum"] <= value <= wanted.get("maximum", value)
