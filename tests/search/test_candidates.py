"""Both legs and their fusion, over a store whose answers are written down here."""

import numpy as np
import pytest

from openclaw_memory.config import SearchConfig
from openclaw_memory.search.candidates import Found, find, fuse, together
from openclaw_memory.search.query import parse_query
from openclaw_memory.types import Chunk, Hit, StoredChunk

RULES = SearchConfig()


class Shelf:
    """A store that finds what it is told: by all terms, by any, by vector."""

    def __init__(self, every=(), any_=(), vector=(), likeness=None):
        self.by = {"all": every, "any": any_}
        self.vector, self.likeness, self.asked = vector, likeness or {}, []

    def search_text(self, _terms, k, *, match="any", source=None):
        self.asked.append((match, source))
        return [Hit(*hit) for hit in self.by[match]][:k]

    def search_vector(self, _vector, k, *, source=None):
        self.asked.append(("vector", source))
        return [Hit(*hit) for hit in self.vector][:k]

    def similarities(self, _vector, chunk_ids):
        return {at: self.likeness[at] for at in chunk_ids if at in self.likeness}

    def chunks(self, ids):
        return [StoredChunk(at, f"memory/{at}.md", "memory", Chunk(1, 1, 0, f"text {at}")) for at in sorted(ids)]


def question(text="boiler october"):
    return parse_query(text, lambda _terms: {}, 10)


VECTOR = np.array([1.0], np.float32)


def test_without_a_vector_there_is_no_vector_leg():
    found = find(question(), Shelf(any_=[(1, 2.0)]), None, RULES, None)
    assert found == Found({1: 2.0}, None)


def test_standardised_scores_count_the_cosine_of_a_chunk_that_only_the_keywords_found():
    def scores(likeness):
        shelf = Shelf(any_=[(1, 2.0), (2, 1.0)], vector=[(2, 0.9), (3, 0.8)], likeness=likeness)
        found = find(question(), shelf, VECTOR, RULES, None)
        assert (found.text, found.vector) == ({1: 2.0, 2: 1.0}, {2: 0.9, 3: 0.8})
        return {candidate.stored.id: candidate.score for candidate in fuse(question(), found, shelf, RULES)}

    assert scores({1: 0.85})[1] > scores({1: 0.1})[1]


def test_a_weighted_sum_counts_nothing_for_what_a_leg_did_not_find():
    shelf = Shelf(any_=[(1, 2.0)], vector=[(2, 0.9)], likeness={1: 0.8})
    rules = SearchConfig(fusion="weighted", vector_weight=0.7, text_weight=0.3)
    found = {c.stored.id: c for c in fuse(question(), find(question(), shelf, VECTOR, rules, None), shelf, rules)}
    assert found[2].score == pytest.approx(0.7 * 0.9)
    assert found[1].score <= 0.3
    assert found[1].vector == 0.0


def test_all_terms_are_asked_first_and_any_where_too_few_have_all():
    rules = SearchConfig(match="all", max_results=2)
    few = Shelf(every=[(1, 3.0)], any_=[(1, 2.9), (2, 1.0)])
    assert find(question(), few, None, rules, None).text == {1: 3.0, 2: 1.0}
    enough = Shelf(every=[(1, 3.0), (2, 2.0)], any_=[(9, 9.0)])
    assert find(question(), enough, None, rules, None).text == {1: 3.0, 2: 2.0}


@pytest.mark.parametrize("match", ["any", "all"])
def test_both_legs_are_asked_for_the_source(match):
    shelf = Shelf()
    find(question(), shelf, VECTOR, SearchConfig(match=match), "sessions")
    assert {source for _, source in shelf.asked} == {"sessions"}


def test_what_was_found_in_each_source_is_one_and_has_a_vector_leg_where_one_of_them_has():
    notes = Found({1: 2.0}, {1: 0.5}, {1: 0.5})
    assert together([notes, Found({7: 3.0}, {8: 0.4}, {7: 0.1, 8: 0.4})]) == Found(
        {1: 2.0, 7: 3.0}, {1: 0.5, 8: 0.4}, {1: 0.5, 7: 0.1, 8: 0.4}
    )
    assert together([notes, Found({7: 3.0}, None)]) == Found({1: 2.0, 7: 3.0}, {1: 0.5}, {1: 0.5})
    assert together([Found({1: 2.0}, None), Found({7: 3.0}, None)]).vector is None
    assert together([Found({}, {}), Found({}, None)]).vector == {}


@pytest.mark.parametrize("fusion", ["standardised", "weighted"])
def test_a_chunk_that_both_legs_praise_comes_first(fusion):
    cosines = {1: 0.2, 2: 0.8, 3: 0.8}
    found = Found({1: 3.0, 2: 3.0, 3: 0.5}, cosines, cosines)
    best = fuse(question(), found, Shelf(), SearchConfig(fusion=fusion))
    assert best[0].stored.id == 2
    assert [candidate.score for candidate in best] == sorted((c.score for c in best), reverse=True)


def test_the_weighted_sum_of_keywords_alone_is_the_keyword_score():
    alone = fuse(question(), Found({1: 1.0}, None), Shelf(), SearchConfig(fusion="weighted"))[0]
    beside = fuse(question(), Found({1: 1.0}, {}), Shelf(), SearchConfig(fusion="weighted"))[0]
    assert alone.score * RULES.text_weight == pytest.approx(beside.score)


def test_one_outlier_of_a_leg_does_not_hide_the_other_leg():
    cosines = {1: 0.1, 2: 0.9, 3: 0.2}
    found = Found({1: 1000.0, 2: 2.0, 3: 1.0}, cosines, cosines)
    best = [candidate.stored.id for candidate in fuse(question(), found, Shelf(), RULES)]
    assert best.index(2) < best.index(3)


def test_no_more_candidates_are_kept_than_are_wanted():
    found = Found({at: float(at) for at in range(1, 60)}, {})
    best = fuse(question(), found, Shelf(), SearchConfig(candidates=5, max_results=1))
    assert [candidate.stored.id for candidate in best] == [59, 58, 57, 56, 55]


@pytest.mark.parametrize("fusion", ["standardised", "weighted"])
def test_nothing_found_fuses_to_nothing(fusion):
    assert fuse(question(), Found({}, {}), Shelf(), SearchConfig(fusion=fusion)) == []
