"""What answers are made from: candidates that may have gone, neighbours in the same file, confidence and share."""

from types import SimpleNamespace

import pytest

from openclaw_memory.config import Search
from openclaw_memory.search import search
from openclaw_memory.search.answers import ANSWERS
from openclaw_memory.types import Chunk, Hit, StoredChunk


class Shelf:
    """A store of chunks by id, of which the keywords find some, and of which some have gone since."""

    def __init__(self, chunks, found, gone=()):
        self.there = {at: chunk for at, chunk in chunks.items() if at not in gone}
        self.found = found

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
    return search(query, store=store, embedder=None, rules=Search(min_score=0.0, **rules))


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
    results = search(" ", store=Shelf({}, {}), embedder=embedder, rules=Search())
    assert (list(results), results.provider, results.model, results.mode) == ([], "p", "m", "hybrid")
