"""What a search asks of a store, and the fusion of what keyword and vector search found."""

import pytest
from shelf import VECTOR, Shelf, stored

from openclaw_memory.config import SearchConfig
from openclaw_memory.search.candidates import fuse, fusion_of, request_for
from openclaw_memory.search.query import parse_query
from openclaw_memory.types import SourceHits, Store

TURN = '{"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "A boiler!"}]}}\n'
RULES = SearchConfig()
QUERY = parse_query("boiler october")
FUSION = pytest.mark.parametrize("fusion", ["standardised", "weighted"])


def chunks(*ids):
    return [stored(at, f"memory/{at}.md") for at in ids]


def gathered(shelf, rules=RULES, vector=VECTOR, source=None):
    return shelf.candidates(request_for(QUERY, vector, rules, source, fusion_of(QUERY, rules)))


def fused(hits, rules=RULES):
    return fuse(hits, {one.id: one for one in chunks(*hits.text, *(hits.vector or {}))}, fusion_of(QUERY, rules))


def test_standardised_scores_count_the_cosine_of_a_chunk_that_only_the_keywords_found():
    def scores(cosine):
        shelf = Shelf(chunks(1, 2, 3), {1: 2.0, 2: 1.0}, near={2: 0.9, 3: 0.8}, cosines={1: cosine})
        (hits,) = gathered(shelf).hits
        assert (hits.text, hits.vector) == ({1: 2.0, 2: 1.0}, {2: 0.9, 3: 0.8})
        return {candidate.stored.id: candidate.score for candidate in fused(hits)}

    assert scores(0.85)[1] > scores(0.1)[1]


def test_a_weighted_sum_counts_nothing_for_what_one_search_did_not_find():
    rules = SearchConfig(fusion="weighted", vector_weight=0.7, text_weight=0.3)
    (hits,) = gathered(Shelf(chunks(1, 2), {1: 2.0}, near={2: 0.9}, cosines={1: 0.8}), rules).hits
    found = {candidate.stored.id: candidate for candidate in fused(hits, rules)}
    assert found[2].score == pytest.approx(0.7 * 0.9)
    assert found[1].score <= 0.3
    assert found[1].vector == 0.0


def test_chunks_with_all_terms_are_filled_up_with_others_where_too_few_have_all():
    rules = SearchConfig(match="all", max_results=2)
    few = Shelf(chunks(1, 2), text={1: 2.9, 2: 1.0}, every={1: 3.0})
    assert gathered(few, rules, None).hits[0].text == {1: 3.0, 2: 1.0}
    enough = Shelf(chunks(1, 2, 9), text={9: 9.0}, every={1: 3.0, 2: 2.0})
    assert gathered(enough, rules, None).hits[0].text == {1: 3.0, 2: 2.0}


MOST_CALLS = 4  # snapshot, meta, candidates, and the stamps of the files where they are compared again


@pytest.mark.parametrize("embedder", ["static", None])
def test_a_whole_search_calls_the_store_at_most_four_times(remember, open_store, tmp_path, monkeypatch, embedder):
    files = {"memory/boiler.md": "The boiler is red.\n", "sessions/a.jsonl": TURN, "memory/b.md": "Other.\n"}
    memory = remember(files, embedder=embedder)
    memory.search("first")
    calls, inside = [], []

    def counted(name, method):
        def call(*arguments, **options):
            if not inside:  # what the store calls in itself is no call of the search
                calls.append(name)
            inside.append(name)
            try:
                return method(*arguments, **options)
            finally:
                inside.pop()

        return call

    names = [name for name in dir(Store) if not name.startswith("_")]
    kind = type(open_store(tmp_path / "other.sqlite"))
    for name in names:
        monkeypatch.setattr(kind, name, counted(name, getattr(kind, name)))
    for query in ("Is the boiler red?", "boiler", "boiler.md"):
        calls.clear()
        assert memory.search(query, min_score=0.0)
        assert "candidates" in calls
        assert len(calls) <= MOST_CALLS, calls


@FUSION
def test_a_chunk_that_both_legs_rank_high_comes_first(fusion):
    cosines = {1: 0.2, 2: 0.8, 3: 0.8}
    best = fused(SourceHits({1: 3.0, 2: 3.0, 3: 0.5}, cosines, cosines), SearchConfig(fusion=fusion))
    assert best[0].stored.id == 2
    assert [candidate.score for candidate in best] == sorted((c.score for c in best), reverse=True)


def test_one_outlier_of_a_leg_does_not_hide_the_other_leg():
    cosines = {1: 0.1, 2: 0.9, 3: 0.2}
    best = [one.stored.id for one in fused(SourceHits({1: 1000.0, 2: 2.0, 3: 1.0}, cosines, cosines))]
    assert best.index(2) < best.index(3)
