"""What one call of a search may ask for: what cannot be is told with the remedy."""

from __future__ import annotations

import pytest

from openclaw_memory import MemoryConfig
from openclaw_memory.errors import QueryError
from openclaw_memory.search.request import BUDGET_PASSAGE_CHARS


# --- a budget of characters instead of a number
@pytest.fixture
def tides(remember):
    """Twenty days of twelve lines about the same."""
    lines = "\n".join(f"Gauge {number} measured the tide of the harbour at noon, DAY." for number in range(12))
    files = {f"memory/2026-03-{day:02}.md": f"# Tides\n\n{lines.replace('DAY', f'{day}')}\n" for day in range(1, 21)}
    return lambda **parts: remember(files, **parts)


def chars(results):
    return sum(len(result.snippet) for result in results)


def test_within_a_budget_there_are_more_and_shorter_results_that_fill_it(tides):
    six, many = (memory := tides()).search("tide of the harbour"), memory.search("tide of the harbour", max_chars=4000)
    assert len(six) == 6
    assert len(many) > 10
    assert 3500 < chars(many) <= 4000
    assert max(len(result.snippet) for result in many) <= BUDGET_PASSAGE_CHARS
    assert many[0].score == six[0].score


def test_a_small_budget_shows_more_days_of_a_list_than_of_one_answer(remember):
    aside = "Bo said that the tea was green and that all the trains of the morning had been late by half an hour."
    hobbies = ("swimming", "judo", "chess", "pottery", "weaving", "rowing", "singing", "archery")
    days = [f"{aside}\nAna took up {hobby} as a hobby.\n{aside}\n" for hobby in hobbies]
    memory = remember({f"memory/2026-03-{day:02}.md": text for day, text in enumerate(days, 1)})
    found = memory.search("Which hobbies does Ana have?", max_chars=500)
    assert len({result.path for result in found}) >= 5
    assert aside in memory.search("When did Ana take up judo?", max_chars=500)[0].snippet


def test_a_number_and_a_budget_both_hold(tides):
    memory = tides()
    assert len(memory.search("tide of the harbour", max_chars=4000, max_results=2)) == 2
    few = memory.search("tide of the harbour", max_chars=700, max_results=5)
    assert chars(few) <= 700
    assert len(few) + few.omitted == 5


def test_a_budget_of_any_size_is_kept_and_shows_something(tides):
    memory = tides()
    for most in (1, 40, 150, 1000):
        assert 0 < chars(memory.search("tide of the harbour", max_chars=most)) <= most


def test_a_line_that_is_longer_than_a_passage_is_shown_whole(remember):
    line = f"The harbour master is {'very ' * 90}kind, and is called Petronella Vos."
    found = remember({"MEMORY.md": f"# People\n\n{line}\n"}).search("Who is the harbour master?", max_chars=4000)
    assert found[0].snippet == line


def test_whole_chunks_keep_their_length_and_number(tides):
    found = tides(config=MemoryConfig.openclaw()).search("tide of the harbour", max_chars=4000)
    assert len(found) + found.omitted == 6
    assert len(found[0].snippet) > BUDGET_PASSAGE_CHARS
    assert chars(found) <= 4000


def test_a_budget_that_is_no_number_of_characters_is_refused(tides):
    memory = tides()
    for wrong in (0, -1, 1.5, "700", True):
        with pytest.raises(QueryError, match="max_chars must be a whole number of at least 1"):
            memory.search("tide", max_chars=wrong)
