"""Chunks taken apart into lines, and what speaks for each line."""

import numpy as np
import pytest

from openclaw_memory.search.line_features import (
    LineVocabulary,
    date_matches,
    exact_matches,
    likeness,
    name_matches,
    pair_matches,
    text_of,
    word_overlap,
)
from openclaw_memory.search.lines import asks, lines_of
from openclaw_memory.search.prepared import Lexicon, Neighbourhood
from openclaw_memory.search.query import parse_query, weighed
from openclaw_memory.types import Chunk, StoredChunk

NO_DATE = np.float32(0)


def question(text, frequencies=None):
    return weighed(parse_query(text), frequencies or {}, 10)


def chunk(at, path, start_line, start_char, text, section=0, context=""):
    found = Chunk(start_line, start_line + text.count("\n"), start_char, text, context, section)
    return StoredChunk(at, path, "sessions" if path.endswith(".jsonl") else "memory", found, at)


def one_file(*texts, path="memory/a.md"):
    return lines_of([chunk(1, path, 1, 0, "\n".join(texts))])


def prepared(*texts, word_vectors=None, apart=False):
    """The arrays of lines of one file, or each of a file of its own, and their words."""
    chunks = [chunk(at, f"memory/{at}.md", 1, 0, text) for at, text in enumerate(texts)]
    lexicon = Lexicon(word_vectors)
    lines = lexicon.lines(chunks if apart else [chunk(1, "memory/a.md", 1, 0, "\n".join(texts))])
    return lines, LineVocabulary(lines, lexicon)


def overlap(text, *texts, frequencies=None, apart=False):
    lines, words = prepared(*texts, apart=apart)
    wanted = question(text, frequencies)
    return word_overlap(words.terms(wanted), wanted, Neighbourhood(lines.middles, lines.blocks)).tolist()


def similar(text, *texts, word_vectors, dated=NO_DATE):
    """Likeness of lines that lend one another nothing."""
    lines, words = prepared(*texts, word_vectors=word_vectors, apart=True)
    asked = question(text)
    found = likeness(lines, words, words.terms(asked), asked, Neighbourhood(lines.middles, lines.blocks), dated)
    return found.words.tolist(), found.meaning.tolist()


def pairs(text, *texts):
    return pair_matches(prepared(*texts)[1], question(text)).tolist()


def named(text, *texts):
    lines, words = prepared(*texts)
    return name_matches(lines, words.lexicon, question(text)).tolist()


# --- lines
def test_lines_that_two_chunks_hold_are_there_once():
    overlapping = [chunk(1, "a.md", 1, 0, "one\ntwo\nthree"), chunk(2, "a.md", 3, 8, "three\nfour")]
    expected = [(1, "one"), (2, "two"), (3, "three"), (4, "four")]
    assert [(line.number, line.text) for line in lines_of(overlapping)] == expected
    found = Lexicon().lines(overlapping)
    assert [(line.number, line.text) for line in found.lines] == expected
    assert found.counts.tolist() == [1, 1, 1, 1]
    assert found.words.tolist() == [0, 1, 2, 3]
    assert set(found.blocks.tolist()) == {0}


def test_a_gap_a_heading_and_another_file_begin_a_block():
    found = Lexicon().lines(
        [
            chunk(3, "b.md", 1, 0, "other file"),
            chunk(2, "a.md", 9, 100, "after a gap"),
            chunk(1, "a.md", 1, 0, "one", section=1),
            chunk(4, "a.md", 2, 4, "# Heading\ntwo", section=2),
        ]
    )
    assert [line.text for line in found.lines] == ["one", "# Heading", "two", "after a gap", "other file"]
    assert found.blocks.tolist() == [0, 1, 1, 2, 3]
    assert found.files.tolist() == [0, 0, 0, 0, 1]


def test_pieces_of_one_long_line_share_its_number():
    found = lines_of([chunk(1, "a.md", 5, 40, "x" * 10), chunk(2, "a.md", 5, 50, "y" * 10)])
    assert [(line.number, line.start_char) for line in found] == [(5, 40), (5, 50)]


def test_a_comment_in_code_begins_no_block():
    found = Lexicon().lines([chunk(1, "a.md", 1, 0, "```bash\n# step one\nls\n```", section=1)])
    assert set(found.blocks.tolist()) == {0}


def test_chunks_that_follow_one_another_in_a_section_are_one_block_and_keep_their_blank_lines():
    found = Lexicon().lines([chunk(1, "a.md", 1, 0, "one", section=1), chunk(2, "a.md", 4, 6, "two", section=1)])
    assert found.blocks.tolist() == [0, 0]
    assert text_of(found.lines) == "one\n\n\ntwo"


def test_carriage_returns_are_no_part_of_a_line():
    assert text_of(one_file("one\r", "two\r")) == "one\ntwo"


def test_blank_lines_of_a_transcript_are_not_shown_and_those_of_a_note_are():
    for path, shown in [("sessions/a.jsonl", "one\ntwo\nthree"), ("memory/a.md", "one\n\n\ntwo\nthree")]:
        assert text_of(one_file("one", "", "", "two", "three", path=path)) == shown


def test_notes_stand_before_transcripts_whatever_their_paths():
    paths = ["sessions/a.jsonl", "zoo/z.md", "MEMORY.md"]
    found = lines_of([chunk(at, path, 1, 0, "x") for at, path in enumerate(paths)])
    assert [line.path for line in found] == ["MEMORY.md", "zoo/z.md", "sessions/a.jsonl"]


def test_the_role_of_a_turn_is_no_word_of_a_transcript_and_a_word_of_a_note():
    texts = ("User: Anna: a", "Assistant: b", "c User: d")
    assert [line.said for line in one_file(*texts, path="sessions/a.jsonl")] == ["Anna: a", "b", "c User: d"]
    assert [line.said for line in one_file(*texts)] == list(texts)


# --- features
def test_a_line_with_the_rarer_term_holds_more_of_the_question():
    texts = ["the boiler", "the gauge", "the boiler gauge"]
    common, rare, both = overlap("boiler gauge", *texts, frequencies={"boiler": 9, "gaug": 1}, apart=True)
    assert 0 < common < rare < both
    assert both == pytest.approx(1)


def test_a_line_lends_what_it_holds_to_the_lines_beside_it_and_more_to_those_below():
    above, there, below, far = overlap("boilers", "nothing", "the boiler", "nothing", "nothing")
    assert there == pytest.approx(1)
    assert there > below > above > 0
    assert below > far


def test_nothing_is_lent_from_one_section_to_another():
    sections = [chunk(1, "a.md", 1, 0, "the boiler", section=1), chunk(2, "a.md", 2, 11, "# Another", section=2)]
    lexicon, wanted = Lexicon(), question("boiler")
    lines = lexicon.lines(sections)
    terms = LineVocabulary(lines, lexicon).terms(wanted)
    assert word_overlap(terms, wanted, Neighbourhood(lines.middles, lines.blocks)).tolist() == [1.0, 0.0]


def test_files_of_any_size_stand_beside_one_another_without_lending():
    far = Neighbourhood(np.array([10**7, 5], np.float32), np.arange(2))
    with np.errstate(all="raise"):
        found = far.strongest(np.array([[1], [0]], np.float32), (300.0, 180.0))
    assert found.tolist() == [[1.0], [0.0]]


def test_one_character_of_cjk_is_found_inside_its_pairs():
    assert overlap("钥", "备用钥匙", "锅炉")[0] == 1.0


def test_neighbouring_words_of_the_question_count_where_they_are_neighbours_in_any_form():
    assert pairs("Who has the spare key?", "the spare keys are here", "a key, no spare") == [2.0, 0.0]


def test_the_last_word_of_a_line_and_the_first_of_the_next_are_no_neighbours():
    assert pairs("spare key", "a spare", "key") == [0.0, 0.0]


def test_a_pair_that_a_line_has_twice_counts_once():
    assert pairs("spare key", "a spare key, a spare key") == [1.0]


def test_identifiers_count_only_as_they_are_written():
    lines = one_file("GEO-1000 is here", "geo 1000", "GEO-1001", "xGEO-1000")
    assert exact_matches(lines, question("Where is GEO-1000?")).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert exact_matches(lines, question("Where is it?")).tolist() == [0.0] * 4


def test_a_code_that_stands_nowhere_speaks_against_every_line():
    lines = one_file("GEO-1001", "follow up")
    assert exact_matches(lines, question("Where is GEO-1000?")).tolist() == [-1.0, -1.0]
    assert exact_matches(lines, question("Is there a follow-up?")).tolist() == [0.0, 0.0]


def test_dates_of_the_file_agree_with_dates_of_the_question():
    found = [*one_file("x", path="memory/2026-02-09.md"), *one_file("x", path="memory/2026-05-09.md"), *one_file("x")]
    assert date_matches(found, question("What happened on 2026-02-09?")).tolist() == [1.0, 0.0, 0.0]
    assert date_matches(found, question("What happened?")).tolist() == [0.0, 0.0, 0.0]


def test_each_chunk_of_a_transcript_has_the_day_of_its_own_that_its_context_begins_with():
    contexts = ["2026-02-09", "2026-05-09 > x", "", "no day"]
    chunks = [
        chunk(at, "sessions/a.jsonl", at, at * 10, "x", at, context) for at, context in enumerate(contexts, start=1)
    ]
    assert date_matches(lines_of(chunks), question("9 February 2026")).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_the_day_of_a_note_is_that_of_its_path_alone():
    undated = lines_of([chunk(1, "memory/a.md", 1, 0, "x", context="2026-02-09")])
    assert date_matches(undated, question("9 February 2026")).tolist() == [0.0]


def test_labels_speak_for_whom_the_question_names_and_against_others():
    texts = ["Anna: a", "Ben: b", "Anna: c", "Ben: d", "- **Anna:** e", "Ben: f", "Note: g", "plain"]
    assert named("What did Anna say?", *texts) == [0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.0, 0.0]
    assert named("What did Carl say?", *texts) == [0.0] * 8
    assert named("What did Anna say?", *texts[:2]) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "is_question"),
    [("Who is it?", True), ("**谁？**", True), ('He asked "why?"', True), ("Why? Because.", False), ("", False)],
)
def test_a_line_that_asks_is_known(text, is_question):
    assert asks(text) is is_question


def test_likeness_follows_the_vectors_of_words():
    vectors = {"dog": [1, 0, 0], "hound": [0.9, 0.1, 0], "tax": [0, 0, 1]}

    def word_vectors(words):
        return np.array([vectors.get(word, [0, 0, 0]) for word in words], np.float32).reshape(-1, 3)

    by_word, meaning = similar("dog", "hound", "tax", "tax", "nothing", "", "unknown", word_vectors=word_vectors)
    assert by_word[0] > 0.9
    assert meaning[0] > 0.9
    assert by_word[1:] == meaning[1:] == [0.0] * 5
    assert similar("dog", "🦄", word_vectors=word_vectors) == ([0.0], [0.0])


def test_a_word_that_stands_in_a_line_counts_in_full_whatever_its_vector_says():
    vectors = {"ferry": [1, 0], "ferries": [0, 1], "inigo": [1, 0], "iñigo": [0, 1], "boat": [0.8, 0.6]}

    def word_vectors(words):
        return np.array([vectors.get(word, [0, 0]) for word in words], np.float32).reshape(-1, 2)

    assert similar("ferry", "ferries", "boat", word_vectors=word_vectors)[0] == [1.0, pytest.approx(0.8)]
    assert similar("unknown", "unknown", "boat", word_vectors=word_vectors)[0] == [1.0, 0.0]
    words, meaning = similar("inigo", "Iñigo", "boat", word_vectors=word_vectors)
    assert words == [1.0, pytest.approx(0.8)]
    assert meaning == [pytest.approx(1.0), pytest.approx(0.8)]


def test_numbers_are_the_same_or_they_are_not():
    def word_vectors(words):
        return np.ones((len(words), 3), np.float32)

    assert similar("043", "error 043", "error 042", word_vectors=word_vectors)[0] == [1.0, 0.0]


def test_the_date_of_a_note_meets_the_words_of_a_date_and_no_others():
    def word_vectors(words):
        return np.zeros((len(words), 3), np.float32)

    texts = ["met Anna", "met Ben"]
    dated = np.array([1.0, 0.0], np.float32)
    assert similar("6 January 2026", *texts, word_vectors=word_vectors, dated=dated)[0] == [1.0, 0.0]
    assert similar("boiler", *texts, word_vectors=word_vectors, dated=dated)[0] == [0.0, 0.0]
