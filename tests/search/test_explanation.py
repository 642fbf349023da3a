"""How scores came about: the parts add up to the score, by every recipe, and what the threshold took is there."""

import datetime

import pytest
from msgspec.structs import replace

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import QueryError

NOTES = {
    "MEMORY.md": "# Long-term\n\n- The office is in Delft.\n- Our budget is $40 for <b>lunch</b>.\n",
    "memory/2026-01-10.md": "# 2026-01-10\n\nThe office moved: the new office is in Leiden.\n",
    "memory/2026-05-10.md": "# 2026-05-10\n\nThe office got a red door. Nobody ate lunch.\n",
}
QUESTION = "Where is the office?"
NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
RECIPES = {
    "lines": MemoryConfig(),
    "keywords": MemoryConfig().replace({"embedding": {"provider": "none"}}),
    "chunks": MemoryConfig.openclaw().replace({"embedding": {"provider": "static"}, "search": {"min_score": 0.0}}),
    "z-scores of chunks": MemoryConfig().replace({"search": {"answer": "chunks"}}),
}
EVERY = pytest.mark.parametrize("recipe", RECIPES)


@pytest.fixture
def asked(remember):
    """A memory of the notes by a recipe, with a half-life or none."""

    def make(recipe: str, **search: object) -> Memory:
        config = RECIPES[recipe]
        return remember(NOTES, embedder="default", config=replace(config, search=replace(config.search, **search)))

    return make


@EVERY
@pytest.mark.parametrize("half_life", [None, 30.0])
def test_the_parts_of_a_score_add_up_to_it(asked, recipe, half_life):
    question = "Which town is our office in, and its entrance?"
    memory = asked(recipe, half_life_days=half_life, min_score=0.0)
    results = memory.search(question, options={"explain": True}, now=NOW)
    rows = results.explain().rows
    assert [(row.score, row.citation) for row in rows[: len(results)]] == [(one.score, one.citation) for one in results]
    for row in rows:
        assert (row.keyword + row.vector) * row.decay == pytest.approx(row.score)
        assert min(row.keyword, row.vector) >= 0
        assert 0 < row.decay <= 1
    assert any(row.keyword for row in rows)
    assert any(row.vector for row in rows) == (recipe != "keywords")


def test_words_that_stand_there_are_the_keywords_own(asked):
    rows = asked("lines").search("office red door", options={"explain": True}).explain().rows
    assert rows[0].citation == "memory/2026-05-10.md#L3"
    assert (rows[0].keyword, rows[0].vector) == (rows[0].score, 0)


def test_a_word_may_stand_in_a_question_in_two_forms(remember):
    memory = remember(
        {"memory/2026-04-02.md": "# 2026-04-02\n\nBram planted the plants in April.\n"}, embedder="static"
    )
    assert memory.search("planted plants April").explain().rows[0].vector == 0


def test_age_takes_from_what_has_a_day_and_from_nothing_else(asked):
    rows = asked("lines", half_life_days=60.0, min_score=0.0).search(QUESTION, now=NOW).explain().rows
    decay = {row.citation.partition("#")[0]: row.decay for row in rows}
    assert decay["memory/2026-01-10.md"] == pytest.approx(0.5 ** ((NOW.date() - datetime.date(2026, 1, 10)).days / 60))
    assert decay["memory/2026-05-10.md"] == pytest.approx(0.5 ** ((NOW.date() - datetime.date(2026, 5, 10)).days / 60))
    assert decay["MEMORY.md"] == 1


def test_the_same_moment_gives_the_same_scores_on_any_day(asked):
    memory = asked("lines", half_life_days=30.0)
    of_day = datetime.datetime(2026, 6, 1)  # noqa: DTZ001 - of the machine's own time zone
    assert memory.search(QUESTION, now=of_day).results == memory.search(QUESTION, now=of_day.astimezone()).results
    assert memory.search(QUESTION, now=NOW).results != memory.search(QUESTION, now=NOW.replace(year=2027)).results


def test_a_moment_must_be_one(asked):
    with pytest.raises(QueryError, match="now must be a datetime, not '2026-06-01'"):
        asked("lines").search(QUESTION, now="2026-06-01")


def test_what_the_threshold_took_is_there_where_it_was_asked_for(asked):
    pytest.importorskip("pandas")
    memory = asked("lines", min_score=0.95)
    plain, explained = (memory.search(QUESTION, options={"explain": explain}) for explain in (False, True))
    assert plain.filtered == explained.filtered > 0
    assert not plain.rejected
    rows = explained.explain().rows
    assert [row.rank is not None for row in rows] == [True] * len(explained) + [False] * explained.filtered
    assert all((row.score < 0.95, row.rank) == (True, None) for row in rows if row.rank is None)
    assert "below" in explained.explain()._repr_html_()
    assert len(explained.explain().to_pandas()) == len(rows)


def test_nothing_found_has_an_empty_table(asked):
    nothing = asked("lines").search("").explain()
    assert nothing.rows == ()
    assert "<table" not in nothing._repr_html_()


def test_an_explanation_reads_as_a_sum(asked):
    shown = repr(asked("lines").search(QUESTION).explain())
    assert shown.startswith(f"Explanation({QUESTION!r}: threshold 0)\n  0.")
    assert " keyword + " in shown.splitlines()[1]


def test_a_file_that_is_named_is_not_aged(asked):
    rows = asked("lines", half_life_days=1.0).search("memory/2026-01-10.md", now=NOW).explain().rows
    assert (rows[0].score, rows[0].keyword, rows[0].vector, rows[0].decay) == (1.0, 1.0, 0.0, 1.0)


def test_what_words_alone_have_found_below_the_threshold_is_told(asked):
    explained = asked("chunks", min_score=0.9).search(QUESTION, options={"explain": True}).explain()
    assert [row.score < 0.9 for row in explained.rows if row.rank].count(True) > 0
    assert "below which some are shown" in explained._repr_html_()
    assert "below which" not in asked("chunks").search(QUESTION).explain()._repr_html_()
