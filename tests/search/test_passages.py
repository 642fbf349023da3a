"""What answers are made from: candidates that may have gone, neighbours in the same file, confidence and share."""

from types import SimpleNamespace

import numpy as np
import pytest

from openclaw_memory.config import SearchConfig
from openclaw_memory.embeddings.static import StaticEmbedder
from openclaw_memory.search import search
from openclaw_memory.search.passages import ANSWERS
from openclaw_memory.types import Chunk, Hit, StoredChunk


class Shelf:
    """A store of chunks by id, of which the keywords find some, and of which some have gone since."""

    def __init__(self, chunks, found, gone=()):
        self.there = {at: chunk for at, chunk in chunks.items() if at not in gone}
        self.found = found

    def holds(self, source):
        return any(chunk.source == source for chunk in self.there.values())

    def search_text(self, _terms, k, **_):
        return [Hit(at, score) for at, score in self.found.items()][:k]

    def chunks(self, ids):
        return [self.there[at] for at in sorted(ids) if at in self.there]

    def paths(self):
        return list(dict.fromkeys(chunk.path for chunk in self.there.values()))

    def chunks_of(self, path):
        return [chunk for chunk in self.there.values() if chunk.path == path]

    def document_frequencies(self, terms):
        return dict.fromkeys(terms, 1)

    def chunk_count(self):
        return len(self.there)


def stored(at, path, start_line, start_char, text):
    return StoredChunk(at, path, "memory", Chunk(start_line, start_line + text.count("\n"), start_char, text))


def ask(store, query, **rules):
    return search(query, store=store, embedder=None, rules=SearchConfig(min_score=0.0, **rules))


@pytest.mark.parametrize("answer", ANSWERS)
def test_chunks_that_have_gone_since_they_were_found_are_left_out(answer):
    chunks = {1: stored(1, "memory/a.md", 1, 0, "the boiler"), 2: stored(2, "memory/b.md", 1, 0, "the boiler too")}
    assert [found.path for found in ask(Shelf(chunks, {1: 2.0, 2: 1.0}, gone={1}), "boiler", answer=answer)] == [
        "memory/b.md"
    ]
    assert list(ask(Shelf(chunks, {1: 2.0, 2: 1.0}, gone={1, 2}), "boiler", answer=answer)) == []


def test_a_window_may_reach_from_one_candidate_into_the_next_and_not_into_another_file():
    chunks = {
        1: stored(1, "memory/a.md", 1, 0, "before"),
        2: stored(2, "memory/a.md", 2, 7, "the boiler"),
        3: stored(3, "memory/b.md", 1, 0, "another file"),
    }
    found = ask(Shelf(chunks, {1: 0.5, 2: 1.0, 3: 0.5}), "boiler")[0]
    assert (found.citation, found.snippet) == ("memory/a.md#L1-L2", "before\nthe boiler")


def test_the_best_answer_has_the_whole_share_and_the_others_less():
    chunks = {
        at: stored(at, f"memory/{at}.md", 1, 0, text) for at, text in {1: "boiler in october", 5: "a boiler"}.items()
    }
    best, other = ask(Shelf(chunks, {1: 3.0, 5: 1.0}), "the boiler in October")
    assert best.path == "memory/1.md"
    assert best.parts["share"] == 1
    assert 0 < other.parts["share"] < 1
    assert best.parts["confidence"] == other.parts["confidence"]


def test_a_snippet_is_never_longer_than_it_may_be():
    chunks = {1: stored(1, "memory/a.md", 1, 0, "boiler " * 500)}
    for answer in ANSWERS:
        (found,) = ask(Shelf(chunks, {1: 1.0}), "boiler", answer=answer, snippet_chars=40)
        assert 0 < len(found.snippet) <= 40


def test_a_question_beyond_the_limit_is_cut_and_not_refused():
    chunks = {1: stored(1, "memory/a.md", 1, 0, "the boiler")}
    assert ask(Shelf(chunks, {1: 1.0}), "boiler " * 20_000)


def test_the_names_of_the_embedder_are_passed_on():
    def no_vector(_text):
        raise AssertionError("a blank question needs no vector")

    embedder = SimpleNamespace(provider="p", model="m", embed_query=no_vector)
    results = search(" ", store=Shelf({}, {}), embedder=embedder, rules=SearchConfig())
    assert (list(results), results.provider, results.model, results.mode) == ([], "p", "m", "hybrid")


class Sensed(Shelf):
    """A shelf whose chunks have cosines with any question."""

    def __init__(self, chunks, found, cosines):
        super().__init__(chunks, found)
        self.cosines = cosines

    def search_vector(self, _vector, k, **_):
        return [Hit(at, score) for at, score in self.cosines.items()][:k]

    def similarities(self, _vector, ids):
        return {at: self.cosines[at] for at in ids if at in self.cosines}


def sensed(store, query, *, use_chunk_scores):
    embedder = SimpleNamespace(provider="p", model="m", embed_query=lambda _text: np.array([1.0], np.float32))
    rules = SearchConfig(min_score=0.0)
    words = StaticEmbedder().word_vectors
    return search(
        query,
        store=store,
        embedder=embedder,
        rules=rules,
        word_vectors=words,
        use_chunk_scores=use_chunk_scores,
        explain=True,
    )


def test_of_lines_that_read_alike_the_one_in_the_nearer_chunk_answers_where_the_embedder_knows_more_than_the_words():
    chunks = {at: stored(at, f"memory/{at}.md", 1, 0, "the boiler is serviced in october") for at in (1, 5, 9)}
    store = Sensed(chunks, {1: 1.0, 5: 1.0, 9: 1.0}, {1: 0.71, 5: 0.70, 9: 0.74})
    found = sensed(store, "When is the boiler serviced?", use_chunk_scores=True)
    assert [result.path for result in found] == ["memory/9.md", "memory/1.md", "memory/5.md"]
    assert [round(result.parts["chunk"], 2) for result in found] == [1.0, 0.25, 0.0]
    deaf = sensed(store, "When is the boiler serviced?", use_chunk_scores=False)
    assert "chunk" not in deaf[0].parts
    # Some chunk is always the nearest: that says nothing about whether the notes answer at all.
    assert found[0].parts["confidence"] == pytest.approx(deaf[0].parts["confidence"])


def test_a_chunk_of_which_no_cosine_is_known_counts_as_the_farthest():
    chunks = {at: stored(at, f"memory/{at}.md", 1, 0, "the boiler") for at in (1, 5, 9)}
    found = sensed(Sensed(chunks, {1: 1.0, 5: 1.0, 9: 1.0}, {5: 0.6, 9: 0.4}), "boiler", use_chunk_scores=True)
    assert {result.path: result.parts["chunk"] for result in found} == {
        "memory/5.md": 1.0,
        "memory/1.md": 0.0,
        "memory/9.md": 0.0,
    }


def test_where_no_chunk_has_a_vector_the_keywords_answer_and_say_so():
    chunks = {1: stored(1, "memory/a.md", 1, 0, "the boiler")}
    found = sensed(Sensed(chunks, {1: 1.0}, {}), "boiler", use_chunk_scores=True)
    assert (len(found), found.mode) == (1, "keyword")
