"""Formulas of fusion and decay, and the order and choice of answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw_memory.config.sections import SearchConfig
from openclaw_memory.search.ranking import TEXT_SCORE, VECTOR_SCORE, order_results, select_results
from openclaw_memory.types import SearchResult


def answer(path="memory/a.md", score=0.5, snippet="text", *, text=0.0, vector=0.0, line=1):
    source = "sessions" if path.endswith(".jsonl") else "memory"
    return SearchResult(path, line, line, score, snippet, source, {TEXT_SCORE: text, VECTOR_SCORE: vector})


def order(answers, question=""):
    return [one.path for one in order_results(answers, question, None)]


def select(answers, min_score, limit, max_share):
    return select_results(answers, SearchConfig(min_score=min_score, max_results=limit), max_share)


def test_equal_scores_are_in_order_of_their_words_then_of_their_place():
    answers = [answer("b.md", line=1), answer("a.md", line=2), answer("a.md", line=1), answer("c.md", text=3.0)]
    found = order_results(answers, "", None)
    assert [(one.path, one.start_line) for one in found] == [("c.md", 1), ("a.md", 1), ("a.md", 2), ("b.md", 1)]


def test_a_file_that_the_question_names_comes_first_with_score_one_also_before_mmr():
    weak = replace(answer("memory/boiler.md", 0.1), confidence="weak")
    answers = [answer("memory/a.md", 0.9), weak, answer("memory/c.md", 0.8)]
    for mmr_lambda in (None, 0.5):
        found = order_results(answers, "boiler.md", mmr_lambda)
        assert (found[0].path, found[0].score, found[0].confidence) == ("memory/boiler.md", 1.0, "strong")


def test_the_name_of_a_transcript_is_its_file_name_and_not_a_word_that_is_its_id():
    answers = [answer("memory/a.md", 0.9), answer("sessions/boiler.jsonl", 0.1)]
    assert order(answers, "boiler") == ["memory/a.md", "sessions/boiler.jsonl"]
    assert order(answers, "boiler.jsonl") == ["sessions/boiler.jsonl", "memory/a.md"]


# --- notes and transcripts
def chosen_of(kinds, limit, max_share, min_score=0.0):
    """Which of answers, `n` from notes and `t` from transcripts, best first, are chosen."""
    names = {"n": "memory/{}.md", "t": "sessions/{}.jsonl"}
    answers = [answer(names[kind].format(at), 1 - at / 100) for at, kind in enumerate(kinds)]
    return "".join("n" if one.source == "memory" else "t" for one in select(answers, min_score, limit, max_share))


@pytest.mark.parametrize(
    ("kinds", "limit", "max_share", "chosen"),
    [
        ("ttttttnnnnnn", 6, 0.34, "ttnnnn"), ("nntntnttnnnn", 6, 0.34, "nntntn"), ("nnnnnnnttt", 6, 0.34, "nnnnnn"),
        ("ttttttnnn", 6, 0.34, "tttnnn"), ("tttttt", 6, 0.34, "tttttt"), ("ttnn", 1, 0.34, "t"),
        ("ttnn", 2, 0.34, "tn"), ("ttttnnnn", 4, 0.5, "ttnn"), ("ttnn", 2, 1.0, "tt"), ("ttnn", 2, 0.0, "nn"),
        ("tttn", 2, 0.0, "tn"),
    ],
)  # fmt: skip
def test_transcripts_have_their_share_of_the_places_and_what_the_notes_leave_over(kinds, limit, max_share, chosen):
    assert chosen_of(kinds, limit, max_share) == chosen


def test_words_of_a_note_that_no_vector_speaks_for_keep_no_place_from_a_transcript_above_the_threshold():
    said = [answer(f"sessions/{at}.jsonl", 0.9, vector=0.9) for at in range(3)]
    words_alone = answer("memory/a.md", 0.3, text=2.0)
    assert select([*said, words_alone], 0.35, 3, 0.34) == said
    assert select([*said, words_alone], 0.35, 4, 0.34) == [*said, words_alone]


@given(st.text("nt", max_size=12), st.integers(1, 8), st.floats(0, 1))
def test_no_place_stays_empty_and_transcripts_take_none_from_a_note_beyond_their_share(kinds, limit, max_share):
    chosen = chosen_of(kinds, limit, max_share)
    assert len(chosen) == min(limit, len(kinds))
    if chosen.count("n") < kinds.count("n"):
        assert chosen.count("t") <= max(limit * max_share, 1)
