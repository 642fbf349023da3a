"""A value is set in the text of a settings file, and nothing else of the text changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.cli.jsonc import read, with_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
SPACES = st.sampled_from(["", " ", "\n  ", "\r\n\t", " // a, {comment}\n", "/* one\n more } */ "])


@st.composite
def written(draw, value):
    """The text of a value with spaces, comments and trailing commas where editors allow them."""
    space = lambda: draw(SPACES)  # noqa: E731
    if isinstance(value, dict | list):
        is_dict = isinstance(value, dict)
        parts = [
            f"{json.dumps(part) + space() + ':' if is_dict else ''}{space()}{draw(written(value[part] if is_dict else part))}"
            for part in value
        ]
        comma = "," if parts and draw(st.booleans()) else ""
        inner = ",".join(f"{space()}{part}{space()}" for part in parts)
        return f"{'{' if is_dict else '['}{inner}{comma}{space()}{'}' if is_dict else ']'}"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@given(st.data(), st.dictionaries(st.text(max_size=4), VALUES, max_size=4), VALUES)
def test_all_that_was_there_stays_and_the_value_is_there(data, settings, value):
    settings = {**settings, "servers": data.draw(st.dictionaries(st.text(max_size=4), VALUES, max_size=3))}
    text = data.draw(SPACES) + data.draw(written(settings)) + data.draw(SPACES)
    assert read(text).value == settings
    new = with_value(text, ("servers", "ours"), value)
    assert read(new).value == {**settings, "servers": {**settings["servers"], "ours": value}}
    assert with_value(new, ("servers", "ours"), value) == new or isinstance(value, dict | list)
    assert "".join(new.split()).count("comment}") >= text.count("comment}")
    if "ours" not in settings["servers"]:  # what is new is in one place, apart from the end of an empty object
        common = next((n for n, (a, b) in enumerate(zip(text, new, strict=False)) if a != b), min(len(text), len(new)))
        assert new.rstrip().endswith(text[common:].strip().lstrip("{ \r\n\t"))


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("\ufeff{}", '\ufeff{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"a": {"c": 2}}', '{"a": {\n  "b": 1,"c": 2}}'),
        ('{\n\t"a": {\n\t\t"c": 2, // two\n\t},\n}', '{\n\t"a": {\n\t\t"b": 1,\n\t\t"c": 2, // two\n\t},\n}'),
        ('{"a": {"b": 5 /* five */}}', '{"a": {"b": 1 /* five */}}'),
    ],
)
def test_what_is_new_looks_like_what_is_there(text, new):
    assert with_value(text, ("a", "b"), 1) == new


def test_an_item_is_added_to_a_list():
    assert read(with_value('{"a": ["x"]}', ("a", 1), "y")).value == {"a": ["y", "x"]}
    assert read(with_value("{}", ("a", 0), "y")).value == {"a": ["y"]}


@pytest.mark.parametrize(
    "text",
    ["{", "[1 2]", '{"a" 1}', "{'a': 1}", '{"a": }', "// only\n", "{} {}", '{"a": {"b": "\n"}}', "[,]", "{a: 1}"],
)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match="it is"):
        with_value(text, ("a", "b"), 1)


@pytest.mark.parametrize("text", ["[]", '{"a": []}', '{"a": "b"}', "1"])
def test_what_is_no_object_is_not_replaced(text):
    with pytest.raises(ValueError, match="is no object"):
        with_value(text, ("a", "b"), 1)
