"""A walk over a value of JSON meets every name, text and number once, in its order."""

from openclaw_memory.text.json_walk import leaves


def test_leaves_are_names_and_what_holds_nothing_else_in_their_order():
    value = {"name": "Ada", "tags": ["a", ("b", 2.5)], "of": {"deep": [{"er": True}]}, "none": None, "empty": [{}]}
    assert [*leaves(value)] == ["name", "Ada", "tags", "a", "b", 2.5, "of", "deep", "er", True, "none", None, "empty"]


def test_what_is_no_object_or_array_is_its_own_leaf():
    assert [[*leaves(value)] for value in ("a", 1, None, [])] == [["a"], [1], [None], []]


def test_a_name_that_is_no_text_is_yielded_as_text():
    assert [*leaves({1: "one"})] == ["1", "one"]
