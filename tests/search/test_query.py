"""A question taken apart: identifiers, names, pairs, and how rare its terms are."""

import math

import pytest

from openclaw_memory.search.query import is_code, parse_query, rarity, weighed


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


def test_names_are_words_with_a_capital_folded():
    assert parse_query("Did Zoë and anna meet Mr. Groß in 2026?").names == {"did", "zoe", "mr", "gross"}


def test_pairs_hold_at_least_one_term_that_is_looked_for():
    found = parse_query("Who was the spare key for?")
    assert ("spare", "key") in found.pairs
    assert ("was", "the") not in found.pairs


def test_rare_terms_weigh_more_than_frequent_ones():
    found = weighed(parse_query("boiler house"), {"boiler": 1, "hous": 80}, 100)
    assert found.stems == ("boiler", "hous")
    assert found.weights[0] > found.weights[1] > 0


@pytest.mark.parametrize(("frequency", "count"), [(0, 0), (1, 0), (0, 10), (10, 10), (7, 5), (1, 10**9)])
def test_rarity_is_finite_and_above_zero_whatever_was_counted(frequency, count):
    assert 0 < rarity(frequency, count) < math.inf


def test_all_words_of_a_query_have_stems_whose_frequency_counts():
    stems = parse_query("Were Zürich-Gärten and GEO-1000 serviced?").stems
    assert {"zurich", "garten", "servic", "geo", "1000"} <= set(stems)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("What happened on 6 January 2026?", "2026-01-06"),
        ("And in January 2026?", "2026-01"),
        ("Who came on 6 January?", "--01-06"),
        ("Was it in January?", "--01"),
    ],
)
def test_a_date_is_looked_up_as_a_term(text, term):
    assert term in parse_query(text).terms


@pytest.mark.parametrize(
    ("identifier", "code"), [("geo-1000", True), ("retry_limit", True), ("20260118", True), ("follow-up", False)]
)
def test_a_code_is_told_from_joined_words(identifier, code):
    assert is_code(identifier) is code


@pytest.mark.parametrize("text", ["", "  ", "🦄", "?!"])
def test_a_question_without_words_has_no_terms(text):
    found = parse_query(text)
    assert (found.terms, found.words, found.identifiers, found.dates) == ((), (), frozenset(), ())
