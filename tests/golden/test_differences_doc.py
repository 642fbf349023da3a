"""`docs/explanation/differences.md` lists each deliberate difference that the golden tests know, in their words."""

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOC = HERE.parents[1] / "docs" / "explanation" / "differences.md"


def rows(heading: str) -> dict[str, str]:
    """The table below a heading: the name in its first column, and what its last one says."""
    section = DOC.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {name.strip("`"): reason for name, reason in cells}


@pytest.fixture(scope="module")
def golden():
    spec = importlib.util.spec_from_file_location("golden_functions", HERE / "test_functions_golden.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_first_table_has_every_difference_of_a_function(golden):
    assert rows("Same function, other answer") == {known.group: known.reason for known in golden.DIFFERENCES}


def test_the_second_table_has_every_function_without_one_of_ours(golden):
    assert rows("No such function here") == dict(golden.NOT_MAPPED)
