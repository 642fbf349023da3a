"""Draw evaluations, and where the scores of one search come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from openclaw_memory.cli import clean_line
from openclaw_memory.errors import MissingExtraError
from openclaw_memory_lab.report import Evaluation
from openclaw_memory_lab.significance import estimate_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from openclaw_memory.search import Explanation

# Okabe and Ito chose them so that everybody can distinguish them; the tables of results have the same.
_KEYWORD, _VECTOR, _TASK = "#0072b2", "#e69f00", "#009e73"
# Fonts with Chinese, Japanese and Korean signs, of Linux, macOS and Windows; matplotlib's own has none.
_WIDE_FONTS = (
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "WenQuanYi Micro Hei"),
    *("Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic"),
)
# Inches: of a plot of scores, and of each of its bars.
_WIDTH, _MARGIN, _BAR = 8.0, 1.5, 0.4
_GROUP = 0.8  # how much of the place of a group its bars take


def plot_explanation(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Plot each score's parts (keywords, vectors, task), the loss by age, and the threshold as a line.

    Results that the threshold removed are pale.

    Args:
        explanation: The scores: `results.explain()`.
        ax: Where to plot, or None for a new figure.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError('plot_explanation needs matplotlib: pip install ".[lab]" in its checkout') from error
    if ax is None:
        height = _MARGIN + _BAR * max(len(explanation.rows), 1)
        ax = pyplot.subplots(figsize=(_WIDTH, height), layout="constrained")[1]
    places = [-number for number in range(len(explanation.rows))]
    left = [0.0] * len(explanation.rows)
    drawn = (
        ("keywords", _KEYWORD, [row.keyword * row.decay for row in explanation.rows]),
        ("vectors", _VECTOR, [row.vector * row.decay for row in explanation.rows]),
        ("task", _TASK, [row.task * row.decay for row in explanation.rows]),
        ("taken by age", "none", [(row.keyword + row.vector + row.task) * (1 - row.decay) for row in explanation.rows]),
    )
    for label, colour, widths in drawn:
        if label in {"task", "taken by age"} and not any(widths):
            continue
        edge, hatch = ("grey", "////") if colour == "none" else (colour, None)
        parts = ax.barh(places, widths, left=left, color=colour, label=label, hatch=hatch, edgecolor=edge)
        for part, row in zip(parts, explanation.rows, strict=True):
            part.set_alpha(1.0 if row.rank else 0.35)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    threshold = explanation.min_score
    ax.axvline(threshold, color="black", linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
    ticks = [_escape_text(f"{row.rank or 'below'}  {row.citation}") for row in explanation.rows]
    fonts = _list_fonts()
    ax.set_yticks(places, ticks, family=fonts)
    ax.set_xlim(0, max(1.0, *left) if left else 1.0)
    ax.set_xlabel("score")
    ax.set_title(
        _escape_text(f"Where the scores come from: {_shorten(explanation.query)}"), loc="left", wrap=True, family=fonts
    )
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax


def plot_groups(
    ax: Axes,
    evaluations: Sequence[Evaluation],
    label: Literal["kind", "language"],
    groups: Sequence[str],
    colours: Mapping[str, str],
) -> None:
    """Draw the evidence shown: a group for each kind or language of question, in it a bar for each evaluation.

    A thin line over a bar is its `estimate_interval`.

    Args:
        ax: Where to draw.
        evaluations: The evaluations, of the same questions.
        label: The label to group the questions by: "kind" or "language".
        groups: Which groups, in their order; each has questions with evidence.
        colours: The colour of each evaluation, by its name.
    """
    width = _GROUP / len(evaluations)
    for number, evaluation in enumerate(evaluations):
        parts = evaluation.split_by(label)
        places = [at + (number - (len(evaluations) - 1) / 2) * width for at in range(len(groups))]
        heights = [parts[group].shown for group in groups]
        ax.bar(places, heights, width * 0.92, color=colours[evaluation.name], label=evaluation.name)
        for place, group in zip(places, groups, strict=True):
            ax.plot([place, place], estimate_interval(parts[group]), color="black", linewidth=1)
    first = evaluations[0].split_by(label)
    counts = [sum(row.coverage is not None for row in first[group].rows) for group in groups]
    ticks = [f"{group}\n(n = {count})" for group, count in zip(groups, counts, strict=True)]
    ax.set_xticks(range(len(groups)), ticks)
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 1.04)
    ax.set_ylabel("evidence shown (share), with 95 % intervals")


def plot_against(
    ax: Axes,
    places: Sequence[float],
    evaluations: Sequence[Evaluation],
    usual: Evaluation,
    *,
    above: bool = True,
    **look: str,
) -> None:
    """Draw the evidence shown as a line; at each point: on how many questions better, and worse, than `usual`.

    The line ends before a last point that is more than one step away, such as the one for "off".

    Args:
        ax: Where to draw.
        places: The place of each evaluation on the x axis, two at least.
        evaluations: The evaluations.
        usual: The one that the others are counted against.
        above: Whether the counts are above the line, or below it.
        look: `color`, `marker` and `label`, as matplotlib takes them.
    """
    apart = places[-1] - places[-2] > 1
    joined = len(places) - apart
    ax.plot(
        places[:joined],
        [evaluation.shown for evaluation in evaluations[:joined]],
        color=look["color"],
        marker=look["marker"],
        label=look.get("label"),
    )
    if apart:
        ax.plot(places[-1], evaluations[-1].shown, color=look["color"], marker=look["marker"])
    for place, evaluation in zip(places, evaluations, strict=True):
        better, worse = evaluation.compare_with(usual)
        text = "" if evaluation is usual else f"+{better} \u2212{worse}"
        at = (0, 7 if above else -15)
        ax.annotate(text, (place, evaluation.shown), at, textcoords="offset points", ha="center", fontsize=8)


def _shorten(query: str) -> str:
    return query if len(query) <= 80 else f"{query[:79]}…"


def _escape_text(text: str) -> str:
    """Escape text for matplotlib, which reads a `$` in a path or a query as the start of a formula."""
    return clean_line(text).replace("$", r"\$")


def _list_fonts() -> list[str]:
    """Return the usual font, and those of this machine that have Chinese, Japanese and Korean characters."""
    from matplotlib import font_manager, rcParams

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [*rcParams["font.family"], *(name for name in _WIDE_FONTS if name in installed)]
