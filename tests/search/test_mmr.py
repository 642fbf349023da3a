"""Maximal marginal relevance: every answer stays, the order changes, and odd scores do no harm."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.search.ranking import Likeness, mmr, mmr_words

ITEMS = st.lists(st.tuples(st.floats(), st.text(alphabet="ab 東京", max_size=8)), max_size=12)


def order(items, relevance):
    return mmr(items, relevance, lambda item: item[0], lambda item: item[1])


@given(ITEMS, st.floats(-1, 2))
def test_every_item_is_kept_whatever_its_score(items, relevance):
    found = order(items, relevance)
    assert sorted(map(repr, found)) == sorted(map(repr, items))


@given(st.lists(st.tuples(st.floats(0, 1), st.text(max_size=8)), max_size=12))
def test_with_full_relevance_the_scores_decide(items):
    scores = [score for score, _ in order(items, 1.0)]
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.tuples(st.floats(0, 1), st.text(max_size=8)), min_size=1, max_size=12), st.floats(0.01, 1))
def test_the_best_stays_first(items, relevance):
    assert order(items, relevance)[0][0] == max(score for score, _ in items)


def test_a_repetition_gives_way_to_another_thought():
    items = [(1.0, "ferry at seven"), (0.95, "ferry at seven"), (0.5, "tickets on board")]
    assert order(items, 0.5) == [items[0], items[2], items[1]]
    assert order(items, 1.0) == items


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_last(odd):
    items = [(odd, "odd"), (0.2, "low"), (0.9, "high")]
    assert [text for _, text in order(items, 0.7)] == ["high", "low", "odd"]


@given(st.text(max_size=20), st.text(max_size=20))
def test_likeness_is_the_same_both_ways_and_one_with_itself(one, other):
    likeness = Likeness([one, other, one])
    assert 0 <= likeness.between(0, 1) <= 1
    assert likeness.between(0, 1) == likeness.between(1, 0)
    assert likeness.between(0, 2) == 1


def test_cjk_is_compared_by_characters_and_pairs():
    assert mmr_words("Tokyo 東京タ") == {"tokyo", "東", "京", "タ", "東京", "京タ"}
