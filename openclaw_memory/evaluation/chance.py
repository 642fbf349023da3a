"""Distinguish from chance what two settings show of the same questions, and draw shares with what it leaves open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from openclaw_memory.errors import QueryError
from openclaw_memory.evaluation.report import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SURE = 0.05  # what is usual: a difference that chance makes in one of twenty trials counts for none
_DRAWS = 2000
_GROUP = 0.8  # how much of the place of a group its bars take


def sign_test(better: int, worse: int) -> float:
    """Return how often tosses of a coin would split at least as unevenly, 0..1 (the two-sided sign test).

    Args:
        better: On how many questions one does better than the other: `Evaluation.against`.
        worse: On how many it does worse.
    """
    tosses = better + worse
    splits: int = sum(math.comb(tosses, k) for k in range(min(better, worse) + 1))
    return float(min(1.0, 2 * splits / 2**tosses))


def shows_more(one: Evaluation, other: Evaluation) -> bool:
    """Whether one shows more evidence than the other, and the sign test says so with p < 0.05.

    Args:
        one: What may show more.
        other: What it is compared with, on the same questions.

    Raises:
        QueryError: They were asked different questions.
    """
    better, worse = one.against(other)
    return better > worse and sign_test(better, worse) < _SURE


def interval(one: Evaluation) -> tuple[float, float]:
    """Return between which shares of the evidence, 0..1, 95 of 100 draws of as many of these questions lie (bootstrap).

    Args:
        one: The evaluation.

    Raises:
        QueryError: None of its questions has evidence.
    """
    import numpy

    shares = [row.shown for row in one.rows if row.shown is not None]
    if not shares:
        raise QueryError(f"no question of {one.name!r} has evidence: there is no share to be sure of")
    draws = numpy.random.default_rng(1).choice(shares, (_DRAWS, len(shares)))
    low, high = numpy.percentile(draws.mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def plot_groups(
    ax: Axes,
    found: Sequence[Evaluation],
    label: Literal["kind", "language"],
    groups: Sequence[str],
    colours: Mapping[str, str],
) -> None:
    """Draw the evidence shown: a group for each kind or language of question, in it a bar for each evaluation.

    A thin line over a bar is its `interval`.

    Args:
        ax: Where to draw.
        found: The evaluations, of the same questions.
        label: What the questions are grouped by: "kind" or "language".
        groups: Which groups, in their order; each has questions with evidence.
        colours: The colour of each evaluation, by its name.
    """
    width = _GROUP / len(found)
    for number, one in enumerate(found):
        parts = one.by(label)
        places = [at + (number - (len(found) - 1) / 2) * width for at in range(len(groups))]
        heights = [parts[group].shown for group in groups]
        ax.bar(places, heights, width * 0.92, color=colours[one.name], label=one.name)
        for place, group in zip(places, groups, strict=True):
            ax.plot([place, place], interval(parts[group]), color="black", linewidth=1)
    first = found[0].by(label)
    counts = [sum(row.shown is not None for row in first[group].rows) for group in groups]
    ticks = [f"{group}\n(n = {count})" for group, count in zip(groups, counts, strict=True)]
    ax.set_xticks(range(len(groups)), ticks)
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 1.04)
    ax.set_ylabel("evidence shown (share), with 95 % intervals")


def plot_against(
    ax: Axes,
    places: Sequence[float],
    found: Sequence[Evaluation],
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
        found: The evaluations.
        usual: The one that the others are counted against.
        above: Whether the counts are above the line, or below it.
        look: `color`, `marker` and `label`, as matplotlib takes them.
    """
    apart = places[-1] - places[-2] > 1
    joined = len(places) - apart
    ax.plot(
        places[:joined],
        [one.shown for one in found[:joined]],
        color=look["color"],
        marker=look["marker"],
        label=look.get("label"),
    )
    if apart:
        ax.plot(places[-1], found[-1].shown, color=look["color"], marker=look["marker"])
    for place, one in zip(places, found, strict=True):
        better, worse = one.against(usual)
        text = "" if one is usual else f"+{better} \u2212{worse}"
        at = (0, 7 if above else -15)
        ax.annotate(text, (place, one.shown), at, textcoords="offset points", ha="center", fontsize=8)
