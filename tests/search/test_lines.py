"""Chunks taken apart into lines, and what speaks for each line."""

import numpy as np
import pytest

from openclaw_memory.search.lines import (
    Neighbourhood,
    analysed,
    date_matches,
    exact_matches,
    likeness,
    lines_of,
    name_matches,
    pair_matches,
    term_overlap,
)
from openclaw_memory.search.question import asked, question_terms
from openclaw_memory.types import Chunk, StoredChunk


def question(text):
    return asked(text, question_terms(text), {}, 10)


def chunk(at, path, start_line, start_char, text):
    return StoredChunk(at, path, "memory", Chunk(start_line, start_line + text.count("\n"), start_char, text))


def one_file(*texts, path="memory/a.md"):
    return lines_of([chunk(1, path, 1, 0, "\n".join(texts))])


def scores(feature, texts, asked_for, **parts):
    return feature([analysed(text) for text in texts], question(asked_for), **parts).tolist()


# --- lines -----------------------------------------------------------------------------------------------------------


def test_lines_that_two_chunks_hold_are_there_once():
    overlapping = [chunk(1, "a.md", 1, 0, "one\ntwo\nthree"), chunk(2, "a.md", 3, 8, "three\nfour")]
    found = lines_of(overlapping)
    assert [(line.number, line.text) for line in found] == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]
    assert len({line.block for line in found}) == 1


def test_a_gap_a_heading_and_another_file_begin_a_block():
    found = lines_of(
        [
            chunk(3, "b.md", 1, 0, "other file"),
            chunk(2, "a.md", 9, 100, "after a gap"),
            chunk(1, "a.md", 1, 0, "one\n# Heading\ntwo"),
        ]
    )
    assert [line.text for line in found] == ["one", "# Heading", "two", "after a gap", "other file"]
    blocks = [line.block for line in found]
    assert blocks[1] == blocks[2]
    assert len(set(blocks)) == 4
    assert blocks == sorted(blocks)


def test_pieces_of_one_long_line_share_its_number():
    found = lines_of([chunk(1, "a.md", 5, 40, "x" * 10), chunk(2, "a.md", 5, 50, "y" * 10)])
    assert [(line.number, line.start_char) for line in found] == [(5, 40), (5, 50)]


# --- features --------------------------------------------------------------------------------------------------------


def test_a_line_with_the_rarer_term_holds_more_of_the_question():
    texts = ["the boiler", "the gauge", "the boiler gauge"]
    wanted = asked("boiler gauge", ("boiler", "gaug"), {"boiler": 9, "gaug": 1}, 10)
    apart = Neighbourhood([line for at, text in enumerate(texts) for line in one_file(text, path=f"memory/{at}.md")])
    apart.blocks = np.arange(3)
    common, rare, both = term_overlap([analysed(text) for text in texts], wanted, apart)
    assert 0 < common < rare < both
    assert both == pytest.approx(1)


def test_a_line_lends_what_it_holds_to_the_lines_beside_it_and_more_to_those_below():
    texts = ["nothing", "the boiler", "nothing", "nothing"]
    above, there, below, far = term_overlap(
        [analysed(text) for text in texts], question("boiler"), Neighbourhood(one_file(*texts))
    )
    assert there == pytest.approx(1)
    assert there > below > above > 0
    assert below > far


def test_nothing_is_lent_across_a_heading():
    texts = ["the boiler", "# Another matter", "nothing"]
    found = term_overlap([analysed(text) for text in texts], question("boiler"), Neighbourhood(one_file(*texts)))
    assert found.tolist() == [1.0, 0.0, 0.0]


def test_neighbouring_words_of_the_question_count_where_they_are_neighbours():
    assert scores(pair_matches, ["the spare key is here", "a key, no spare"], "Who has the spare key?") == [2.0, 0.0]


def test_identifiers_count_only_as_they_are_written():
    texts = ["GEO-1000 is here", "geo 1000", "GEO-1001"]
    assert scores(exact_matches, texts, "Where is GEO-1000?") == [1.0, 0.0, 0.0]
    assert scores(exact_matches, texts, "Where is it?") == [0.0, 0.0, 0.0]


def test_dates_of_the_file_agree_with_dates_of_the_question():
    found = [*one_file("x", path="memory/2026-02-09.md"), *one_file("x", path="memory/2026-03-09.md"), *one_file("x")]
    assert date_matches(found, question("What happened on 2026-02-09?")).tolist() == [1.0, 0.0, 0.0]
    assert date_matches(found, question("What happened?")).tolist() == [0.0, 0.0, 0.0]


def test_labels_speak_for_whom_the_question_names_and_against_others():
    texts = ["Anna: a", "Ben: b", "Anna: c", "Ben: d", "- **Anna:** e", "Ben: f", "Note: g", "plain"]
    assert scores(name_matches, texts, "What did Anna say?") == [0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.0, 0.0]
    assert scores(name_matches, texts, "What did Carl say?") == [0.0] * 8
    assert scores(name_matches, texts[:2], "What did Anna say?") == [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "is_question"),
    [("Who is it?", True), ("**谁？**", True), ('He asked "why?"', True), ("Why? Because.", False), ("", False)],
)
def test_a_line_that_asks_is_known(text, is_question):
    assert analysed(text).is_question is is_question


def test_likeness_follows_the_vectors_of_words():
    vectors = {"dog": [1, 0, 0], "hound": [0.9, 0.1, 0], "tax": [0, 0, 1]}

    def word_vectors(words):
        return np.array([vectors.get(word, [0, 0, 0]) for word in words], np.float32).reshape(-1, 3)

    texts = ["hound", "# tax", "tax", "# nothing", "", "unknown"]
    found = likeness([analysed(text) for text in texts], question("dog"), Neighbourhood(one_file(*texts)), word_vectors)
    assert found.words[0] > 0.9
    assert found.meaning[0] > 0.9
    assert found.words[1:].tolist() == found.meaning[1:].tolist() == [0.0] * 5
    nothing = likeness([analysed("🦄")], question("dog"), Neighbourhood(one_file("🦄")), word_vectors)
    assert (nothing.words.tolist(), nothing.meaning.tolist()) == ([0.0], [0.0])
