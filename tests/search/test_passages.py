"""What answers are made from: candidates that may have gone, neighbours in the same file, confidence and share."""

from types import SimpleNamespace

import pytest
from shelf import VECTOR, Shelf, stored

from openclaw_memory.config import SearchConfig
from openclaw_memory.embeddings.static import StaticEmbedder
from openclaw_memory.search.passages import ANSWERS
from openclaw_memory.search.prepared import Lexicon
from openclaw_memory.search.search import search
from openclaw_memory.types import SearchRequest


def ask(store, query, **rules):
    return search(SearchRequest(query), store=store, embedder=None, rules=SearchConfig(min_score=0.0, **rules))


@pytest.mark.parametrize("answer", ANSWERS)
def test_chunks_that_have_gone_since_they_were_found_are_left_out(answer):
    chunks = [stored(1, "memory/a.md"), stored(2, "memory/b.md", "the boiler too")]
    left = ask(Shelf(chunks, {1: 2.0, 2: 1.0}, gone={1}), "boiler", answer=answer)
    assert [found.path for found in left] == ["memory/b.md"]
    assert list(ask(Shelf(chunks, {1: 2.0, 2: 1.0}, gone={1, 2}), "boiler", answer=answer)) == []


def test_a_window_may_reach_from_one_candidate_into_the_next_and_not_into_another_file():
    chunks = [
        stored(1, "memory/a.md", "before"),
        stored(2, "memory/a.md", "the boiler", 2, 7),
        stored(3, "memory/b.md", "another file"),
    ]
    found = ask(Shelf(chunks, {1: 0.5, 2: 1.0, 3: 0.5}), "boiler")[0]
    assert (found.citation, found.snippet) == ("memory/a.md#L1-L2", "before\nthe boiler")


def test_the_best_answer_has_the_whole_share_and_the_others_less():
    chunks = [stored(1, "memory/1.md", "boiler in october"), stored(5, "memory/5.md", "a boiler")]
    best, other = ask(Shelf(chunks, {1: 3.0, 5: 1.0}), "the boiler in October")
    assert best.path == "memory/1.md"
    assert best.parts["share"] == 1
    assert 0 < other.parts["share"] < 1
    assert best.parts["confidence"] == other.parts["confidence"]


def test_a_question_beyond_the_limit_is_cut_and_not_refused():
    assert ask(Shelf([stored(1, "memory/a.md")], {1: 1.0}), "boiler " * 20_000)


def test_a_blank_query_needs_no_vector_and_finds_nothing():
    def no_vector(_text):
        raise AssertionError("a blank query needs no vector")

    embedder = SimpleNamespace(provider="p", model="m", embed_query=no_vector)
    results = search(SearchRequest(" "), store=Shelf(), embedder=embedder, rules=SearchConfig())
    assert (list(results), results.provider, results.model, results.mode) == ([], "p", "m", "hybrid")


def test_the_vector_of_a_query_is_made_once():
    made = []
    embedder = SimpleNamespace(provider="p", model="m", embed_query=lambda text: made.append(text) or VECTOR)
    chunks = [stored(1, "memory/a.md"), stored(2, "sessions/a.jsonl", "User: a red boiler")]
    shelf = Shelf(chunks, {1: 0.5, 2: 0.5}, near={1: 0.5, 2: 0.5})
    results = search(SearchRequest("boiler"), store=shelf, embedder=embedder, rules=SearchConfig(min_score=0.0))
    assert {result.path for result in results} == {"memory/a.md", "sessions/a.jsonl"}
    assert made == ["boiler"]


def test_a_transcript_is_never_read_whole_for_its_name():
    shelf = Shelf([stored(1, "sessions/boiler.jsonl")], {1: 0.5})
    shelf.file_chunks = None  # calling it fails
    for query in ("boiler", "boiler.jsonl", "sessions/boiler.jsonl"):
        assert [result.source for result in ask(shelf, query)] == ["sessions"]


def by_meaning(chunks, found, near, query, *, use_chunk_scores=True):
    """The results with an embedder and the vectors of words that ship."""
    return search(
        SearchRequest(query, explain=True),
        store=Shelf(chunks, found, near=near),
        embedder=SimpleNamespace(provider="p", model="m", embed_query=lambda _text: VECTOR),
        rules=SearchConfig(min_score=0.0),
        lexicon=Lexicon(StaticEmbedder().word_vectors),
        use_chunk_scores=use_chunk_scores,
    )


def test_of_lines_that_read_alike_the_one_in_the_nearer_chunk_answers_where_chunk_scores_count():
    chunks = [stored(at, f"memory/{at}.md", "the boiler is serviced in october") for at in (1, 5, 9)]
    given = (chunks, dict.fromkeys((1, 5, 9), 1.0), {1: 0.71, 5: 0.70, 9: 0.74}, "When is the boiler serviced?")
    found = by_meaning(*given)
    assert [result.path for result in found] == ["memory/9.md", "memory/1.md", "memory/5.md"]
    assert [round(result.parts["chunk"], 2) for result in found] == [1.0, 0.25, 0.0]
    without = by_meaning(*given, use_chunk_scores=False)
    assert "chunk" not in without[0].parts
    # Some chunk is always the nearest: that says nothing about whether the notes answer at all.
    assert found[0].parts["confidence"] == pytest.approx(without[0].parts["confidence"])


def test_a_chunk_without_a_known_cosine_counts_as_the_farthest():
    chunks = [stored(at, f"memory/{at}.md") for at in (1, 5, 9)]
    found = by_meaning(chunks, dict.fromkeys((1, 5, 9), 1.0), {5: 0.6, 9: 0.4}, "boiler")
    assert {result.path: result.parts["chunk"] for result in found} == {
        "memory/5.md": 1.0,
        "memory/1.md": 0.0,
        "memory/9.md": 0.0,
    }


def test_where_no_chunk_has_a_vector_the_keywords_answer_and_say_so():
    found = by_meaning([stored(1, "memory/a.md")], {1: 1.0}, {}, "boiler")
    assert (len(found), found.mode) == (1, "keyword")


def ranked_by_chunk(texts, near, query, *, use_chunk_scores):
    """The numbers of the chunks of the results, where keyword search has found all of them alike."""
    chunks = [stored(3 * at, f"memory/{at}.md", text) for at, text in enumerate(texts, 1)]
    near = {3 * at: cosine for at, cosine in enumerate(near, 1)}
    found = by_meaning(chunks, dict.fromkeys(near, 1.0), near, query, use_chunk_scores=use_chunk_scores)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    return [int(one.path.removeprefix("memory/").removesuffix(".md")) for one in found]


FAR_OFF = ["the garden in summer", "rivers carry sand", "a carpenter at work", "the train at noon", "rice for two"]


def test_where_the_best_line_is_weak_what_the_vectors_of_sentences_put_first_alternates_with_it():
    evenly = [0.1, 0.2, 0.3, 0.4, 0.5]
    words_alone = ranked_by_chunk(FAR_OFF, evenly, "What colour theme do I like?", use_chunk_scores=False)
    both = ranked_by_chunk(FAR_OFF, evenly, "What colour theme do I like?", use_chunk_scores=True)
    assert {5, 4} <= set(both[:4])
    assert sorted(both) == sorted(words_alone) == [1, 2, 3, 4, 5]


def test_where_the_best_line_is_sure_it_stays_first():
    texts = [*FAR_OFF, "the boiler is serviced in october"]
    found = ranked_by_chunk(
        texts, [0.5, 0.4, 0.3, 0.2, 0.1, 0.0], "When is the boiler serviced?", use_chunk_scores=True
    )
    assert found[0] == 6


@pytest.mark.parametrize("use_chunk_scores", [True, False])
def test_what_is_nearest_by_far_is_among_the_first_three(use_chunk_scores):
    texts = [*(f"the boiler of house {at} is serviced" for at in range(4)), "zzz"]
    found = ranked_by_chunk(texts, [0.1, 0.1, 0.1, 0.1, 0.9], "boiler serviced", use_chunk_scores=use_chunk_scores)
    assert 5 in found[:3]
    assert found[0] != 5
    assert sorted(found) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("query", "has_vectors"),
    [
        ("деплой сервиса api", False), ("boiler деплой api", True), ("سُجلت", False), ("2026 деплой", False), ("2026", True),
        ("boiler", True), ("Íñigo", True), ("الاسم؟", False),
    ],
)  # fmt: skip
def test_lines_are_compared_by_vectors_where_most_words_have_one(query, has_vectors):
    chunks = [stored(1, "memory/a.md", f"{query} and more"), stored(5, "memory/b.md", "another line")]
    (first, *_) = by_meaning(chunks, {1: 1.0, 5: 0.5}, {1: 0.5, 5: 0.1}, query, use_chunk_scores=False)
    assert ("meaning" in first.parts) is has_vectors
