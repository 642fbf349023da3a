"""Tell a difference between two evaluations of the same questions from chance."""

from __future__ import annotations

import math

from openclaw_memory.errors import QueryError
from openclaw_memory_lab.report import Evaluation

_SURE = 0.05  # what is usual: a difference that chance makes in one of twenty trials counts for none
_DRAWS = 2000


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
    """Return whether one shows more evidence than the other, by the sign test with p < 0.05.

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
