"""What the explanations say of the ranking and of records is what the code does."""

import re
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import fields

from openclaw_memory import Memory
from openclaw_memory.config.sections import RecordsConfig, SearchConfig
from openclaw_memory.records import settlement
from openclaw_memory.search import candidates, passages
from openclaw_memory.search.passages import HYBRID, KEYWORD, LATE, Weights
from openclaw_memory.search.query import MAX_QUESTION_CHARS
from openclaw_memory.text import days
from openclaw_memory.types.records import Outcome

DOCS = Path(__file__).parents[1] / "docs"
RANKING = (DOCS / "explanation" / "ranking.md").read_text(encoding="utf-8")
RECORDS = (DOCS / "explanation" / "records.md").read_text(encoding="utf-8")
HEARTBEAT = (DOCS / "how-to" / "upkeep.md").read_text(encoding="utf-8")
RULES = RecordsConfig()
# What turns a value into a score, and is no weight of a line.
OF_THE_SCORE = {"coverage", "middle", "slope", "spread"}


def test_the_weights_of_lines_are_those_of_the_code():
    rows = re.findall(r"^\| `(\w+)` \| .* \| (-?[\d.]+) \| (-?[\d.]+) \| (-?[\d.]+) \|$", RANKING, re.MULTILINE)
    names = {field.name for field in fields(Weights)} - OF_THE_SCORE
    assert {name: tuple(map(float, weights)) for name, *weights in rows} == {
        name: tuple(getattr(each, name) for each in (HYBRID, LATE, KEYWORD)) for name in names
    }


def cells(text: str, header: str, column: int) -> list[str]:
    """The names in backticks in a column of the table with this header, from above."""
    rows = text.split(f"\n| {header} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [name for row in rows for name in re.findall("`([^`]+)`", row.split(" | ")[column])]


def test_the_fields_of_a_record_are_those_of_the_code(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        said = memory.records.remember("fact", "office", "the old mill")
    assert cells(RECORDS, "Field", 0) == list(said.record.to_dict())


def test_every_outcome_of_an_observation_is_in_the_table():
    # Only `confirm` confirms.
    assert set(cells(RECORDS, "What is observed", 1)) == {*get_args(Outcome)} - {"confirmed"}


def test_the_tasks_of_a_heartbeat_are_those_of_the_code_in_their_order(tmp_path):
    with Memory.open(tmp_path, embedder=None) as memory:
        report = memory.heartbeat(budget_seconds=60)
    assert cells(HEARTBEAT, "Task", 0) == [task.name for task in report.tasks]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (RANKING, f"of more than {MAX_QUESTION_CHARS:,} characters"),
        (RANKING, f"the {candidates.TEXT_HITS} best chunks with any of the words"),
        (RANKING, f"the {candidates.VECTOR_HITS} nearest chunks"),
        (RANKING, f"both weights {SearchConfig().text_weight}"),
        (RANKING, f"`search.candidates` ({SearchConfig().candidates})"),
        (RANKING, f"`search.snippet_chars` ({SearchConfig().snippet_chars})"),
        (RANKING, f"`search.max_results` ({SearchConfig().max_results})"),
        (RANKING, f"within {passages.REACH} lines, worth at most {passages.DROP:g} less"),
        (RANKING, f"A result with a score below {passages.WEAK_BELOW} is `weak`"),
        (RANKING, f"those below {passages.WEAK_CHUNK_BELOW} are weak"),
        (RANKING, f"0 after {days.LATE_DAYS} days"),
        (RANKING, f"slope {HYBRID.slope}, middle {HYBRID.middle}; with tokens: {LATE.slope} and {LATE.middle};"),
        (RANKING, f"keywords only: {KEYWORD.slope} and {KEYWORD.middle}"),
        (RANKING, f"share = e^((value - best value) / {HYBRID.spread:g})"),
        (RANKING, f"`search.min_score` ({SearchConfig().min_score})"),
        (RECORDS, f"has held for {settlement.STABLE_DAYS} days"),
        (RECORDS, "`{}`, `{}` and `{}`".format(*settlement.HIGH_IMPACT)),
    ],
)
def test_the_numbers_of_a_page_are_those_of_the_code(page, words):
    assert words in " ".join(page.split())
