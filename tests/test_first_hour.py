"""A new memory answers the questions about a vault that a person would keep."""

from __future__ import annotations

import importlib
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MARGIN = 0.05  # below the bars: a question more or less is no other quality


def test_a_new_memory_answers_first_what_it_holds_and_doubts_what_it_does_not(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)  # the scripts there import each other
    first_hour = importlib.import_module("first_hour")
    asked = first_hour.ask(first_hour.questions())
    figures = first_hour.figures(asked)
    floors = {name: bar - MARGIN for name, bar in first_hour.BARS.items()}
    assert {name: figures[name] for name, floor in floors.items() if figures[name] < floor} == {}
    assert figures["matter"] == 0
    held = first_hour.figures([each for each in asked if each.question.split == "held-out"])
    assert held["first"] >= first_hour.BARS["first"] - MARGIN
