"""Plots: a bar for each part of a score, a bar for each evaluation and group, and any text as a label."""

import datetime
import sys

import pytest
from openclaw_memory_lab import plot_against, plot_explanation, plot_groups

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.errors import MissingExtraError

QUESTION = "Who ate $40 of lunch?"
NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)


@pytest.fixture
def explain(tmp_path):
    """A function that explains one search of two notes."""
    pytest.importorskip("matplotlib").use("Agg")
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("# Long-term\n\n- Our budget is $40 for <b>lunch</b>.\n")
    (tmp_path / "memory/2026-05-10.md").write_text("# 2026-05-10\n\nThe office got a red door. Nobody ate lunch.\n")
    aging = MemoryConfig().replace({"search": {"half_life_days": 30.0}})
    with Memory.open(tmp_path, config=aging) as memory:
        memory.sync()
        yield lambda question=QUESTION, task=None: memory.search(
            question, options={"explain": True, "task": task}, now=NOW
        ).explain()
    from matplotlib import pyplot

    pyplot.close("all")


def test_a_score_has_a_bar_for_each_answer_and_the_threshold_as_a_line(explain):
    explanation = explain()
    axes = plot_explanation(explanation)
    axes.figure.canvas.draw()  # a formula that cannot be read would raise here
    assert len(axes.get_yticks()) == len(explanation.rows) > 0
    assert {text.get_text() for text in axes.get_legend().get_texts()} >= {"keywords", "vectors", "taken by age"}
    ends = [
        sum(part.get_width() for bar in axes.containers for part in bar if part.get_y() == start.get_y())
        for start in axes.containers[0]
    ]
    assert ends == pytest.approx([row.keyword + row.vector for row in explanation.rows])
    assert axes.lines[0].get_xdata()[0] == explanation.min_score
    assert plot_explanation(explanation, axes) is axes


@pytest.mark.parametrize("question", ["", "half \ud83d of a pair", "nul \x00", "a price of $40 and $50"])
@pytest.mark.sampled(2)
def test_any_question_can_be_plotted(explain, question):
    plot_explanation(explain(question)).figure.canvas.draw()


def test_without_matplotlib_the_remedy_is_named(explain, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[lab\]"'):
        plot_explanation(explain())


def test_a_group_has_a_bar_for_each_evaluation(shown):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    ax = figure.subplots()
    evaluations = [shown("one", 1.0, 0.0), shown("other", 1.0, 1.0)]
    plot_groups(ax, evaluations, "kind", ["keyword"], {"one": "#0072b2", "other": "#e69f00"})
    assert [bar.get_height() for bar in ax.patches] == [0.5, 1.0]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["keyword\n(n = 2)"]


def test_a_line_counts_questions_against_the_usual_and_ends_before_a_point_that_is_far_away(shown):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    ax = figure.subplots()
    usual = shown("usual", 1.0, 0.0)
    plot_against(ax, [0, 1, 3], [shown("a", 0.0, 0.0), shown("b", 1.0, 1.0), usual], usual, color="#0072b2", marker="o")
    assert [list(line.get_xdata()) for line in ax.lines] == [[0, 1], [3]]
    assert [text.get_text() for text in ax.texts] == ["+0 \u22121", "+1 \u22120", ""]
