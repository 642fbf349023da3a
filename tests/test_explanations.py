"""What the explanations say of the ranking are the numbers of the code."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from openclaw_memory import Search, Sessions
from openclaw_memory.search import MAX_QUESTION_CHARS, answers, candidates, lines
from openclaw_memory.search.answers import HYBRID, KEYWORD, Weights

RANKING = (Path(__file__).parents[1] / "docs" / "explanation" / "ranking.md").read_text(encoding="utf-8")
# What turns a value into a score, and is no weight of a line.
OF_THE_SCORE = {"middle", "slope", "spread"}


def test_the_weights_of_lines_are_those_of_the_code():
    rows = re.findall(r"^\| `(\w+)` \| .* \| (-?[\d.]+) \| (-?[\d.]+) \|$", RANKING, re.MULTILINE)
    names = {field.name for field in fields(Weights)} - OF_THE_SCORE
    assert {name: (float(hybrid), float(keyword)) for name, hybrid, keyword in rows} == {
        name: (getattr(HYBRID, name), getattr(KEYWORD, name)) for name in names
    }


@pytest.mark.parametrize(
    "words",
    [
        f"Of a question the first {MAX_QUESTION_CHARS:,} characters count",
        f"the {candidates.TEXT_HITS} best chunks with any of the words",
        f"the {candidates.VECTOR_HITS} nearest chunks",
        f"both weights {Search().text_weight}",
        f"`search.candidates` ({Search().candidates})",
        "twice as many where there are no vectors" if candidates.KEYWORD_FACTOR == 2 else "another factor",
        f"and {answers.NEIGHBOUR_SHARE} of that of the chunks before and after",
        f"for up to {lines.NEIGHBOURS} lines to each side",
        "is {:g} and {:g} for `overlap`".format(*lines.REACH_OF_TERMS),
        "{:g} and {:g} for `words`".format(*lines.REACH_OF_WORDS),
        "{:g} and {:g} for `meaning`".format(*lines.REACH_OF_MEANING),
        f"`search.snippet_chars` ({Search().snippet_chars})",
        f"`search.max_results` ({Search().max_results})",
        f"slope {HYBRID.slope}, middle {HYBRID.middle}; keywords only: {KEYWORD.slope} and {KEYWORD.middle}",
        f"share = e^((value - best value) / {HYBRID.spread:g})",
        f"`search.min_score` ({Search().min_score})",
        f"`sessions.max_share` ({Sessions().max_share})",
        "four times as many windows" if answers.POOL == 4 else "another pool",
    ],
)
def test_the_numbers_of_the_ranking_are_those_of_the_code(words):
    assert words in " ".join(RANKING.split())
