"""A question taken apart: identifiers, names, pairs, and how rare its terms are."""

import pytest

from openclaw_memory.search.query import parse_query


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        ("What is GEO-1000?", {"geo-1000"}),
        ("Is retry_limit in config.toml?", {"retry_limit", "config.toml"}),
        ("Error E42 in v2", {"e42", "v2"}),
        ("In 2026 there were 12 gauges", set()),
        ("Was it on January 6th, or on 2026-02-07?", set()),
        ("Invoice 20260118", {"20260118"}),
        ("Where does Anna live?", set()),
        ("東京タワー", set()),
    ],
)
def test_what_is_written_as_an_identifier_is_one(text, identifiers):
    assert parse_query(text).identifiers == identifiers


@pytest.mark.parametrize("text", ["", "  ", "🦄", "?!"])
def test_a_question_without_words_has_no_terms(text):
    found = parse_query(text)
    assert (found.terms, found.words, found.identifiers, found.dates) == ((), (), frozenset(), ())
