"""What the explanations say of the ranking are the numbers of the code."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from openclaw_memory.config import SearchConfig, SessionsConfig
from openclaw_memory.search import candidates, passages, prepared, query_dates
from openclaw_memory.search.passages import HYBRID, KEYWORD, LATE, Weights
from openclaw_memory.search.query import MAX_QUESTION_CHARS

RANKING = (Path(__file__).parents[1] / "docs" / "explanation" / "ranking.md").read_text(encoding="utf-8")
# What turns a value into a score, and is no weight of a line.
OF_THE_SCORE = {"middle", "slope", "spread", "weak"}


def test_the_weights_of_lines_are_those_of_the_code():
    rows = re.findall(r"^\| `(\w+)` \| .* \| (-?[\d.]+) \| (-?[\d.]+) \| (-?[\d.]+) \|$", RANKING, re.MULTILINE)
    names = {field.name for field in fields(Weights)} - OF_THE_SCORE
    assert {name: tuple(map(float, weights)) for name, *weights in rows} == {
        name: tuple(getattr(each, name) for each in (HYBRID, LATE, KEYWORD)) for name in names
    }


@pytest.mark.parametrize(
    "words",
    [
        f"The first {MAX_QUESTION_CHARS:,} characters of a question count",
        f"the {candidates.TEXT_HITS} best chunks with any of the words",
        f"the {candidates.VECTOR_HITS} nearest chunks",
        f"both weights {SearchConfig().text_weight}",
        f"`search.candidates` ({SearchConfig().candidates})",
        "twice as many without vectors" if candidates.KEYWORD_FACTOR == 2 else "another factor",
        f"and {passages.NEIGHBOUR_SHARE} of that of the chunks before and after",
        f"for up to {prepared.NEIGHBOURS} lines to each side",
        "is {:g} and {:g} for `overlap`".format(*prepared.REACH_OF_TERMS),
        "{:g} and {:g} for `words` and `tokens`".format(*prepared.REACH_OF_WORDS),
        "{:g} and {:g} for `meaning`".format(*prepared.REACH_OF_MEANING),
        f"`search.snippet_chars` ({SearchConfig().snippet_chars})",
        f"`search.max_results` ({SearchConfig().max_results})",
        f"within {passages.REACH} lines, worth at most {passages.DROP:g} less",
        f"{passages.ATTRIBUTION} of what the best line of theirs",
        f"A result with a score below {HYBRID.weak} is `weak`, with keywords only below {KEYWORD.weak}",
        f"those below {passages.WEAK_CHUNK_BELOW} are weak",
        f"0 after {query_dates.LATE_DAYS} days",
        f"slope {HYBRID.slope}, middle {HYBRID.middle}; with tokens: {LATE.slope} and {LATE.middle};",
        f"keywords only: {KEYWORD.slope} and {KEYWORD.middle}",
        f"share = e^((value - best value) / {HYBRID.spread:g})",
        f"`search.min_score` ({SearchConfig().min_score})",
        f"`sessions.max_share` ({SessionsConfig().max_share})",
        "four times as many passages" if passages.POOL == 4 else "another pool",
    ],
)
def test_the_numbers_of_the_ranking_are_those_of_the_code(words):
    assert words in " ".join(RANKING.split())
