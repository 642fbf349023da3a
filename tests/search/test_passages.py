"""What answers are made from: candidates that may have gone, neighbours in the same file, confidence and share."""

from types import SimpleNamespace

import pytest
from shelf import VECTOR, Shelf, stored

from openclaw_memory import SearchOptions
from openclaw_memory.config.sections import SearchConfig
from openclaw_memory.embeddings.static import StaticEmbedder
from openclaw_memory.search import SearchRequest
from openclaw_memory.search.line_index import LineIndex
from openclaw_memory.search.search import IndexView, search


def ask(store, query, **settings):
    request = SearchRequest(query, settings=SearchConfig(min_score=0.0, **settings))
    return search(IndexView(store=store, embedder=None, lines=LineIndex()), request)


@pytest.mark.parametrize("answer", ["lines", "chunks"])
def test_chunks_that_have_gone_since_they_were_found_are_left_out(answer):
    chunks = [stored(1, "memory/a.md"), stored(2, "memory/b.md", "the boiler too")]
    left = ask(Shelf(chunks, {1: 2.0, 2: 1.0}, gone={1}), "boiler", answer=answer)
    assert [found.path for found in left] == ["memory/b.md"]
    assert list(ask(Shelf(chunks, {1: 2.0, 2: 1.0}, gone={1, 2}), "boiler", answer=answer)) == []


def test_a_window_may_reach_from_a_candidate_into_the_chunk_before_it_and_not_into_another_file():
    chunks = [
        stored(1, "memory/a.md", "before"),
        stored(2, "memory/a.md", "the boiler", 2, 7),
        stored(3, "memory/b.md", "another file"),
    ]
    found = ask(Shelf(chunks, {2: 1.0}), "boiler")[0]
    assert (found.citation, found.snippet) == ("memory/a.md#L1-L2", "before\nthe boiler")


def by_meaning(chunks, found, near, query, *, has_chunk_vectors=True):
    """The results with an embedder and the vectors of words that ship."""
    index = IndexView(
        store=Shelf(chunks, found, near=near),
        embedder=SimpleNamespace(provider="p", model="m", embed_query=lambda _text: VECTOR),
        lines=LineIndex(StaticEmbedder().embed_words),
        has_chunk_vectors=has_chunk_vectors,
    )
    settings = SearchConfig(min_score=0.0)
    return search(index, SearchRequest(query, options=SearchOptions(explain=True), settings=settings))


def test_of_lines_that_read_alike_the_one_in_the_nearer_chunk_answers_where_chunk_scores_count():
    ends = {1: "", 5: ".", 9: "!"}
    chunks = [stored(at, f"memory/{at}.md", f"the boiler is serviced in october{end}") for at, end in ends.items()]
    given = (chunks, dict.fromkeys((1, 5, 9), 1.0), {1: 0.71, 5: 0.70, 9: 0.74}, "When is the boiler serviced?")
    found = by_meaning(*given)
    assert [result.path for result in found] == ["memory/9.md", "memory/1.md", "memory/5.md"]
    assert [round(result.parts["chunk"], 2) for result in found] == [1.0, 0.25, 0.0]
    without = by_meaning(*given, has_chunk_vectors=False)
    assert "chunk" not in without[0].parts
    # Some chunk is always the nearest: that says nothing about whether the notes answer at all.
    assert found[0].parts["confidence"] == pytest.approx(without[0].parts["confidence"])


FAR_OFF = ["the garden in summer", "rivers carry sand", "a carpenter at work", "the train at noon", "rice for two"]


def test_where_the_best_line_is_weak_what_the_vectors_of_sentences_put_first_alternates_with_it():
    chunks = [stored(3 * at, f"memory/{at}.md", text) for at, text in enumerate(FAR_OFF, 1)]
    near = {3 * at: 0.1 * at for at in range(1, 6)}
    found = by_meaning(chunks, dict.fromkeys(near, 1.0), near, "What colour theme do I like?")
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {"memory/5.md", "memory/4.md"} <= {one.path for one in found[:4]}
    assert len({one.path for one in found}) == 5
